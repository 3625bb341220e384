//! `dnn-assay shrink`: the smallest case that fails as this one does.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;

use super::args::{Cli, Command, RunArgs, ShrinkArgs};
use super::run::{context, criterion_name};
use super::{Error, stdout};
use crate::dump::exit_of;
use crate::exit::Exit;
use crate::journal::{CaseEnd, CaseStart, Journal, RunEnd};
use crate::plan::find_plugins;
use crate::report::shrunk::{Told, tell};
use crate::report::{Reporter, Terminal};
use crate::run::{Context, Prober, RunOptions, Subject, examine, run_start};
use crate::shrink::{Limits, Regression, Way, regression, shrink as search};
use crate::suite::{Suite, SuiteCase, of_ids};

/// Runs the case, shrinks it if it fails, and prints what it came to. The exit code is that of
/// running the case.
///
/// # Errors
/// Usage, plugin and infrastructure, as for `run`.
pub fn shrink(args: ShrinkArgs) -> Result<Exit, Error> {
    let problem =
        |problem: Box<crate::yaml::Problem>| Error::usage(problem.render(super::is_coloured()));
    let suite = of_ids(std::slice::from_ref(&args.case)).map_err(problem)?;
    if let Some(path) = &args.write {
        std::fs::File::create(path)
            .map_err(|error| Error::usage(format!("--write {}: {error}", path.display())))?;
    }
    let scratch = tempfile::tempdir()?;
    let run = run_arguments(&args, scratch.path());
    let laboratory = Laboratory::new(&run, &suite)?;
    let case = &suite.cases[0];
    let Some((end, mut prober)) = laboratory.first_failure(case)? else {
        return laboratory.passed(case);
    };
    let limits = Limits {
        tries: args.tries,
        time: args.budget.unwrap_or(Duration::MAX),
    };
    let infrastructure = |error: crate::run::SlotError| Error::infrastructure(error);
    let shrunk = search(case, &Way::of(&end), limits, &mut |case| prober.probe(case))
        .map_err(infrastructure)?;
    // Once more, this time with a name for the fault.
    let mut named = laboratory.prober(end.engine_id);
    let smallest = named.probe(&shrunk.case).map_err(infrastructure)?;
    let smallest = match smallest {
        Some(smallest) if Way::of(&smallest) == Way::of(&end) => smallest,
        other => {
            return Err(Error::infrastructure(format!(
                "{} failed while shrinking with {} and now ends with {}: the failure is not steady",
                shrunk.case.id,
                end.verdict,
                other.map_or("nothing".to_owned(), |other| other.verdict.to_string()),
            )));
        }
    };
    let yaml = regression(&Regression {
        end: &smallest,
        from: &case.id,
        seed: args.seed,
    });
    if let Some(path) = &args.write {
        std::fs::write(path, &yaml)
            .map_err(|error| Error::infrastructure(format!("{}: {error}", path.display())))?;
    }
    let told = Told {
        journal: &laboratory.journal(vec![smallest.clone()]),
        from: &case.id,
        shrunk: &shrunk,
        end: &smallest,
        yaml: &yaml,
    };
    let mut out = stdout();
    tell(&told, &mut out)?;
    out.flush()?;
    Ok(Exit::Failed)
}

/// The arguments of a run of the case; nothing of it is kept.
fn run_arguments(args: &ShrinkArgs, scratch: &Path) -> RunArgs {
    let cli = Cli::try_parse_from(["dnn-assay", "run"]).expect("`run` needs no arguments");
    let Command::Run(mut run) = cli.command else {
        unreachable!("it was `run`");
    };
    run.plugins = args.plugin.iter().cloned().collect();
    run.builtin = args.builtin;
    run.engine = args.engine.iter().cloned().collect();
    run.criterion = args.criterion;
    run.traits.clone_from(&args.traits);
    run.wire = args.wire;
    run.knob.clone_from(&args.knob);
    run.seed = args.seed;
    run.limits.timeout = args.timeout;
    run.limits.repeat = args.repeat;
    run.loading = args.loading.clone();
    run.output.out = scratch.to_owned();
    run.output.plain = true;
    *run
}

/// A plugin and everything that a case needs to be run on it.
struct Laboratory {
    context: Context,
    subject: Subject,
    silent: crate::judge::Rules,
    journal: Journal,
}

impl Laboratory {
    fn new(run: &RunArgs, suite: &Suite) -> Result<Self, Error> {
        let options = RunOptions::new(run).map_err(Error::usage)?;
        let plugin_dir = std::env::var_os("HIPDNN_PLUGIN_DIR").map(PathBuf::from);
        let sources = find_plugins(&run.plugins, plugin_dir, run.builtin).map_err(Error::usage)?;
        let [source] = sources.as_slice() else {
            return Err(Error::usage(format!(
                "shrink takes one plugin, and there are {}; name one with --plugin",
                sources.len()
            )));
        };
        let context = context(run, options)?;
        let start = run_start(&context.options, &sources, suite, &criterion_name(run));
        let examined = examine(0, source, &context.options).map_err(Error::infrastructure)?;
        let Some(subject) = examined.subject else {
            let error = examined.record.error.unwrap_or_default();
            return Err(Error::plugin(error.message));
        };
        let silent = context.rules.clone().without_names();
        Ok(Self {
            context,
            subject,
            silent,
            journal: Journal {
                start: Some(start),
                plugins: vec![examined.record],
                ..Journal::default()
            },
        })
    }

    fn prober(&self, engine_id: i64) -> Prober<'_> {
        Prober::new(
            &self.context,
            &self.subject,
            0,
            engine_id,
            &self.context.rules,
        )
    }

    /// The first engine on which the case fails, with a prober that looks for no names.
    fn first_failure(&self, case: &SuiteCase) -> Result<Option<(CaseEnd, Prober<'_>)>, Error> {
        for engine in &self.subject.engines {
            let mut prober = Prober::new(&self.context, &self.subject, 0, engine.id, &self.silent);
            let end = prober.probe(case).map_err(Error::infrastructure)?;
            if let Some(end) = end.filter(|end| end.verdict.is_red()) {
                return Ok(Some((end, prober)));
            }
        }
        Ok(None)
    }

    /// Nothing to shrink: the report of the case itself.
    fn passed(&self, case: &SuiteCase) -> Result<Exit, Error> {
        let mut ends = Vec::new();
        for engine in &self.subject.engines {
            let end = self.prober(engine.id).probe(case);
            ends.extend(end.map_err(Error::infrastructure)?);
        }
        let mut journal = self.journal(ends);
        let exit = exit_of(&journal);
        journal.infra.push(crate::journal::Infra {
            time: None,
            kind: crate::journal::InfraKind::Configuration,
            message: "the case does not fail here: there is nothing to shrink".to_owned(),
            plugin: None,
            case: Some(case.id.clone()),
            rule: None,
        });
        journal.end = Some(RunEnd {
            exit: Some(exit.code()),
            ..RunEnd::default()
        });
        let mut out = stdout();
        Terminal.write(&journal, &mut out)?;
        out.flush()?;
        Ok(exit)
    }

    fn journal(&self, ends: Vec<CaseEnd>) -> Journal {
        let starts = ends.iter().map(|end| CaseStart {
            plugin: end.plugin,
            engine_id: end.engine_id,
            case: end.case.clone(),
            attempt: end.attempt,
            ..CaseStart::default()
        });
        let mut journal = self.journal.clone();
        journal.starts = starts.collect();
        if let Some(plugin) = journal.plugins.first_mut() {
            plugin.planned = Some(ends.len() as u64);
        }
        journal.ends = ends;
        journal
    }
}
