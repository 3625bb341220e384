//! Answers of a plugin during a case: good ones, refused ones, failing calls.

use dnn_assay::worker::{CaseResult, Reply, Shutdown, Until};
use dnn_assay_abi::PluginStatus;
use libtest_mimic::Trial;

use crate::mock::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("case::a_good_case", good),
        trial("case::many_cases_per_worker", many),
        trial("case::until", until),
        trial("case::declined", declined),
        trial("case::applicable", applicable),
        trial("case::violations", violations),
        trial("case::failing_calls", failing_calls),
        trial("case::long_error_text", long_error_text),
        trial("case::workspaces", workspaces),
        trial("case::notes_of_destruction", notes),
        trial("case::log_lines", log_lines),
        trial("case::a_case_without_a_plugin", without_plugin),
    ]
}

fn good() {
    let mut worker = loaded("");
    let outcome = run(&mut worker);
    assert_eq!(outcome.result, CaseResult::Ok);
    assert_eq!(outcome.depth, Some(Until::Executed));
    assert_eq!(outcome.config_workspace, Some(100));
    assert_eq!(outcome.workspace_size, Some(100));
    assert_eq!(outcome.times.executions.len(), 1);
    assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
    let details = outcome.details.as_ref().unwrap();
    let details = dnn_assay_graph::wire::read_engine_details(details).unwrap();
    assert_eq!(details.engine_id, engine_ids()[0]);
    let snapshot = worker.snapshot(&outcome, 256).unwrap();
    assert!(snapshot.is_intact());
    let output = snapshot.buffer(OUT).unwrap();
    assert_eq!((output.unwritten, &output.bytes), (0, &input(64)));
    assert_eq!(worker.shutdown(), Shutdown::Clean);
}

fn many() {
    let mut worker = loaded("");
    for bytes in [4, 64, 4096, 4100, 1 << 20, 8] {
        prepare(&mut worker, bytes, dnn_assay_device::Placement::Start);
        let mut request = request(bytes);
        request.executions = 3;
        worker.begin(request);
        let outcome = worker.finish();
        assert_eq!(outcome.result, CaseResult::Ok);
        assert_eq!(outcome.times.executions.len(), 3);
        let snapshot = worker.snapshot(&outcome, 256).unwrap();
        assert!(snapshot.is_intact());
        assert_eq!(snapshot.buffer(OUT).unwrap().bytes, input(bytes));
    }
}

fn until() {
    let mut worker = loaded("");
    for until in [Until::Applicable, Until::Planned] {
        let mut request = request(64);
        request.until = until;
        worker.begin(request);
        let outcome = worker.finish();
        assert_eq!(outcome.result, CaseResult::Ok);
        assert_eq!(outcome.depth, Some(until));
        assert_eq!(outcome.details.is_some(), until == Until::Planned);
        assert!(outcome.times.executions.is_empty());
    }
}

fn declined() {
    let outcome = run_fault("applicable-none");
    assert_eq!(outcome.result, CaseResult::Declined);
    assert_eq!(outcome.depth, None);
}

fn applicable() {
    assert_eq!(
        loaded("").applicable(&graph(4)),
        Reply::Ok(engine_ids().to_vec())
    );
    let Reply::CallFailed { call, text, .. } = loaded("applicable-fails").applicable(&graph(4))
    else {
        panic!("succeeded");
    };
    assert_eq!(call, "GetApplicableEngineIds");
    assert_eq!(text, "mock: cannot read the graph");
    let reply = loaded("applicable-too-many").applicable(&graph(4));
    assert!(matches!(reply, Reply::Violation { .. }));
}

fn violations() {
    for (fault, expected_call, expected) in [
        (
            "applicable-unknown",
            "GetApplicableEngineIds",
            "known IDs: 77",
        ),
        (
            "applicable-too-many",
            "GetApplicableEngineIds",
            "expected: 3 of 2",
        ),
        (
            "applicable-duplicate",
            "GetApplicableEngineIds",
            "Duplicate",
        ),
        (
            "applicable-overflow",
            "GetApplicableEngineIds",
            "behind the buffer",
        ),
        ("details-null", "GetEngineDetails", "empty or NULL"),
        ("details-garbage", "GetEngineDetails", "do not verify"),
        (
            "details-endless",
            "GetEngineDetails",
            "1152921504606846976 bytes",
        ),
        ("config-workspace-negative", "GetWorkspaceSize", "negative"),
        ("context-null", "CreateExecutionContext", "NULL context"),
        (
            "context-workspace-negative",
            "GetWorkspaceSizeFromExecutionContext",
            "-9223372036854775808",
        ),
    ] {
        let outcome = run_fault(fault);
        let CaseResult::Violation { call, what } = &outcome.result else {
            panic!("{fault}: {:?}", outcome.result);
        };
        assert_eq!(call, expected_call, "{fault}");
        assert!(what.contains(expected), "{fault}: {what}");
        assert!(outcome.depth < Some(Until::Planned), "{fault}");
    }
}

fn failing_calls() {
    for (fault, expected, depth) in [
        ("applicable-fails", "GetApplicableEngineIds", None),
        ("details-fails", "GetEngineDetails", Some(Until::Applicable)),
        (
            "config-workspace-fails",
            "GetWorkspaceSize",
            Some(Until::Applicable),
        ),
        (
            "context-fails",
            "CreateExecutionContext",
            Some(Until::Applicable),
        ),
        (
            "context-workspace-fails",
            "GetWorkspaceSizeFromExecutionContext",
            Some(Until::Applicable),
        ),
        ("execute-fails", "ExecuteOpGraph", Some(Until::Planned)),
    ] {
        let mut worker = loaded(fault);
        let outcome = run(&mut worker);
        let CaseResult::CallFailed { call, status, text } = &outcome.result else {
            panic!("{fault}: {:?}", outcome.result);
        };
        assert_eq!((call.as_str(), outcome.depth), (expected, depth), "{fault}");
        assert_eq!(*status, PluginStatus::INTERNAL_ERROR.0);
        assert!(text.starts_with("mock: "), "{text}");
        // The worker serves on.
        assert!(matches!(
            run(&mut worker).result,
            CaseResult::CallFailed { .. }
        ));
    }
}

fn long_error_text() {
    let CaseResult::CallFailed { text, .. } = run_fault("execute-fails-long").result else {
        panic!("succeeded");
    };
    assert!(
        text.starts_with("bell\u{7} escape\u{1b}[2J\r\n\u{FFFD}|xxx"),
        "{text:?}"
    );
    // 2047 bytes of the plugin's; the replacement character is two bytes longer than what it replaces.
    assert_eq!(text.len(), 2049);
    let CaseResult::CallFailed { text, .. } = run_fault("null-error").result else {
        // `null-error` alone fails nothing.
        return;
    };
    assert_eq!(text, "");
}

fn workspaces() {
    let CaseResult::NoMemory { bytes, .. } = run_fault("workspace-huge").result else {
        panic!("a pebibyte was provided");
    };
    assert_eq!(bytes, 1 << 50);
}

fn notes() {
    for (fault, expected) in [
        (
            "destroy-context-fails",
            "Failed to destroy execution context",
        ),
        ("destroy-details-fails", "Failed to destroy engine details"),
        ("details-not-zeroed", "did not zero"),
    ] {
        let outcome = run_fault(fault);
        assert_eq!(outcome.result, CaseResult::Ok, "{fault}");
        assert_eq!(outcome.notes.len(), 1, "{fault}");
        assert!(outcome.notes[0].contains(expected), "{:?}", outcome.notes);
    }
    let mut worker = loaded("destroy-fails");
    run(&mut worker);
    let Shutdown::DestroyFailed { text, .. } = worker.shutdown() else {
        panic!("clean");
    };
    assert_eq!(text, "mock: handle stays");
}

fn log_lines() {
    let outcome = run_fault("log:ExecuteOpGraph");
    let lines: Vec<_> = outcome
        .log
        .iter()
        .map(|l| (l.severity, l.text.as_str()))
        .collect();
    assert_eq!(
        lines,
        [(0, "a line"), (1, "second \u{1b}[31m line"), (2, "a line")]
    );
    assert_eq!(outcome.log_dropped, 0);

    let outcome = run_fault("log-flood:ExecuteOpGraph");
    assert_eq!(outcome.result, CaseResult::Ok);
    assert_eq!(outcome.log.len() as u64 + outcome.log_dropped, 100_000);
    assert!(outcome.log.len() <= 200);

    let outcome = run_fault("fork:ExecuteOpGraph");
    assert_eq!(outcome.result, CaseResult::Ok);
    assert!(outcome.log.is_empty());
}

fn without_plugin() {
    let mut worker = dnn_assay::worker::Worker::spawn(&config(&PLUGIN, "")).unwrap();
    let outcome = run(&mut worker);
    assert!(matches!(outcome.result, CaseResult::Violation { .. }));
}
