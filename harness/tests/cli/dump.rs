//! Dumps of failing cases, and judging them again.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{PROGRAM, Ran, command, run, run_fault, run_mutant};
use dnn_assay::exit::Exit;
use rstest::rstest;
use safetensors::{Dtype, SafeTensors};

const CASE: &str =
    "conv.fprop/f32/nchw~y210x30x5x1/n2-c5-k7-i7x7-f3x3/pre1x0-post0x0-str1x1-dil1x1-g1/uni";

/// The dumps that a run left in `dumps`.
fn dumps(ran: &Ran) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(ran.folder.path().join("dumps"));
    let entries = folder.unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    paths
}

fn replay(folder: &Path) -> Ran {
    run(&["replay", folder.to_str().unwrap()])
}

/// What a run and a replay say of the first failure, from the case to its dump.
fn story(ran: &Ran) -> Vec<&str> {
    let lines = ran.out.lines();
    let story: Vec<_> = lines
        .skip_while(|line| !line.starts_with("  case "))
        .take_while(|line| !line.contains("a waiver"))
        .collect();
    assert!(story.len() > 5, "{ran:#?}");
    story
}

#[rstest]
#[case("conv-last-tap", CASE, &["looks like", "worst element"])]
#[case("conv-last-tap", "conv.fprop/f16/nhwc/n2-c5-k7-i7x7-f3x3/pad1/int", &["rule           exact"])]
#[case("bn-unbiased-variance", "batchnorm.training/bf16+f32/nhwc/n2-c3-i2x2/stats", &["numeric"])]
fn a_replay_says_what_the_run_said(
    #[case] fault: &str,
    #[case] case: &str,
    #[case] texts: &[&str],
) {
    let ran = run_mutant(fault, "run", &["--case", case, "--dump-on-fail", "dumps"]);
    ran.expect(Exit::Failed, texts);
    let folders = dumps(&ran);
    assert_eq!(folders.len(), 1, "{folders:?}");
    let again = replay(&folders[0]);
    again.expect(Exit::Failed, texts);
    assert_eq!(story(&ran), story(&again));
    // The folder above holds the same dump.
    assert_eq!(story(&ran), story(&replay(folders[0].parent().unwrap())));
}

#[test]
fn a_dump_keeps_the_criterion_of_an_override() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.toml");
    let text = "[meta]\nversion = 1\n\n[[tolerance_overrides]]\nfilters = ['conv.*']\natol = 0.0\nrtol = 0.0\n";
    std::fs::write(&path, text).unwrap();
    let expect = path.to_str().unwrap();
    let more = [
        "--case",
        CASE,
        "--dump-on-fail",
        "dumps",
        "--expect",
        expect,
    ];
    let ran = run_mutant("", "run", &more);
    let texts = ["rule           table", "engine.toml:4"];
    ran.expect(Exit::Failed, &texts);
    let folders = dumps(&ran);
    // The file is gone, and the dump still knows.
    std::fs::remove_file(&path).unwrap();
    let again = replay(&folders[0]);
    again.expect(Exit::Failed, &texts);
    assert_eq!(story(&ran), story(&again));
    // A dump of a version that kept no overrides is judged by the run's rule, and says so.
    let manifest = folders[0].join("dump.json");
    let mut old: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    assert_eq!(old["overridden"][0]["rule"]["criterion"], "table");
    old.as_object_mut().unwrap().remove("overridden");
    std::fs::write(&manifest, old.to_string()).unwrap();
    replay(&folders[0]).expect(Exit::Ok, &["a version that kept no overrides"]);
}

#[test]
fn a_pass_leaves_no_dump() {
    let ran = run_mutant("", "run", &["--case", CASE, "--dump-on-fail", "dumps"]);
    ran.expect(Exit::Ok, &["1 verified"]);
    assert_eq!(dumps(&ran).len(), 0);
    replay(&ran.folder.path().join("dumps")).expect(Exit::Usage, &["no dump here"]);
}

#[test]
fn what_a_worker_did_is_repeated_not_judged() {
    let ran = run_fault("segv:ExecuteOpGraph", &["--dump-on-fail", "dumps"]);
    ran.expect(Exit::Failed, &["crash(SIGSEGV)", "dnn-assay replay"]);
    let again = replay(&dumps(&ran)[0]);
    again.expect(Exit::Failed, &["crash(SIGSEGV)", "not judged again"]);
    assert_eq!(story(&ran), story(&again));
}

#[test]
fn a_mended_output_passes() {
    let ran = run_mutant(
        "conv-last-tap",
        "run",
        &["--case", CASE, "--dump-on-fail", "dumps"],
    );
    let folder = &dumps(&ran)[0];
    // The expected values, rounded, take the place of the engine's.
    let path = folder.join("tensors.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let expected: Vec<u8> = f64s(file.tensor("expected.y").unwrap().data())
        .flat_map(|value| (value as f32).to_le_bytes())
        .collect();
    let got = file.tensor("got.y").unwrap().data();
    let start = got.as_ptr() as usize - bytes.as_ptr() as usize;
    bytes[start..start + expected.len()].copy_from_slice(&expected);
    std::fs::write(&path, bytes).unwrap();
    replay(folder).expect(Exit::Ok, &["1 verified", "said fail(numeric)"]);
}

fn f64s(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes
        .chunks_exact(8)
        .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
}

/// What the documentation promises of the file: keys, types, extents in logical order, and that
/// exactly the elements beyond the bound are wrong.
#[test]
fn the_tensors_are_as_documented() {
    let ran = run_mutant(
        "conv-last-tap",
        "run",
        &["--case", CASE, "--dump-on-fail", "dumps"],
    );
    let folder = &dumps(&ran)[0];
    let bytes = std::fs::read(folder.join("tensors.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut names = file.names();
    names.sort_unstable();
    assert_eq!(
        names,
        ["bound.y", "expected.y", "got.y", "input.w", "input.x"]
    );
    let view = |name| file.tensor(name).unwrap();
    for (name, dtype, shape) in [
        ("input.x", Dtype::F32, [2, 5, 7, 7]),
        ("input.w", Dtype::F32, [7, 5, 3, 3]),
        ("expected.y", Dtype::F64, [2, 7, 6, 5]),
        ("bound.y", Dtype::F64, [2, 7, 6, 5]),
        ("got.y", Dtype::F32, [2, 7, 6, 5]),
    ] {
        assert_eq!(
            (view(name).dtype(), view(name).shape()),
            (dtype, &shape[..]),
            "{name}"
        );
    }
    let got = view("got.y").data().chunks_exact(4);
    let got = got.map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())));
    let (expected, bound) = (view("expected.y").data(), view("bound.y").data());
    let wrong = got.zip(f64s(expected)).zip(f64s(bound));
    let wrong = wrong.filter(|((got, y), e)| (got - y).abs() > *e).count();
    let journal = ran.file("dnn-assay-out/journal.jsonl");
    assert!(
        wrong > 0 && journal.contains(&format!("\"mismatched\":{wrong},")),
        "{wrong}"
    );
}

const SAMPLED: &str = "conv.fprop/f32/nhwc/n2-c8-k8-i40x40-f3x3/pad1-g2";
const ACTIVATION: &str = "pointwise.gelu_fwd/f32/nchw/n2-c8-i40x40";

/// A run of a mutant that is judged by samples and dumped.
fn sampled(fault: &str, case: &str, more: &[&str]) -> Ran {
    let arguments = ["--case", case, "--sample", "300", "--dump-on-fail", "dumps"];
    run_mutant(fault, "run", &[&arguments[..], more].concat())
}

#[rstest]
#[case("conv-last-tile", SAMPLED, &["--seed", "9", "--range", "x=1..2"], "sampled elements differ")]
#[case("conv-xf32-inputs", "conv.fprop/f32/nchw/n2-c8-k8-i40x40-f3x3/pad1", &[], "undeclared-trait")]
#[case("output-last-element-doubled", ACTIVATION, &["--seed", "9"], "1 of ")]
#[case("conv-last-tap", "conv.fprop+bias+relu_fwd/bf16/nchw/n2-c8-k8-i40x40-f3x3/pad1", &[], "worst element")]
fn a_replay_of_samples_says_what_the_run_said(
    #[case] fault: &str,
    #[case] case: &str,
    #[case] more: &[&str],
    #[case] text: &str,
) {
    let ran = sampled(fault, case, more);
    let texts = [text, "by samples", "300 at random"];
    ran.expect(Exit::Failed, &texts);
    let again = replay(&dumps(&ran)[0]);
    again.expect(Exit::Failed, &texts);
    assert_eq!(story(&ran), story(&again));
}

/// Keys, types and extents of a dump of samples, and that exactly the elements beyond the bound are
/// wrong.
#[test]
fn the_tensors_of_samples_are_as_documented() {
    let ran = sampled("conv-last-tile", SAMPLED, &[]);
    let folder = &dumps(&ran)[0];
    let bytes = std::fs::read(folder.join("tensors.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut names = file.names();
    names.sort_unstable();
    let all = ["bound.y", "coordinates.y", "expected.y", "got.y", "sums.y"];
    assert_eq!(names, all);
    let view = |name| file.tensor(name).unwrap();
    let end = &ran.file("dnn-assay-out/journal.jsonl");
    let number = |key: &str| -> usize {
        let (_, rest) = end.split_once(&format!("\"{key}\":")).unwrap();
        let digits = rest.chars().take_while(char::is_ascii_digit);
        digits.collect::<String>().parse().unwrap()
    };
    let count = number("compared");
    for (name, dtype, shape) in [
        ("coordinates.y", Dtype::I64, vec![count, 4]),
        ("expected.y", Dtype::F64, vec![count]),
        ("bound.y", Dtype::F64, vec![count]),
        ("got.y", Dtype::F32, vec![count]),
        ("sums.y", Dtype::F64, vec![2 * 2 * 40 * 40, 2]),
    ] {
        assert_eq!(
            (view(name).dtype(), view(name).shape()),
            (dtype, &shape[..])
        );
    }
    let got = view("got.y").data().chunks_exact(4);
    let got = got.map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())));
    let (expected, bound) = (view("expected.y").data(), view("bound.y").data());
    let places = view("coordinates.y").data().chunks_exact(32);
    let elements = got.zip(f64s(expected)).zip(f64s(bound)).zip(places);
    let wrong: Vec<&[u8]> = elements
        .filter(|(((got, y), e), _)| (got - y).abs() > *e)
        .map(|(_, place)| place)
        .collect();
    assert_eq!(wrong.len(), number("mismatched"));
    // The fault is in the last channel, and in no other.
    let channel = |place: &&[u8]| i64::from_le_bytes(place[8..16].try_into().unwrap());
    assert!(wrong.iter().map(channel).all(|c| c == 7), "{wrong:?}");
}

#[test]
fn mended_samples_pass_and_sums_are_judged_again() {
    // Right samples with the sums of a wrong output: the sums say so.
    let ran = sampled(
        "conv-last-tile",
        "conv.fprop/f32/nchw/n2-c8-k8-i40x40-f3x3/pad1",
        &[],
    );
    let folder = &dumps(&ran)[0];
    mend(folder);
    let texts = ["no sampled element is wrong", "beyond their bound"];
    replay(folder).expect(Exit::Failed, &texts);
    // An operation without sums.
    let ran = sampled("output-last-element-doubled", ACTIVATION, &[]);
    let folder = &dumps(&ran)[0];
    mend(folder);
    replay(folder).expect(Exit::Ok, &["1 of them by samples", "said fail(numeric)"]);
}

/// Puts the expected values, rounded, in the place of an engine's f32.
fn mend(folder: &Path) {
    let path = folder.join("tensors.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let names = file.names();
    let name = |part: &str| *names.iter().find(|name| name.starts_with(part)).unwrap();
    let expected: Vec<u8> = f64s(file.tensor(name("expected")).unwrap().data())
        .flat_map(|value| (value as f32).to_le_bytes())
        .collect();
    let got = file.tensor(name("got")).unwrap().data();
    let start = got.as_ptr() as usize - bytes.as_ptr() as usize;
    bytes[start..start + expected.len()].copy_from_slice(&expected);
    std::fs::write(&path, bytes).unwrap();
}

/// A dump that this version cannot judge is refused with the reason, never judged as something else.
#[rstest]
#[case("\"inputs\": \"", "\"inputs\": \"0", "this version draws others")]
#[case("\"coordinates.", "\"missing.", "`missing.y`")]
#[case(
    "\"part\": \"coordinates\"",
    "\"part\": \"bound\"",
    "y has no coordinates"
)]
fn samples_that_cannot_be_judged_are_refused(
    #[case] from: &str,
    #[case] to: &str,
    #[case] text: &str,
) {
    let ran = sampled("conv-last-tile", SAMPLED, &[]);
    let folder = &dumps(&ran)[0];
    let path = folder.join("dump.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    assert!(whole.contains(from), "{whole}");
    std::fs::write(&path, whole.replace(from, to)).unwrap();
    replay(folder).expect(Exit::Usage, &[text]);
}

/// The three lines of the documentation, where Python has numpy and safetensors.
#[test]
fn python_reads_a_dump_in_three_lines() {
    let python = std::env::var("DNN_ASSAY_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python)
        .args(["-c", "import numpy, safetensors"])
        .output();
    if !has.is_ok_and(|output| output.status.success()) {
        eprintln!("NOT TESTED: `{python}` has no numpy and safetensors (DNN_ASSAY_TEST_PYTHON)");
        return;
    }
    let page = std::fs::read_to_string(crate::support::repository("docs/failures.md")).unwrap();
    let (_, rest) = page.split_once("```python\n").unwrap();
    let (code, _) = rest.split_once("```").unwrap();
    assert_eq!(code.lines().count(), 3, "{code}");
    let ran = run_mutant(
        "conv-last-tap",
        "run",
        &["--case", CASE, "--dump-on-fail", "dumps"],
    );
    let output = Command::new(&python)
        .current_dir(&dumps(&ran)[0])
        .args(["-c", &format!("{code}\nprint(int(wrong.sum()))")])
        .output()
        .unwrap();
    let count = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let journal = ran.file("dnn-assay-out/journal.jsonl");
    assert!(
        count != "0" && journal.contains(&format!("\"mismatched\":{count},")),
        "{output:?}"
    );
}

#[rstest]
#[case("dump.json", "{", &["dump.json", "EOF"])]
#[case("dump.json", "{\"schema\": 99}", &["schema 99", "newer"])]
#[case("dump.json", "{\"tensors\": []}", &["`schema` is missing"])]
#[case("graph.json", "{\"tensors\": []}", &["graph.json", "nodes"])]
#[case("tensors.safetensors", "short", &["tensors.safetensors"])]
#[case("tensors.safetensors", "", &["tensors.safetensors"])]
fn a_damaged_dump_is_wrong_usage(#[case] file: &str, #[case] text: &str, #[case] parts: &[&str]) {
    let ran = run_mutant(
        "conv-last-tap",
        "run",
        &["--case", CASE, "--dump-on-fail", "dumps"],
    );
    let folder = &dumps(&ran)[0];
    std::fs::write(folder.join(file), text).unwrap();
    let again = replay(folder);
    again.expect(Exit::Usage, parts);
    assert!(!again.err.contains("panicked"), "{again:#?}");
}

#[test]
fn a_dump_whose_tensors_are_of_another_graph_is_wrong_usage() {
    let ran = run_mutant(
        "conv-last-tap",
        "run",
        &["--case", CASE, "--dump-on-fail", "dumps"],
    );
    let folder = &dumps(&ran)[0];
    let path = folder.join("graph.json");
    let graph = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, graph.replace("\"float\"", "\"half\"")).unwrap();
    replay(folder).expect(Exit::Usage, &["input.x", "F32", "f16"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = command(folder.path())
        .args(["run", "--builtin", "--dump-on-fail", "file/dumps"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{PROGRAM}: {output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--dump-on-fail"));
    run(&["replay", "nowhere"]).expect(Exit::Usage, &["nowhere"]);
}
