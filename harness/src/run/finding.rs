//! Findings that follow from no output: a case that was left out, a plugin that answers no more.

use crate::judge::{Finding, judge_calls};
use crate::verdict::{FailKind, Phase, SkipReason, Verdict};
use crate::worker::{CaseResult, LoadFailure, Reply};

/// A case that is left out.
pub(super) fn skipped(reason: SkipReason, text: &str) -> Finding {
    Finding {
        verdict: Verdict::Skipped(reason),
        reason: text.to_owned(),
        phase: None,
    }
}

/// A plugin that loaded before and does not load again.
pub(super) fn lost(failure: &LoadFailure) -> Finding {
    let stopped = match failure {
        LoadFailure::Stopped(stopped) => judge_calls(&stopped.clone().into()),
        _ => None,
    };
    stopped.unwrap_or_else(|| Finding {
        verdict: Verdict::Fail(FailKind::Abi),
        reason: format!("the plugin loaded before and does not load again: {failure}"),
        phase: Some(Phase::Load),
    })
}

/// What it says of a plugin that it does not tell which engines take a graph.
pub(super) fn judge_reply(reply: Reply<Vec<i64>>) -> Finding {
    let result = match reply {
        Reply::Ok(_) => CaseResult::Ok,
        Reply::CallFailed { call, status, text } => CaseResult::CallFailed { call, status, text },
        Reply::Violation { call, what } => CaseResult::Violation { call, what },
        Reply::Stopped(stopped) => stopped.into(),
    };
    judge_calls(&result).unwrap_or_else(|| skipped(SkipReason::Until, "--until applicable"))
}
