//! Reports from the sample journal, and from journals full of arbitrary text.

use proptest::prelude::*;

use super::terminal::plain;
use super::{Junit, Reporter, Terminal, failure_text, waiver};
use crate::journal::samples::{self, bytes, records};
use crate::journal::{CaseEnd, Journal, Record, RunEnd, read_bytes};
use crate::verdict::{FailKind, Verdict};

fn junit(journal: &Journal) -> String {
    let mut out = Vec::new();
    Junit
        .write(journal, &mut out)
        .expect("a vector takes every byte");
    String::from_utf8(out).expect("XML is UTF-8")
}

/// A journal with nothing but the plugin and these ends.
fn with_ends(ends: Vec<CaseEnd>) -> Journal {
    let mut journal = Journal::default();
    journal.push(Record::RunStart(Box::new(samples::start())));
    journal.push(Record::Plugin(Box::new(samples::plugin(ends.len() as u64))));
    for end in ends {
        journal.push(Record::CaseEnd(Box::new(end)));
    }
    journal.push(Record::RunEnd(RunEnd::default()));
    journal
}

#[test]
fn the_first_screen() {
    insta::assert_snapshot!(plain(&samples::journal()));
}

#[test]
fn a_failure() {
    insta::assert_snapshot!(failure_text(&samples::journal(), &samples::failed()));
}

#[test]
fn a_waiver() {
    insta::assert_snapshot!(waiver(&samples::journal(), &samples::failed()));
}

#[test]
fn an_engine_that_declined_everything_is_named_with_graphs_to_start_from() {
    let ends = [
        "conv.fprop/f16/nhwc/x",
        "conv.fprop+relu_fwd/f32/nchw/x",
        "pointwise.exp/f32/nchw/x",
    ]
    .map(|case| CaseEnd::new(samples::key(case), 1, Verdict::Unsupported));
    insta::assert_snapshot!(plain(&with_ends(ends.to_vec())));
}

#[test]
fn all_is_well() {
    let mut end = CaseEnd::new(
        samples::key("pointwise.add/f32/nchw/n1-c2-i3x4/none/uni"),
        1,
        Verdict::Pass,
    );
    end.margin = Some(0.25);
    insta::assert_snapshot!(plain(&with_ends(vec![end])));
}

#[test]
fn styles_are_dropped_where_there_is_no_terminal() {
    let mut styled = Vec::new();
    Terminal
        .write(&samples::journal(), &mut styled)
        .expect("a vector takes every byte");
    assert!(styled.contains(&0x1b));
    assert!(!plain(&samples::journal()).contains('\u{1b}'));
}

#[test]
fn junit_says_what_the_journal_says() {
    let text = junit(&samples::journal());
    let xml = roxmltree::Document::parse(&text).expect("well-formed");
    let cases: Vec<_> = xml
        .descendants()
        .filter(|n| n.has_tag_name("testcase"))
        .collect();
    let with = |tag: &str| {
        cases
            .iter()
            .filter(|case| case.children().any(|child| child.has_tag_name(tag)))
            .count()
    };
    // Two plugins; 11 units with a record, one line for those without, one load error.
    assert_eq!(cases.len(), 11 + 1 + 1);
    assert_eq!(with("failure"), 2, "fail, flaky");
    assert_eq!(
        with("skipped"),
        4,
        "weak, unsupported, skipped, expected-fail"
    );
    assert_eq!(
        with("error"),
        6,
        "crash, timeout, not-run, missing twice, load"
    );
    let failed = cases
        .iter()
        .find(|c| c.attribute("name").is_some_and(|n| n.starts_with("conv")))
        .expect("conv");
    assert_eq!(failed.attribute("classname"), Some("conv.fprop.f16.nhwc"));
    assert_eq!(failed.attribute("file"), Some("smoke/core.yaml"));
    let body = failed
        .first_element_child()
        .and_then(|n| n.text())
        .unwrap_or_default();
    for part in [
        "1, 0, 5, 9",
        "got          NaN",
        "all 64 wrong elements have w = 9",
        "kernel launched with grid",
        "dnn-assay run 'build/my plugin.so' --case conv.fprop/f16/nhwc/",
        "--engine MY_ENGINE --seed 1",
    ] {
        assert!(body.contains(part), "{part} in\n{body}");
    }
    let skipped = xml
        .descendants()
        .find(|n| n.has_tag_name("skipped") && n.attribute("type") == Some("skipped"));
    assert_eq!(
        skipped.and_then(|n| n.attribute("message")),
        Some("skipped(no-device)")
    );
    let out = xml
        .descendants()
        .find(|n| n.has_tag_name("system-out"))
        .and_then(|n| n.text())
        .unwrap_or_default();
    assert!(
        out.starts_with("seed=1\nplugin=build/my plugin.so\nbuild-id=5f3a1c\n"),
        "{out}"
    );
    assert!(
        out.contains("engine=MY_ENGINE (0xedcba98765432110)"),
        "{out}"
    );
    let load = cases
        .iter()
        .find(|c| c.attribute("name") == Some("load"))
        .expect("the broken plugin");
    assert!(load.children().any(|n| n.has_tag_name("error")));
}

#[test]
fn names_are_unique_even_where_the_journal_repeats_itself() {
    // Ids that differ only in characters that are dropped.
    let ends = ["x/y/z/\u{1}", "x/y/z/\u{2}", "x/y/z/", "x/y/z/ (2)"]
        .map(|case| CaseEnd::new(samples::key(case), 1, Verdict::Fail(FailKind::Abi)));
    let text = junit(&with_ends(ends.to_vec()));
    let xml = roxmltree::Document::parse(&text).expect("well-formed");
    let mut names: Vec<_> = xml
        .descendants()
        .filter(|n| n.has_tag_name("testcase") && n.attribute("classname") != Some("run"))
        .filter_map(|n| n.attribute("name"))
        .collect();
    assert_eq!(names.len(), 4);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn a_cut_journal_still_gives_reports() {
    let bytes = bytes(&records());
    for cut in (0..bytes.len()).step_by(97) {
        let journal = read_bytes(&bytes[..cut]).expect("a cut journal is readable");
        let text = junit(&journal);
        let xml = roxmltree::Document::parse(&text).expect("well-formed");
        assert!(
            xml.descendants()
                .any(|n| n.attribute("name") == Some("run-end")),
            "cut at {cut}"
        );
        assert!(plain(&journal).contains("the run was cut"));
    }
}

/// Any text that bytes can give, with a liking for what breaks XML.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60)
            .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        "(\\]\\]>|<!\\[CDATA\\[|&#0;|&|<|>|\"|'|\\x1b\\[31m|\\x00|\\x0b|\u{fffe}|\u{ffff}|\u{85}|\\r|\\n|a){0,12}",
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn junit_is_well_formed_whatever_the_texts(
        texts in prop::collection::vec(hostile(), 12),
        ms in any::<f64>(),
        float in any::<f64>(),
    ) {
        let mut end = samples::failed();
        end.case = texts[0].clone();
        end.reason = Some(texts[1].clone());
        end.engine = Some(texts[2].clone());
        end.log_tail = vec![texts[3].clone(), texts[4].clone()];
        end.notes = vec![texts[5].clone()];
        end.file = Some(texts[6].clone());
        end.times.total_ms = Some(ms);
        end.margin = Some(float);
        let mut journal = with_ends(vec![end]);
        journal.plugins[0].path = texts[7].clone();
        journal.plugins[0].engines[0].name = Some(texts[8].clone());
        journal.plugins.push(samples::broken_plugin());
        if let Some(error) = &mut journal.plugins[1].error {
            error.message = texts[9].clone();
        }
        if let Some(start) = &mut journal.start {
            start.time = texts[10].clone();
            start.suites = vec![texts[11].clone()];
        }
        let text = junit(&journal);
        let xml = roxmltree::Document::parse(&text);
        prop_assert!(xml.is_ok(), "{:?}\n{text}", xml.err());
        let screen = plain(&journal);
        prop_assert!(!screen.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{screen:?}");
        // The reproduction is one line.
        prop_assert_eq!(screen.matches("\n  reproduce ").count(), 1);
    }
}

#[test]
fn a_sanitizers_report_is_shown_from_its_beginning() {
    let mut end = samples::failed();
    end.log_tail = (0..70).map(|line| format!("line {line}")).collect();
    end.log_tail[10] = "==7==ERROR: AddressSanitizer: heap-buffer-overflow".to_owned();
    let text = failure_text(&samples::journal(), &end);
    assert!(
        text.contains("heap-buffer-overflow") && text.contains("line 29"),
        "{text}"
    );
    assert!(
        !text.contains("line 9\n") && !text.contains("line 31"),
        "{text}"
    );
    end.log_tail[10] = "nothing".to_owned();
    let text = failure_text(&samples::journal(), &end);
    assert!(
        text.contains("(its end)") && text.contains("line 69"),
        "{text}"
    );
}
