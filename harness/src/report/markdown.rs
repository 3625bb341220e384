//! For GitHub: the summary of a job's step in Markdown, and annotations.

use std::fmt::Write as _;
use std::io;

use super::Reporter;
use super::failure::{failure_text, finding_waiver, headline, is_failure, waiver};
use super::sampled::sampled_text;
use super::text::{clean, count, duration, figure, one_line, plural};
use crate::journal::{CaseEnd, Infra, InfraKind, Journal, Summary, Unit};
use crate::verdict::Verdict;

/// Most bytes of a summary. GitHub takes 1 MiB from a step and drops all of it beyond.
pub const MOST_BYTES: usize = 200_000;
/// Most annotations: GitHub shows ten of a kind in a step.
pub const MOST_ANNOTATIONS: usize = 10;
/// Failures that are told in full.
const TOLD: usize = 20;
/// Failures that are listed.
const LISTED: usize = 500;

/// The summary in Markdown.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepSummary;

/// `::error` lines for the first failures.
#[derive(Clone, Copy, Debug, Default)]
pub struct Annotations;

impl Reporter for StepSummary {
    fn name(&self) -> &'static str {
        "step-summary"
    }

    fn write(&self, journal: &Journal, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(markdown(journal).as_bytes())
    }
}

impl Reporter for Annotations {
    fn name(&self) -> &'static str {
        "annotations"
    }

    fn write(&self, journal: &Journal, out: &mut dyn io::Write) -> io::Result<()> {
        let units = journal.units();
        let ends = failures(&units).filter_map(|unit| unit.attempts.last());
        let findings = journal.infra.iter();
        let findings = findings.filter(|infra| infra.kind == InfraKind::Finding);
        let all = ends
            .map(|end| annotation(end))
            .chain(findings.map(finding_annotation));
        for line in all.take(MOST_ANNOTATIONS) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

fn failures<'u, 'j>(units: &'u [Unit<'j>]) -> impl Iterator<Item = &'u Unit<'j>> {
    let is_shown = |unit: &&Unit<'_>| is_failure(&unit.verdict) || unit.verdict == Verdict::Missing;
    units.iter().filter(is_shown)
}

/// A workflow command; its properties and its message each have characters that must be coded.
fn annotation(end: &CaseEnd) -> String {
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let mut out = String::from("::error ");
    if let Some(file) = &end.file {
        let _ = write!(out, "file={},", property(file));
        if let Some(line) = end.line {
            let _ = write!(out, "line={line},");
        }
    }
    let _ = write!(
        out,
        "title={}::{}",
        property(&end.verdict.to_string()),
        data(&format!("{} {}", end.case, headline(end)))
    );
    out
}

fn finding_annotation(finding: &Infra) -> String {
    let message = data(&finding.message);
    format!("::error title=finding::{message}")
}

fn data(text: &str) -> String {
    one_line(text).replace('%', "%25")
}

fn markdown(journal: &Journal) -> String {
    let units = journal.units();
    let summary = journal.summary();
    let mut out = String::new();
    head(&mut out, journal, &units, &summary);
    let failed: Vec<_> = failures(&units).collect();
    for unit in failed.iter().take(TOLD) {
        if let Some(end) = unit.attempts.last() {
            push_whole(&mut out, &story(journal, end));
        }
    }
    list(&mut out, &failed);
    for finding in journal
        .infra
        .iter()
        .filter(|i| i.kind == InfraKind::Finding)
    {
        push_whole(&mut out, &finding_story(finding));
    }
    for infra in journal
        .infra
        .iter()
        .filter(|i| i.kind != InfraKind::Finding)
    {
        push_whole(&mut out, &format!("> {}\n\n", inline(&infra.message)));
    }
    out
}

/// Appends where the whole still fits.
fn push_whole(out: &mut String, text: &str) {
    if out.len() + text.len() <= MOST_BYTES {
        out.push_str(text);
    }
}

fn head(out: &mut String, journal: &Journal, units: &[Unit<'_>], summary: &Summary) {
    let exit = journal.end.as_ref().and_then(|end| end.exit);
    let mark = match exit {
        Some(0) => "✅",
        Some(_) => "❌",
        None => "⚠️",
    };
    let said = exit.map_or("the run was cut".to_owned(), |exit| format!("exit {exit}"));
    let _ = writeln!(out, "## {mark} DNN Assay: {said}\n");
    for plugin in &journal.plugins {
        let _ = write!(out, "`{}`", inline(&plugin.path).replace('`', "'"));
        if let Some(id) = &plugin.build_id {
            let _ = write!(out, ", build-id `{}`", inline(id).replace('`', "'"));
        }
        if let Some(error) = &plugin.error {
            let _ = write!(out, ": **{}**", inline(&error.message));
        }
        out.push_str("\n\n");
    }
    let _ = writeln!(
        out,
        "| planned | verified | declined | plugin | reference |\n| ---: | ---: | ---: | ---: | ---: |"
    );
    let _ = writeln!(
        out,
        "| {} | {} | {} | {} | {} |\n",
        count(summary.planned),
        count(summary.verified),
        count(summary.count_of("unsupported")),
        duration(summary.plugin_ms),
        duration(summary.reference_ms)
    );
    if summary.sampled > 0 {
        let verified = count(summary.sampled);
        let _ = writeln!(
            out,
            "{verified} of the verified were judged by samples, not as a whole.\n"
        );
        for end in units.iter().filter_map(|unit| unit.attempts.last()) {
            if let Some(text) = sampled_text(end) {
                push_whole(
                    out,
                    &format!("* `{}`: {}\n", inline(&end.case), inline(&text)),
                );
            }
        }
        out.push('\n');
    }
    let verdicts: Vec<String> = summary
        .by_verdict
        .iter()
        .map(|(name, n)| format!("{} {name}", count(*n)))
        .collect();
    let _ = writeln!(out, "{}\n", verdicts.join(" · "));
    if let Some(worst) = &summary.worst_margin {
        let case = inline(&worst.key.case);
        let _ = writeln!(
            out,
            "Worst margin {} of the bound: `{case}`\n",
            figure(worst.margin)
        );
    }
}

fn story(journal: &Journal, end: &CaseEnd) -> String {
    let text = format!("{}\n{}", failure_text(journal, end), waiver(journal, end));
    folded(&end.verdict.to_string(), &end.case, &text)
}

fn finding_story(finding: &Infra) -> String {
    let waiver = finding_waiver(finding).unwrap_or_default();
    let text = format!("{}\n\n{waiver}", one_line(&finding.message));
    folded(
        "finding",
        finding.rule.as_deref().unwrap_or_default(),
        &text,
    )
}

/// A text that opens under its title.
fn folded(what: &str, name: &str, text: &str) -> String {
    // A fence longer than any in the text cannot be closed by it.
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    format!(
        "<details><summary><b>{}</b> <code>{}</code></summary>\n\n{fence}text\n{}\n{fence}\n\n</details>\n\n",
        html(what),
        html(&one_line(name)),
        clean(text).trim_end()
    )
}

fn list(out: &mut String, failed: &[&Unit<'_>]) {
    if failed.len() <= TOLD {
        return;
    }
    push_whole(
        out,
        &format!(
            "### And {}\n\n",
            plural((failed.len() - TOLD) as u64, "more")
        ),
    );
    for unit in failed.iter().skip(TOLD).take(LISTED) {
        let case = inline(&unit.key.case);
        push_whole(out, &format!("* {} `{case}`\n", unit.verdict));
    }
    out.push('\n');
}

fn longest_run(text: &str, wanted: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// One line in which nothing is markup.
fn inline(text: &str) -> String {
    html(&one_line(text))
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
