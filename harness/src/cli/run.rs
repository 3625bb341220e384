//! `dnn-assay run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;

use super::args::RunArgs;
use super::configure;
use super::reports::Reports;
use super::select::{DEFAULT_SUITE, select};
use super::{Error, is_coloured};
use crate::dump::Dumper;
use crate::exit::Exit;
use crate::gate::{Gate, Observed};
use crate::journal::{self, Infra, InfraKind, Journal, Record, RunEnd};
use crate::judge::Rules;
use crate::plan::{self, PluginSource, find_plugins};
use crate::report::progress::Progress;
use crate::run::{self, Context, Environment, Log, RunError, RunOptions, Stop, on_interrupt};
use crate::shrink::Shrinker;
use crate::suite::{Allowances, Suite, Tolerances};

/// File name of the journal in `--out`.
pub const JOURNAL: &str = "journal.jsonl";

/// Folder in `--out` of libraries that a released program carries.
const BUILT_IN: &str = "built-in";

/// What `check` says without a plugin.
const NO_PLUGIN: &str = "no plugin: name its .so file, or write dnn-assay.yaml with \
    `dnn-assay init PLUGIN`; --builtin checks the plugin that comes with this program";

/// Folder of shrunk cases in `--out`.
pub const REGRESSIONS: &str = "regressions";

/// A run that came to its end.
#[derive(Debug)]
pub struct Finished {
    /// How the command ends.
    pub exit: Exit,
    /// Everything that happened.
    pub journal: Journal,
}

/// Examines, runs, judges, reports.
///
/// # Errors
/// Usage and infrastructure. Whatever is wrong with a plugin is no error: it is in the reports.
pub fn run(args: RunArgs) -> Result<Exit, Error> {
    Ok(execute(args)?.exit)
}

/// What a stage before the cases has to say.
#[derive(Debug, Default)]
pub struct Staged {
    /// Rules and contracts; a broken one that no waiver expects makes the run red.
    pub observed: Vec<Observed>,
    /// Remarks, and what could not be looked into.
    pub records: Vec<Infra>,
}

/// Something that is done to the plugins before the cases.
pub type Stage = fn(&RunArgs, &[PluginSource]) -> Result<Staged, Error>;

/// As [`run`], and gives the journal back.
///
/// # Errors
/// As [`run`].
pub fn execute(args: RunArgs) -> Result<Finished, Error> {
    execute_staged(args, &[])
}

/// As [`execute`], with stages before the cases.
///
/// # Errors
/// As [`run`], and those of a stage.
pub fn execute_staged(args: RunArgs, stages: &[Stage]) -> Result<Finished, Error> {
    let reports = Reports::of_run(&args.output);
    let finished = prepare_and_run(args, &reports, stages)?;
    reports.write(&finished.journal)?;
    Ok(finished)
}

/// As [`execute`], and writes no report but the journal.
///
/// # Errors
/// As [`run`].
pub fn execute_quietly(args: RunArgs) -> Result<Finished, Error> {
    prepare_and_run(args, &Reports::default(), &[])
}

fn prepare_and_run(
    mut args: RunArgs,
    reports: &Reports,
    stages: &[Stage],
) -> Result<Finished, Error> {
    let environment = Environment::read().map_err(Error::usage)?;
    let config = configure::configuration(&args.gate)?;
    let named = !args.plugins.is_empty();
    if let Some(config) = &config {
        configure::merge(&mut args, config);
    }
    let gate = configure::gate(&args.gate, config.as_ref())?;
    let options = RunOptions::new(&args).map_err(Error::usage)?;
    let suite = select(&args.selection, args.seed)?;
    plan::unpack_to(&args.output.out.join(BUILT_IN));
    let plugin_dir = std::env::var_os("HIPDNN_PLUGIN_DIR").map(PathBuf::from);
    // A gate that was told of no plugin would be green for the built-in one.
    if !stages.is_empty() && args.plugins.is_empty() && !args.builtin && plugin_dir.is_none() {
        return Err(Error::usage(NO_PLUGIN));
    }
    let mut sources =
        find_plugins(&args.plugins, plugin_dir, args.builtin).map_err(Error::usage)?;
    if let Some(config) = config.filter(|_| !named && !args.plugins.is_empty()) {
        for source in &mut sources {
            source.why = format!("named in {}", config.path.display());
        }
    }
    make_folder(&args.output.out)?;
    reports.check()?;
    let mut context = context(&args, options)?;
    let start = run::run_start(&context.options, &sources, &suite, &criterion_name(&args));
    let device = start.device.clone().unwrap_or_default();
    context.gate = gate;
    context.rules.overrides = Arc::new(std::mem::take(&mut context.gate.overrides));
    context.gate.on_device(device.arch, device.rocm);
    if args.selection.fuzz.is_some() {
        // Failures of drawn cases shrink by themselves: nobody knows these cases.
        let regressions = args.output.out.join(REGRESSIONS);
        context.shrinker = Some(Shrinker::new(regressions, context.rules.clone()));
    }
    if let Some(folder) = &args.output.dump_on_fail {
        let dumper = Dumper::new(folder, start.clone());
        context.dumper = Some(dumper.map_err(|e| Error::usage(format!("--dump-on-fail {e}")))?);
    }
    context.journal.append(&Record::RunStart(Box::new(start)))?;
    note_unmatched(&args, &context, &suite)?;
    let result = match run::examine_all(&context, &sources, &suite) {
        Ok(subjects) => {
            run_stages(&args, &context, stages, &sources)?;
            run::run_cases(&context, &subjects, &suite)
        }
        Err(error) => Err(error),
    };
    run::note_early_end(&context)?;
    note_gate(&args, &context, !stages.is_empty())?;
    let finished = finish(&context, &args, environment, &result)?;
    match result {
        Ok(()) => Ok(finished),
        Err(RunError::GoneEngine(gone)) => Err(Error::usage(gone.0.render(is_coloured()))),
        Err(error) => Err(Error::infrastructure(error)),
    }
}

/// What comes before the cases.
fn run_stages(
    args: &RunArgs,
    context: &Context,
    stages: &[Stage],
    sources: &[PluginSource],
) -> Result<(), Error> {
    let mut observed = Vec::new();
    for stage in stages {
        let staged = stage(args, sources)?;
        observed.extend(staged.observed);
        for record in &staged.records {
            context.journal.infra(record)?;
        }
    }
    for record in context.gate.judge_findings(&observed) {
        context.journal.infra(&record)?;
    }
    Ok(())
}

/// What is to be said of claims, waivers, overrides and floors. `staged` says that rules and
/// contracts were looked at.
fn note_gate(args: &RunArgs, context: &Context, staged: bool) -> Result<(), Error> {
    let selection = &args.selection;
    let whole = selection.case.is_empty()
        && selection.filter.is_empty()
        && selection.fuzz.is_none()
        && args.engine.is_empty();
    let whole = whole && context.judges();
    let mut remarks = context.gate.remarks(whole, staged);
    remarks.extend(context.rules.overrides.remarks(whole));
    remarks.extend(context.knobs.remarks(&context.options.knobs));
    for remark in remarks {
        context.infra(InfraKind::Configuration, remark)?;
    }
    Ok(())
}

/// Entries of the tables and allowances that match nothing in the suite that they are made for,
/// or that have expired.
fn note_unmatched(args: &RunArgs, context: &Context, suite: &Suite) -> Result<(), Error> {
    let selection = &args.selection;
    let default = selection.suite.is_empty() || selection.suite == [DEFAULT_SUITE];
    if !default
        || selection.fuzz.is_some()
        || !selection.filter.is_empty()
        || !selection.case.is_empty()
    {
        return Ok(());
    }
    let today = crate::suite::today();
    let ids = suite.cases.iter().map(|case| case.id.as_str());
    for problem in context.rules.allowances.problems(ids, today) {
        context.infra(InfraKind::Configuration, problem.to_string())?;
    }
    Ok(())
}

pub(super) fn criterion_name(args: &RunArgs) -> String {
    let value = args.criterion.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

fn make_folder(out: &Path) -> Result<(), Error> {
    fs::create_dir_all(out)
        .map_err(|error| Error::usage(format!("--out {}: {error}", out.display())))
}

/// The rules of judgement of a run.
pub(super) fn rules(args: &RunArgs, options: &RunOptions) -> Result<Rules, Error> {
    let problem = |problem: Box<crate::yaml::Problem>| Error::usage(problem.render(is_coloured()));
    let tolerances = Tolerances::embedded().map_err(problem)?;
    let allowances = Allowances::embedded().map_err(problem)?;
    let declared = options.declared.clone();
    Ok(Rules::declared(
        args.criterion,
        declared,
        tolerances,
        allowances,
    ))
}

pub(super) fn context(args: &RunArgs, options: RunOptions) -> Result<Context, Error> {
    let rules = rules(args, &options)?;
    let limits = &args.limits;
    let progress = Progress::new(args.output.plain);
    Ok(Context {
        journal: Log::create(&args.output.out.join(JOURNAL), progress)?,
        gate: Gate::default(),
        dumper: None,
        shrinker: None,
        knobs: run::DeclaredKnobs::default(),
        stop: Stop::new(limits.budget, limits.max_fails, on_interrupt()),
        options,
        rules,
    })
}

/// Ends the journal.
fn finish(
    context: &Context,
    args: &RunArgs,
    environment: Environment,
    result: &Result<(), RunError>,
) -> Result<Finished, Error> {
    context.journal.finish();
    let path = args.output.out.join(JOURNAL);
    let journal = journal::read(&path).map_err(Error::infrastructure)?;
    if let Some(floor) = context.gate.unmet_floor(&journal) {
        context.infra(InfraKind::Configuration, floor)?;
    }
    let exit = match result {
        Ok(()) => run::exit_of(context, &journal, environment),
        Err(RunError::GoneEngine(_)) => Exit::Usage,
        Err(_) => Exit::Infrastructure,
    };
    context.journal.append(&Record::RunEnd(RunEnd {
        time: Some(jiff::Timestamp::now().to_string()),
        seconds: Some(context.stop.elapsed().as_secs_f64()),
        counts: counts(&journal),
        peak_memory: peak_memory(),
        exit: Some(exit.code()),
        interrupted: context.stop.interrupted(),
    }))?;
    let journal = journal::read(&path).map_err(Error::infrastructure)?;
    Ok(Finished { exit, journal })
}

/// The most memory that this process held, bytes, as Linux says.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes = line.split_whitespace().next()?.parse::<u64>().ok()?;
    Some(kibibytes * 1024)
}

fn counts(journal: &Journal) -> std::collections::BTreeMap<String, u64> {
    let summary = journal.summary();
    let counts = summary.by_verdict.iter();
    counts.map(|(name, n)| ((*name).to_owned(), *n)).collect()
}
