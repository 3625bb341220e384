//! Plugins that misbehave on a case: one verdict each, exit code 1, and the run goes on.

use crate::support::{IDENTITY, build, mock, run, run_case, run_fault};
use dnn_assay::exit::Exit;
use rstest::rstest;

#[rstest]
#[case("details-null", "fail(abi)")]
#[case("details-garbage", "fail(abi)")]
#[case("context-null", "fail(abi)")]
#[case("context-workspace-negative", "fail(abi)")]
#[case("config-workspace-negative", "fail(abi)")]
#[case("applicable-unknown", "fail(abi)")]
#[case("applicable-too-many", "fail(abi)")]
#[case("applicable-duplicate", "fail(abi)")]
#[case("applicable-fails", "fail(status)")]
#[case("execute-fails", "fail(status)")]
#[case("execute-fails-long", "fail(status)")]
#[case("segv:ExecuteOpGraph", "crash(SIGSEGV)")]
#[case("abort:ExecuteOpGraph", "crash(SIGABRT)")]
#[case("exit:ExecuteOpGraph", "crash(exit code 0)")]
#[case("exit-code:GetWorkspaceSize", "crash(exit code 42)")]
#[case("segv:GetApplicableEngineIds", "crash(SIGSEGV)")]
#[case("flood:ExecuteOpGraph", "fail(flood)")]
#[case("past-end-1", "fail(guard-after)")]
#[case("past-end-far", "crash(SIGSEGV)")]
#[case("read-past-end", "crash(SIGSEGV)")]
#[case("workspace-past-end-1", "fail(workspace)")]
#[case("change-input", "fail(input-changed)")]
#[case("write-nothing", "fail(unwritten)")]
#[case("write-half", "fail(unwritten)")]
fn a_fault_has_its_verdict(#[case] fault: &str, #[case] verdict: &str) {
    let ran = run_fault(fault, &[]);
    ran.expect(Exit::Failed, &[verdict, IDENTITY, "reproduce"]);
    assert!(!ran.err.contains("panicked"), "{ran:#?}");
    let junit = ran.file("dnn-assay-out/junit.xml");
    roxmltree::Document::parse(&junit).unwrap();
    assert!(!junit.contains('\u{1b}'), "control characters are removed");
}

#[test]
fn a_sound_plugin_passes() {
    run_fault("", &[]).expect(Exit::Ok, &["1 verified"]);
}

#[rstest]
#[case("hang:CreateExecutionContext", "plan")]
#[case("hang:ExecuteOpGraph", "execute")]
#[case("hang-ignoring-term:ExecuteOpGraph", "execute")]
fn a_hang_names_its_phase(#[case] fault: &str, #[case] phase: &str) {
    let verdict = format!("timeout({phase})");
    run_fault(fault, &["--timeout", "load=20s,plan=1s,execute=1s"])
        .expect(Exit::Failed, &[&verdict]);
}

#[test]
fn a_thrown_exception_is_a_crash_with_its_text() {
    let path = build("g++", "mocks/abi/plugin.c", "throws.so", &["-xc++"]);
    let more = ["--env", "DNN_MOCK_FAULT=throw:ExecuteOpGraph"];
    run_case(&path, IDENTITY, &more).expect(Exit::Failed, &["crash(SIGABRT)"]);
}

#[test]
fn a_workspace_that_no_machine_has_is_no_failure_of_the_plugin() {
    run_fault("workspace-huge", &[]).expect(Exit::NothingVerified, &["memory"]);
}

#[test]
fn the_run_goes_on_after_a_crash() {
    let path = mock();
    let ran = run(&[
        "run",
        path.to_str().unwrap(),
        "--env",
        "DNN_MOCK_FAULT=segv:ExecuteOpGraph",
        "--engine",
        "MOCK_ENGINE_A",
        "--filter",
        "op=pointwise.identity dtype=f32",
    ]);
    ran.expect(Exit::Failed, &["crash"]);
    let crashes = ran
        .file("dnn-assay-out/journal.jsonl")
        .lines()
        .filter(|line| line.contains(r#""verdict":"crash""#))
        .count();
    assert!(crashes >= 2, "each case has its own verdict: {ran:#?}");
    assert!(!ran.out.contains("missing"), "{ran:#?}");
}

#[test]
fn max_fails_ends_a_run_and_says_so() {
    let path = mock();
    run(&[
        "run",
        path.to_str().unwrap(),
        "--env",
        "DNN_MOCK_FAULT=execute-fails",
        "--engine",
        "MOCK_ENGINE_A",
        "--filter",
        "op=pointwise.identity",
        "--max-fails",
        "1",
        "--jobs",
        "1",
    ])
    .expect(Exit::Incomplete, &["budget"]);
}

#[test]
fn a_plugin_that_declines_everything_is_not_green() {
    run_fault("applicable-none", &[]).expect(Exit::NothingVerified, &["declined"]);
}

#[test]
fn until_stops_short_of_judgement() {
    run_fault("", &["--until", "planned"]).expect(Exit::Ok, &["0 verified"]);
}
