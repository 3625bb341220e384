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

fn heuristic() {
    let arguments = ["-DHEURISTIC_SYMBOLS", r#"-DFAULT="heuristic""#];
    let plugin = build("heuristic.so", "cc", "mocks/abi/plugin.c", &arguments);
    let report = check(&[&plugin], &[]);
    let subject = &report.subjects[0];
    let text = text_of(|out| write_text(&report, out));
    // It has the functions of engines too, so the file alone does not say what it is.
    match &subject.refused {
        Some(refused) if !refused.defect => {
            assert!(text.contains("not executable here"), "{text}");
            assert!(!with(&report, OutcomeKind::Finding).is_empty());
        }
        Some(refused) => assert!(refused.message.contains("heuristic"), "{refused:?}"),
        None => panic!("{text}"),
    }
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
