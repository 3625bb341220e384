//! Cases that are judged by samples.

use crate::support::{Ran, run, run_mutant};
use dnn_assay::exit::Exit;
use rstest::rstest;

const CONV: &str = "conv.fprop/f32/nchw/n2-c8-k8-i40x40-f3x3/pad1-g2";

fn sampled(fault: &str, case: &str, more: &[&str]) -> Ran {
    let mut arguments = vec!["--case", case, "--sample", "300", "--junit", "junit.xml"];
    arguments.extend(more);
    run_mutant(fault, "run", &arguments)
}

/// The record of the only case in a run's journal.
fn record(ran: &Ran) -> serde_json::Value {
    let journal = ran.file("dnn-assay-out/journal.jsonl");
    let mut records = journal
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    records
        .find(|record| record["record"] == "case-end")
        .unwrap()
}

#[rstest]
#[case(CONV, "sums of 4 channels touch every element")]
#[case(
    "conv.dgrad/f16/nhwc/n2-c8-k8-i40x40-f3x3/pad1-str2",
    "sums of 8 channels"
)]
#[case(
    "conv.wgrad/bf16/nchw/n2-c32-k32-i20x20-f3x3/pad1",
    "sums of 32 channels"
)]
#[case(
    "conv.fprop+bias+relu_fwd/f16/nchw/n2-c8-k8-i40x40-f3x3/pad1",
    "no sums over channels (the graph has more than one node)"
)]
#[case(
    "batchnorm.inference_var/f16+f32/nchw/n2-c8-i40x40",
    "no sums over channels"
)]
#[case("pointwise.gelu_fwd/f32/nchw/n2-c8-i40x40", "no sums over channels")]
#[case(
    "conv.fprop/f16/nchw/n2-c8-k8-i40x40-f3x3/pad1/int",
    "sums of 8 channels"
)]
fn a_right_engine_passes_and_every_report_says_by_what(#[case] case: &str, #[case] sums: &str) {
    let ran = sampled("", case, &[]);
    let told = [
        "1 verified (1 of them by samples)",
        "300 at random",
        sums,
        "0.1 % with probability 0.74",
    ];
    ran.expect(Exit::Ok, &told);
    let junit = ran.file("junit.xml");
    assert!(
        junit.contains("by samples") && junit.contains(" at random"),
        "{junit}"
    );
    let record = record(&ran);
    let (compared, of) = (&record["compared"], &record["sampled"]["elements"]);
    assert!(
        compared.as_u64() < of.as_u64() && compared.as_u64() > Some(300),
        "{record}"
    );
    assert_eq!(record["sampled"]["misses"].as_array().unwrap().len(), 3);
    // A report that is written again from the journal says the same.
    let out = ran.folder.path().join("dnn-assay-out");
    run(&["report", out.to_str().unwrap()]).expect(Exit::Ok, &told);
}

#[rstest]
#[case("conv-last-tile", CONV)]
#[case("conv-next-group", CONV)]
#[case("output-last-element-doubled", CONV)]
#[case(
    "output-last-element-doubled",
    "pointwise.gelu_fwd/f32/nchw/n2-c8-i40x40"
)]
fn faults_at_borders_are_found(#[case] fault: &str, #[case] case: &str) {
    let ran = sampled(fault, case, &["--dump-on-fail", "dumps"]);
    let texts = [
        "fail(numeric)",
        "by samples",
        "sampled elements differ by more than bound allows",
        "worst element",
        "--sample 300",
        "dnn-assay replay ",
        "where the wrong elements lie is not described",
        "faults that need the whole tensor are not looked for: images-permuted",
    ];
    ran.expect(Exit::Failed, &texts);
    assert_eq!(record(&ran)["verdict"], "fail");
}

#[rstest]
#[case("conv.fprop/f32/nchw/n2-c8-k8-i40x40-f3x3/pad1-g2")]
#[case("conv.dgrad/f32/nhwc/n2-c8-k8-i40x40-f3x3/pad1")]
#[case("conv.wgrad/f32/nchw/n2-c32-k32-i20x20-f3x3/pad1")]
fn an_undeclared_trait_that_explains_all_samples_is_named(#[case] case: &str) {
    let ran = sampled("conv-xf32-inputs", case, &[]);
    let texts = [
        "fail(undeclared-trait)",
        "within the bound of the trait `xf32`",
        "add under `traits` in dnn-assay.yaml: - {trait: xf32, engine: ",
    ];
    ran.expect(Exit::Failed, &texts);
    let declared = sampled("conv-xf32-inputs", case, &["--trait", "xf32"]);
    declared.expect(Exit::Ok, &["1 of them by samples"]);
}

/// Mutants whose names the list of mutants has, and cases that show them. None is given another name;
/// those that samples can show are given theirs.
#[rstest]
#[case("conv-last-tap", CONV, Some("last-tap-missing"))]
#[case("conv-padding-ignored", CONV, Some("padding-ignored"))]
#[case("conv-true-convolution", CONV, Some("filter-flipped"))]
#[case("conv-next-group", CONV, Some("group-off-by-one"))]
#[case("conv-border-wraps", CONV, Some("border-wraps"))]
#[case("conv-row-shifted", CONV, Some("shifted"))]
#[case("conv-first-image-everywhere", CONV, Some("batch-ignored"))]
#[case(
    "conv-nhwc-as-nchw",
    "conv.fprop/f16/nhwc/n2-c8-k8-i40x40-f3x3/pad1",
    Some("image-layout")
)]
#[case(
    "conv-f16-accumulator",
    "conv.fprop/f16/nchw/n2-c64-k8-i40x40-f3x3/pad1",
    Some("accumulator-f16")
)]
#[case(
    "dgrad-last-filter",
    "conv.dgrad/f32/nchw/n2-c8-k8-i40x40-f3x3/pad1",
    Some("last-filter-missing")
)]
#[case(
    "wgrad-last-image",
    "conv.wgrad/f32/nchw/n2-c32-k32-i20x20-f3x3/pad1",
    Some("last-image-missing")
)]
#[case(
    "fused-bias-missing",
    "conv.fprop+bias+relu_fwd/f16/nchw/n2-c8-k8-i40x40-f3x3/pad1",
    Some("bias-missing")
)]
#[case(
    "bn-epsilon-missing",
    "batchnorm.inference_var/f32/nchw/n2-c8-i40x40/eps0.1",
    Some("epsilon-missing")
)]
#[case(
    "gelu-approximated",
    "pointwise.gelu_fwd/f32/nchw/n2-c8-i40x40",
    Some("gelu-approximated")
)]
#[case(
    "output-scaled",
    "pointwise.gelu_fwd/f32/nchw/n2-c8-i40x40",
    Some("scaled")
)]
#[case("conv-channels-swapped", CONV, None)]
#[case("output-last-element-doubled", CONV, None)]
fn faults_are_named_by_samples(
    #[case] fault: &str,
    #[case] case: &str,
    #[case] name: Option<&str>,
) {
    let ran = sampled(fault, case, &[]);
    ran.expect(Exit::Failed, &["by samples"]);
    let record = record(&ran);
    let named = record["diagnosis"].as_array().unwrap();
    let named: Vec<&str> = named.iter().map(|id| id.as_str().unwrap()).collect();
    match name {
        Some(name) => assert!(named.contains(&name) && named.len() <= 3, "{record}"),
        None => assert!(named.is_empty(), "{record}"),
    }
}

#[test]
fn traits_of_the_whole_tensor_are_left_out_and_said() {
    let ran = sampled("output-last-element-doubled", CONV, &[]);
    let notes = record(&ran)["notes"].to_string();
    assert!(
        notes.contains("no trait explains it; tried: flush-denormals")
            && notes.contains("not tried by samples: winograd, fft"),
        "{notes}"
    );
    let pointwise = sampled(
        "output-last-element-doubled",
        "pointwise.gelu_fwd/f32/nchw/n2-c8-i40x40",
        &[],
    );
    let notes = record(&pointwise)["notes"].to_string();
    assert!(!notes.contains("winograd"), "{notes}");
}

#[test]
fn without_the_flag_every_element_is_compared() {
    let ran = run_mutant("", "run", &["--case", CONV]);
    ran.expect(Exit::Ok, &["1 verified, "]);
    let record = record(&ran);
    assert_eq!(
        (record["compared"].as_u64(), record["sampled"].is_null()),
        (Some(25_600), true)
    );
    // As few elements as samples are compared as well.
    let small = sampled("", "conv.fprop/f32/nchw/n1-c2-k2-i5x5-f3x3/pad1", &[]);
    small.expect(Exit::Ok, &["1 verified, "]);
}

#[rstest]
#[case(
    "batchnorm.training/f32/nchw/n2-c8-i40x40/stats",
    "Batchnorm needs the whole tensor"
)]
#[case(
    "conv.fprop/f32/nchw/n2-c8-k8-i40x40-f3x3/pad1/edges",
    "aims at elements"
)]
fn what_cannot_be_sampled_is_judged_as_a_whole_and_said(#[case] case: &str, #[case] why: &str) {
    let ran = sampled("", case, &[]);
    ran.expect(Exit::Ok, &["1 verified, "]);
    let record = record(&ran);
    assert!(record["sampled"].is_null());
    let notes = record["notes"].to_string();
    assert!(
        notes.contains("judged as a whole") && notes.contains(why),
        "{notes}"
    );
    // A trait whose errors go by the whole tensor.
    let winograd = sampled("", CONV, &["--trait", "winograd"]);
    winograd.expect(Exit::Ok, &["1 verified, "]);
}

#[test]
fn samples_are_for_the_bound_alone() {
    let ran = sampled("", CONV, &["--criterion", "rms"]);
    ran.expect(Exit::Usage, &["--sample judges by the bound alone"]);
    let none = run_mutant("", "run", &["--case", CONV, "--sample", "0"]);
    none.expect(Exit::Usage, &["--sample"]);
}

#[test]
fn a_suite_may_ask_for_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.yaml");
    let text =
        format!("schema: 1\ngroups:\n  - {{name: large, sample: 200, ids: ['{CONV}/uni']}}\n");
    std::fs::write(&path, text).unwrap();
    let suite = path.to_str().unwrap();
    let right = run_mutant("", "run", &["--suite", suite]);
    right.expect(Exit::Ok, &["1 of them by samples", "200 at random"]);
    // The line that runs the case again asks for the same.
    let wrong = run_mutant("conv-last-tile", "run", &["--suite", suite]);
    wrong.expect(Exit::Failed, &["--sample 200"]);
}

#[test]
fn ranges_reach_the_engine_and_the_line_that_repeats() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranged.yaml");
    let id = "pointwise.sub/f32/nchw/n1-c2-i4x4";
    let text = format!(
        "schema: 1\ngroups:\n  - {{name: ranged, ranges: {{a: [3, 4]}}, ids: ['{id}/none/uni']}}\n"
    );
    std::fs::write(&path, &text).unwrap();
    let suite = path.to_str().unwrap();
    let dumps = folder.path().join("dumps");
    let more = ["--suite", suite, "--dump-on-fail", dumps.to_str().unwrap()];
    let wrong = run_mutant("output-last-element-doubled", "run", &more);
    wrong.expect(Exit::Failed, &["--range a=3..4"]);
    let again = ["--case", id, "--range", "a=3..4"];
    run_mutant("", "run", &again).expect(Exit::Ok, &["1 verified"]);
    let bad = ["--case", id, "--range", "a=4..3"];
    run_mutant("", "run", &bad).expect(Exit::Usage, &["TENSOR=LOW..HIGH"]);
    std::fs::write(&path, text.replace("[3, 4]", "[4, 3]")).unwrap();
    let refused = run_mutant("", "run", &["--suite", suite]);
    refused.expect(
        Exit::Usage,
        &["the range of `a` is [4, 3]", "ranged.yaml:3"],
    );
}
