//! A table for people: findings first in what they say, one line per check.

use std::io::{self, Write};

use crate::conform::check::Level;
use crate::conform::results::{CheckResult, OutcomeKind, Report, SubjectReport};
use crate::report::style::{BAD, BOLD, DIM, GOOD, ODD, Paint};
use crate::report::text::one_line;

/// Writes the report for a terminal.
///
/// # Errors
/// What `out` says.
pub fn write_text(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for subject in &report.subjects {
        write_subject(report.level, subject, out)?;
        writeln!(out)?;
    }
    for subject in &report.subjects {
        writeln!(out, "{}", summary(subject))?;
    }
    let exit = report.exit();
    writeln!(out, "exit {}: {}", exit.code(), exit.meaning())
}

fn write_subject(level: Level, subject: &SubjectReport, out: &mut dyn Write) -> io::Result<()> {
    let files: Vec<_> = subject.files.iter().map(|file| one_line(file)).collect();
    writeln!(out, "{}", BOLD.paint(&files.join("  beside  ")))?;
    for (label, text) in &subject.facts {
        let label = DIM.paint(&format!("{label:<12}"));
        writeln!(out, "  {label} {}", one_line(text))?;
    }
    if let Some(refused) = &subject.refused {
        let what = match refused.defect {
            true => BAD.paint("cannot be checked"),
            false => ODD.paint("not executable here"),
        };
        writeln!(out, "  {what}: {}", one_line(&refused.message))?;
    }
    for result in &subject.results {
        write_result(level, result, out)?;
    }
    Ok(())
}

fn write_result(level: Level, result: &CheckResult, out: &mut dyn Write) -> io::Result<()> {
    let (paint, word): (Paint, &str) = match result.outcome {
        OutcomeKind::Passed => (GOOD, "ok"),
        OutcomeKind::Finding if result.level <= level => (BAD, "FINDING"),
        OutcomeKind::Finding => (ODD, "finding"),
        OutcomeKind::NotApplicable => (DIM, "-"),
        OutcomeKind::Error => (BAD, "ERROR"),
    };
    let word = paint.paint(&format!("{word:<8}"));
    let (id, of) = (&result.id, result.level.name());
    let text = one_line(&result.text);
    writeln!(out, "  {word} {of:<13} {id:<34} {}", DIM.paint(&text))?;
    if result.outcome == OutcomeKind::Finding {
        writeln!(out, "           {}", one_line(&result.why))?;
        writeln!(out, "           {}", result.link)?;
    }
    Ok(())
}

/// The last line of a subject: how far it conforms.
fn summary(subject: &SubjectReport) -> String {
    let names: Vec<_> = subject
        .files
        .iter()
        .map(|file| file.rsplit('/').next().unwrap_or(file))
        .collect();
    let counts: Vec<_> = Level::ALL
        .iter()
        .map(|level| {
            let count = subject.findings(*level).count();
            format!("{count} {}", level.name())
        })
        .collect();
    let checked = subject.count(OutcomeKind::Passed) + subject.count(OutcomeKind::Finding);
    let skipped = subject.count(OutcomeKind::NotApplicable);
    let reached = match (&subject.refused, subject.reached()) {
        (Some(refused), _) if !refused.defect => ODD.paint("not executable here"),
        (_, None) => BAD.paint("does not conform"),
        (_, Some(level)) => GOOD.paint(&format!("level reached: {}", level.name())),
    };
    format!(
        "{}: {checked} checked, {skipped} not applicable; findings: {}; {reached}",
        names.join(" beside "),
        counts.join(", ")
    )
}
