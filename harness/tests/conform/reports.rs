//! Reports, and the page that is made of the checks.

use dnn_assay::conform::{
    OutcomeKind, all_checks, list_json, list_markdown, list_text, write_json, write_junit,
    write_text,
};
use libtest_mimic::Trial;

use crate::plugins::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("reports::of_a_finding", of_a_finding),
        trial("reports::heuristic_plugin", heuristic),
        trial("reports::half_a_heuristic_plugin", half_heuristic),
        trial("reports::the_page_is_up_to_date", page),
        trial("reports::lists", lists),
        trial("reports::levels", levels),
    ]
}

fn text_of(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn of_a_finding() {
    let arguments = [
        "--check",
        "stream/*",
        "--check",
        "null/create",
        "--env",
        "DNN_MOCK_FAULT=stream-once",
    ];
    let report = check(&[&faulty()], &arguments);
    let text = text_of(|out| write_text(&report, out));
    assert!(
        text.contains("FINDING") && text.contains("stream/before-and-after"),
        "{text}"
    );
    assert!(
        text.contains("does not conform") && text.contains("exit 1"),
        "{text}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&text_of(|out| write_json(&report, out))).unwrap();
    assert_eq!(json["exit"], 1);
    assert_eq!(json["subjects"][0]["reached"], serde_json::Value::Null);
    let xml = text_of(|out| write_junit(&report, out));
    let document = roxmltree::Document::parse(&xml).unwrap();
    let count = |tag: &str| {
        document
            .descendants()
            .filter(|n| n.has_tag_name(tag))
            .count()
    };
    assert_eq!((count("testcase"), count("failure")), (2, 1), "{xml}");
}

/// What a heuristic plugin is held to, by build: its symbols, and nothing of it is executed.
fn heuristic() {
    let of = |name: &str, flags: &[&str]| {
        let plugin = build(name, "cc", "mocks/abi/heuristic.c", flags);
        let report = check(&[&plugin], &[]);
        let refused = report.subjects[0].refused.as_ref().unwrap();
        assert!(!refused.defect, "{refused:?}");
        let text = text_of(|out| write_text(&report, out));
        assert!(text.contains("not executable here"), "{text}");
        let found = with(&report, OutcomeKind::Finding);
        let found: Vec<_> = found
            .iter()
            .map(|r| format!("{}: {}", r.id, r.text))
            .collect();
        (found, report.exit().code())
    };
    assert_eq!(of("heuristic.so", &[]), (Vec::new(), 0));
    let incomplete = of("incomplete.so", &["-DINCOMPLETE"]);
    let missing = "heuristic/symbols: not exported: hipdnnHeuristicPolicyFinalize";
    assert_eq!(incomplete, (vec![missing.to_owned()], 1));
    let unnamed = of("unnamed.so", &["-DWITHOUT_POLICY_NAME"]);
    let missing = "heuristic/policy-name: not exported: hipdnnHeuristicPluginGetPolicyName";
    assert_eq!(unnamed, (vec![missing.to_owned()], 0));
}

/// A plugin that says it is one and has an engine's functions too is refused as the host does it.
fn half_heuristic() {
    let arguments = ["-DHEURISTIC_SYMBOLS", r#"-DFAULT="heuristic""#];
    let plugin = build("half-heuristic.so", "cc", "mocks/abi/plugin.c", &arguments);
    let report = check(&[&plugin], &[]);
    let refused = report.subjects[0].refused.as_ref().unwrap();
    assert!(refused.message.contains("heuristic"), "{refused:?}");
}

fn page() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/conformance.md");
    let made = text_of(|out| list_markdown(out));
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == made,
        "docs/conformance.md is not what `dnn-assay conform --list --format markdown` prints"
    );
}

fn lists() {
    let text = text_of(|out| list_text(out));
    assert!(text.lines().count() > all_checks().count());
    let json: serde_json::Value = serde_json::from_str(&text_of(|out| list_json(out))).unwrap();
    assert_eq!(json.as_array().map(Vec::len), Some(text.lines().count()));
}

/// The level decides what is red, not what is found.
fn levels() {
    let plugin = stub();
    let arguments = |level| ["--check", "workspace/*", "--level", level];
    let mild = check(&[&plugin], &arguments("required"));
    let strict = check(&[&plugin], &arguments("recommended"));
    assert_eq!(with(&mild, OutcomeKind::Finding).len(), 1);
    assert_eq!((mild.exit().code(), strict.exit().code()), (0, 1));
}
