//! Running one library, with or without a fault.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Parser;
use dnn_assay_elf::{Policy, Severity};

use super::check::Check;
use super::library::source;
use super::result::Tried;
use super::run::PowerError;
use super::table::{Kind, Mutant};
use crate::cli::args::{Cli, Command};
use crate::conform::{OutcomeKind, conform};
use crate::inspect::Inspector;
use crate::journal::{CaseEnd, Journal};
use crate::run::{Batch, run_batch};
use crate::suite;
use crate::verdict::{Depth, Verdict};

/// Limits of a mutant's worker: whatever hangs, hangs for a second.
const HURRIED: &str = "load=5s,plan=1s,execute=1s";

/// The variable by which the mock HIP runtime makes a fault of a plugin's launches.
pub const LAUNCHES: &str = "DNN_ASSAY_MOCK_HIP_PLUGIN";

/// A library and the fault that it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The file.
    pub library: &'a Path,
    /// A library that is loaded beside it for the checks of pairs.
    pub beside: Option<&'a Path>,
    /// The variable that names the fault, and its value.
    pub fault: (&'static str, &'a str),
}

impl<'a> Subject<'a> {
    /// A mutant's library with its fault.
    pub fn of(mutant: &'a Mutant, library: &'a Path, beside: Option<&'a Path>) -> Self {
        let fault = match (&mutant.launches, &mutant.fault) {
            (Some(fault), _) => (LAUNCHES, fault.as_str()),
            (None, Some(fault)) => ("DNN_MOCK_FAULT", fault.as_str()),
            (None, None) if mutant.build.is_some() => ("DNN_MOCK_FAULT", ""),
            (None, None) => ("DNN_ASSAY_MUTANT", mutant.name.as_str()),
        };
        Self {
            library,
            beside,
            fault,
        }
    }

    fn variable(self) -> String {
        format!("{}={}", self.fault.0, self.fault.1)
    }

    /// Runs cases, judged by the bound unless `more` says otherwise.
    ///
    /// # Errors
    /// [`PowerError`] for a failure of this program or the machine.
    pub fn run(self, cases: &[String], more: &[&str]) -> Result<Journal, PowerError> {
        let suite =
            suite::of_ids(cases).map_err(|problem| PowerError::Case(problem.render(false)))?;
        let device = (self.fault.0 == LAUNCHES).then_some(["--device", "mock-hip"]);
        let batch = Batch::judged(source(self.library), suite)
            .with(["--jobs", "1", "--env", &self.variable()])
            .with(device.into_iter().flatten())
            .with(more.iter().copied());
        Ok(run_batch(&batch)?)
    }

    /// Whether another criterion notices anything in the outputs that `judged` is about: the cases
    /// are run again, and only outputs with the same hash count as the same. `None` where the
    /// criterion has no number for any of them.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn judged_by(
        self,
        criterion: &str,
        cases: &[String],
        judged: &Journal,
    ) -> Result<Option<bool>, PowerError> {
        let more = ["--timeout", HURRIED, "--criterion", criterion];
        let journal = self.run(cases, &more)?;
        let hashes: BTreeMap<_, _> = judged.ends.iter().map(key_and_hash).collect();
        let same = |end: &&CaseEnd| {
            let (key, hash) = key_and_hash(end);
            end.depth == Depth::Judged && hash.is_some() && hashes.get(&key) == Some(&hash)
        };
        let mut ends = journal.ends.iter().filter(same).peekable();
        Ok(ends
            .peek()
            .is_some()
            .then(|| ends.any(|end| end.verdict.is_red())))
    }

    /// Makes one check of conformance; the finding's text if it is one.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn conform(self, check: &str) -> Result<Option<String>, PowerError> {
        let variable = self.variable();
        let words = ["dnn-assay", "conform", "--check", check, "--env", &variable];
        // The check of results at other values is made on demand only.
        let sweep = (check == "knob/results").then_some("--knob-sweep");
        let words = words.into_iter().chain(sweep);
        let cli = Cli::try_parse_from(words).map_err(|e| PowerError::Options(e.to_string()))?;
        let Command::Conform(args) = cli.command else {
            return Err(PowerError::Options("no conform command".to_owned()));
        };
        let libraries = [Some(self.library), self.beside];
        let sources: Vec<_> = libraries.into_iter().flatten().map(source).collect();
        let report = conform(&args, &sources)?;
        let results = report
            .subjects
            .into_iter()
            .flat_map(|subject| subject.results);
        let mut findings = results.filter(|result| result.outcome == OutcomeKind::Finding);
        Ok(findings.next().map(|finding| finding.text))
    }

    /// Inspects the file: findings that are more than facts, by rule.
    ///
    /// # Errors
    /// [`PowerError`] where it cannot be read or is no library.
    pub fn inspect(self) -> Result<Vec<(String, String)>, PowerError> {
        let policy = Policy::default();
        let policy = policy
            .ready()
            .map_err(|_| PowerError::Options("the default policy".into()))?;
        let file = Inspector::new(policy).inspect_file(self.library)?;
        let inspection = file.map_err(|refused| {
            PowerError::Options(format!("{}: {}", refused.path.display(), refused.what))
        })?;
        let counting = inspection
            .findings
            .into_iter()
            .filter(|finding| finding.severity > Severity::Info && finding.waiver.is_none());
        Ok(counting
            .map(|finding| (finding.rule.to_owned(), finding.detail))
            .collect())
    }
}

/// Tries a mutant: all of its cases, the checks of conformance that it names, its file.
///
/// # Errors
/// [`PowerError`].
pub fn try_mutant(
    mutant: &Mutant,
    library: &Path,
    beside: Option<&Path>,
) -> Result<Tried, PowerError> {
    let subject = Subject::of(mutant, library, beside);
    let mut tried = Tried::new(mutant);
    if mutant.kind == Kind::Elf {
        let findings = subject.inspect()?;
        for (rule, text) in &findings {
            *tried.by.entry(Check::Elf(rule.clone())).or_default() += 1;
            if mutant.catch.contains(&Check::Elf(rule.clone())) && tried.note.is_empty() {
                tried.note.clone_from(text);
            }
        }
        tried.units = 1;
        return Ok(tried);
    }
    let mut more = vec!["--timeout", HURRIED, "--repeat", "2"];
    if mutant.stop {
        more.extend(["--max-fails", "1"]);
    }
    let journal = match mutant.cases.is_empty() {
        true => None,
        false => Some(subject.run(&mutant.cases, &more)?),
    };
    if let Some(journal) = &journal {
        hear(journal, &mut tried);
    }
    for check in &mutant.catch {
        if let Check::Conform(id) = check
            && let Some(text) = subject.conform(id)?
        {
            *tried.by.entry(check.clone()).or_default() += 1;
            tried.note = text;
        }
    }
    if let (Kind::Numerics, Some(journal)) = (mutant.kind, &journal) {
        tried.table = subject.judged_by("table", &mutant.cases, journal)?;
        tried.rms = subject.judged_by("rms", &mutant.cases, journal)?;
    }
    Ok(tried)
}

/// Runs a mutant's cases once, for the names that its failures are given.
///
/// # Errors
/// [`PowerError`].
pub fn name_mutant(mutant: &Mutant, library: &Path) -> Result<Tried, PowerError> {
    let subject = Subject::of(mutant, library, None);
    let mut tried = Tried::new(mutant);
    hear(
        &subject.run(&mutant.cases, &["--timeout", HURRIED])?,
        &mut tried,
    );
    Ok(tried)
}

fn key_and_hash(end: &CaseEnd) -> ((i64, &str), Option<&str>) {
    let key = (end.engine_id, end.case.as_str());
    (key, end.determinism_hash.as_deref())
}

/// Takes from a journal what it says of the mutant.
fn hear(journal: &Journal, tried: &mut Tried) {
    for plugin in &journal.plugins {
        if let Some(error) = &plugin.error {
            *tried.by.entry(Check::Refused).or_default() += 1;
            tried.note.clone_from(&error.message);
        }
        for finding in plugin
            .findings
            .iter()
            .filter(|text| text.starts_with("hipDNN drops"))
        {
            *tried.by.entry(Check::Dropped).or_default() += 1;
            tried.note.clone_from(finding);
        }
    }
    for end in &journal.ends {
        if !end.verdict.is_incomplete() {
            tried.units += 1;
        }
        let Some(check) = Check::of(end) else {
            continue;
        };
        *tried.by.entry(check).or_default() += 1;
        tried.named.extend(end.diagnosis.iter().cloned());
        if tried.note.is_empty() {
            tried.note = end.reason.clone().unwrap_or_default();
        }
    }
    let declined = |end: &CaseEnd| end.verdict == Verdict::Unsupported;
    if !journal.ends.is_empty() && journal.ends.iter().all(declined) {
        *tried.by.entry(Check::NothingVerified).or_default() += 1;
    }
    if tried.by.is_empty() {
        tried.note = verdicts(journal);
    }
    tried.named.sort();
    tried.named.dedup();
}

/// How many units ended how.
pub fn verdicts(journal: &Journal) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for end in &journal.ends {
        *counts.entry(end.verdict.to_string()).or_default() += 1;
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    counts.join(", ")
}

/// What a run of a library without a fault says that it should not, and how many units passed.
pub fn clean_findings(journal: &Journal) -> (Vec<String>, usize) {
    let mut findings = Vec::new();
    for plugin in &journal.plugins {
        findings.extend(plugin.error.iter().map(|error| error.message.clone()));
        findings.extend(plugin.findings.iter().cloned());
    }
    let mut passed = 0;
    for end in &journal.ends {
        match &end.verdict {
            Verdict::Pass => passed += 1,
            // A graph that the baseline declines is there for mutants that do not.
            Verdict::Unsupported => {}
            other => {
                let reason = end.reason.as_deref().unwrap_or_default();
                findings.push(format!("{}: {other}: {reason}", end.case));
            }
        }
    }
    (findings, passed)
}
