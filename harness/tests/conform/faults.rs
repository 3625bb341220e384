//! Each check finds the plugin that breaks its contract.

use std::collections::BTreeSet;
use std::fs;

use dnn_assay::conform::{OutcomeKind, Report, all_checks};
use dnn_assay_graph::wire::{
    EngineDetails, Generation, Knob, KnobConstraint, KnobValue, write_engine_details,
};
use libtest_mimic::Trial;

use crate::plugins::*;

/// Check, fault of the mock.
const FAULTS: &[(&str, &str)] = &[
    ("load/answers-repeat", "name-changes"),
    ("load/texts-last", "name-buffer"),
    ("load/texts-utf8", "name-latin1"),
    ("use/plain", "execute-fails"),
    ("use/plan-without-questions", "needs-applicable"),
    ("engines/stable", "ids-change"),
    ("engines/less-room", "greedy-ids"),
    ("engines/name-hash", "engine-name-wrong"),
    ("engines/unknown-name", "names-anything"),
    ("engines/registered", "registered"),
    ("version/floors", "api-1-0"),
    ("version/major", "api-major-0"),
    ("handle/distinct", "one-handle"),
    ("handle/many", "handles-few"),
    ("handle/again", "create-once"),
    ("handle/independent", "destroy-kills"),
    ("stream/before-and-after", "stream-once"),
    ("applicable/answers", "applicable-picky"),
    ("applicable/ids", "applicable-unknown"),
    ("applicable/repeat", "applicable-forgets"),
    ("applicable/count-only", "no-count-only"),
    ("applicable/less-room", "applicable-greedy"),
    ("details/valid", "details-garbage"),
    ("details/overwrites", "details-lazy"),
    ("details/outlive-graph", "details-in-graph"),
    ("details/many", "details-one"),
    ("details/zeroed", "details-not-zeroed"),
    ("details/unknown-engine", "details-anything"),
    ("workspace/representable", "workspace-negative"),
    ("workspace/before-and-after", "workspace-differs"),
    ("context/outlives-buffers", "context-keeps-graph"),
    ("context/many", "contexts-few"),
    ("context/orders", "destroy-order"),
    ("context/different-graphs", "context-shared"),
    ("context/unknown-engine", "context-anything"),
    ("execute/again", "accumulates"),
    ("execute/again", "ulp-later"),
    ("execute/reordered", "by-position"),
    ("execute/other-buffers", "keeps-pointers"),
    ("execute/more-buffers", "counts-buffers"),
    ("execute/missing-buffer", "missing-ignored"),
    ("execute/null-buffer", "missing-silent"),
    ("thread/two-handles", "not-thread-safe"),
    ("thread/migration", "thread-bound"),
    ("serialize/round-trip", "serialize-other"),
    ("serialize/own-bytes", "serialize-kept"),
    ("serialize/again", "serialize-once"),
    ("serialize/foreign-bytes", "restore-anything"),
    ("override/shapes", "override-half"),
    ("override/shapes", "override-sticks"),
    ("scalar/runtime", "scalar-frozen"),
    ("error/text", "null-error"),
    ("error/useful", "error-empty"),
    ("error/useful", "error-latin1"),
    ("error/useful", "error-long"),
    ("error/per-thread", "error-global"),
    ("error/own", "error-stale"),
    ("error/before-any", "error-null-before"),
    ("error/before-any", "error-null-argument"),
    ("log/messages", "log-null"),
    ("log/messages", "log-severity"),
    ("log/level", "log-loud"),
    ("log/level-status", "log-level-status"),
    ("log/no-callback", "log-keeps"),
    ("log/latest-callback", "log-first"),
    ("graph/truncated", "trusts-graph"),
    ("graph/mutated", "crash-on-bad"),
    ("graph/empty", "trusts-graph"),
    ("graph/unknown-fields", "strict-schema"),
    ("use/plain", "writes-graph"),
    ("life/unload", "nodelete"),
    ("life/reopen", "one-life"),
    ("life/growth-of-queries", "leak-query"),
    ("life/growth-of-plans", "leak-plan"),
    ("life/growth-of-executions", "leak-execute"),
    ("life/growth-of-executions", "leak-fd"),
    ("life/growth-of-executions", "leak-thread"),
    ("life/growth-of-handles", "leak-handle"),
    ("null/*", "null-accepted"),
    ("null/*", "null-crash"),
];

/// Checks whose plugins are built or equipped in another way, below.
const OTHERS: &[&str] = &[
    "load/local",
    "load/deepbind",
    "engines/two-calls",
    "version/serialization-group",
    "details/name",
    "knob/defaults",
    "knob/in-range",
    "knob/out-of-range",
    "knob/results",
    "knob/benchmarking",
    "knob/workspace-limit",
];

pub fn trials() -> Vec<Trial> {
    let faults = FAULTS.iter().map(|&(check, fault)| {
        trial(format!("faults::{fault}::{check}"), move || {
            found(check, fault);
        })
    });
    let others = [
        trial("faults::every_check_has_one", every_check_has_one),
        trial("faults::refused_at_load", refused_at_load),
        trial("faults::deepbind", deepbind),
        trial("faults::serialization_group", serialization_group),
        trial("faults::details_name", details_name),
        trial("knobs::as_declared", knobs_as_declared),
        trial("knobs::misdeclared", knobs_misdeclared),
        trial("knobs::misused", knobs_misused),
        trial("knobs::of_every_kind", knobs_of_every_kind),
        trial("knobs::workspace_limit", workspace_limit),
        trial("faults::other_bits_by_chance", other_bits_by_chance),
        trial("faults::version_liar", version_liar),
    ];
    faults.chain(others).collect()
}

fn fault_of(fault: &str) -> String {
    format!("DNN_MOCK_FAULT={fault}")
}

fn found(pattern: &str, fault: &str) {
    let plugin = faulty();
    let report = check(&[&plugin], &["--check", pattern, "--env", &fault_of(fault)]);
    let results = &report.subjects[0].results;
    assert!(!results.is_empty(), "{report:#?}");
    for result in results {
        assert_eq!(result.outcome, OutcomeKind::Finding, "{result:#?}");
        assert!(!result.text.is_empty());
    }
}

fn every_check_has_one() {
    let with_fault: BTreeSet<_> = FAULTS.iter().map(|(check, _)| *check).collect();
    for check in all_checks() {
        let covered = with_fault.contains(check.id)
            || OTHERS.contains(&check.id)
            || check.id.starts_with("null/");
        assert!(covered, "{} has no plugin that breaks it", check.id);
        assert!(check.link.starts_with("https://"), "{}", check.id);
    }
    let ids: BTreeSet<_> = all_checks().map(|check| check.id).collect();
    assert_eq!(ids.len(), all_checks().count(), "an id stands twice");
}

/// What the host refuses at load leaves nothing to check, and is exit code 3.
fn refused_at_load() {
    for fault in ["counts-differ", "create-fails"] {
        let plugin = faulty();
        let report = check(&[&plugin], &["--env", &fault_of(fault)]);
        let refused = report.subjects[0].refused.as_ref().unwrap();
        assert!(refused.defect, "{refused:?}");
        assert_eq!(report.subjects[0].reached(), None);
        assert_eq!(report.exit().code(), 3);
    }
}

/// A library with a function that the C library has too is another one under RTLD_DEEPBIND.
fn deepbind() {
    let plugin = faulty_with("own-rand.so", &["-DOWN_RAND"]);
    let report = check(&[&plugin], &["--check", "load/*"]);
    let found = with(&report, OutcomeKind::Finding);
    let ids: Vec<_> = found.iter().map(|result| result.id.as_str()).collect();
    assert_eq!(ids, ["load/deepbind"], "{found:#?}");
}

fn serialization_group() {
    let plugin = faulty_with("no-restore.so", &["-DWITHOUT_RESTORE"]);
    let report = check(&[&plugin], &["--check", "version/serialization-group"]);
    assert_eq!(with(&report, OutcomeKind::Finding).len(), 1, "{report:#?}");
}

/// Checks the mock with these engine details.
fn with_details(details: &EngineDetails, arguments: &[&str]) -> Report {
    let bytes = write_engine_details(details, Generation::Current).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    let variable = format!("DNN_MOCK_DETAILS={}", file.path().display());
    let plugin = faulty();
    let mut all = vec!["--env", &variable];
    all.extend(arguments);
    check(&[&plugin], &all)
}

fn details_of(knobs: Vec<Knob>) -> EngineDetails {
    EngineDetails {
        engine_id: dnn_assay_abi::engine_id("DNN_ASSAY_C_EXAMPLE_ENGINE"),
        knobs,
        ..EngineDetails::default()
    }
}

/// Where processes differ among themselves, the bound decides, and the report says so.
fn other_bits_by_chance() {
    let plugin = faulty();
    let fault = fault_of("ulp-by-chance");
    let report = check(&[&plugin], &["--check", "execute/again", "--env", &fault]);
    let passed = with(&report, OutcomeKind::Passed);
    assert_eq!(passed.len(), 1, "{report:#?}");
    let note = "differs from process to process: judged by the bound";
    assert!(passed[0].text.contains(note), "{passed:#?}");
    let steady = check(&[&plugin], &["--check", "execute/again"]);
    assert!(with(&steady, OutcomeKind::Passed)[0].text.is_empty());
}

/// A plugin that takes graphs with overridable shapes and has no function for them.
fn version_liar() {
    let plugin = faulty_with("no-overrides.so", &["-DWITHOUT_OVERRIDES"]);
    let report = check(&[&plugin], &["--check", "version/floors"]);
    let found = with(&report, OutcomeKind::Finding);
    assert_eq!(found.len(), 1, "{report:#?}");
    assert!(found[0].text.contains("WithOverrides"));
}

fn details_name() {
    let details = EngineDetails {
        name: "ANOTHER".to_owned(),
        ..details_of(Vec::new())
    };
    let report = with_details(&details, &["--check", "details/*"]);
    let found = with(&report, OutcomeKind::Finding);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].id, "details/name");
}

fn knob(name: &str, default: i64, min: i64, max: i64) -> Knob {
    Knob {
        knob_id: name.to_owned(),
        description: String::new(),
        default_value: KnobValue::Int(default),
        constraint: Some(KnobConstraint::Int {
            min,
            max,
            step: 1,
            valid_values: Vec::new(),
        }),
        deprecated: false,
    }
}

const SWEEP: [&str; 3] = ["--check", "knob/*", "--knob-sweep"];

fn ids(report: &Report, outcome: OutcomeKind) -> Vec<&str> {
    let results = with(report, outcome);
    results.iter().map(|result| result.id.as_str()).collect()
}

fn knobs_as_declared() {
    let details = details_of(vec![knob("global.benchmarking", 0, 0, 1)]);
    let range = ["--env", "DNN_MOCK_KNOB=0,1"];
    let report = with_details(&details, &[&SWEEP[..], &range[..]].concat());
    assert_eq!(ids(&report, OutcomeKind::Finding), [""; 0], "{report:#?}");
    assert_eq!(
        ids(&report, OutcomeKind::NotApplicable),
        ["knob/workspace-limit"]
    );
}

fn knobs_misdeclared() {
    let details = details_of(vec![
        knob("global.benchmarking", 7, 0, 5),
        knob("global.workspace_size_limit", 0, 0, 5),
    ]);
    let report = with_details(&details, &SWEEP);
    let found = ids(&report, OutcomeKind::Finding);
    let expected = [
        "knob/defaults",
        "knob/out-of-range",
        "knob/benchmarking",
        "knob/workspace-limit",
    ];
    assert_eq!(found, expected, "{report:#?}");
}

fn knobs_misused() {
    for (fault, id) in [
        ("knob-refused", "knob/in-range"),
        ("knob-wrong", "knob/results"),
        ("knob-anything", "knob/out-of-range"),
    ] {
        let details = details_of(vec![knob("tile", 0, 0, 5)]);
        let fault = fault_of(fault);
        let more = ["--env", "DNN_MOCK_KNOB=0,5", "--env", &fault];
        let report = with_details(&details, &[&SWEEP[..], &more[..]].concat());
        assert!(
            ids(&report, OutcomeKind::Finding).contains(&id),
            "{report:#?}"
        );
    }
}

/// The mutants' engine without a fault has a knob of each constraint and both global ones.
fn knobs_of_every_kind() {
    let report = check(&[&mutants()], &SWEEP);
    assert_eq!(ids(&report, OutcomeKind::Finding), [""; 0], "{report:#?}");
    let passed = ids(&report, OutcomeKind::Passed);
    assert_eq!(passed.len(), 6, "all are made: {report:#?}");
}

/// What can be wrong about the limit: more wanted than allowed, another default, less than the
/// least taken, offered without a convolution.
fn workspace_limit() {
    for (mutant, text) in [
        ("knob-limit-exceeded", "with a limit of"),
        ("knob-limit-default-least", "is not the greatest value"),
        ("knob-limit-below-least", "makes a plan"),
        ("knob-limit-everywhere", "without convolution"),
    ] {
        let variable = format!("DNN_ASSAY_MUTANT={mutant}");
        let arguments = ["--check", "knob/workspace-limit", "--env", &variable];
        let report = check(&[&mutants()], &arguments);
        let found = with(&report, OutcomeKind::Finding);
        assert_eq!(found.len(), 1, "{mutant}: {report:#?}");
        assert!(found[0].text.contains(text), "{found:#?}");
    }
}
