//! What is known to fail.

use rstest::rstest;

use super::*;
use crate::journal::samples::{self, failed};
use crate::verdict::Death;

#[rstest]
#[case::by_id(
    "case: pointwise.add/f16/nchw/n1-c2-i3x4/none/uni\n    expect: fail(numeric)",
    true
)]
#[case::by_filter(
    "filter: op=pointwise dtype=f16 tag=slow\n    expect: crash, fail",
    true
)]
#[case::another_case("filter: dtype=f32\n    expect: fail", false)]
#[case::another_verdict("filter: dtype=f16\n    expect: fail(inexact)", false)]
#[case::its_engine("filter: dtype=f16\n    engine: MY_*\n    expect: fail", true)]
#[case::another_engine("filter: dtype=f16\n    engine: YOUR_*\n    expect: fail", false)]
#[case::its_version("filter: dtype=f16\n    plugin: '>=1.4, <2'\n    expect: fail", true)]
#[case::a_later_version("filter: dtype=f16\n    plugin: '>=1.5'\n    expect: fail", false)]
#[case::its_arch("filter: dtype=f16\n    arch: gfx90a, gfx942\n    expect: fail", true)]
#[case::another_arch("filter: dtype=f16\n    arch: gfx90a\n    expect: fail", false)]
#[case::its_rocm("filter: dtype=f16\n    rocm: '>=7.0, <7.2'\n    expect: fail", true)]
#[case::another_rocm("filter: dtype=f16\n    rocm: '6'\n    expect: fail", false)]
fn a_waiver_holds_where_all_its_conditions_hold(#[case] entry: &str, #[case] holds: bool) {
    let gate = gate(waivers(entry), Claims::default(), false, BEFORE);
    let end = applied(&gate, NUMERIC);
    let expected = if holds {
        Verdict::ExpectedFail
    } else {
        NUMERIC
    };
    assert_eq!(end.verdict, expected, "{:?}", end.reason);
    if holds {
        let reason = end.reason.unwrap_or_default();
        assert!(
            reason.contains("fail(numeric); waived at w.yaml:3: r (o, l, until 2027-06-30)"),
            "{reason}"
        );
    }
}

#[test]
fn a_pass_against_a_waiver_is_red_and_other_verdicts_stay() {
    let gate = gate(
        waivers("filter: dtype=f16\n    expect: fail"),
        Claims::default(),
        false,
        BEFORE,
    );
    assert_eq!(
        applied(&gate, Verdict::Pass).verdict,
        Verdict::UnexpectedPass
    );
    assert_eq!(
        applied(&gate, Verdict::Unsupported).verdict,
        Verdict::Unsupported
    );
    let crash = applied(&gate, Verdict::Crash(Death::Signal(11)));
    assert!(crash.verdict.is_red());
    assert!(
        crash.notes[0].contains("expects fail, not this"),
        "{:?}",
        crash.notes
    );
}

#[test]
fn an_expired_waiver_is_void_at_night_and_a_remark_by_day() {
    let entry = "filter: dtype=f16\n    expect: fail";
    let day = gate(waivers(entry), Claims::default(), false, AFTER);
    assert_eq!(applied(&day, NUMERIC).verdict, Verdict::ExpectedFail);
    assert!(!day.is_out_of_date());
    assert!(
        day.remarks(true, true)[0]
            .contains("w.yaml:3 expired on 2027-06-30: it is void with --nightly")
    );
    let night = gate(waivers(entry), Claims::default(), true, AFTER);
    let end = applied(&night, NUMERIC);
    assert_eq!(end.verdict, NUMERIC);
    assert!(end.notes[0].contains("expired on 2027-06-30"));
    assert!(night.is_out_of_date());
    let in_time = gate(waivers(entry), Claims::default(), true, BEFORE);
    assert_eq!(applied(&in_time, NUMERIC).verdict, Verdict::ExpectedFail);
    assert!(!in_time.is_out_of_date() && in_time.remarks(true, true).is_empty());
}

#[test]
fn an_entry_without_a_case_is_reported_where_it_could_have_had_one() {
    let other = "filter: dtype=bf16\n    expect: fail";
    let gate_of = |entry: &str| gate(waivers(entry), Claims::default(), false, BEFORE);
    let unmatched = gate_of(other);
    applied(&unmatched, NUMERIC);
    let remarks = unmatched.remarks(true, true);
    assert!(
        remarks[0].contains("matched no case") && remarks[0].contains("dtype=bf16"),
        "{remarks:?}"
    );
    assert!(
        unmatched.remarks(false, true).is_empty(),
        "a part of a suite says nothing"
    );
    let elsewhere = gate_of("filter: dtype=bf16\n    arch: gfx90a\n    expect: fail");
    assert!(
        elsewhere.remarks(true, true).is_empty(),
        "it is for another device"
    );
}

#[test]
fn a_printed_waiver_reads_back_once_it_is_complete() {
    let printed = crate::report::waiver(&samples::journal(), &failed());
    let indented: String = printed.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!("schema: 1\nwaive:\n{indented}");
    let source = Source::new("w.yaml", text.clone());
    let problem = read_waivers(&source)
        .expect_err("it has empty fields")
        .to_string();
    assert!(problem.contains("needs its `reason`"), "{problem}");
    let complete = text
        .replace("expires: \"\"", "expires: 2027-06-30")
        .replace("\"\"", "\"known\"");
    let read = read_waivers(&Source::new("w.yaml", complete)).map_err(|p| p.to_string());
    let gate = Gate::new(
        read.expect("a waiver").waivers,
        Claims::default(),
        true,
        BEFORE,
    );
    gate.see_plugin(&plugin(1));
    let mut end = failed();
    gate.apply(&mut end);
    assert_eq!(
        end.verdict,
        Verdict::ExpectedFail,
        "the same case, engine and verdict"
    );
}

#[rstest]
#[case("filter: dtpye=f16\n    expect: fail", "did you mean 'dtype'?")]
#[case("filter: dtype=f16\n    expect: fial", "did you mean `fail`?")]
#[case(
    "filter: dtype=f16\n    expect: fail(numerc)",
    "did you mean `numeric`?"
)]
#[case("filter: dtype=f16\n    expct: fail", "did you mean `expect`?")]
#[case("expect: fail", "by `case` or by `filter`")]
#[case("case: pointwise.ad/f16\n    expect: fail", "pointwise.ad")]
#[case(
    "filter: dtype=f16\n    plugin: new\n    expect: fail",
    "no range of versions"
)]
#[case("filter: dtype=f16\n    expect: ' '", "which verdict it expects")]
#[case(
    "finding: inspect/export/sdt\n    expect: finding",
    "did you mean `inspect/export/std`?"
)]
#[case("finding: nothing\n    expect: finding", "dnn-assay inspect --list")]
#[case("finding: inspect/export/std\n    expect: fail", "expects `finding`")]
#[case(
    "finding: inspect/export/std\n    engine: E\n    expect: finding",
    "has no `engine`"
)]
#[case(
    "finding: inspect/export/std\n    filter: op=conv\n    expect: finding",
    "one of the three"
)]
fn mistakes_have_a_line_and_a_caret(#[case] entry: &str, #[case] part: &str) {
    let text = format!("schema: 1\nwaive:\n  - {entry}\n    {KNOWN}");
    let problem = read_waivers(&Source::new("w.yaml", text))
        .expect_err("a mistake")
        .to_string();
    assert!(
        problem.contains(part) && problem.contains("w.yaml:") && problem.contains('^'),
        "{problem}"
    );
}

#[test]
fn a_day_that_is_none_and_a_missing_owner() {
    let with = |known: &str| {
        let text =
            format!("schema: 1\nwaive:\n  - filter: dtype=f16\n    expect: fail\n    {known}");
        read_waivers(&Source::new("w.yaml", text))
            .expect_err("a mistake")
            .to_string()
    };
    assert!(
        with("reason: r\n    owner: o\n    link: l\n    expires: soon\n")
            .contains("`soon` is no day")
    );
    assert!(
        with("reason: r\n    link: l\n    expires: 2027-06-30\n").contains("missing field `owner`")
    );
}
