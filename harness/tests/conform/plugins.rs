//! Building plugins and checking them.

use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::{LazyLock, Mutex};

use clap::Parser;
use dnn_assay::cli::args::{Cli, Command};
use dnn_assay::conform::{CheckResult, OutcomeKind, Report, conform};
use dnn_assay::plan::{built_in_file, find_plugins};
use dnn_assay::power::MUTANTS;
use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

pub static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().unwrap());
static BUILDING: Mutex<()> = Mutex::new(());

/// Compiles a source of the repository, once per name.
pub fn build(name: &str, compiler: &str, source: &str, arguments: &[&str]) -> PathBuf {
    let _one = BUILDING.lock().unwrap();
    let target = FOLDER.path().join(name);
    if target.exists() {
        return target;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let status = Process::new(compiler)
        .args(["-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-o"])
        .arg(&target)
        .args(arguments)
        .arg(root.join(source))
        .current_dir(&root)
        .status()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(status.success(), "{compiler} {source} {arguments:?}");
    target
}

/// The C example with faults at run time.
pub fn faulty() -> PathBuf {
    faulty_with("faulty.so", &[])
}

pub fn faulty_with(name: &str, arguments: &[&str]) -> PathBuf {
    let mut all = vec![
        "-std=gnu11",
        r#"-DEXAMPLE="../../plugins-under-test/c-example/c_plugin.c""#,
    ];
    all.extend(arguments);
    build(name, "cc", "mocks/abi/faulty.c", &all)
}

pub fn c_example() -> PathBuf {
    let source = "plugins-under-test/c-example/c_plugin.c";
    build("c-example.so", "cc", source, &["-std=c11"])
}

pub fn cpp_example() -> PathBuf {
    let source = "plugins-under-test/cpp-example/cpp_plugin.cpp";
    let map = "-Wl,--version-script=plugins-under-test/cpp-example/exports.map";
    build("cpp-example.so", "g++", source, &["-std=c++17", map])
}

pub fn stub() -> PathBuf {
    build("stub.so", "cc", "mocks/abi/stub.c", &["-std=gnu11"])
}

pub fn stub_2025() -> PathBuf {
    let arguments = ["-std=gnu11", "-DNOV2025"];
    build("stub-2025.so", "cc", "mocks/abi/stub.c", &arguments)
}

/// The CPU engine's mutants; without a fault an engine with knobs of every kind.
pub fn mutants() -> PathBuf {
    built_in_file(MUTANTS).expect("a dev-dependency of these tests")
}

/// Checks plugins with further arguments; without plugins the built-in one.
pub fn check(plugins: &[&Path], arguments: &[&str]) -> Report {
    let mut words: Vec<String> = vec!["dnn-assay".into(), "conform".into()];
    words.extend(plugins.iter().map(|path| path.display().to_string()));
    words.extend(arguments.iter().map(|&word| word.to_owned()));
    let cli = Cli::try_parse_from(&words).unwrap();
    let Command::Conform(args) = cli.command else {
        panic!("{words:?}");
    };
    let sources = find_plugins(&args.plugins, None, plugins.is_empty()).unwrap();
    conform(&args, &sources).unwrap()
}

/// What has an outcome, of all plugins and pairs.
pub fn with(report: &Report, outcome: OutcomeKind) -> Vec<&CheckResult> {
    let results = report.subjects.iter().flat_map(|subject| &subject.results);
    results.filter(|result| result.outcome == outcome).collect()
}

pub fn trial(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        body();
        Ok::<(), Failed>(())
    })
}
