//! A suite as test trials: one trial per operation and type, which runs its cases on the plugin
//! under test, and one that asks how much of the plan the plugin takes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use dnn_assay::journal::CaseEnd;
use dnn_assay::judge::WEAK_ALLOWED;
use dnn_assay::plan::{PluginSource, find_plugins};
use dnn_assay::report::failure_text;
use dnn_assay::run::{Batch, Expectation, run_batch};
use dnn_assay::suite::{Suite, load};
use dnn_assay::verdict::Verdict;
use libtest_mimic::{Arguments, Failed, Trial};

/// Failures whose story is told in full; the others are counted.
const STORIES: usize = 3;

/// Runs `suite` as trials: the whole body of a test binary's `main`, after `worker_entry`.
pub fn main(suite: &str) -> ExitCode {
    let arguments = Arguments::from_args();
    let plugins = match plugins() {
        Ok(plugins) => plugins,
        Err(message) => return refuse(&message),
    };
    let suite = match load(suite) {
        Ok(suite) => Arc::new(suite),
        Err(problem) => return refuse(&problem.render(false)),
    };
    let trials = plugins
        .iter()
        .flat_map(|plugin| trials(plugin, &suite))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(dnn_assay::exit::Exit::Usage)
}

/// `DNN_ASSAY_PLUGIN`, a file or folder, else the built-in plugin.
fn plugins() -> Result<Vec<PluginSource>, String> {
    let named: Vec<PathBuf> = std::env::var_os("DNN_ASSAY_PLUGIN")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .into_iter()
        .collect();
    let builtin = named.is_empty();
    find_plugins(&named, None, builtin).map_err(|error| error.to_string())
}

/// The trials of one plugin. One that needs a device which is not here gets trials that are
/// ignored from the start, with the reason in their kind: a run-time skip would show as a pass
/// under nextest.
fn trials(plugin: &PluginSource, suite: &Arc<Suite>) -> Vec<Trial> {
    let no_device = dnn_assay::run::missing_device(&plugin.path);
    let mut trials = vec![coverage(plugin, suite, no_device.as_deref())];
    for name in batch_names(suite) {
        let (plugin, suite, batch) = (plugin.clone(), suite.clone(), name.clone());
        let trial = Trial::test(name, move || run(&plugin, &suite, &batch));
        trials.push(mark(trial, no_device.as_deref()));
    }
    trials
}

fn mark(trial: Trial, no_device: Option<&str>) -> Trial {
    match no_device {
        Some(why) => trial.with_kind(why).with_ignored_flag(true),
        None => trial,
    }
}

/// `conv.fprop/f16`: operation and type of a case.
fn batch_name(id: &str) -> String {
    id.splitn(3, '/').take(2).collect::<Vec<_>>().join("/")
}

fn batch_names(suite: &Suite) -> Vec<String> {
    let mut names: Vec<String> = suite
        .cases
        .iter()
        .map(|case| batch_name(&case.id))
        .collect();
    names.sort();
    names.dedup();
    names
}

fn run(plugin: &PluginSource, suite: &Suite, batch: &str) -> Result<(), Failed> {
    let cases = suite
        .cases
        .iter()
        .filter(|case| batch_name(&case.id) == batch);
    let cases = Suite {
        name: suite.name.clone(),
        cases: cases.cloned().collect(),
    };
    let journal = run_batch(&Batch::judged(plugin.clone(), cases))?;
    if let Some(error) = journal
        .plugins
        .iter()
        .find_map(|plugin| plugin.error.as_ref())
    {
        return Err(error.message.as_str().into());
    }
    let bad: Vec<_> = journal
        .ends
        .iter()
        .filter(|end| end.verdict.is_red() || end.verdict.is_incomplete() || is_weak(end))
        .collect();
    if bad.is_empty() && journal.summary().missing == 0 {
        return Ok(());
    }
    let mut text = format!("{} of {} cases failed\n", bad.len(), journal.ends.len());
    for end in bad.iter().take(STORIES) {
        text.push_str(&failure_text(&journal, end));
        text.push('\n');
    }
    Err(text.into())
}

/// Weak, and no allowance says why it may be.
fn is_weak(end: &CaseEnd) -> bool {
    let allowed = || end.notes.iter().any(|note| note.starts_with(WEAK_ALLOWED));
    end.verdict == Verdict::Weak && !allowed()
}

/// Asks for the applicability of the whole plan, and fails where fewer cases than
/// `DNN_ASSAY_MIN_VERIFIED` (default 1) could be verified: a suite that an engine declines
/// altogether must not be green.
fn coverage(plugin: &PluginSource, suite: &Arc<Suite>, no_device: Option<&str>) -> Trial {
    let (plugin, suite) = (plugin.clone(), suite.clone());
    let trial = Trial::test("coverage", move || {
        let least = least_verified()?;
        let journal = run_batch(&Batch::until(
            plugin,
            (*suite).clone(),
            Expectation::Applicable,
        ))?;
        if let Some(error) = journal.plugins.iter().find_map(|p| p.error.as_ref()) {
            return Err(error.message.as_str().into());
        }
        let taken = journal
            .ends
            .iter()
            .filter(|end| dnn_assay::run::is_taken(end))
            .count();
        if taken < least {
            return Err(format!(
                "the plugin takes {taken} of {} units, DNN_ASSAY_MIN_VERIFIED asks for {least}",
                journal.ends.len()
            )
            .into());
        }
        Ok(())
    });
    mark(trial, no_device)
}

fn least_verified() -> Result<usize, Failed> {
    match std::env::var("DNN_ASSAY_MIN_VERIFIED") {
        Err(_) => Ok(1),
        Ok(text) => text
            .parse()
            .map_err(|_| format!("DNN_ASSAY_MIN_VERIFIED='{text}' is no number").into()),
    }
}
