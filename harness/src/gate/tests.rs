//! Waivers, claims and hipDNN's configuration, against verdicts.

use jiff::civil::date;
use rstest::rstest;

use super::*;
use crate::journal::samples::{self, failed, key, plugin};
use crate::journal::{CaseEnd, InfraKind};
use crate::verdict::{Death, Depth};
use crate::yaml::Source;

const CASE: &str = "pointwise.add/f16/nchw/n1-c2-i3x4/none/uni";
const KNOWN: &str = "reason: r\n    owner: o\n    link: l\n    expires: 2027-06-30\n";

fn waivers(entry: &str) -> Waivers {
    let source = Source::new(
        "w.yaml",
        format!("schema: 1\nwaive:\n  - {entry}\n    {KNOWN}"),
    );
    read_waivers(&source)
        .map_err(|p| p.to_string())
        .expect("waivers")
        .waivers
}

fn gate(waivers: Waivers, claims: Claims, nightly: bool, day: Date) -> Gate {
    let mut gate = Gate::new(waivers, claims, nightly, day);
    gate.on_device(
        Some("gfx942:sramecc+:xnack-".to_owned()),
        Some("7.1.0-38".to_owned()),
    );
    let mut record = plugin(1);
    record.version = Some("1.4.2".to_owned());
    record.memory = Some("hip".to_owned());
    gate.see_plugin(&record);
    gate
}

fn end(verdict: Verdict) -> CaseEnd {
    let mut end = CaseEnd::new(key(CASE), 1, verdict);
    end.engine = Some("MY_ENGINE".to_owned());
    end.tags = vec!["slow".to_owned()];
    end.depth = Depth::Judged;
    end
}

fn applied(gate: &Gate, verdict: Verdict) -> CaseEnd {
    let mut end = end(verdict);
    gate.apply(&mut end);
    end
}

const NUMERIC: Verdict = Verdict::Fail(FailKind::Numeric);
const BEFORE: Date = date(2027, 6, 30);
const AFTER: Date = date(2027, 7, 1);

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

const CLAIMS: &str =
    "schema: 1\nclaims:\n  - engine: MY_ENGINE\n    arch: gfx942\n    filters: [op=pointwise]\n";

fn claims(text: &str) -> Claims {
    Claims::read(&Source::new("c.yaml", text))
        .map_err(|p| p.to_string())
        .expect("claims")
}

#[test]
fn a_claimed_case_that_is_declined_is_a_failure() {
    let gate = gate(Waivers::default(), claims(CLAIMS), false, BEFORE);
    let end = applied(&gate, Verdict::Unsupported);
    assert_eq!(end.verdict, Verdict::Fail(FailKind::OverClaim));
    assert!(
        end.reason
            .unwrap_or_default()
            .contains("claimed at c.yaml:3")
    );
    let elsewhere = CLAIMS.replace("gfx942", "gfx90a");
    let gate = super::tests::gate(Waivers::default(), claims(&elsewhere), false, BEFORE);
    assert_eq!(
        applied(&gate, Verdict::Unsupported).verdict,
        Verdict::Unsupported
    );
}

#[test]
fn a_claim_for_an_engine_that_is_gone() {
    let here = gate(Waivers::default(), claims(CLAIMS), false, BEFORE);
    assert_eq!(here.gone_engine(), None);
    let gone = gate(
        Waivers::default(),
        claims(&CLAIMS.replace("MY_", "OLD_")),
        false,
        BEFORE,
    );
    let text = gone.gone_engine().expect("no such engine").to_string();
    assert!(
        text.contains("OLD_ENGINE") && text.contains("c.yaml:3") && text.contains("MY_ENGINE"),
        "{text}"
    );
}

#[test]
fn what_was_verified_is_recorded_and_holds_afterwards() {
    let journal = samples::journal();
    let text = recorded(&journal);
    let read = claims(&text);
    let gate = Gate::new(Waivers::default(), read, false, BEFORE);
    gate.see_plugin(&journal.plugins[0]);
    let mut passed = CaseEnd::new(
        key("pointwise.add/f32/nchw/n1-c2-i3x4/none/uni"),
        1,
        Verdict::Unsupported,
    );
    passed.engine = Some("MY_ENGINE".to_owned());
    gate.apply(&mut passed);
    assert_eq!(passed.verdict, Verdict::Fail(FailKind::OverClaim), "{text}");
    let mut weak = CaseEnd::new(
        key("pointwise.sub/f32/nchw/n1-c2-i3x4/none/uni"),
        1,
        Verdict::Unsupported,
    );
    weak.engine = Some("MY_ENGINE".to_owned());
    gate.apply(&mut weak);
    assert_eq!(
        weak.verdict,
        Verdict::Unsupported,
        "a weak case was not verified"
    );
}

#[test]
fn the_provider_claims_read_and_mean_what_they_say() {
    let text = dnn_assay_suites::file("claims/miopen-provider.yaml").expect("embedded");
    let gate = gate(Waivers::default(), claims(text), false, BEFORE);
    let is_claimed = |case: &str, tags: &[&str]| {
        let mut end = CaseEnd::new(key(case), 1, Verdict::Unsupported);
        end.engine = Some("MIOPEN_ENGINE".to_owned());
        end.engine_id = dnn_assay_abi::engine_id::engine_id("MIOPEN_ENGINE");
        end.tags = tags.iter().map(|t| (*t).to_owned()).collect();
        gate.apply(&mut end);
        end.verdict.is_red()
    };
    let conv = "n2-c8-k16-i6x10-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1";
    assert!(is_claimed(&format!("conv.fprop/f16/nhwc/{conv}/uni"), &[]));
    assert!(is_claimed(
        &format!("conv.fprop+bias+relu_fwd/f16/nhwc/{conv}/uni"),
        &[]
    ));
    assert!(is_claimed(
        "batchnorm.training/f16+f32/nchw/n4-c8-i5x6/eps1e-5-stats/uni",
        &[]
    ));
    assert!(!is_claimed(&format!("conv.fprop/f64/nhwc/{conv}/uni"), &[]));
    assert!(!is_claimed(
        &format!("conv.fprop/f16/nhwc/{conv}-mode-conv/uni"),
        &[]
    ));
    assert!(!is_claimed(
        &format!("conv.fprop/f16/nhwc/{conv}/uni"),
        &["over-acceptance"]
    ));
    assert!(!is_claimed(
        "batchnorm.training/f16+f32/nchw/n4-c8-i5x6/eps1e-5-mom0.1-stats-run/uni",
        &[]
    ));
    assert!(!is_claimed(
        &format!("conv.fprop+bias+elu_fwd/f16/nhwc/{conv}/uni"),
        &[]
    ));
    assert!(!is_claimed(
        "pointwise.add/f16/nchw/n1-c2-i3x4/none/uni",
        &[]
    ));
}

#[test]
fn accepting_too_much_and_computing_it_wrongly_is_named_so() {
    let gate = Gate::default();
    let mut wrong = end(NUMERIC);
    wrong.tags.push(OVER_ACCEPTANCE.to_owned());
    gate.apply(&mut wrong);
    assert_eq!(wrong.verdict, Verdict::Fail(FailKind::OverClaim));
    let mut declined = end(Verdict::Unsupported);
    declined.tags.push(OVER_ACCEPTANCE.to_owned());
    gate.apply(&mut declined);
    assert_eq!(declined.verdict, Verdict::Unsupported);
    assert_eq!(applied(&gate, NUMERIC).verdict, NUMERIC);
}

fn observed(rule: &str, broken: &[&str]) -> Observed {
    Observed {
        rule: rule.to_owned(),
        plugins: vec![0],
        broken: broken.iter().map(|text| (*text).to_owned()).collect(),
    }
}

const RULE: &str = "inspect/export/std";
const HOLDS: &str = "finding: inspect/export/std\n    expect: finding";

fn kinds(gate: &Gate, seen: &[Observed]) -> Vec<(InfraKind, String)> {
    let records = gate.judge_findings(seen).into_iter();
    records.map(|infra| (infra.kind, infra.message)).collect()
}

#[test]
fn a_finding_is_red_until_a_waiver_holds_and_a_rule_that_holds_against_it_is_red() {
    let broken = [observed(RULE, &["it exports std::x", "it exports std::y"])];
    let bare = gate(Waivers::default(), Claims::default(), false, BEFORE);
    let seen = kinds(&bare, &broken);
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|(kind, _)| *kind == InfraKind::Finding));
    let held = gate(waivers(HOLDS), Claims::default(), false, BEFORE);
    let seen = kinds(&held, &broken);
    assert!(
        seen.iter()
            .all(|(kind, text)| *kind == InfraKind::WaivedFinding
                && text.contains("waived at w.yaml:3: r (o, l, until 2027-06-30)")),
        "{seen:?}"
    );
    assert!(held.remarks(true, true).is_empty());
    let seen = kinds(&held, &[observed(RULE, &[])]);
    assert_eq!(seen[0].0, InfraKind::Finding);
    assert!(seen[0].1.contains("unexpected pass"), "{seen:?}");
    // Of two plugins one breaks the rule: the entry is needed.
    let seen = kinds(&held, &[observed(RULE, &[]), broken[0].clone()]);
    assert!(
        seen.iter()
            .all(|(kind, _)| *kind == InfraKind::WaivedFinding),
        "{seen:?}"
    );
    let other = kinds(&held, &[observed("inspect/load/textrel", &["it has one"])]);
    assert_eq!(other[0].0, InfraKind::Finding);
}

#[rstest]
#[case::its_version("plugin: '>=1.4, <2'", true)]
#[case::another_version("plugin: '>=1.5'", false)]
#[case::its_arch("arch: gfx942", true)]
#[case::another_arch("arch: gfx90a", false)]
#[case::its_rocm("rocm: '7.1'", true)]
#[case::another_rocm("rocm: '6'", false)]
fn a_waiver_of_a_finding_has_the_conditions_of_any_other(#[case] more: &str, #[case] holds: bool) {
    let entry = format!("{HOLDS}\n    {more}");
    let gate = gate(waivers(&entry), Claims::default(), false, BEFORE);
    let seen = kinds(&gate, &[observed(RULE, &["it exports std::x"])]);
    let expected = match holds {
        true => InfraKind::WaivedFinding,
        false => InfraKind::Finding,
    };
    assert_eq!(seen[0].0, expected);
}

#[test]
fn an_expired_waiver_of_a_finding_is_void_at_night_and_one_without_a_finding_is_named() {
    let broken = [observed(RULE, &["it exports std::x"])];
    let night = gate(waivers(HOLDS), Claims::default(), true, AFTER);
    let seen = kinds(&night, &broken);
    assert_eq!(seen[0].0, InfraKind::Finding);
    assert!(
        seen[0]
            .1
            .contains("the waiver at w.yaml:3 expired on 2027-06-30"),
        "{seen:?}"
    );
    let day = gate(waivers(HOLDS), Claims::default(), false, AFTER);
    assert_eq!(kinds(&day, &broken)[0].0, InfraKind::WaivedFinding);
    let idle = gate(waivers(HOLDS), Claims::default(), false, BEFORE);
    assert!(
        idle.remarks(true, true)[0].contains("matched no finding"),
        "{:?}",
        idle.remarks(true, true)
    );
    assert!(
        idle.remarks(true, false).is_empty(),
        "a run looks at no rules"
    );
}

#[test]
fn the_printed_waiver_of_a_finding_reads_back_once_it_is_complete() {
    let gate = gate(Waivers::default(), Claims::default(), false, BEFORE);
    let finding = gate.judge_findings(&[observed(RULE, &["it exports std::x"])]);
    let printed = crate::report::finding_waiver(&finding[0]).expect("it has a rule");
    let indented: String = printed.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!("schema: 1\nwaive:\n{indented}")
        .replace("expires: \"\"", "expires: 2027-06-30")
        .replace("\"\"", "\"known\"");
    let read = read_waivers(&Source::new("w.yaml", text)).map_err(|p| p.to_string());
    let held = super::tests::gate(
        read.expect("a waiver").waivers,
        Claims::default(),
        true,
        BEFORE,
    );
    let seen = kinds(&held, &[observed(RULE, &["it exports std::x"])]);
    assert_eq!(seen[0].0, InfraKind::WaivedFinding);
}

const UPSTREAM: &str = "[meta]\nversion = 1\n\n[[tolerance_overrides]]\nfilters = ['conv.*', 'pointwise.add/*']\natol = 1e-3\n\n[[test_skips]]\nfilters = ['pointwise.*/f16/*']\nreason = 'slow'\narchs = ['gfx942']\n\n[[test_skips]]\nfilters = ['*']\nreason = 'elsewhere'\nplatforms = ['windows']\n";

fn upstream(text: &str) -> Expected {
    let read = read_waivers(&Source::new("engine.toml", text)).map_err(|p| p.to_string());
    read.expect("a configuration")
}

#[test]
fn skips_of_hipdnns_configuration_excuse_failures_and_no_more() {
    let expected = upstream(UPSTREAM);
    assert_eq!(
        expected.waivers.len(),
        1,
        "the other platform's entry is left out"
    );
    let gate = gate(expected.waivers, Claims::default(), true, AFTER);
    let end = applied(&gate, NUMERIC);
    assert_eq!(end.verdict, Verdict::ExpectedFail);
    assert!(end.reason.unwrap_or_default().contains("engine.toml:8"));
    assert_eq!(applied(&gate, Verdict::Pass).verdict, Verdict::Pass);
    // hipDNN takes a part of the name, features and all.
    let part = upstream(&UPSTREAM.replace("gfx942", "sramecc+"));
    let gate = super::tests::gate(part.waivers, Claims::default(), true, AFTER);
    assert_eq!(applied(&gate, NUMERIC).verdict, Verdict::ExpectedFail);
}

const VALIDATORS: &str = "[[validator_overrides]]\nfilters = ['conv.*']\nvalidator = 'rms'\nrms_threshold = 0.01\ntensors = ['dx']\n\n[[validator_overrides]]\nfilters = ['conv.dgrad/*']\nvalidator = 'allclose_matching_infinities'\n";

#[test]
fn overrides_of_hipdnns_configuration_rule_where_they_match() {
    let overrides = upstream(UPSTREAM).overrides;
    assert_eq!(overrides.ruling("pointwise.mul/f32/nchw/x", "out"), None);
    let ruling = overrides.ruling(CASE, "out").expect("an override");
    assert_eq!(ruling.validator, Validator::Allclose);
    assert_eq!(
        (ruling.tolerance.atol, ruling.tolerance.rtol),
        (Some(1e-3), None)
    );
    assert_eq!(ruling.because, "engine.toml:4");
    assert!(overrides.remarks(true)[0].contains("judged nothing"));
    overrides.count(CASE, "out");
    assert!(overrides.remarks(true)[0].contains("engine.toml:4 judged 1 output instead"));
    let later = UPSTREAM.replace(
        "[[test_skips]]\nfilters = ['pointwise",
        "[[tolerance_overrides]]\nfilters = ['pointwise.*']\nrtol = 0.5\n\n[[test_skips]]\nfilters = ['pointwise",
    );
    let ruling = upstream(&later)
        .overrides
        .ruling(CASE, "out")
        .expect("an override");
    assert_eq!(
        ruling.tolerance.rtol,
        Some(0.5),
        "the last that matches wins"
    );
}

#[test]
fn a_validator_is_for_the_tensors_that_it_names_and_what_is_not_honoured_is_said() {
    let expected = upstream(&format!("{UPSTREAM}\n{VALIDATORS}"));
    let dgrad = expected
        .overrides
        .ruling("conv.dgrad/f32/nchw/x", "dx")
        .expect("rms");
    assert_eq!(dgrad.validator, Validator::Rms(Some(0.01)));
    assert_eq!(
        dgrad.tolerance.atol, None,
        "a root mean square has no tolerance"
    );
    let fprop = expected
        .overrides
        .ruling("conv.fprop/f32/nchw/x", "y")
        .expect("the tolerance");
    assert_eq!(fprop.validator, Validator::Allclose);
    assert_eq!(expected.remarks.len(), 1);
    assert!(
        expected.remarks[0].contains("not honoured")
            && expected.remarks[0].contains("engine.toml:"),
        "{:?}",
        expected.remarks
    );
    let unused = upstream(UPSTREAM).overrides;
    assert!(unused.remarks(true)[0].contains("judged nothing"));
    assert!(unused.remarks(false).is_empty());
}

#[rstest]
#[case("[meta]\nversion = 2\n", "version 1 is read")]
#[case(
    "[meta]\nversion = 1\n[[test_skips]]\nfilter = ['*']\nreason = 'x'\n",
    "did you mean `filters`?"
)]
#[case(
    "[meta]\nversion = 1\n[[test_skips]]\nfilters = ['a[']\nreason = 'x'\n",
    "a["
)]
#[case(
    "[meta]\nversion = 1\n[[tolerance_overrides]]\nfilters = ['*']\natol = -1.0\n",
    "-1 is no tolerance"
)]
#[case(
    "[meta]\nversion = 1\n[[validator_overrides]]\nfilters = ['*']\nvalidator = 'allclos'\n",
    "did you mean `allclose`?"
)]
fn mistakes_in_hipdnns_configuration(#[case] text: &str, #[case] part: &str) {
    let problem = read_waivers(&Source::new("engine.toml", text))
        .expect_err("a mistake")
        .to_string();
    assert!(
        problem.contains(part) && problem.contains("engine.toml:"),
        "{problem}"
    );
}

#[test]
fn a_floor_names_its_engine() {
    let mut gate = Gate {
        floors: vec![("MY_ENGINE".to_owned(), 2)],
        ..Gate::default()
    };
    assert_eq!(
        gate.unmet_floor(&samples::journal()),
        None,
        "one passed, one failed: two verified"
    );
    gate.floors = vec![("MY_ENGINE".to_owned(), 3)];
    assert!(
        gate.unmet_floor(&samples::journal())
            .is_some_and(|t| t.contains("asks for 3"))
    );
    let empty = crate::journal::Journal::default();
    assert!(gate.unmet_floor(&empty).is_some());
}
