//! Ctrl-C: the run stops, and its reports are written.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{IDENTITY, command, mock};

#[test]
fn an_interrupted_run_reports_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = mock();
    let mut child = command(folder.path())
        .args(["run", path.to_str().unwrap(), "--jobs", "1"])
        .args(["--env", "DNN_MOCK_FAULT=hang:ExecuteOpGraph"])
        .args(["--timeout", "execute=3s"])
        .args(["--engine", "MOCK_ENGINE_A", "--case", IDENTITY])
        .args(["--case", "pointwise.identity/f32/nchw/n1-c1-i2x8/none/uni"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let journal = folder.path().join("dnn-assay-out/journal.jsonl");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("case-start")) {
        assert!(Instant::now() < deadline, "no case was started");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    let junit = std::fs::read_to_string(folder.path().join("dnn-assay-out/junit.xml")).unwrap();
    let document = roxmltree::Document::parse(&junit).unwrap();
    let cases = document
        .descendants()
        .filter(|n| n.has_tag_name("testcase"));
    assert!(cases.count() >= 2, "{junit}");
    assert!(junit.contains("interrupted"), "{junit}");
}
