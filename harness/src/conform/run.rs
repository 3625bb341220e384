//! Making the checks: one plugin after the other, then each pair.

use std::path::Path;
use std::time::Instant;

use clap::Parser;
use globset::GlobMatcher;

use super::args::ConformArgs;
use super::check::{Check, Outcome, Stop};
use super::checks;
use super::heuristic;
use super::lab::Lab;
use super::pairs::{self, Pair};
use super::results::{CheckResult, OutcomeKind, Refusal, Report, SubjectReport};
use crate::cli::args::{Cli, Command};
use crate::pattern::{PatternError, glob};
use crate::plan::PluginSource;
use crate::run::{ExamineError, OptionError, RunOptions, Subject, examine};

/// Why no checks could be made: nothing that a plugin did.
#[derive(Debug, thiserror::Error)]
pub enum ConformError {
    /// The command line.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// A pattern of `--check`.
    #[error("--check: {0}")]
    Glob(#[from] PatternError),
    /// Patterns that no check matches.
    #[error("--check '{0}': no check is called that; --list shows them")]
    NoCheck(String),
    /// A plugin could not be examined.
    #[error(transparent)]
    Examine(#[from] ExamineError),
    /// Scratch space.
    #[error("scratch space: {0}")]
    Scratch(#[from] std::io::Error),
    /// The default options of a run cannot be had: a defect of this program.
    #[error("default options: {0}")]
    Defaults(String),
}

/// Which checks are made.
#[derive(Debug)]
pub struct Selection {
    globs: Vec<GlobMatcher>,
}

impl Selection {
    /// Checks by glob; all where there is none.
    ///
    /// # Errors
    /// A malformed glob, or one that no check matches.
    pub fn new(patterns: &[String]) -> Result<Self, ConformError> {
        let mut globs = Vec::new();
        for pattern in patterns {
            let glob = glob(pattern)?.compile_matcher();
            let ids = checks::all().map(|check| check.id).chain(pairs::ids());
            let mut ids = ids.chain(heuristic::CHECKS.iter().map(|check| check.id));
            if !ids.any(|id| glob.is_match(id)) {
                return Err(ConformError::NoCheck(pattern.clone()));
            }
            globs.push(glob);
        }
        Ok(Self { globs })
    }

    /// Whether a check is made.
    pub fn takes(&self, id: &str) -> bool {
        self.globs.is_empty() || self.globs.iter().any(|glob| glob.is_match(id))
    }
}

/// Makes the checks on plugins, and on their pairs where there are several.
///
/// # Errors
/// [`ConformError`]. Whatever is wrong with a plugin stands in the report.
pub fn conform(args: &ConformArgs, sources: &[PluginSource]) -> Result<Report, ConformError> {
    let scratch = tempfile::tempdir()?;
    let options = options(args, scratch.path())?;
    let selection = Selection::new(&args.check)?;
    let mut report = Report {
        level: args.level,
        subjects: Vec::new(),
    };
    let mut subjects = Vec::new();
    for (index, source) in (0..).zip(sources) {
        let examined = examine(index, source, &options)?;
        let mut subject = SubjectReport {
            files: vec![examined.record.path.clone()],
            facts: facts(&examined.record),
            ..SubjectReport::default()
        };
        match (&examined.subject, &examined.record.error) {
            (Some(plugin), _) => {
                subject.results = one(args, plugin, &selection);
            }
            (None, error) => {
                let message = error.as_ref().map(|e| e.message.clone());
                refuse(
                    &mut subject,
                    &source.path,
                    message.unwrap_or_default(),
                    &selection,
                );
            }
        }
        report.subjects.push(subject);
        subjects.extend(examined.subject);
    }
    for (i, first) in subjects.iter().enumerate() {
        for second in &subjects[i + 1..] {
            report.subjects.push(pair(args, first, second, &selection));
        }
    }
    Ok(report)
}

/// The options of a run with what `conform` shares with it.
fn options(args: &ConformArgs, out: &Path) -> Result<RunOptions, ConformError> {
    let words = ["dnn-assay", "run"].map(Into::into);
    let words = words
        .into_iter()
        .chain(["--out".into(), out.as_os_str().to_owned()]);
    let cli =
        Cli::try_parse_from(words).map_err(|error| ConformError::Defaults(error.to_string()))?;
    let Command::Run(mut run) = cli.command else {
        return Err(ConformError::Defaults("no run command".to_owned()));
    };
    run.loading = args.loading.clone();
    run.wire = args.wire;
    run.engine = args.engine.clone();
    run.limits.timeout.load = std::time::Duration::from_secs(30);
    run.limits.timeout.plan = std::time::Duration::from_secs(30);
    Ok(RunOptions::new(&run)?)
}

fn facts(record: &crate::journal::PluginRecord) -> Vec<(String, String)> {
    let joined = |a: &Option<String>, why: &Option<String>| {
        let why = why.as_deref().map(|why| format!(" ({why})"));
        a.as_ref()
            .map(|a| format!("{a}{}", why.unwrap_or_default()))
    };
    let engines: Vec<_> = record.engines.iter().map(|e| e.label()).collect();
    [
        ("name", record.name.clone()),
        ("build-id", record.build_id.clone()),
        ("sha256", record.sha256.clone()),
        ("API version", record.api_version.clone()),
        (
            "engines",
            Some(engines.join(", ")).filter(|e| !e.is_empty()),
        ),
        ("memory", joined(&record.memory, &record.memory_reason)),
        ("wire", joined(&record.wire, &record.wire_reason)),
    ]
    .into_iter()
    .filter_map(|(label, text)| Some((label.to_owned(), text?)))
    .collect()
}

fn refuse(subject: &mut SubjectReport, path: &Path, message: String, selection: &Selection) {
    let file = std::fs::read(path)
        .ok()
        .and_then(|bytes| dnn_assay_elf::identify(&bytes).ok());
    let heuristic = file.filter(|file| file.looks_heuristic());
    if let Some(file) = &heuristic {
        subject.results = heuristic::examine(file, |id| selection.takes(id));
    }
    subject.refused = Some(Refusal {
        message,
        defect: heuristic.is_none(),
    });
}

fn one(args: &ConformArgs, plugin: &Subject, selection: &Selection) -> Vec<CheckResult> {
    let began = Instant::now();
    let lab = match Lab::new(plugin, args.knob.clone(), args.knob_sweep) {
        Ok(lab) => lab,
        Err(stop) => {
            let check = checks::all().next().expect("there are checks");
            return vec![result(check, Err(stop), began)];
        }
    };
    checks::all()
        .filter(|check| selection.takes(check.id))
        .map(|check| {
            let began = Instant::now();
            let outcome = (check.run)(&lab);
            result(check, noted(outcome, lab.take_notes()), began)
        })
        .collect()
}

fn pair(
    args: &ConformArgs,
    first: &Subject,
    second: &Subject,
    selection: &Selection,
) -> SubjectReport {
    let path = |subject: &Subject| subject.config.plugin.display().to_string();
    let mut report = SubjectReport {
        files: vec![path(first), path(second)],
        ..SubjectReport::default()
    };
    let began = Instant::now();
    match Pair::new(first, second, &args.knob) {
        Ok(pair) => {
            for check in pairs::CHECKS.iter().filter(|c| selection.takes(c.id)) {
                let began = Instant::now();
                let outcome = noted((check.run)(&pair), pair.take_notes());
                let row = (check.id, check.level, check.why, check.link);
                report.results.push(result_of(row, outcome, began));
            }
        }
        Err(stop) => {
            let check = &pairs::CHECKS[0];
            let row = (check.id, check.level, check.why, check.link);
            report.results.push(result_of(row, Err(stop), began));
        }
    }
    report
}

/// A pass with what was noted on the way.
fn noted(outcome: Outcome, notes: Vec<String>) -> Outcome {
    let text = outcome?;
    let own = Some(text).filter(|text| !text.is_empty());
    let all: Vec<_> = own.into_iter().chain(notes).collect();
    Ok(all.join("; "))
}

fn result(check: &Check, outcome: Outcome, began: Instant) -> CheckResult {
    let row = (check.id, check.level, check.why, check.link);
    result_of(row, outcome, began)
}

fn result_of(
    (id, level, why, link): (&str, super::check::Level, &str, &str),
    outcome: Outcome,
    began: Instant,
) -> CheckResult {
    let (outcome, text) = match outcome {
        Ok(note) => (OutcomeKind::Passed, note),
        Err(Stop::Finding(text)) => (OutcomeKind::Finding, text),
        Err(Stop::NotApplicable(text)) => (OutcomeKind::NotApplicable, text),
        Err(Stop::Infrastructure(text)) => (OutcomeKind::Error, text),
    };
    CheckResult {
        id: id.to_owned(),
        level,
        why: why.to_owned(),
        link: link.to_owned(),
        outcome,
        text,
        seconds: began.elapsed().as_secs_f64(),
    }
}
