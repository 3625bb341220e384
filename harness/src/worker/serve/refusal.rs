//! Answers that end a question or a case before its time.

use crate::worker::loader::Failed;
use crate::worker::outcome::{CaseResult, Reply};

/// An answer that ends a question or a case.
pub(super) enum Refusal {
    Failed(&'static str, Failed),
    Violation(&'static str, String),
}

pub(super) fn not_loaded() -> Refusal {
    violation("Create", "no plugin is loaded")
}

pub(super) fn violation(call: &'static str, what: impl Into<String>) -> Refusal {
    Refusal::Violation(call, what.into())
}

/// For `map_err`: names the call that failed.
pub(super) fn failed(call: &'static str) -> impl FnOnce(Failed) -> Refusal {
    move |failed| Refusal::Failed(call, failed)
}

impl From<Refusal> for CaseResult {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Failed(call, Failed { status, text }) => Self::CallFailed {
                call: call.to_owned(),
                status,
                text,
            },
            Refusal::Violation(call, what) => Self::Violation {
                call: call.to_owned(),
                what,
            },
        }
    }
}

impl<T> From<Refusal> for Reply<T> {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Failed(call, Failed { status, text }) => Self::CallFailed {
                call: call.to_owned(),
                status,
                text,
            },
            Refusal::Violation(call, what) => Self::Violation {
                call: call.to_owned(),
                what,
            },
        }
    }
}
