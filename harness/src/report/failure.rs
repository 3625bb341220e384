//! What is said of a case that did not go well: the thing that people read most. The same text
//! stands in the terminal and in JUnit.

use std::fmt::Write as _;

use dnn_assay_reference::diagnose::hypothesis;

use super::sampled::sampled_text;
use super::text::{clean, count, figure, number, one_line};
use crate::journal::{CaseEnd, Infra, Journal, MismatchGeometry, PluginRecord, UnitKey, Worst};
use crate::plan::BUILTIN_CPU;
use crate::verdict::{Depth, FailKind, Verdict};

/// Wrong elements that are listed by index.
const FIRST: usize = 10;

/// Lines of the plugin's log that are shown.
const LOG_LINES: usize = 20;

/// The whole story of an attempt: case, verdict and rule, counts, worst element, geometry, named
/// causes, engine, seed, and a line to see it again.
pub fn failure_text(journal: &Journal, end: &CaseEnd) -> String {
    let mut out = String::new();
    line(&mut out, "case", &end.case);
    line(&mut out, "verdict", &headline(end));
    if let Some(rule) = rule(end) {
        line(&mut out, "rule", &rule);
    }
    if let Some(wrong) = wrong(end) {
        line(&mut out, "wrong", &wrong);
    }
    if let Some(sampled) = sampled_text(end) {
        line(&mut out, "by samples", &sampled);
    }
    if let Some(worst) = &end.worst {
        worst_lines(&mut out, worst);
    }
    if let Some(geometry) = &end.geometry {
        geometry_lines(&mut out, geometry);
    }
    for id in &end.diagnosis {
        line(&mut out, "looks like", &named_cause(id));
    }
    if !end.decoys_accepted.is_empty() {
        line(&mut out, "accepts decoys", &end.decoys_accepted.join(", "));
    }
    for note in &end.notes {
        line(&mut out, "note", &one_line(note));
    }
    if end.depth == Depth::Judged
        && matches!(end.verdict, Verdict::Fail(kind) if kind.is_of_values())
    {
        line(
            &mut out,
            "guards",
            "intact: nothing beside the outputs was written",
        );
    }
    line(&mut out, "engine", &engine(end));
    if !end.knobs.is_empty() {
        let knobs = end
            .knobs
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        line(&mut out, "knobs", &knobs.collect::<Vec<_>>().join(", "));
    }
    if let Some(workspace) = end.workspace {
        line(
            &mut out,
            "workspace",
            &format!("{} bytes", count(workspace)),
        );
    }
    if let Some(arch) = journal
        .start
        .as_ref()
        .and_then(|start| start.device.as_ref())
        .and_then(|device| device.arch.as_deref())
    {
        line(&mut out, "device", arch);
    }
    if let Some(seed) = journal.start.as_ref().and_then(|start| start.seed) {
        line(&mut out, "seed", &seed.to_string());
    }
    line(
        &mut out,
        "reproduce",
        &reproduction(journal, &UnitKey::of_end(end), Some(end)),
    );
    if let Some(shrunk) = end.shrunk.as_ref().filter(|id| **id != end.case) {
        line(&mut out, "shrunk to", shrunk);
    }
    if let Some(dump) = &end.dump {
        let command = format!("dnn-assay replay {}", quoted(dump));
        line(&mut out, "dump", &command);
    }
    log_lines(&mut out, &end.log_tail);
    clean(&out)
}

/// A named cause in words, with its id; ids of other versions stand for themselves.
pub fn named_cause(id: &str) -> String {
    match hypothesis(id) {
        Some(known) => format!("{} ({id})", known.text),
        None => id.to_owned(),
    }
}

/// The verdict in one line, with what was seen.
pub fn headline(end: &CaseEnd) -> String {
    match &end.reason {
        Some(reason) => format!("{}: {}", end.verdict, one_line(reason)),
        None => end.verdict.to_string(),
    }
}

/// The command that runs this unit again, as its last attempt ended if one did. It uses the
/// installed name, and quotes for a shell.
pub fn reproduction(journal: &Journal, key: &UnitKey, end: Option<&CaseEnd>) -> String {
    let mut command = "dnn-assay run".to_owned();
    if let Some(plugin) = journal.plugin(key.plugin) {
        let _ = write!(command, " {}", plugin_argument(plugin));
    }
    let _ = write!(command, " --case {}", quoted(&key.case));
    let _ = write!(
        command,
        " --engine {}",
        quoted(&engine_argument(journal, key))
    );
    if let Some(start) = &journal.start {
        if let Some(seed) = start.seed {
            let _ = write!(command, " --seed {seed}");
        }
        if let Some(criterion) = start.criterion.as_deref().filter(|c| *c != "bound") {
            let _ = write!(command, " --criterion {}", quoted(criterion));
        }
        let steering = steering_arguments(&start.arguments);
        for argument in &steering {
            let _ = write!(command, " {}", quoted(argument));
        }
        for (name, [low, high]) in end.into_iter().flat_map(|end| &end.ranges) {
            let _ = write!(
                command,
                " --range {}",
                quoted(&format!("{name}={low}..{high}"))
            );
        }
        // A suite may ask for samples; `--case` alone does not.
        let is_said = steering
            .iter()
            .any(|argument| argument.starts_with("--sample"));
        let sampled = end.and_then(|end| end.sampled.as_ref());
        if let Some(sampled) = sampled.filter(|_| !is_said) {
            let _ = write!(command, " --sample {}", sampled.random);
        }
    }
    command
}

/// The plugin as the command line takes it: the built-in one has no path that is worth keeping.
pub fn plugin_argument(plugin: &PluginRecord) -> String {
    let is_builtin = plugin.path.ends_with(BUILTIN_CPU)
        && plugin
            .source
            .as_deref()
            .is_some_and(|why| why.contains("built-in") || why.contains("--builtin"));
    if is_builtin {
        "--builtin".to_owned()
    } else {
        quoted(&plugin.path)
    }
}

/// Flags of `run` that steer what a plugin does; each takes a value but those in
/// [`STEERING_SWITCHES`].
const STEERING_FLAGS: &[&str] = &[
    "--config",
    "--range",
    "--sample",
    "--trait",
    "--knob",
    "--wire",
    "--timeout",
    "--device",
    "--load-mode",
    "--lib-path",
    "--env",
    "--preload",
    "--rocm",
];
/// Steering flags without a value.
const STEERING_SWITCHES: &[&str] = &["--clean-env", "--knob-sweep"];

/// The arguments of a run without which a unit would not behave as it did.
fn steering_arguments(arguments: &[String]) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        let flag = argument.split_once('=').map_or(argument, |(flag, _)| flag);
        if STEERING_SWITCHES.contains(&argument) {
            kept.push(argument);
        } else if STEERING_FLAGS.contains(&flag) {
            kept.push(argument);
            if flag == argument {
                kept.extend(rest.next());
            }
        } else if argument == "--expect" {
            // hipDNN's configuration changes criteria; waivers would only excuse the failure.
            kept.extend(
                rest.next()
                    .filter(|file| file.ends_with(".toml"))
                    .into_iter()
                    .flat_map(|file| [argument, file]),
            );
        } else if flag == "--expect" && argument.ends_with(".toml") {
            kept.push(argument);
        }
    }
    kept
}

/// A waiver for this unit, in YAML, to paste and complete.
pub fn waiver(journal: &Journal, end: &CaseEnd) -> String {
    let engine = engine_argument(journal, &UnitKey::of_end(end));
    let verdict = end.verdict.to_string();
    format!(
        "- case: {}\n  engine: {}\n  expect: {}\n{COMPULSORY}",
        yaml_text(&end.case),
        yaml_text(&engine),
        yaml_text(&verdict),
    )
}

/// A waiver for a finding of inspection or conformance, in YAML, to paste and complete; `None` for
/// a record without a rule.
pub fn finding_waiver(finding: &Infra) -> Option<String> {
    let rule = finding.rule.as_deref()?;
    Some(format!(
        "- finding: {}\n  expect: {}\n{COMPULSORY}",
        yaml_text(rule),
        crate::gate::FINDING
    ))
}

/// The keys of a waiver that a person completes.
const COMPULSORY: &str = "  reason: \"\"   # why this is known\n  owner: \"\"    # who answers for it\n  link: \"\"     # an issue\n  expires: \"\"  # the last day, as 2027-06-30\n";

/// The name of the unit's engine as the command line takes it: its name, else its id.
pub fn engine_argument(journal: &Journal, key: &UnitKey) -> String {
    journal
        .plugin(key.plugin)
        .and_then(|plugin| plugin.engines.iter().find(|e| e.id == key.engine_id))
        .map_or_else(|| format!("{:#018x}", key.engine_id), |e| e.label())
}

fn line(out: &mut String, label: &str, text: &str) {
    // Each part is cleaned by itself: an escape sequence without an end would swallow what follows.
    let row = format!("{label:<14} {}", one_line_exact(text));
    let _ = writeln!(out, "{}", row.trim_end());
}

fn engine(end: &CaseEnd) -> String {
    match &end.engine {
        Some(name) => format!("{} ({:#018x})", one_line(name), end.engine_id),
        None => format!("{:#018x}", end.engine_id),
    }
}

fn rule(end: &CaseEnd) -> Option<String> {
    let criterion = end.criterion.as_deref()?;
    let mut rule = criterion.to_owned();
    if !end.traits.is_empty() {
        let _ = write!(rule, " with {}", end.traits.join(", "));
    }
    if let Some(margin) = end.margin {
        let _ = write!(
            rule,
            ": the worst error is {} times what is allowed",
            figure(margin)
        );
    }
    Some(rule)
}

fn wrong(end: &CaseEnd) -> Option<String> {
    let compared = end.compared?;
    let mismatched = end.mismatched?;
    if compared == 0 || mismatched == 0 {
        return None;
    }
    let percent = 100.0 * mismatched as f64 / compared as f64;
    let of = format!("{} of {} elements", count(mismatched), count(compared));
    Some(format!("{of} ({} %)", figure(percent)))
}

fn worst_lines(out: &mut String, worst: &Worst) {
    let place = format!(
        "{} [{}] of {} {} (index {})",
        one_line(&worst.tensor),
        join(&worst.coordinates),
        worst.dtype,
        shape(&worst.dims),
        worst.index,
    );
    line(out, "worst element", &place);
    line(out, "  expected", &number(worst.expected));
    if let Some(naive) = worst.naive {
        line(out, "  plain f32", &number(naive));
    }
    line(out, "  got", &number(worst.got));
    let mut error = format!("{} allowed", number(worst.bound));
    let off = (worst.got - worst.expected).abs();
    if off.is_finite() {
        error = format!("{} off, {error}", number(off));
    }
    if let Some(ulps) = worst.ulps {
        let _ = write!(error, ", {} ulp", figure(ulps));
    }
    line(out, "  error", &error);
}

fn geometry_lines(out: &mut String, geometry: &MismatchGeometry) {
    if !geometry.text.is_empty() {
        line(out, "where", &one_line(&geometry.text));
    }
    if !geometry.first.is_empty() {
        let first: Vec<i64> = geometry
            .first
            .iter()
            .take(FIRST)
            .map(|&index| index.cast_signed())
            .collect();
        line(out, "first wrong", &format!("index {}", join(&first)));
    }
}

fn log_lines(out: &mut String, log: &[String]) {
    if log.is_empty() {
        return;
    }
    // A sanitizer says what it found first, and then explains at length.
    let report = log.iter().rposition(|text| text.contains("Sanitizer: "));
    let end = log.len().saturating_sub(LOG_LINES);
    let skipped = report.map_or(end, |at| at.min(end));
    let told = match (skipped, report) {
        (0, _) => "",
        (_, None) => "(its end)",
        (_, Some(_)) => "(from the sanitizer's report)",
    };
    line(out, "plugin's log", told);
    for text in log[skipped..].iter().take(LOG_LINES) {
        for part in clean(text).lines() {
            let _ = writeln!(out, "  | {part}");
        }
    }
}

fn join(values: &[i64]) -> String {
    let texts: Vec<String> = values.iter().map(i64::to_string).collect();
    texts.join(", ")
}

fn shape(dims: &[i64]) -> String {
    let texts: Vec<String> = dims.iter().map(i64::to_string).collect();
    texts.join("x")
}

/// The argument as a POSIX shell takes it.
pub fn quoted(argument: &str) -> String {
    let argument = one_line_exact(argument);
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/+~:@%,=-".contains(c);
    let home = argument.starts_with('~');
    if !argument.is_empty() && !home && argument.chars().all(plain) {
        return argument;
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// Without control characters, which no one-line command can carry; blanks stay as they are.
fn one_line_exact(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// A YAML scalar: plain where that is safe, else in double quotes.
fn yaml_text(text: &str) -> String {
    let text = one_line_exact(text);
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/+~()-".contains(c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts && text.chars().all(plain) {
        return text;
    }
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}

/// Whether a unit's story belongs among the failures.
pub fn is_failure(verdict: &Verdict) -> bool {
    verdict.is_red()
}

/// A short name of what was wrong, for JUnit's `type`.
pub fn type_name(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Fail(kind) => FailKind::name(*kind).to_owned(),
        other => other.name().to_owned(),
    }
}
