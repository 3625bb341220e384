//! Reports of an inspection. Each is a pure function of a [`Report`](super::Report).

mod json;
mod junit;
mod list;
mod text;

use dnn_assay_elf::rules::{self, Rule};
use dnn_assay_elf::{Finding, Severity};

pub use json::write_json;
pub use junit::write_junit;
pub use list::{list_json, list_markdown, list_text};
pub use text::write_text;

/// The rule of an outcome.
fn rule(id: &str) -> &'static Rule {
    rules::find(id).expect("outcomes and findings name rules that there are")
}

/// All rules: of one file, then of two.
fn all_rules() -> impl Iterator<Item = &'static Rule> {
    rules::all().chain(dnn_assay_elf::pairs::RULES)
}

/// A severity's word.
fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

/// A finding's subject, readable where it is mangled, and what was seen.
fn sentence(finding: &Finding) -> String {
    match &finding.subject {
        Some(subject) => {
            let name = subject.demangled.as_ref().unwrap_or(&subject.name);
            format!("{name}: {}", finding.detail)
        }
        None => finding.detail.clone(),
    }
}
