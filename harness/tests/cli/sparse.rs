//! Tensors whose images lie gigabytes apart: checked as all others are, in little memory.

use std::process::Stdio;
use std::time::Duration;

use crate::support::{command, run};
use dnn_assay::exit::Exit;
use rstest::rstest;

/// Elements apart by more than signed bytes, signed and unsigned indices of 32 bits can say.
const FAR: [&str; 4] = [
    "pointwise.identity/f32/nchw~s536870975x20x5x1/n2-c3-i4x5",
    "pointwise.add/f16/nhwc~s2147483711x1x15x3/n2-c3-i4x5",
    "conv.fprop/f32/nchw~y4294967495x35x7x1/n2-c4-k6-i5x7-f3x3/pad1",
    "batchnorm.training/f32/nchw~s4294967359x20x5x1/n2-c3-i4x5/stats",
];
/// Bytes that all processes of such a run may hold together.
const ALLOWED: u64 = 200 << 20;

/// The exit code of a run, what it printed, and the most memory that its processes held together.
fn watched(cases: &[&str]) -> (Option<i32>, String, u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path());
    command.args(["run", "--builtin", "--jobs", "1", "--repeat", "3"]);
    for case in cases {
        command.args(["--case", case]);
    }
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(peak_of(child.id()));
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text, most)
}

/// The high-water marks of a process and its descendants, bytes; shared memory counts for each.
fn peak_of(process: u32) -> u64 {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}"));
    let status = read("status").unwrap_or_default();
    let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = mark.and_then(|mark| mark.trim().split(' ').next()?.parse::<u64>().ok());
    let children = read(&format!("task/{process}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|id| id.parse().ok());
    kib.unwrap_or(0) * 1024 + children.map(peak_of).sum::<u64>()
}

#[test]
fn far_images_are_verified_in_little_memory() {
    let (code, text, most) = watched(&FAR);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("4 verified"), "{text}");
    assert!(most < ALLOWED, "{most} bytes");
    // The measure sees a case that takes more.
    let (_, text, most) = watched(&["pointwise.identity/f32/nchw/n2-c8-i1024x1024"]);
    assert!(
        text.contains("1 verified") && most > ALLOWED,
        "{most} bytes: {text}"
    );
}

#[test]
fn the_plan_counts_what_is_resident() {
    let ran = run(&["list", "--case", FAR[2], "--format", "json"]);
    let list: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let bytes = list["cases"][0]["memory_bytes"].as_f64().unwrap();
    assert!(bytes < ALLOWED as f64, "{bytes}");
    // Rows a page apart are resident, gaps and all: 1 GiB for each tensor.
    let ran = run(&[
        "list",
        "--case",
        "pointwise.identity/f32/nchw~s1048576x1048576x1024x1/n256-c1-i1024x4",
        "--format",
        "json",
    ]);
    let list: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let bytes = list["cases"][0]["memory_bytes"].as_f64().unwrap();
    assert!(bytes > f64::from(1 << 30) * 2.0, "{bytes}");
}

#[rstest]
#[case::shared_places(
    "pointwise.identity/f32/nchw~s4294967359x1x1x1/n2-c3-i4x5",
    Exit::Usage,
    "share a place"
)]
#[case::beyond_any_file(
    "pointwise.identity/f32/nchw~s4611686018427387904x20x5x1/n2-c3-i4x5",
    Exit::Usage,
    "overflows i64"
)]
#[case::beyond_any_arena(
    "pointwise.identity/u8/nchw~s4611686018427387904x20x5x1/n2-c3-i4x5",
    Exit::NothingVerified,
    "do not fit in the arena"
)]
#[case::beyond_the_addresses(
    "pointwise.identity/f32/nchw~s288230376151711744x20x5x1/n2-c3-i4x5",
    Exit::NothingVerified,
    "address space"
)]
fn what_cannot_be_had_is_said(#[case] case: &str, #[case] exit: Exit, #[case] text: &str) {
    let ran = run(&["run", "--builtin", "--case", case]);
    ran.expect(exit, &[]);
    let said = match exit {
        Exit::Usage => ran.err.clone(),
        _ => ran.file("dnn-assay-out/junit.xml"),
    };
    assert!(said.contains(text), "{said}\n{ran:#?}");
    assert!(!ran.err.contains("panicked"), "{ran:#?}");
}
