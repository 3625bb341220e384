//! Shrinking and drawn cases, on plugins with known faults and on one without.

use crate::support::{IDENTITY, Ran, mock, mutants, run, run_mutant};
use dnn_assay::exit::Exit;
use dnn_assay_graph::case::Case;
use rstest::rstest;

/// The case that a shrink came to.
fn smallest(ran: &Ran) -> Case {
    let line = ran.out.lines().find_map(|line| line.strip_prefix("to "));
    Case::parse(line.unwrap_or_else(|| panic!("{ran:#?}")).trim()).unwrap()
}

const CONV: &str = "conv.fprop+bias+relu_fwd/bf16/ndhwc/n3-c12-k18-i6x11x7-f3x2x3/pre1-post1x0x1-str1x2x1-g6-up0.5";
const NORM: &str = "batchnorm.training/f16+f32/nhwc/n3-c17-i9x10/stats-run";

#[rstest]
#[case("conv-last-tap", CONV, "fail(numeric)", 3)]
#[case(
    "conv-dilation-ignored",
    "conv.wgrad/f16/nhwc/n3-c8-k12-i17x19-f3x2/pad1-dil2x3",
    "fail(numeric)",
    6
)]
#[case("bn-unbiased-variance", NORM, "fail(numeric)", 4)]
#[case("fused-bias-last-axis", CONV, "fail(numeric)", 4)]
#[case(
    "output-truncated",
    "pointwise.add/f16/nhwc/n3-c7-i9x10/in1.7x1x1",
    "fail(numeric)",
    4
)]
#[case("input-changed", NORM, "fail(input-changed)", 1)]
fn a_fault_shrinks_to_a_small_case_that_still_fails(
    #[case] fault: &str,
    #[case] case: &str,
    #[case] verdict: &str,
    #[case] most_elements: usize,
) {
    let ran = run_mutant(fault, "shrink", &[case]);
    ran.expect(
        Exit::Failed,
        &[verdict, "no simpler case fails like this", "groups:"],
    );
    let small = smallest(&ran);
    let graph = small.graph().unwrap();
    let largest = graph
        .inputs()
        .filter_map(|tensor| tensor.element_count())
        .max();
    assert!(largest <= Some(most_elements), "{small}");
    let again = run_mutant(fault, "run", &["--case", &small.to_string()]);
    again.expect(Exit::Failed, &[verdict]);
    run_mutant("", "run", &["--case", &small.to_string()]);
}

#[test]
fn the_smallest_case_is_written_as_a_suite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last-tap.yaml");
    let path = path.to_str().unwrap();
    let ran = run_mutant("conv-last-tap", "shrink", &[CONV, "--write", path]);
    let small = smallest(&ran).to_string();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text.contains("seed 1") && text.contains("shrunk from"),
        "{text}"
    );
    let list = run(&["list", "--suite", path]);
    assert_eq!(list.out.trim(), small);
    run_mutant("conv-last-tap", "run", &["--suite", path]).expect(Exit::Failed, &[&small]);
}

#[test]
fn what_does_not_fail_is_not_shrunk() {
    run_mutant("", "shrink", &[CONV]).expect(Exit::Ok, &["nothing to shrink", "1 verified"]);
    let mock = mock();
    let declines = ["shrink", CONV, "--plugin", mock.to_str().unwrap()];
    let more = ["--env", "DNN_MOCK_FAULT=applicable-none"];
    run(&[&declines[..], &more].concat()).expect(Exit::NothingVerified, &["nothing to shrink"]);
}

#[test]
fn a_limit_is_said() {
    let ran = run_mutant("conv-last-tap", "shrink", &[CONV, "--tries", "2"]);
    ran.expect(Exit::Failed, &["2 cases tried", "stopped at its limit"]);
}

#[rstest]
#[case(&["shrink"], Exit::Usage, "CASE")]
#[case(&["shrink", "conv.fprp/f32/nchw/n1-c1-k1-i4x4-f1x1"], Exit::Usage, "conv.fprop")]
#[case(&["shrink", IDENTITY, "--plugin", "nowhere.so"], Exit::Usage, "nowhere.so")]
#[case(&["shrink", IDENTITY, "--plugin", "/etc/passwd"], Exit::Plugin, "ELF")]
#[case(&["shrink", IDENTITY, "--builtin", "--engine", "NONE"], Exit::Plugin, "NONE")]
#[case(&["shrink", IDENTITY, "--builtin", "--trait", "fp16"], Exit::Usage, "no trait")]
#[case(&["shrink", IDENTITY, "--builtin", "--write", "no/such/file"], Exit::Usage, "no/such/file")]
#[case(&["shrink", IDENTITY, "--builtin", "--plugin", "a.so"], Exit::Usage, "--plugin")]
#[case(&["run", "--fuzz", "0"], Exit::Usage, "number of cases")]
#[case(&["run", "--fuzz", "many"], Exit::Usage, "number of cases")]
#[case(&["run", "--fuzz", "3", "--suite", "smoke"], Exit::Usage, "--suite")]
#[case(&["run", "--fuzz", "3", "--case", IDENTITY], Exit::Usage, "--case")]
#[case(&["list", "--fuzz", "2", "--filter", "op=matmul"], Exit::Usage, "takes none")]
fn mistakes_have_their_exit_codes(
    #[case] arguments: &[&str],
    #[case] exit: Exit,
    #[case] text: &str,
) {
    let ran = run(arguments);
    ran.expect(exit, &[text]);
    assert!(!ran.err.contains("panicked"), "{ran:#?}");
}

#[test]
fn a_sound_plugin_passes_drawn_cases_and_the_seed_decides_which() {
    let ran = run(&["run", "--builtin", "--fuzz", "200", "--seed", "5"]);
    ran.expect(Exit::Ok, &["200 cases", "verified"]);
    let cases = |seed: &str| run(&["list", "--fuzz", "200", "--seed", seed]).out;
    assert_eq!(cases("5"), cases("5"));
    assert_ne!(cases("5"), cases("6"));
    let journal = ran.file("dnn-assay-out/journal.jsonl");
    assert!(cases("5").lines().all(|id| journal.contains(id)));
}

#[test]
fn failures_of_drawn_cases_shrink_by_themselves() {
    let ran = run_mutant(
        "conv-last-tap",
        "run",
        &["--fuzz", "60", "--filter", "op=conv"],
    );
    ran.expect(Exit::Failed, &["shrunk to", "last-tap-missing"]);
    let folder = ran.folder.path().join("dnn-assay-out/regressions");
    let mut files = std::fs::read_dir(folder).unwrap();
    let file = files.next().unwrap().unwrap().path();
    let path = file.to_str().unwrap();
    run_mutant("conv-last-tap", "run", &["--suite", path]).expect(Exit::Failed, &["numeric"]);
    let library = mutants();
    run(&["run", library.to_str().unwrap(), "--suite", path]).expect(Exit::Ok, &["1 verified"]);
}
