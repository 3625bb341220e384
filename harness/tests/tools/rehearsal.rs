//! `ci/mi300x/run.sh` with the mock HIP runtime in place of an AMD GPU: whoever has one shall meet no
//! mistake of the script's.

use std::fs;
use std::path::Path;
use std::process::Command;

use dnn_assay::plan::built_in_file;
use libtest_mimic::Trial;

use crate::support::{PROGRAM, Ran, finish, repository};

const LIBRARIES: [&str; 3] = [
    "libdnn_assay_gfx942_plugin.so",
    "libdnn_assay_mock_hip.so",
    "libdnn_assay_gfx942_host_kernels.so",
];

pub fn trials() -> Vec<Trial> {
    let programs = ["bash", "tar", "gzip", "awk"];
    let all: [(&str, fn()); 3] = [
        ("rehearsal::packs_what_is_to_be_sent_back", packs),
        ("rehearsal::packs_what_failed_too", packs_failures),
        ("rehearsal::refuses_what_it_does_not_know", refuses),
    ];
    let trials = all.map(|(name, test)| crate::trial(name, &programs, test));
    let built = built_in_file(LIBRARIES[0]).is_ok_and(|path| {
        let symbol = b"dnn_pointwise.kd";
        let bytes = fs::read(path).unwrap();
        bytes.windows(symbol.len()).any(|window| window == symbol)
    });
    let without = "the gfx942 plugin was built without kernels";
    trials
        .into_iter()
        .map(|trial| match built {
            true => trial,
            false => trial.with_kind(without).with_ignored_flag(true),
        })
        .collect()
}

/// Runs the script on a few cases; `more` are arguments of the run.
fn rehearse(folder: &Path, more: &[&str]) -> Ran {
    let binaries = folder.join("bin");
    fs::create_dir(&binaries).unwrap();
    fs::copy(PROGRAM, binaries.join("dnn-assay")).unwrap();
    for library in LIBRARIES {
        let built = built_in_file(library).unwrap();
        fs::copy(built, binaries.join(library)).unwrap();
    }
    finish(
        Command::new("bash")
            .arg(repository("ci/mi300x/run.sh"))
            .args(["--device", "mock-hip", "--suite", "smoke", "--bin"])
            .arg(binaries)
            .arg(folder.join("mi300x"))
            .args(["--", "--filter", "op=pointwise.add dtype=f32"])
            .args(more),
    )
}

fn listed(folder: &Path) -> String {
    let tarball = folder.join("mi300x.tar.gz");
    let list = finish(Command::new("tar").arg("-tzf").arg(tarball));
    list.expect(0, &[]);
    list.text
}

fn packs() {
    let folder = tempfile::tempdir().unwrap();
    rehearse(folder.path(), &[]).expect(0, &["a rehearsal on mock-hip", "exit code of the run: 0"]);
    let list = listed(folder.path());
    for file in [
        "device.txt",
        "table.txt",
        "smoke.txt",
        "smoke.junit.xml",
        "smoke.journal.jsonl.gz",
        "smoke.trace",
    ] {
        assert!(list.contains(&format!("mi300x/{file}\n")), "{file}: {list}");
    }
    let read = |file: &str| fs::read_to_string(folder.path().join("mi300x").join(file)).unwrap();
    let device = read("device.txt");
    assert!(device.contains("gfx942"), "{device}");
    assert!(device.contains("guards: checked on the device"), "{device}");
    assert!(read("smoke.trace").lines().count() > 2);
    let table = read("table.txt");
    assert!(table.contains("smoke: exit 0"), "{table}");
    assert!(
        table.contains(" 0 launches are not in the kept trace"),
        "{table}"
    );
}

fn packs_failures() {
    let folder = tempfile::tempdir().unwrap();
    let fault = ["--env", "DNN_ASSAY_MOCK_HIP_PLUGIN=lost-error"];
    rehearse(folder.path(), &fault).expect(1, &["exit code of the run: 1"]);
    assert!(listed(folder.path()).contains("mi300x/smoke.junit.xml\n"));
}

fn refuses() {
    let script = || {
        let mut command = Command::new("bash");
        command.arg(repository("ci/mi300x/run.sh"));
        command
    };
    let unknown = finish(script().args(["--device", "cuda", "out"]));
    unknown.expect(2, &["expected hip, or mock-hip"]);
    finish(&mut script()).expect(2, &["ci/mi300x/run.sh OUT"]);
}
