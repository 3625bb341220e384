//! A suite as test trials: one trial per operation and type, which runs its cases on the plugin
//! under test, and one that asks how much of the plan the plugin takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use dnn_assay::journal::CaseEnd;
use dnn_assay::judge::WEAK_ALLOWED;
use dnn_assay::plan::{PluginSource, built_in_file, find_plugins};
use dnn_assay::report::failure_text;
use dnn_assay::run::{Batch, Expectation, missing_device, run_batch};
use dnn_assay::suite::{Suite, Tier, load};
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
    let named = std::env::var_os("DNN_ASSAY_PLUGIN").is_some_and(|value| !value.is_empty());
    let mut targets: Vec<Target> = plugins.into_iter().map(Target::new).collect();
    if !named {
        targets.extend(gfx942());
    }
    let mut all: Vec<Trial> = targets
        .iter()
        .flat_map(|target| trials(target, &suite))
        .collect();
    if let Some(mock) = targets.iter().find(|target| target.prefix == MOCK) {
        all.push(trace(mock, &suite));
        all.extend(trace_checks(mock));
    }
    libtest_mimic::run(&arguments, all).exit_code()
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

/// A plugin, where it runs, and how its trials are called.
#[derive(Clone)]
struct Target {
    plugin: PluginSource,
    prefix: &'static str,
    arguments: &'static [&'static str],
    ignored: Option<String>,
    /// The trace of launches to compare with: what an H200 computed with the same kernels.
    kept: Option<Arc<str>>,
}

impl Target {
    fn new(plugin: PluginSource) -> Self {
        Self {
            ignored: missing_device(&plugin.path, None),
            plugin,
            prefix: "",
            arguments: &[],
            kept: None,
        }
    }
}

/// The trace of the full suite, which holds the smoke suite.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/h200/full.trace");

/// How many launches of a fresh trace are in the kept one, and how many are not.
///
/// # Errors
/// A launch of both that wrote other bits. One that the kept trace does not know is none: the suite
/// or its data may have changed since.
fn compare(kept: &str, fresh: &Path) -> Result<(usize, usize), Failed> {
    let kept = launches(kept);
    // Cases that are declined launch nothing.
    let fresh = std::fs::read_to_string(fresh).unwrap_or_default();
    let (mut known, mut unknown) = (0, 0);
    for (launch, wrote) in launches(&fresh) {
        match kept.get(launch) {
            Some(writes) if *writes == wrote => known += 1,
            Some(writes) => {
                let text = format!("{launch} wrote {wrote}, and {writes} on the H200 ({KEPT})");
                return Err(text.into());
            }
            None => unknown += 1,
        }
    }
    Ok((known, unknown))
}

/// What each launch of a trace wrote, by its kernel, grid, arguments and inputs.
fn launches(trace: &str) -> BTreeMap<&str, &str> {
    let lines = trace.lines();
    lines.filter_map(|l| l.split_once(" writes ")).collect()
}

/// Has the gfx942 plugin write a trace to `file`.
fn traced(batch: Batch, file: &Path) -> Batch {
    let variable = format!("DNN_ASSAY_GFX942_TRACE={}", file.display());
    batch.with(["--env".to_owned(), variable])
}

/// What the trials of the gfx942 plugin on the mock HIP runtime are called.
const MOCK: &str = "gfx942-mock::";
/// One in this many cases is asked for.
const SAMPLE: usize = 40;
/// Launches that the kept trace must know for each that it does not.
const KNOWN: usize = 4;

/// The kept trace knows most launches of a sample of the suite: else comparing says little, and the
/// file is to be made anew.
fn trace(target: &Target, suite: &Arc<Suite>) -> Trial {
    let (owned, suite) = (target.clone(), suite.clone());
    let name = format!("{MOCK}kept-trace");
    let trial = Trial::test(name, move || {
        let kept = owned.kept.as_deref().ok_or("there is no kept trace")?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("trace");
        // What the H200 ran: the smoke suite.
        let cases = suite.cases.iter().filter(|case| case.tier <= Tier::Smoke);
        let sample = Suite {
            name: suite.name.clone(),
            cases: cases.step_by(SAMPLE).cloned().collect(),
        };
        let batch = Batch::judged(owned.plugin, sample).with(owned.arguments.to_vec());
        run_batch(&traced(batch, &file))?;
        let (known, unknown) = compare(kept, &file)?;
        if known > KNOWN * unknown {
            return Ok(());
        }
        let text = format!(
            "{unknown} launches are not in {KEPT}, and only {known} are: the suite has changed so \
             much that ci/h200/run.sh should make the file anew"
        );
        Err(text.into())
    });
    mark(trial, target.ignored.as_deref())
}

/// What no suite reaches, and `ci/device-run.sh` runs besides: a deep product of f64, whose parts are
/// added by a kernel of their own.
const BESIDE: &str = "conv.wgrad/f64/nchw/n4-c3-k4-i24x24-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1/uni";

/// That comparing can fail, and that the file has every kernel.
fn trace_checks(target: &Target) -> Vec<Trial> {
    let kept = target.kept.clone().unwrap_or_default();
    let owned = target.clone();
    let changed = move || -> Result<(), Failed> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("trace");
        let line = kept.lines().next().ok_or("the kept trace is empty")?;
        std::fs::write(&file, format!("{line}\n"))?;
        assert_eq!(compare(&kept, &file)?, (1, 0));
        let last = if line.ends_with('0') { '1' } else { '0' };
        let other = format!("{}{last}\n", &line[..line.len() - 1]);
        std::fs::write(&file, other)?;
        let failure = compare(&kept, &file)
            .err()
            .ok_or("another hash was taken")?;
        let text = format!("{failure:?}");
        assert!(text.contains("on the H200"), "{text}");
        Ok(())
    };
    let every = move || -> Result<(), Failed> {
        let kept = owned.kept.as_deref().ok_or("there is no kept trace")?;
        for name in dnn_assay_gfx942_host_kernels::names() {
            let line = format!("{name} ");
            if !kept.lines().any(|l| l.starts_with(&line)) {
                return Err(format!("{KEPT} has no launch of {name}").into());
            }
        }
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("trace");
        let suite = dnn_assay::suite::of_ids(&[BESIDE]).map_err(|e| e.render(false))?;
        let batch = Batch::judged(owned.plugin, suite).with(owned.arguments.to_vec());
        run_batch(&traced(batch, &file))?;
        let (known, unknown) = compare(kept, &file)?;
        assert_eq!((known, unknown), (2, 0), "launches of {BESIDE}");
        Ok(())
    };
    let trials = [
        Trial::test(format!("{MOCK}kept-trace-sees-another-hash"), changed),
        Trial::test(format!("{MOCK}kept-trace-has-every-kernel"), every),
    ];
    let ignored = target.ignored.as_deref();
    trials.map(|trial| mark(trial, ignored)).into()
}

/// The gfx942 plugin twice: on the mock HIP runtime, and on the GPU that is here, if one is.
fn gfx942() -> Vec<Target> {
    let Ok(path) = built_in_file("libdnn_assay_gfx942_plugin.so") else {
        return Vec::new();
    };
    let kernels = has_kernels(&path);
    let plugin = PluginSource {
        path,
        why: "the built-in gfx942 plugin".to_owned(),
    };
    let device = Target {
        prefix: "gfx942-device::",
        ..Target::new(plugin.clone())
    };
    let mock = Target {
        plugin,
        prefix: MOCK,
        arguments: &["--device", "mock-hip"],
        ignored: None,
        kept: std::fs::read_to_string(KEPT).ok().map(Arc::from),
    };
    let mut targets = vec![mock, device];
    if !kernels {
        let why = "the plugin was built without kernels: no clang-19 or ROCm clang here";
        targets
            .iter_mut()
            .for_each(|target| target.ignored = Some(why.to_owned()));
    }
    targets
}

/// Whether the build of the gfx942 plugin had a compiler: the object's symbols are in the file.
fn has_kernels(path: &Path) -> bool {
    let symbol = b"dnn_pointwise.kd";
    std::fs::read(path).is_ok_and(|bytes| bytes.windows(symbol.len()).any(|w| w == symbol))
}

/// The trials of one plugin. One that needs a device which is not here gets trials that are
/// ignored from the start, with the reason in their kind: a run-time skip would show as a pass
/// under nextest.
fn trials(target: &Target, suite: &Arc<Suite>) -> Vec<Trial> {
    let mut trials = vec![coverage(target, suite)];
    for batch in batch_names(suite) {
        let name = format!("{}{batch}", target.prefix);
        let (owned, suite) = (target.clone(), suite.clone());
        let trial = Trial::test(name, move || run(&owned, &suite, &batch));
        trials.push(mark(trial, target.ignored.as_deref()));
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

fn run(target: &Target, suite: &Suite, batch: &str) -> Result<(), Failed> {
    let cases = suite
        .cases
        .iter()
        .filter(|case| batch_name(&case.id) == batch);
    let cases = Suite {
        name: suite.name.clone(),
        cases: cases.cloned().collect(),
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("trace");
    let mut batch = Batch::judged(target.plugin.clone(), cases).with(target.arguments.to_vec());
    if target.kept.is_some() {
        batch = traced(batch, &file);
    }
    let journal = run_batch(&batch)?;
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
        return match &target.kept {
            None => Ok(()),
            Some(kept) => compare(kept, &file).map(drop),
        };
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
fn coverage(target: &Target, suite: &Arc<Suite>) -> Trial {
    let (owned, suite) = (target.clone(), suite.clone());
    let trial = Trial::test(format!("{}coverage", target.prefix), move || {
        let least = least_verified()?;
        let batch = Batch::until(owned.plugin, (*suite).clone(), Expectation::Applicable);
        let journal = run_batch(&batch.with(owned.arguments.to_vec()))?;
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
    mark(trial, target.ignored.as_deref())
}

fn least_verified() -> Result<usize, Failed> {
    match std::env::var("DNN_ASSAY_MIN_VERIFIED") {
        Err(_) => Ok(1),
        Ok(text) => text
            .parse()
            .map_err(|_| format!("DNN_ASSAY_MIN_VERIFIED='{text}' is no number").into()),
    }
}
