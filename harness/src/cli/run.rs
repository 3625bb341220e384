//! `dnn-assay run`.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::args::RunArgs;
use super::select::select;
use super::{Error, is_coloured, stdout};
use crate::exit::Exit;
use crate::journal::{self, InfraKind, Journal, Record, RunEnd};
use crate::judge::Rules;
use crate::plan::find_plugins;
use crate::report::progress::Progress;
use crate::report::{Junit, Reporter, Terminal};
use crate::run::{self, Context, Environment, Log, RunOptions, Stop, on_interrupt};
use crate::suite::{Allowances, Suite, Tolerances};

/// File name of the journal in `--out`.
pub const JOURNAL: &str = "journal.jsonl";
/// File name of the JUnit report in `--out`.
pub const JUNIT: &str = "junit.xml";

/// Examines, runs, judges, reports.
///
/// # Errors
/// Usage and infrastructure. Whatever is wrong with a plugin is no error: it is in the reports.
pub fn run(args: &RunArgs) -> Result<Exit, Error> {
    let environment = Environment::read().map_err(Error::usage)?;
    let options = RunOptions::new(args).map_err(Error::usage)?;
    let suite = select(&args.selection)?;
    let plugin_dir = std::env::var_os("HIPDNN_PLUGIN_DIR").map(PathBuf::from);
    let sources = find_plugins(&args.plugins, plugin_dir, args.builtin).map_err(Error::usage)?;
    let files = Files::create(args)?;
    let context = context(args, options, &files)?;
    let criterion = criterion_name(args);
    let start = run::run_start(&context.options, &suite, &criterion);
    context.journal.append(&Record::RunStart(Box::new(start)))?;
    note_unmatched(args, &context, &suite)?;
    let result = run::run(&context, &sources, &suite);
    run::note_early_end(&context)?;
    let exit = finish(&context, &files, environment, &result)?;
    match result {
        Ok(()) => Ok(exit),
        Err(error) => Err(Error::infrastructure(error)),
    }
}

/// Entries of the tables and allowances that match nothing in the suite that they are made for,
/// or that have expired.
fn note_unmatched(args: &RunArgs, context: &Context, suite: &Suite) -> Result<(), Error> {
    let selection = &args.selection;
    if selection.suite != ["smoke"] || !selection.filter.is_empty() || !selection.case.is_empty() {
        return Ok(());
    }
    let today = crate::suite::today();
    let ids = suite.cases.iter().map(|case| case.id.as_str());
    for problem in context.rules.allowances.problems(ids, today) {
        context.infra(InfraKind::Configuration, problem.to_string())?;
    }
    Ok(())
}

fn criterion_name(args: &RunArgs) -> String {
    let value = args.criterion.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Where a run writes.
struct Files {
    journal: PathBuf,
    junit: Vec<PathBuf>,
}

impl Files {
    /// Makes the folder; a place that cannot be written is found before anything runs.
    fn create(args: &RunArgs) -> Result<Self, Error> {
        let out = &args.output.out;
        fs::create_dir_all(out)
            .map_err(|error| Error::usage(format!("--out {}: {error}", out.display())))?;
        let mut junit = vec![out.join(JUNIT)];
        junit.extend(args.output.junit.clone());
        for path in &junit {
            File::create(path).map_err(|error| {
                Error::usage(format!("{}: cannot be written: {error}", path.display()))
            })?;
        }
        Ok(Self {
            journal: out.join(JOURNAL),
            junit,
        })
    }
}

fn context(args: &RunArgs, options: RunOptions, files: &Files) -> Result<Context, Error> {
    let problem = |problem: Box<crate::yaml::Problem>| Error::usage(problem.render(is_coloured()));
    let tolerances = Tolerances::embedded().map_err(problem)?;
    let allowances = Allowances::embedded().map_err(problem)?;
    let rules = Rules::new(args.criterion, &options.declared, tolerances, allowances);
    let limits = &args.limits;
    let progress = Progress::new(args.output.plain);
    Ok(Context {
        journal: Log::create(&files.journal, progress)?,
        stop: Stop::new(limits.budget, limits.max_fails, on_interrupt()),
        options,
        rules,
    })
}

/// Ends the journal and writes every report from it.
fn finish(
    context: &Context,
    files: &Files,
    environment: Environment,
    result: &Result<(), run::RunError>,
) -> Result<Exit, Error> {
    context.journal.finish();
    let journal = journal::read(&files.journal).map_err(Error::infrastructure)?;
    let exit = match result {
        Ok(()) => run::exit_of(context, &journal, environment),
        Err(_) => Exit::Infrastructure,
    };
    context.journal.append(&Record::RunEnd(RunEnd {
        time: Some(jiff::Timestamp::now().to_string()),
        seconds: Some(context.stop.elapsed().as_secs_f64()),
        counts: counts(&journal),
        exit: Some(exit.code()),
        interrupted: context.stop.interrupted(),
    }))?;
    let journal = journal::read(&files.journal).map_err(Error::infrastructure)?;
    for path in &files.junit {
        write_report(&Junit, &journal, path)?;
    }
    let mut out = stdout();
    Terminal::default().write(&journal, &mut out)?;
    out.flush()?;
    Ok(exit)
}

fn counts(journal: &Journal) -> std::collections::BTreeMap<String, u64> {
    let summary = journal.summary();
    let counts = summary.by_verdict.iter();
    counts.map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

/// Writes one report to a file.
///
/// # Errors
/// What the file system says, with the path.
pub fn write_report(reporter: &dyn Reporter, journal: &Journal, path: &Path) -> Result<(), Error> {
    let write = || -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        reporter.write(journal, &mut file)?;
        file.flush()
    };
    write().map_err(|error| Error::infrastructure(format!("{}: {error}", path.display())))
}
