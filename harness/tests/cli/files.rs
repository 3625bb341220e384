//! Files that are no plugins: what they are, and exit code 3 or 2.

use crate::support::{build, plugin_bytes, run};
use dnn_assay::exit::Exit;
use rstest::rstest;

fn judge_bytes(bytes: &[u8]) -> crate::support::Ran {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plugin.so");
    std::fs::write(&path, bytes).unwrap();
    run(&[
        "run",
        path.to_str().unwrap(),
        "--suite",
        "smoke",
        "--filter",
        "op=pointwise.add",
    ])
}

#[test]
fn a_missing_file_is_wrong_usage() {
    run(&["run", "no/such/plugin.so"]).expect(Exit::Usage, &["no/such/plugin.so", "no such file"]);
}

#[test]
fn a_folder_without_plugins_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libx.so.1"), "").unwrap();
    run(&["run", folder.path().to_str().unwrap()])
        .expect(Exit::Usage, &["the folder holds no plugin", "ends in .so"]);
}

#[test]
fn a_text_file_is_named_as_such() {
    judge_bytes(b"#!/bin/sh\necho hello\n").expect(Exit::Plugin, &["script"]);
}

#[rstest]
#[case::empty(0)]
#[case::magic_only(4)]
#[case::half_a_header(40)]
#[case::header_only(64)]
#[case::in_the_segments(1024)]
fn a_truncated_library_is_refused(#[case] length: usize) {
    let bytes = plugin_bytes();
    judge_bytes(&bytes[..length]).expect(Exit::Plugin, &[]);
}

#[test]
fn no_truncation_makes_the_program_panic() {
    // Every 64-byte step is tested on the reader itself; here the whole way, more coarsely.
    let bytes = plugin_bytes();
    for length in (0..bytes.len()).step_by(bytes.len() / 12) {
        let ran = judge_bytes(&bytes[..length]);
        assert_eq!(ran.code, 3, "{length} bytes: {ran:#?}");
        assert!(!ran.err.contains("panicked"), "{ran:#?}");
    }
}

#[test]
fn another_machine_and_another_class_are_named() {
    let mut aarch64 = plugin_bytes();
    aarch64[18..20].copy_from_slice(&183u16.to_le_bytes());
    judge_bytes(&aarch64).expect(Exit::Plugin, &["AArch64"]);
    let mut narrow = plugin_bytes();
    narrow[4] = 1;
    judge_bytes(&narrow).expect(Exit::Plugin, &["32-bit"]);
}

#[test]
fn a_library_without_the_symbols_names_the_first_and_the_number() {
    let flag = "-DEXPORT=static __attribute__((unused))";
    let path = build("cc", "mocks/abi/plugin.c", "nothing.so", &[flag]);
    run(&["run", path.to_str().unwrap()])
        .expect(Exit::Plugin, &["hipdnnPluginGetName", "15 more of the 16"]);
    let path = build(
        "cc",
        "mocks/abi/plugin.c",
        "one.so",
        &["-DWITHOUT_LAST_ERROR"],
    );
    run(&["run", path.to_str().unwrap()])
        .expect(Exit::Plugin, &["hipdnnPluginGetLastErrorString", "0 more"]);
}

#[test]
fn one_bad_plugin_of_two_is_an_error_and_the_other_runs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(crate::support::mock(), folder.path().join("a.so")).unwrap();
    std::fs::write(folder.path().join("b.so"), "no plugin").unwrap();
    let ran = run(&[
        "run",
        folder.path().to_str().unwrap(),
        "--case",
        crate::support::IDENTITY,
    ]);
    ran.expect(Exit::Plugin, &["b.so", "2 verified"]);
    let junit = ran.file("dnn-assay-out/junit.xml");
    let document = roxmltree::Document::parse(&junit).unwrap();
    let count = |name: &str| {
        document
            .descendants()
            .filter(|n| n.has_tag_name(name))
            .count()
    };
    assert_eq!(count("error"), 1, "{junit}");
    assert!(count("testcase") >= 3, "{junit}");
}
