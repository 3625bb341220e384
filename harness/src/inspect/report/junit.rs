//! JUnit XML: a suite per file or pair, a case per rule, so that what is fine is seen too.

use std::fmt::Write as _;
use std::io::{self, Write};

use dnn_assay_elf::{RuleOutcome, RuleState, Severity};

use super::rule;
use crate::inspect::results::{FileReport, Judged, Report};
use crate::report::junit::{PlainCase, PlainOutcome, PlainSuite, write_plain};

/// Writes the report as JUnit XML. A warning or a note is a pass with its text in the case's
/// output.
///
/// # Errors
/// What `out` says.
pub fn write_junit(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut suites: Vec<_> = report.files.iter().map(file_suite).collect();
    suites.extend(report.pairs.iter().map(|pair| PlainSuite {
        name: format!("{} beside {}", pair.first.display(), pair.second.display()),
        cases: cases(pair.into()),
    }));
    write_plain(&suites, out)
}

fn file_suite(file: &FileReport) -> PlainSuite {
    match file {
        Ok(inspection) => PlainSuite {
            name: inspection.path.display().to_string(),
            cases: cases((&**inspection).into()),
        },
        Err(refused) => PlainSuite {
            name: refused.path.display().to_string(),
            cases: vec![PlainCase {
                class: "inspect".to_owned(),
                name: "file".to_owned(),
                seconds: 0.0,
                outcome: PlainOutcome::Error,
                kind: "not-a-plugin".to_owned(),
                text: refused.what.to_string(),
            }],
        },
    }
}

fn cases(judged: Judged<'_>) -> Vec<PlainCase> {
    let outcomes = judged.outcomes.iter();
    outcomes.map(|outcome| case(judged, outcome)).collect()
}

fn case(judged: Judged<'_>, outcome: &RuleOutcome) -> PlainCase {
    let (group, name) = outcome.rule.split_once('/').unwrap_or(("", outcome.rule));
    let red = outcome.counting() > 0 && outcome.severity == Severity::Error;
    let (result, text) = match &outcome.state {
        RuleState::NotApplicable { reason } => (PlainOutcome::Skipped, reason.clone()),
        RuleState::Off => (
            PlainOutcome::Skipped,
            "switched off by the policy".to_owned(),
        ),
        RuleState::Checked { .. } if red => (PlainOutcome::Failure, story(judged, outcome)),
        RuleState::Checked { found: 0, .. } => (PlainOutcome::Success, String::new()),
        RuleState::Checked { .. } => (PlainOutcome::Success, story(judged, outcome)),
    };
    PlainCase {
        class: format!("inspect.{group}"),
        name: name.to_owned(),
        seconds: 0.0,
        outcome: result,
        kind: super::severity(outcome.severity).to_owned(),
        text,
    }
}

/// What was found, why it matters, what to do, how to see it.
fn story(judged: Judged<'_>, outcome: &RuleOutcome) -> String {
    let rule = rule(outcome.rule);
    let counting = outcome.counting();
    let mut text = String::new();
    if counting > 0 {
        let _ = writeln!(text, "{counting} found; demanded: {}", rule.demand);
    }
    let mut listed = 0;
    for finding in judged.counting(outcome.rule) {
        let _ = writeln!(text, "  {}", super::sentence(finding));
        listed += 1;
    }
    if listed < counting {
        let _ = writeln!(text, "  and {} more", counting - listed);
    }
    for finding in judged.waived().filter(|f| f.rule == outcome.rule) {
        let reason = finding.waiver.as_ref().map_or("", |w| w.reason.as_str());
        let _ = writeln!(text, "  accepted: {} ({reason})", super::sentence(finding));
    }
    let _ = writeln!(text, "why: {}\nfix: {}", rule.reason, rule.fix);
    let first = judged.findings.iter().find(|f| f.rule == outcome.rule);
    if let Some(finding) = first.filter(|finding| !finding.command.is_empty()) {
        let _ = writeln!(text, "see: {}", finding.command);
    }
    text + rule.link
}
