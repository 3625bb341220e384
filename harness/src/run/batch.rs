//! Runs without a command line: for test binaries and tools on top of this library.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;

use super::{Context, Log, RunError, RunOptions, Stop, on_interrupt, run, run_start};
use crate::cli::args::{Cli, Command, DeviceChoice, RunArgs};
use crate::journal::{self, CaseEnd, Journal, Record};
use crate::judge::Rules;
use crate::plan::PluginSource;
use crate::report::progress::Progress;
use crate::suite::{Allowances, Suite, Tolerances};
use crate::verdict::Depth;

/// Cases to run on one plugin with default options.
#[derive(Clone, Debug)]
pub struct Batch {
    plugin: PluginSource,
    cases: Suite,
    depth: Expectation,
    arguments: Vec<String>,
}

/// How far the cases of a batch go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The engines are asked whether they take the graphs.
    Applicable,
    /// Everything.
    Judged,
}

/// Why a batch could not be run: nothing that the plugin did.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The default options cannot be had: a defect of this program or its data.
    #[error("{0}")]
    Options(String),
    /// Scratch space cannot be had, or the journal cannot be read.
    #[error("{0}")]
    Journal(String),
}

impl Batch {
    /// Cases that are judged.
    pub fn judged(plugin: PluginSource, cases: Suite) -> Self {
        Self::until(plugin, cases, Expectation::Judged)
    }

    /// Cases that go as far as `depth`.
    pub fn until(plugin: PluginSource, cases: Suite, depth: Expectation) -> Self {
        Self {
            plugin,
            cases,
            depth,
            arguments: Vec::new(),
        }
    }

    /// With further arguments of `dnn-assay run`: limits, variables, the criterion.
    #[must_use]
    pub fn with<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }
}

/// Runs a batch in a temporary folder and gives its journal.
///
/// # Errors
/// [`BatchError`]. Whatever is wrong with the plugin stands in the journal.
pub fn run_batch(batch: &Batch) -> Result<Journal, BatchError> {
    let folder = tempfile::tempdir().map_err(|error| BatchError::Journal(error.to_string()))?;
    let args = arguments(folder.path(), batch)?;
    let options = RunOptions::new(&args).map_err(|error| BatchError::Options(error.to_string()))?;
    let data = |problem: Box<crate::yaml::Problem>| BatchError::Options(problem.render(false));
    let tolerances = Tolerances::embedded().map_err(data)?;
    let allowances = Allowances::embedded().map_err(data)?;
    let declared = options.declared.clone();
    let rules = Rules::declared(args.criterion, declared, tolerances, allowances);
    let path = folder.path().join("journal.jsonl");
    let context = Context {
        journal: Log::create(&path, Progress::silent()).map_err(RunError::from)?,
        stop: Stop::new(args.limits.budget, args.limits.max_fails, on_interrupt()),
        options,
        rules,
        gate: crate::gate::Gate::default(),
        dumper: None,
        shrinker: None,
        knobs: super::DeclaredKnobs::default(),
    };
    let criterion = format!("{:?}", args.criterion).to_lowercase();
    let start = run_start(
        &context.options,
        std::slice::from_ref(&batch.plugin),
        &batch.cases,
        &criterion,
    );
    let start = Record::RunStart(Box::new(start));
    context.journal.append(&start).map_err(RunError::from)?;
    run(&context, std::slice::from_ref(&batch.plugin), &batch.cases)?;
    journal::read(&path).map_err(|error| BatchError::Journal(error.to_string()))
}

fn arguments(out: &Path, batch: &Batch) -> Result<RunArgs, BatchError> {
    let mut words: Vec<OsString> = vec!["dnn-assay".into(), "run".into(), "--out".into()];
    words.push(out.as_os_str().to_owned());
    if batch.depth == Expectation::Applicable {
        words.extend(["--until".into(), "applicable".into()]);
    }
    words.extend(batch.arguments.iter().map(OsString::from));
    let cli = Cli::try_parse_from(words).map_err(|e| BatchError::Options(e.to_string()))?;
    match cli.command {
        Command::Run(args) => Ok(*args),
        _ => Err(BatchError::Options("no run command".to_owned())),
    }
}

/// Whether an engine took the graph of a case, whatever came of it.
pub fn is_taken(end: &CaseEnd) -> bool {
    end.depth >= Depth::Applicable
}

/// Why the device that the plugin in `path` needs is not here; `None` where it needs none or has
/// one. A file that cannot be read needs none: loading it will say what is wrong.
pub fn missing_device(path: &Path, device: Option<DeviceChoice>) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let file = dnn_assay_elf::identify(&bytes).ok()?;
    super::device_present(&super::decide_memory(device, &file), &[]).err()
}
