//! JUnit XML: a suite per plugin or pair, a case per check.

use std::io::{self, Write};

use crate::conform::check::Level;
use crate::conform::results::{CheckResult, OutcomeKind, Report, SubjectReport};
use crate::report::junit::{PlainCase, PlainOutcome, PlainSuite, write_plain};

/// Writes the report as JUnit XML. A finding milder than the level is a pass with its text in the
/// case's output.
///
/// # Errors
/// What `out` says.
pub fn write_junit(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let suites: Vec<_> = report
        .subjects
        .iter()
        .map(|subject| PlainSuite {
            name: subject.files.join(" beside "),
            cases: cases(report.level, subject),
        })
        .collect();
    write_plain(&suites, out)
}

fn cases(level: Level, subject: &SubjectReport) -> Vec<PlainCase> {
    let refused = subject.refused.iter().map(|refused| PlainCase {
        class: "conform".to_owned(),
        name: "load".to_owned(),
        seconds: 0.0,
        outcome: match refused.defect {
            true => PlainOutcome::Error,
            false => PlainOutcome::Skipped,
        },
        kind: "load".to_owned(),
        text: refused.message.clone(),
    });
    let results = subject.results.iter().map(|result| case(level, result));
    refused.chain(results).collect()
}

fn case(level: Level, result: &CheckResult) -> PlainCase {
    let outcome = match result.outcome {
        OutcomeKind::Finding if result.level <= level => PlainOutcome::Failure,
        OutcomeKind::Finding | OutcomeKind::Passed => PlainOutcome::Success,
        OutcomeKind::NotApplicable => PlainOutcome::Skipped,
        OutcomeKind::Error => PlainOutcome::Error,
    };
    let (group, name) = result.id.split_once('/').unwrap_or(("", &result.id));
    PlainCase {
        class: format!("conform.{group}"),
        name: name.to_owned(),
        seconds: result.seconds,
        outcome,
        kind: result.level.name().to_owned(),
        text: match outcome {
            PlainOutcome::Failure => {
                format!("{}\n{}\n{}", result.text, result.why, result.link)
            }
            _ => result.text.clone(),
        },
    }
}
