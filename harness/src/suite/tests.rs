//! Loading, expansion and its errors; and what the embedded suites must hold.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rstest::rstest;

use super::{Suite, Tier, load, load_all, load_source};
use crate::yaml::{Problem, Source};

fn text(groups: &str) -> String {
    format!("schema: 1\ngroups:\n{groups}")
}

fn load_text(text: &str) -> Result<Suite, Box<Problem>> {
    load_source(Source::new("my.yaml", text))
}

fn complaint(text: &str) -> String {
    load_text(text).expect_err("the file is wrong").to_string()
}

const GROUP: &str = "  - name: small
    ops: [conv.fprop, conv.wgrad]
    dtypes: [f32, f16]
    layouts: [nchw, nhwc]
    fills: [uni, int]
    tags: [mine]
    shapes:
      - n1-c4-k2-i5x6-f3x3/pad1
      - n2-c3-k4-i7x7-f1x1
";

#[test]
fn groups_expand_to_the_product() {
    let suite = load_text(&text(GROUP)).expect("a suite");
    assert_eq!(suite.cases.len(), 2 * 2 * 2 * 2 * 2);
    let first = &suite.cases[0];
    assert_eq!(
        first.id,
        "conv.fprop/f32/nchw/n1-c4-k2-i5x6-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1/uni"
    );
    assert_eq!(first.tier, Tier::Smoke);
    assert_eq!(*first.tags, ["mine".to_owned(), "small".to_owned()]);
    assert_eq!(
        (first.origin.file(), first.origin.line()),
        ("my.yaml", Some(10))
    );
    assert_eq!(
        suite.cases.last().and_then(|case| case.origin.line()),
        Some(11)
    );
}

#[rstest]
#[case("  - nmae: x\n", 3, "did you mean `name`?")]
#[case(
    "  - name: x\n    tier: smok\n    ids: []\n",
    4,
    "did you mean `smoke`?"
)]
#[case(
    "  - name: x\n    fills: [uniform]\n",
    4,
    "known here: uni, int, special, means, spreads, edges, index, probe, aimed"
)]
#[case(
    "  - name: x\n    ops: [conv.fprop]\n",
    3,
    "it lacks dtypes, layouts, shapes"
)]
#[case(
    "  - name: x\n    ids: [conv.fprop/f23/nchw/n1-c1-k1-i1x1-f1x1]\n",
    4,
    "f32"
)]
fn mistakes_are_shown_with_their_line(#[case] groups: &str, #[case] line: u32, #[case] part: &str) {
    let message = complaint(&text(groups));
    assert!(message.contains(part), "{message}");
    assert!(message.contains(&format!("my.yaml:{line}:")), "{message}");
}

#[rstest]
#[case("n1-c4-k2-i5x6-f3x3/pda1", "pda1")]
#[case("n1-c4-k2-i5q6-f3x3", "5q6")]
#[case(
    "n9223372036854775807-c4-k2-i5x6-f3x3",
    "n9223372036854775807-c4-k2-i5x6-f3x3"
)]
#[case("n1-c99999999999999999999-k2-i5x6-f3x3", "99999999999999999999")]
fn a_caret_points_into_the_shape(#[case] shape: &str, #[case] at_fault: &str) {
    let source = text(&GROUP.replace("n2-c3-k4-i7x7-f1x1", shape));
    let problem = load_text(&source).expect_err("the shape is wrong");
    let marked = &source[problem.at.span.clone()];
    assert!(
        at_fault.contains(marked) && !marked.is_empty(),
        "{marked} in\n{problem}"
    );
    assert_eq!(problem.at.line(), 11);
}

#[test]
fn a_type_that_does_not_exist() {
    insta::assert_snapshot!(complaint(&text(&GROUP.replace("[f32, f16]", "[f32, b16]"))));
}

#[test]
fn an_unknown_key() {
    insta::assert_snapshot!(complaint(&text(
        &GROUP.replace("    shapes:", "    shpaes:")
    )));
}

#[test]
fn a_bad_shape() {
    insta::assert_snapshot!(complaint(&text(&GROUP.replace("/pad1", "/pad1-srt2"))));
}

#[test]
fn a_case_that_is_there_twice() {
    let again = "  - name: again\n    ids:\n      - conv.wgrad/f16/nhwc/n2-c3-k4-i7x7-f1x1/int\n";
    insta::assert_snapshot!(complaint(&text(&format!("{GROUP}{again}"))));
}

#[test]
fn includes_are_followed_once_and_cycles_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    let load = |name: &str| load(&folder.path().join(name).to_string_lossy());
    let leaf = text("  - name: x\n    ids: [pointwise.add/f32/nchw/n1-c2-i3x4]\n");
    write("leaf.yaml", &leaf);
    write("mid.yaml", "schema: 1\ninclude: [leaf.yaml]\n");
    write("top.yaml", "schema: 1\ninclude: [./mid.yaml, leaf.yaml]\n");
    assert_eq!(load("top.yaml").expect("a suite").cases.len(), 1);

    write("a.yaml", "schema: 1\ninclude: [b.yaml]\n");
    write("b.yaml", "schema: 1\ninclude:\n  - leaf.yaml\n  - a.yaml\n");
    let message = load("a.yaml").expect_err("a cycle").to_string();
    assert!(message.contains("includes form a cycle"), "{message}");
    assert!(message.contains("b.yaml:4:"), "{message}");

    write("lost.yaml", "schema: 1\ninclude: [nowhere.yaml]\n");
    let message = load("lost.yaml").expect_err("no such file").to_string();
    assert!(
        message.contains("cannot read") && message.contains("lost.yaml:2:"),
        "{message}"
    );
}

#[test]
fn unknown_suites_and_files() {
    let message = load("smoek").expect_err("no such suite").to_string();
    assert!(message.contains("did you mean `smoke`?"), "{message}");
    let message = load("./none.yaml").expect_err("no such file").to_string();
    assert!(message.contains("cannot read ./none.yaml"), "{message}");
}

#[test]
fn several_suites_hold_each_case_once() {
    let smoke = load("smoke").expect("a suite");
    let both = load_all(&["smoke", "full"]).expect("suites");
    let full = load("full").expect("a suite");
    assert_eq!(both.cases.len(), full.cases.len());
    assert_eq!(both.cases[..smoke.cases.len()].len(), smoke.cases.len());
}

#[test]
fn the_core_touches_every_operation_type_and_layout() {
    let suite = load("smoke").unwrap_or_else(|problem| panic!("{problem}"));
    let core: Vec<_> = suite.up_to(Tier::Core).collect();
    assert!(core.len() <= 300, "{} cases", core.len());
    assert!(suite.cases.iter().position(|case| case.tier > Tier::Core) == Some(core.len()));
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut layouts: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for case in &core {
        let op = case.case.op().to_string();
        let dtype = case.case.io_type().short_name().to_owned();
        types.entry(op).or_default().insert(dtype);
        let layout = case.case.layout().to_string();
        layouts
            .entry(case.case.family())
            .or_default()
            .insert(layout);
    }
    let modes = types
        .keys()
        .filter(|op| op.starts_with("pointwise."))
        .count();
    assert_eq!(modes, 47);
    for (op, types) in &types {
        assert_eq!(types.len(), 3, "{op}: {types:?}");
    }
    assert_eq!(layouts["conv"].len(), 6, "{layouts:?}");
    assert_eq!(layouts["batchnorm"].len(), 6, "{layouts:?}");
}

#[test]
fn the_smoke_suite_is_large_in_number_and_small_in_work() {
    let suite = load("smoke").unwrap_or_else(|problem| panic!("{problem}"));
    assert!(suite.cases.len() >= 1900, "{} cases", suite.cases.len());
    assert!(suite.cases.iter().all(|case| case.tier <= Tier::Smoke));
    let work: Vec<_> = suite
        .cases
        .iter()
        .map(|case| (case.case.work(), &case.id))
        .collect();
    for (work, id) in &work {
        assert!(work.flops <= 20e6, "{id}: {work:?}");
    }
    let total: f64 = work.iter().map(|(work, _)| work.flops).sum();
    assert!(total <= 3e9, "{total} flop");
}

#[test]
fn embedded_ids_are_canonical_and_in_a_suite() {
    for name in dnn_assay_suites::suites() {
        let suite = load(name).unwrap_or_else(|problem| panic!("{problem}"));
        for case in &suite.cases {
            let again = dnn_assay_graph::case::Case::parse(&case.id).expect("a canonical id");
            assert_eq!(again, case.case);
        }
    }
    let names = dnn_assay_suites::files();
    for name in &names {
        let root = format!("{}/suite.yaml", name.split('/').next().unwrap_or_default());
        // Tolerances, claims and schemas are no suites.
        let Some(text) = dnn_assay_suites::file(&root) else {
            continue;
        };
        let file = name.rsplit('/').next().unwrap_or_default();
        assert!(
            file == "suite.yaml" || text.contains(file),
            "{name} is included nowhere"
        );
    }
}

proptest! {
    #[test]
    fn arbitrary_text_is_an_error_or_a_suite(text in "\\PC{0,200}") {
        let _ = load_text(&text).map_err(|problem| problem.to_string());
    }

    #[test]
    fn arbitrary_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = load_text(&String::from_utf8_lossy(&bytes)).map_err(|problem| problem.to_string());
    }

    #[test]
    fn a_mutated_suite_never_panics(
        at in any::<prop::sample::Index>(),
        length in 0usize..6,
        new in "[-a-z0-9: \\[\\]{}&*!|>'\"%@`#\\n\\t\\u{0}-\\u{20}\\u{80}-\\u{ff}\\u{2028}é漢]{0,6}",
    ) {
        let whole = text(GROUP);
        let start = at.index(whole.len());
        let end = (start + length).min(whole.len());
        let mutated = format!("{}{new}{}", &whole[..start], &whole[end..]);
        let _ = load_text(&mutated).map_err(|problem| (problem.render(true), problem.to_string()));
    }
}
