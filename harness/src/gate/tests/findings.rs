//! Findings of rules, and waivers for them.

use rstest::rstest;

use super::*;
use crate::journal::InfraKind;

const RULE: &str = "inspect/export/std";
const HOLDS: &str = "finding: inspect/export/std\n    expect: finding";

fn observed(rule: &str, broken: &[&str]) -> Observed {
    Observed {
        rule: rule.to_owned(),
        plugins: vec![0],
        broken: broken.iter().map(|text| (*text).to_owned()).collect(),
    }
}

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
    let held = super::gate(
        read.expect("a waiver").waivers,
        Claims::default(),
        true,
        BEFORE,
    );
    let seen = kinds(&held, &[observed(RULE, &["it exports std::x"])]);
    assert_eq!(seen[0].0, InfraKind::WaivedFinding);
}
