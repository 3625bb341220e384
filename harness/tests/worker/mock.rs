//! Building the mock plugin and driving it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use dnn_assay::worker::{
    CaseOutcome, CaseRequest, CaseResult, Crash, Limits, LoadFailure, PluginInfo, Worker,
    WorkerConfig,
};
use dnn_assay_device::{BufferSpec, Element, ElementView, Placement, Role, Run};
use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

pub const IN: i64 = 10;
pub const OUT: i64 = 20;

/// Ids of the mock's engines.
pub fn engine_ids() -> [i64; 2] {
    ["MOCK_ENGINE_A", "MOCK_ENGINE_B"].map(dnn_assay_abi::engine_id)
}

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().unwrap());

/// The mock as C.
pub static PLUGIN: LazyLock<PathBuf> = LazyLock::new(|| build("mock.so", "cc", &[]));
/// The mock as C++.
pub static THROWING: LazyLock<PathBuf> =
    LazyLock::new(|| build("mock-cxx.so", "g++", &["-x", "c++"]));

/// Compiles the mock with further arguments.
pub fn build(name: &str, compiler: &str, arguments: &[&str]) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../mocks/abi/plugin.c");
    let target = FOLDER.path().join(name);
    let status = Command::new(compiler)
        .args(["-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall"])
        .args(["-Werror", "-o"])
        .arg(&target)
        .args(arguments)
        .arg(source)
        .status()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(status.success(), "{compiler} {arguments:?}");
    target
}

pub fn config(plugin: &Path, fault: &str) -> WorkerConfig {
    let mut config = WorkerConfig::new(plugin, FOLDER.path().join("scratch"));
    config
        .env
        .push(("DNN_MOCK_FAULT".to_owned(), fault.to_owned()));
    config
}

/// The same with limits that a hang reaches soon.
pub fn hurried(fault: &str) -> WorkerConfig {
    let mut config = config(&PLUGIN, fault);
    let short = Duration::from_millis(700);
    config.limits = Limits {
        load: Duration::from_secs(20),
        plan: short,
        execute: short,
    };
    config
}

pub fn load_failure(fault: &str) -> LoadFailure {
    load_of(&config(&PLUGIN, fault)).unwrap_err()
}

pub fn load_of(config: &WorkerConfig) -> Result<PluginInfo, LoadFailure> {
    Worker::spawn(config).unwrap().load()
}

pub fn loaded(fault: &str) -> Worker {
    start(&config(&PLUGIN, fault))
}

pub fn start(config: &WorkerConfig) -> Worker {
    let mut worker = Worker::spawn(config).unwrap();
    worker.load().unwrap();
    worker
}

/// A graph that makes the mock copy `bytes`.
pub fn graph(bytes: u64) -> Vec<u8> {
    [b"MOCKSIZE".as_slice(), &bytes.to_le_bytes()].concat()
}

pub fn request(bytes: u64) -> CaseRequest {
    CaseRequest::new(engine_ids()[0], graph(bytes), b"config".to_vec())
}

/// Prepares an input and a poisoned output of `bytes` each.
pub fn prepare(worker: &mut Worker, bytes: u64, placement: Placement) {
    let specs = [(IN, Role::Input), (OUT, Role::Output)].map(|(uid, role)| BufferSpec {
        placement,
        ..BufferSpec::new(uid, bytes, role)
    });
    let arena = worker.arena_mut();
    arena.prepare(&specs).unwrap();
    arena.write(IN, input(bytes)).unwrap();
    let view = ElementView::packed(Element::F32, bytes as i64 / 4);
    arena.poison(OUT, view, Run::First).unwrap();
}

pub fn input(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|i| (i % 251) as u8).collect()
}

/// Runs the copy of 64 bytes once.
pub fn run(worker: &mut Worker) -> CaseOutcome {
    prepare(worker, 64, Placement::End);
    worker.begin(request(64));
    worker.finish()
}

pub fn run_fault(fault: &str) -> CaseOutcome {
    run(&mut loaded(fault))
}

pub fn crash(result: CaseResult) -> Crash {
    match result {
        CaseResult::Crash(crash) => crash,
        other => panic!("no crash: {other:?}"),
    }
}

pub fn trial(name: &str, body: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name.to_owned(), move || {
        body();
        Ok::<(), Failed>(())
    })
}
