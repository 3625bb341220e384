//! `--knob` and `--knob-sweep` of a run.

use dnn_assay::exit::Exit;
use dnn_assay::plan::{BUILTIN_CPU, built_in_file};
use dnn_assay::power::MUTANTS;

use crate::support::{Ran, run_case};

const CASE: &str = "conv.fprop/f32/nchw/n2-c4-k3-i6x5-f3x3/pad1";

/// Runs a case on the mutants' engine, which has knobs of every kind.
fn ran(mutant: &str, more: &[&str]) -> Ran {
    let plugin = built_in_file(MUTANTS).unwrap();
    let variable = format!("DNN_ASSAY_MUTANT={mutant}");
    run_case(&plugin, CASE, &[&["--env", &variable], more].concat())
}

#[test]
fn a_setting_reaches_the_plan() {
    ran("", &["--knob", "mutant.tile=48"]).expect(Exit::Ok, &[]);
    ran("", &["--knob", "mutant.tile=24"]).expect(
        Exit::Failed,
        &["mutant.tile: the value is outside its constraint"],
    );
    ran("", &["--knob", "mutant.none=1"]).expect(Exit::Failed, &["there is no knob mutant.none"]);
    ran("", &["--knob", "tile"]).expect(Exit::Usage, &["KNOB=VALUE"]);
    ran("knob-other-results", &[]).expect(Exit::Ok, &[]);
    ran("knob-other-results", &["--knob", "mutant.tile=48"]).expect(Exit::Failed, &["numeric"]);
}

/// The CPU engine ignores a knob that it does not know, and the run says so.
#[test]
fn a_setting_that_no_engine_declares_is_said() {
    let plugin = built_in_file(BUILTIN_CPU).unwrap();
    let unknown = run_case(&plugin, CASE, &["--knob", "global.benchmrking=1"]);
    unknown.expect(
        Exit::Ok,
        &["--knob global.benchmrking", "no engine declares it"],
    );
    let known = ran("", &["--knob", "mutant.tile=48"]);
    let journal = known.file("dnn-assay-out/journal.jsonl");
    assert!(!journal.contains("no engine declares it"), "{journal}");
}

#[test]
fn a_sweep_judges_every_value_and_names_the_one_that_is_wrong() {
    let clean = ran("", &["--knob-sweep"]);
    clean.expect(Exit::Ok, &[]);
    let journal = clean.file("dnn-assay-out/journal.jsonl");
    assert!(journal.contains("judged at 8 values of knobs"), "{journal}");
    let wrong = ran("knob-other-results", &["--knob-sweep"]);
    wrong.expect(Exit::Failed, &["with mutant.tile = 16", "--knob-sweep"]);
    let limit = ran("knob-benchmarking-fails", &["--knob-sweep"]);
    limit.expect(
        Exit::Failed,
        &["with global.benchmarking = 1", "no measurement was primed"],
    );
}
