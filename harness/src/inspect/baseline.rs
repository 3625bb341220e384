//! A policy that accepts what is there today, for review.

use std::collections::BTreeSet;
use std::io::{self, Write};

use dnn_assay_elf::policy::Exception;
use dnn_assay_elf::{Finding, Policy, Severity, demangle};
use jiff::civil::Date;
use serde_json::json;

use super::results::Report;
use crate::report::text::one_line;

/// Writes `policy` with an exception for every error and warning of the report, so that from then
/// on only what is new counts. Exceptions that have expired are left out.
///
/// The report must list all findings: the policy's limit of the list must not have cut it.
///
/// # Errors
/// What `out` says.
pub fn write_baseline(
    report: &Report,
    policy: &Policy,
    today: Date,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "# What was there on {today}. Each exception is a finding that waits for a fix or for a"
    )?;
    writeln!(
        out,
        "# reason: remove it with its fault, or write why it is accepted and until when."
    )?;
    write_policy(policy, out)?;
    let holds = |e: &&Exception| {
        let last = e
            .expires
            .as_ref()
            .and_then(|text| text.parse::<Date>().ok());
        last.is_none_or(|last| today <= last)
    };
    let kept: Vec<_> = policy.exceptions.iter().filter(holds).collect();
    let new = accepted(report);
    if kept.is_empty() && new.is_empty() {
        return writeln!(out, "exceptions: []");
    }
    writeln!(out, "exceptions:")?;
    for exception in kept {
        let subject = exception.subject.as_deref();
        write_exception(&exception.rule, subject, &exception.reason, out)?;
        if let Some(expires) = &exception.expires {
            writeln!(out, "    expires: {}", json!(expires))?;
        }
    }
    let reason = format!("in the baseline of {today}, not yet reviewed");
    for (rule, subject) in new {
        write_exception(rule, subject, &reason, out)?;
    }
    Ok(())
}

/// The errors and warnings that count, each once.
fn accepted(report: &Report) -> BTreeSet<(&'static str, Option<&str>)> {
    let counts = |finding: &&Finding| {
        finding.waiver.is_none()
            && finding.severity > Severity::Info
            && !finding.rule.starts_with("policy/")
    };
    let findings = report.judged().flat_map(|judged| judged.findings.iter());
    findings
        .filter(counts)
        .map(|f| (f.rule, f.subject.as_ref().map(|s| s.name.as_str())))
        .collect()
}

fn write_exception(
    rule: &str,
    subject: Option<&str>,
    reason: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "  - rule: {rule}")?;
    if let Some(subject) = subject {
        if let Some(readable) = demangle(subject) {
            writeln!(out, "    # {}", one_line(&readable))?;
        }
        // JSON's strings are YAML's double-quoted ones.
        writeln!(out, "    subject: {}", json!(subject))?;
    }
    writeln!(out, "    reason: {}", json!(reason))
}

/// All of a policy but its exceptions, where it differs from the default.
fn write_policy(policy: &Policy, out: &mut dyn Write) -> io::Result<()> {
    let of = |policy: &Policy| serde_json::to_value(policy).expect("a policy is plain data");
    let (own, default) = (of(policy), of(&Policy::default()));
    let sections = own.as_object().expect("a policy is a mapping");
    for (key, value) in sections {
        if key != "exceptions" && default.get(key) != Some(value) {
            writeln!(out, "{key}: {value}")?;
        }
    }
    Ok(())
}
