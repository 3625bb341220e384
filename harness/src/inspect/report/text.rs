//! For people: what each file is and what to do, then the findings by rule.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use dnn_assay_elf::{
    Inspection, PairInspection, PluginRole, RuleOutcome, RuleState, Severity, rules::Rule,
};

use super::{rule, sentence};
use crate::inspect::results::{FileReport, Judged, Refused, Report};
use crate::report::style::{BAD, BOLD, DIM, GOOD, ODD, Paint};
use crate::report::text::{count, one_line, plural};

/// How many findings of a rule are shown.
const SHOWN: usize = 3;
/// How many characters of a finding are shown: a template's name may fill a screen.
const WIDTH: usize = 120;

/// Writes the report for a terminal.
///
/// # Errors
/// What `out` says.
pub fn write_text(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for file in &report.files {
        write_file(file, out)?;
        writeln!(out)?;
    }
    for pair in &report.pairs {
        write_pair(pair, out)?;
        writeln!(out)?;
    }
    let exit = report.exit().code();
    let refused = report.files.iter().filter(|file| file.is_err()).count();
    let meaning = match (refused, report.count(Severity::Error)) {
        (0, 0) => "no error".to_owned(),
        (0, errors) => amount(errors, "error"),
        (refused, _) => format!("{} that cannot be a plugin here", amount(refused, "file")),
    };
    writeln!(out, "exit {exit}: {meaning}")
}

fn write_file(file: &FileReport, out: &mut dyn Write) -> io::Result<()> {
    let inspection = match file {
        Ok(inspection) => inspection,
        Err(Refused { path, what }) => {
            let (name, what) = (shown(path), one_line(&what.to_string()));
            return writeln!(out, "{}: {}", BOLD.paint(&name), BAD.paint(&what));
        }
    };
    let judged = Judged::from(&**inspection);
    let name = BOLD.paint(&shown(&inspection.path));
    writeln!(out, "{name}: {}", verdict(judged))?;
    let steps = steps(judged);
    write_steps(&steps, out)?;
    for (label, text) in facts(inspection) {
        writeln!(out, "  {} {text}", DIM.paint(&format!("{label:<7}")))?;
    }
    write_rules(judged, &steps, out)
}

fn write_pair(pair: &PairInspection, out: &mut dyn Write) -> io::Result<()> {
    let judged = Judged::from(pair);
    let name = format!("{} beside {}", shown(&pair.first), shown(&pair.second));
    writeln!(out, "{}: {}", BOLD.paint(&name), verdict(judged))?;
    let id = |id: &Option<String>| id.clone().unwrap_or_else(|| "none".to_owned());
    let (first, second) = (id(&pair.first_build_id), id(&pair.second_build_id));
    let label = DIM.paint("builds ");
    let steps = steps(judged);
    write_steps(&steps, out)?;
    writeln!(out, "  {label} {first} and {second}")?;
    write_rules(judged, &steps, out)
}

/// How many findings there are of each severity.
fn verdict(judged: Judged<'_>) -> String {
    let counts: Vec<_> = [
        (Severity::Error, "error", BAD),
        (Severity::Warning, "warning", ODD),
        (Severity::Info, "note", DIM),
    ]
    .into_iter()
    .map(|(severity, word, paint)| (judged.count(severity), word, paint))
    .filter(|(number, ..)| *number > 0)
    .map(|(number, word, paint)| paint.paint(&amount(number, word)))
    .collect();
    let rules = amount(judged.outcomes.len(), "rule");
    if counts.is_empty() {
        return format!("{} ({rules})", GOOD.paint("nothing found"));
    }
    format!("{} ({rules})", counts.join(", "))
}

/// Label and text of what the file is.
fn facts(inspection: &Inspection) -> Vec<(&'static str, String)> {
    let (facts, file) = (&inspection.facts, &inspection.facts.file);
    let role = match file.role {
        PluginRole::Engine => "engine plugin",
        PluginRole::Heuristic => "heuristic plugin, which is not executable here",
        PluginRole::None => "shared library without a plugin's entry points",
    };
    let of = |value: &Option<String>| one_line(value.as_deref().unwrap_or("none"));
    let size = count(facts.size);
    let is = format!(
        "{role}; {size} bytes, {}, SONAME {}, build id {}",
        amount(file.exports.len(), "export"),
        of(&file.soname),
        of(&file.build_id),
    );
    let loads = match (facts.prediction.loads, &facts.prediction.loader_text) {
        (true, _) => {
            let libraries = amount_of(facts.closure.len(), "library", "libraries");
            GOOD.paint("yes") + &format!(", with {libraries}")
        }
        (false, Some(text)) => BAD.paint("no") + ": " + &one_line(text),
        (false, None) => BAD.paint("no"),
    };
    let memory = one_line(&facts.memory.reason);
    vec![("is", is), ("loads", loads), ("memory", memory)]
}

/// A thing to do, and what it ends.
struct Step {
    severity: Severity,
    findings: usize,
    fix: &'static str,
    rules: Vec<&'static str>,
}

/// What to do about errors and warnings: one step for all rules with the same fix, the gravest and
/// most effective first.
fn steps(judged: Judged<'_>) -> Vec<Step> {
    let mut by_fix: BTreeMap<&str, Step> = BTreeMap::new();
    for (outcome, rule) in found(judged).filter(|(o, _)| o.severity > Severity::Info) {
        let step = by_fix.entry(rule.fix).or_insert(Step {
            severity: outcome.severity,
            findings: 0,
            fix: rule.fix,
            rules: Vec::new(),
        });
        step.severity = step.severity.max(outcome.severity);
        step.findings += outcome.counting();
        step.rules.push(rule.id);
    }
    let mut steps: Vec<Step> = by_fix.into_values().collect();
    steps.sort_by_key(|step| std::cmp::Reverse((step.severity, step.findings)));
    steps
}

/// `do 1   …`: what a person can act on, before anything else.
fn write_steps(steps: &[Step], out: &mut dyn Write) -> io::Result<()> {
    for (index, step) in steps.iter().enumerate() {
        let (paint, word) = paint(step.severity);
        let label = BOLD.paint(&format!("do {:<4}", index + 1));
        writeln!(out, "  {label} {}", step.fix)?;
        let ends = amount(step.findings, "finding");
        let word = paint.paint(&word.to_lowercase());
        writeln!(
            out,
            "          {word}, ends {ends}: {}",
            step.rules.join(", ")
        )?;
    }
    Ok(())
}

fn write_rules(judged: Judged<'_>, steps: &[Step], out: &mut dyn Write) -> io::Result<()> {
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        for (outcome, rule) in found(judged).filter(|(o, _)| o.severity == severity) {
            write_rule(judged, (outcome, rule), steps, out)?;
        }
    }
    let waived = judged.waived().count();
    for finding in judged.waived().take(SHOWN) {
        let waiver = finding.waiver.as_ref();
        let reason = waiver.map_or("", |waiver| waiver.reason.as_str());
        let until = waiver.and_then(|waiver| waiver.expires.as_ref());
        let until = until.map_or_else(String::new, |day| format!(", until {day}"));
        let text = cut(&one_line(&sentence(finding)));
        let word = DIM.paint("accepted");
        let reason = one_line(reason);
        writeln!(out, "  {word} {}: {text} ({reason}{until})", finding.rule)?;
    }
    if waived > SHOWN {
        writeln!(out, "           and {} more", waived - SHOWN)?;
    }
    write_rest(judged, out)
}

/// A rule's findings; a note takes one line.
fn write_rule(
    judged: Judged<'_>,
    (outcome, rule): (&RuleOutcome, &Rule),
    steps: &[Step],
    out: &mut dyn Write,
) -> io::Result<()> {
    let number = outcome.counting();
    let (paint, word) = paint(outcome.severity);
    let word = paint.paint(&format!("{word:<8}"));
    let mut texts = judged
        .counting(rule.id)
        .map(|f| cut(&one_line(&sentence(f))));
    if outcome.severity == Severity::Info {
        let text = texts.next().unwrap_or_default();
        let more = match number {
            1 => String::new(),
            _ => format!(" (and {} more)", number - 1),
        };
        return writeln!(out, "  {word} {}: {text}{more}", rule.id);
    }
    let id = BOLD.paint(rule.id);
    let found = amount(number, "finding");
    writeln!(out, "  {word} {id}: {found}; demanded: {}", rule.demand)?;
    for text in texts.take(SHOWN) {
        writeln!(out, "             {text}")?;
    }
    if number > SHOWN {
        writeln!(out, "             and {} more", number - SHOWN)?;
    }
    let command = judged
        .counting(rule.id)
        .next()
        .map(|f| one_line(&f.command));
    let step = steps.iter().position(|step| step.fix == rule.fix);
    let fix = step.map_or_else(|| rule.fix.to_owned(), |index| format!("do {}", index + 1));
    let lines = [
        ("why", rule.reason),
        ("fix", fix.as_str()),
        ("see", command.as_deref().unwrap_or_default()),
        ("link", rule.link),
    ];
    for (label, text) in lines.into_iter().filter(|(_, text)| !text.is_empty()) {
        writeln!(
            out,
            "           {} {text}",
            DIM.paint(&format!("{label:<4}"))
        )?;
    }
    Ok(())
}

/// What was checked and is fine, by group, and what was not checked.
fn write_rest(judged: Judged<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut fine: Vec<(&str, usize)> = Vec::new();
    let mut skipped = Vec::new();
    let mut off = Vec::new();
    for outcome in judged.outcomes {
        match outcome.state {
            RuleState::NotApplicable { .. } => skipped.push(outcome.rule),
            RuleState::Off => off.push(outcome.rule),
            RuleState::Checked { .. } if outcome.counting() > 0 => {}
            RuleState::Checked { .. } => match fine.last_mut() {
                Some((group, number)) if *group == rule(outcome.rule).group() => *number += 1,
                _ => fine.push((rule(outcome.rule).group(), 1)),
            },
        }
    }
    let fine: Vec<_> = fine
        .iter()
        .map(|(group, n)| format!("{group} {n}"))
        .collect();
    let lines = [
        (GOOD, "fine", fine),
        (
            DIM,
            "not applicable",
            skipped.iter().map(ToString::to_string).collect(),
        ),
        (
            ODD,
            "switched off",
            off.iter().map(ToString::to_string).collect(),
        ),
    ];
    for (paint, label, texts) in lines.into_iter().filter(|(_, _, texts)| !texts.is_empty()) {
        writeln!(out, "  {}: {}", paint.paint(label), texts.join(", "))?;
    }
    Ok(())
}

/// The rules with findings that count.
fn found<'a>(judged: Judged<'a>) -> impl Iterator<Item = (&'a RuleOutcome, &'static Rule)> {
    let outcomes = judged.outcomes.iter();
    let counting = outcomes.filter(|outcome| outcome.counting() > 0);
    counting.map(|outcome| (outcome, rule(outcome.rule)))
}

fn paint(severity: Severity) -> (Paint, &'static str) {
    match severity {
        Severity::Error => (BAD, "ERROR"),
        Severity::Warning => (ODD, "warning"),
        Severity::Info => (DIM, "note"),
    }
}

fn shown(path: &Path) -> String {
    one_line(&path.display().to_string())
}

fn amount(number: usize, word: &str) -> String {
    plural(number as u64, word)
}

fn amount_of(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
