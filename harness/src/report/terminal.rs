//! The first screen of a run, for people. Written with ANSI styles; print it through
//! [`print()`] or another `anstream` stream, which drops them where there is no terminal.

use std::fmt::Write as _;
use std::io;

use super::declined::declined_engines;
use super::failure::{
    engine_argument, failure_text, finding_waiver, headline, is_failure, reproduction, waiver,
};
use super::next::next_commands;
use super::sampled::sampled_text;
use super::style::{BAD, BOLD, DIM, GOOD, ODD};
use super::text::{clean, count, duration, figure, one_line, plural};
use super::{Reporter, stdout};
use crate::journal::{Infra, InfraKind, Journal, PluginRecord, Summary, Unit};
use crate::verdict::{SkipReason, Verdict};

/// Failures that are named one by one.
const NAMED: usize = 10;

/// Writes the first screen and the summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terminal;

impl Reporter for Terminal {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn write(&self, journal: &Journal, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(screen(journal).as_bytes())
    }
}

/// Prints the screen to standard output: in colour on a terminal, plain elsewhere, as `NO_COLOR`
/// and the like ask.
///
/// # Errors
/// What standard output says.
pub fn print(journal: &Journal) -> io::Result<()> {
    Terminal.write(journal, &mut stdout())
}

/// The screen without styles.
pub fn plain(journal: &Journal) -> String {
    anstream::adapter::strip_str(&screen(journal)).to_string()
}

fn screen(journal: &Journal) -> String {
    let units = journal.units();
    let summary = journal.summary();
    let mut out = String::new();
    for plugin in &journal.plugins {
        plugin_lines(&mut out, journal, plugin, &units);
        out.push('\n');
    }
    counts_lines(&mut out, &summary);
    time_lines(&mut out, journal, &summary);
    slowest_lines(&mut out, journal, &summary);
    sampled_lines(&mut out, &units);
    failure_lines(&mut out, journal, &units);
    out.push_str(&declined_engines(journal, &units));
    infra_lines(&mut out, journal);
    if journal.end.is_none() {
        let cut = "the journal has no end: the run was cut";
        row(&mut out, "note", &ODD.paint(cut));
    }
    verdict_line(&mut out, journal, &summary);
    out.push_str("next\n");
    for command in next_commands(journal, &units, &summary) {
        let _ = writeln!(out, "  {command}");
    }
    out
}

fn row(out: &mut String, label: &str, text: &str) {
    let _ = writeln!(out, "{} {text}", DIM.paint(&format!("{label:<12}")));
}

fn plugin_lines(out: &mut String, journal: &Journal, plugin: &PluginRecord, units: &[Unit<'_>]) {
    let source = plugin.source.as_deref().map(one_line);
    let path = BOLD.paint(&one_line(&plugin.path));
    row(out, "plugin", &with_reason(&path, source.as_deref()));
    if let Some(build_id) = &plugin.build_id {
        row(out, "build-id", &one_line(build_id));
    }
    if let Some(error) = &plugin.error {
        let text = clean(&error.message);
        let mut lines = text.lines();
        row(
            out,
            "error",
            &BAD.paint(lines.next().unwrap_or(&error.kind)),
        );
        for line in lines {
            row(out, "", line);
        }
        return;
    }
    if let Some(wire) = &plugin.wire {
        row(
            out,
            "wire",
            &with_reason(&one_line(wire), plugin.wire_reason.as_deref()),
        );
    }
    for (index, engine) in plugin.engines.iter().enumerate() {
        let label = if index == 0 { "engines" } else { "" };
        let mut text = format!("{} {:#018x}", one_line(&engine.label()), engine.id);
        if !engine.traits.is_empty() {
            let _ = write!(text, " ({})", one_line(&engine.traits.join(", ")));
        }
        row(out, label, &text);
    }
    if plugin.engines.is_empty() {
        row(out, "engines", "none");
    }
    if let Some(memory) = &plugin.memory {
        row(
            out,
            "memory",
            &with_reason(&one_line(memory), plugin.memory_reason.as_deref()),
        );
    }
    row(out, "device", &device(journal, plugin, units));
    for finding in &plugin.findings {
        row(out, "finding", &ODD.paint(&one_line(finding)));
    }
}

fn with_reason(text: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{text} {}", DIM.paint(&format!("({})", one_line(reason)))),
        None => text.to_owned(),
    }
}

/// The device, or why there is none.
fn device(journal: &Journal, plugin: &PluginRecord, units: &[Unit<'_>]) -> String {
    let of_plugin = units.iter().filter(|unit| unit.key.plugin == plugin.plugin);
    let mut skipped =
        of_plugin.filter(|unit| unit.verdict == Verdict::Skipped(SkipReason::NoDevice));
    if let Some(why) = skipped.find_map(|unit| unit.attempts.last()?.reason.as_deref()) {
        return ODD.paint(&one_line(why));
    }
    let device = journal
        .start
        .as_ref()
        .and_then(|start| start.device.as_ref());
    let Some(device) = device else {
        return "none used".to_owned();
    };
    let parts = [&device.name, &device.arch, &device.pci, &device.driver];
    let known: Vec<String> = parts
        .into_iter()
        .flatten()
        .map(|part| one_line(part))
        .collect();
    match (known.is_empty(), &device.kind) {
        (true, Some(kind)) if kind == "none" => "none used".to_owned(),
        (false, _) => known.join(", "),
        (true, Some(kind)) => one_line(kind),
        (true, None) => "unknown".to_owned(),
    }
}

fn counts_lines(out: &mut String, summary: &Summary) {
    let by_samples = match summary.sampled {
        0 => String::new(),
        some => format!(" ({} of them by samples)", count(some)),
    };
    let planned = format!(
        "{}, {} verified{by_samples}, {} declined",
        plural(summary.planned, "case"),
        count(summary.verified),
        count(summary.count_of("unsupported")),
    );
    row(out, "planned", &planned);
    let verdicts: Vec<String> = summary
        .by_verdict
        .iter()
        .map(|(name, number)| {
            let text = format!("{} {name}", count(*number));
            match *name {
                "pass" | "expected-fail" => GOOD.paint(&text),
                "unsupported" | "skipped" => text,
                "weak" | "not-run" | "flaky" => ODD.paint(&text),
                _ => BAD.paint(&text),
            }
        })
        .collect();
    if !verdicts.is_empty() {
        row(out, "verdicts", &verdicts.join(", "));
    }
    for (label, counts) in [
        ("failed by", &summary.by_fail_kind),
        ("skipped by", &summary.by_skip_reason),
        ("not run by", &summary.by_not_run),
    ] {
        if !counts.is_empty() {
            let parts: Vec<String> = counts
                .iter()
                .map(|(name, n)| format!("{} {name}", count(*n)))
                .collect();
            row(out, label, &parts.join(", "));
        }
    }
    let depths: Vec<String> = summary
        .by_depth
        .iter()
        .rev()
        .map(|(depth, number)| format!("{} {depth}", count(*number)))
        .collect();
    if !depths.is_empty() {
        row(out, "depth", &depths.join(", "));
    }
}

fn time_lines(out: &mut String, journal: &Journal, summary: &Summary) {
    let total = journal
        .end
        .as_ref()
        .and_then(|end| end.seconds)
        .map_or(String::new(), |seconds| {
            format!("{} in all: ", duration(seconds * 1000.0))
        });
    let text = format!(
        "{total}plugin {}, of it cold start {}, reference {}, comparison {}",
        duration(summary.plugin_ms),
        duration(summary.cold_ms),
        duration(summary.reference_ms),
        duration(summary.comparison_ms),
    );
    row(out, "time", &text);
    let decoys = summary.decoys.iter().map(|(criterion, decoys)| {
        let (accepted, all) = (count(decoys.accepted), count(decoys.differing));
        format!("{} accepts {accepted} of {all}", one_line(criterion))
    });
    let decoys: Vec<String> = decoys.collect();
    if !decoys.is_empty() {
        row(out, "decoys", &decoys.join(", "));
    }
    if let Some(worst) = &summary.worst_margin {
        let text = format!(
            "{} of the bound, {}",
            figure(worst.margin),
            one_line(&worst.key.case)
        );
        row(out, "worst margin", &text);
    }
}

fn slowest_lines(out: &mut String, journal: &Journal, summary: &Summary) {
    for (index, slow) in summary.slowest.iter().enumerate() {
        let label = if index == 0 { "slowest" } else { "" };
        let engine = engine_argument(journal, &slow.key);
        let unit = one_line(&format!("{}@{engine}", slow.key.case));
        row(out, label, &format!("{:>9} {unit}", duration(slow.ms)));
    }
}

/// What the first cases that were judged by samples compared, and may have missed.
fn sampled_lines(out: &mut String, units: &[Unit<'_>]) {
    let ends = units.iter().filter_map(|unit| unit.attempts.last());
    let told = ends.filter_map(|end| Some((end, sampled_text(end)?)));
    let told: Vec<_> = told.collect();
    for (index, (end, text)) in told.iter().take(NAMED).enumerate() {
        let label = if index == 0 { "sampled" } else { "" };
        row(out, label, &ODD.paint(&one_line(&end.case)));
        row(out, "", text);
    }
    if told.len() > NAMED {
        let more = count((told.len() - NAMED) as u64);
        row(
            out,
            "",
            &format!("and {more} more by samples: JUnit and the journal tell"),
        );
    }
}

fn failure_lines(out: &mut String, journal: &Journal, units: &[Unit<'_>]) {
    let failed: Vec<&Unit<'_>> = units
        .iter()
        .filter(|unit| is_failure(&unit.verdict) || unit.verdict == Verdict::Missing)
        .collect();
    let Some(first) = failed.first() else { return };
    out.push('\n');
    match first.attempts.last() {
        Some(end) => {
            let _ = writeln!(out, "{}", BAD.paint("first failure"));
            out.push_str(&indent(&failure_text(journal, end)));
            let _ = writeln!(out, "  a waiver, to complete and paste:");
            out.push_str(&indent(&indent(&waiver(journal, end))));
        }
        None => {
            let _ = writeln!(out, "{}", BAD.paint("first missing case"));
            let _ = writeln!(out, "  {}", one_line(&first.key.case));
            let _ = writeln!(out, "  {}", reproduction(journal, &first.key, None));
        }
    }
    if failed.len() > 1 {
        let _ = writeln!(out, "{}", BAD.paint("and"));
    }
    for unit in failed.iter().skip(1).take(NAMED) {
        let what = unit
            .attempts
            .last()
            .map_or_else(|| "missing".to_owned(), |e| headline(e));
        let _ = writeln!(out, "  {}  {what}", one_line(&unit.key.case));
    }
    let more = failed.len().saturating_sub(NAMED + 1);
    if more > 0 {
        let _ = writeln!(out, "  and {more} more");
    }
    out.push('\n');
}

/// Findings first, one of each rule and the first with its waiver; then what else there is to say.
fn infra_lines(out: &mut String, journal: &Journal) {
    let mut told: Vec<(Option<&str>, u64)> = Vec::new();
    for infra in &journal.infra {
        if infra.kind == InfraKind::Finding {
            finding_lines(out, infra, &mut told);
        }
    }
    for (rule, number) in told.iter().filter(|(_, number)| *number > 1) {
        let rule = one_line(rule.unwrap_or_default());
        row(out, "", &format!("and {} more of {rule}", number - 1));
    }
    for infra in &journal.infra {
        let text = one_line(&infra.message);
        match infra.kind {
            InfraKind::Finding => {}
            InfraKind::WaivedFinding => row(out, "waived", &text),
            InfraKind::Unchecked => row(out, "unchecked", &ODD.paint(&text)),
            _ => row(out, "note", &text),
        }
    }
}

/// The first finding of a rule; the others are counted.
fn finding_lines<'a>(out: &mut String, finding: &'a Infra, told: &mut Vec<(Option<&'a str>, u64)>) {
    let rule = finding.rule.as_deref();
    if let Some((_, number)) = told
        .iter_mut()
        .find(|(known, _)| rule.is_some() && *known == rule)
    {
        *number += 1;
        return;
    }
    let first = told.is_empty();
    told.push((rule, 1));
    row(out, "finding", &BAD.paint(&one_line(&finding.message)));
    if let Some(waiver) = finding_waiver(finding).filter(|_| first) {
        let _ = writeln!(out, "  a waiver, to complete and paste:");
        out.push_str(&indent(&indent(&waiver)));
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn verdict_line(out: &mut String, journal: &Journal, summary: &Summary) {
    let mut said = Vec::new();
    if summary.plugin_errors > 0 {
        let plugins = plural(summary.plugin_errors, "plugin");
        said.push(BAD.paint(&format!("{plugins} could not be used")));
    }
    let red = ["fail", "crash", "timeout", "unexpected-pass", "flaky"];
    let wrong: u64 = red.iter().map(|name| summary.count_of(name)).sum();
    if wrong > 0 {
        said.push(BAD.paint(&format!("{} not right", plural(wrong, "case"))));
    }
    let number = |kind| {
        let infra = journal.infra.iter();
        infra.filter(|infra| infra.kind == kind).count() as u64
    };
    if number(InfraKind::Finding) > 0 {
        said.push(BAD.paint(&plural(number(InfraKind::Finding), "finding")));
    }
    if number(InfraKind::Unchecked) > 0 {
        let contracts = plural(number(InfraKind::Unchecked), "contract");
        said.push(ODD.paint(&format!("{contracts} could not be checked")));
    }
    if journal.end.is_none() || summary.missing > 0 || !summary.by_not_run.is_empty() {
        said.push(ODD.paint("incomplete"));
    }
    if said.is_empty() {
        said.push(match summary.verified {
            0 => ODD.paint("nothing was verified"),
            _ => GOOD.paint("as expected"),
        });
    }
    let exit = journal.end.as_ref().and_then(|end| end.exit);
    let exit = exit.map_or(String::new(), |exit| format!(" (exit {exit})"));
    row(out, "result", &format!("{}{exit}", said.join(", ")));
}
