//! Tolerance tables and allowances: what the embedded ones say, and what is wrong with bad ones.

use dnn_assay_graph::DataType;
use dnn_assay_graph::case::Case;
use dnn_assay_reference::Arithmetic;
use jiff::civil::date;
use rstest::rstest;

use super::{Allowances, BoundConstants, Table, Tolerances, load};
use crate::yaml::Source;

fn graph(id: &str) -> dnn_assay_graph::Graph {
    let case = Case::parse_short(id).expect("a case");
    case.graph().expect("a parsed case has a graph")
}

#[test]
fn the_embedded_constants_are_the_reference_defaults() {
    let tolerances = Tolerances::embedded().unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!(tolerances.bound.arithmetic(), Arithmetic::default());
    for (name, quoted) in tolerances.bound.functions.all() {
        assert!(quoted.why.len() > 10, "{name} has no reason");
        assert!(quoted.source.is_some(), "{name} has no source");
    }
}

#[rstest]
#[case(
    "conv.fprop/f16/n1-c1-k1-i1x1-f1x1",
    DataType::Half,
    Some(0.1),
    Some(8.2e-3)
)]
#[case(
    "conv.wgrad/f32/n1-c1-k1-i1x1-f1x1",
    DataType::Float,
    Some(2e-4),
    Some(3e-6)
)]
#[case(
    "conv.fprop+relu_fwd/f32/n1-c1-k1-i1x1-f1x1",
    DataType::Float,
    Some(1e-5),
    None
)]
#[case(
    "batchnorm.training+relu_fwd/f16/n2-c1-i1x1",
    DataType::Half,
    Some(4e-3),
    None
)]
#[case("pointwise.add/f64/n2-c1-i1x1", DataType::Double, Some(1e-7), None)]
#[case(
    "pointwise.add/f32+f32+i32/n2-c1-i1x1",
    DataType::Int32,
    Some(1e-3),
    None
)]
fn the_loosest_node_gives_the_number(
    #[case] id: &str,
    #[case] output: DataType,
    #[case] table: Option<f64>,
    #[case] rms: Option<f64>,
) {
    let tolerances = Tolerances::embedded().unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!(tolerances.table.value(&graph(id), output), table);
    assert_eq!(tolerances.rms.value(&graph(id), output), rms);
}

#[test]
fn entries_that_match_nothing_are_named() {
    let tolerances = Tolerances::embedded().unwrap_or_else(|problem| panic!("{problem}"));
    let only = graph("conv.fprop/f16/n1-c1-k1-i1x1-f1x1");
    let titles: Vec<String> = tolerances
        .rms
        .unmatched([&only])
        .into_iter()
        .map(|problem| problem.title)
        .collect();
    assert!(titles.contains(&"the entry for `conv.dgrad` matched nothing".to_owned()));
    assert!(
        !titles.iter().any(|title| title.contains("conv.fprop")),
        "{titles:?}"
    );
}

const TABLE: &str = "schema: 1\nabout: x\nsource: y\nentries:\n  - op: conv.fprop\n    why: z\n    values: {f32: 1.0e-5}\n";

#[rstest]
#[case("op: conv.fprop", "op: conv.fpop", "did you mean `conv.fprop`?")]
#[case("f32: 1.0e-5", "f23: 1.0e-5", "there is no data type `f23`")]
#[case("1.0e-5", "-1.0", "no tolerance")]
#[case("1.0e-5", ".inf", "no tolerance")]
#[case("why:", "wyh:", "did you mean `why`?")]
#[case("schema: 1", "schema: 7", "schema 7 is not known")]
fn bad_tables_are_refused(#[case] good: &str, #[case] bad: &str, #[case] part: &str) {
    assert!(Table::read(Source::new("t.yaml", TABLE)).is_ok());
    let error = Table::read(Source::new("t.yaml", TABLE.replace(good, bad))).expect_err("bad");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn a_factor_must_be_positive() {
    let bound = Source::new(
        "bound.yaml",
        "schema: 1\nabout: x\nsum_factor:\n  value: 0\n  why: none\n",
    );
    let pointwise = dnn_assay_suites::file("tolerances/pointwise.yaml").unwrap_or_default();
    let error = BoundConstants::read(&bound, &Source::new("pointwise.yaml", pointwise));
    let message = error.expect_err("a factor of nothing").to_string();
    assert!(
        message.contains("must be positive") && message.contains("bound.yaml:4:"),
        "{message}"
    );
}

const WEAK: &str = "schema: 1\nabout: x\nallowances:\n  - cases: pointwise.gen_index/*\n    reason: one row\n    owner: judge\n    link: issue 2\n    expires: 2027-01-31\n";

#[test]
fn an_allowance_holds_until_its_day() {
    let weak = Allowances::read(Source::new("weak.yaml", WEAK)).expect("allowances");
    let case = "pointwise.gen_index/f32/nchw/n1-c1-i1x1/axis1/uni";
    assert!(
        weak.find(case, date(2027, 1, 31))
            .is_some_and(|allowance| allowance.owner == "judge")
    );
    assert!(weak.find(case, date(2027, 2, 1)).is_none());
    assert!(
        weak.find("pointwise.add/f32/nchw/x", date(2026, 1, 1))
            .is_none()
    );

    assert!(weak.problems([case], date(2027, 1, 1)).is_empty());
    let unused = weak.problems(["pointwise.add/f32/nchw/x"], date(2027, 1, 1));
    assert!(unused[0].title.contains("matched nothing") && unused[0].at.line() == 4);
    let expired = weak.problems([case], date(2027, 3, 1));
    assert!(expired[0].title.contains("expired on 2027-01-31") && expired[0].at.line() == 8);
}

#[rstest]
#[case("2027-01-31", "soon", "`soon` is no date")]
#[case("pointwise.gen_index/*", "'[z-a]'", "'[z-a]' is no glob")]
#[case("owner: judge", "owner: ''", "`owner` is empty")]
fn bad_allowances_are_refused(#[case] good: &str, #[case] bad: &str, #[case] part: &str) {
    let error =
        Allowances::read(Source::new("weak.yaml", WEAK.replace(good, bad))).expect_err("bad");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn every_embedded_allowance_matches_a_case() {
    let allowances = Allowances::embedded().unwrap_or_else(|problem| panic!("{problem}"));
    let full = load("full").unwrap_or_else(|problem| panic!("{problem}"));
    let ids = full.cases.iter().map(|case| case.id.as_str());
    let problems = allowances.problems(ids, date(2026, 1, 1));
    assert!(problems.is_empty(), "{}", problems[0]);
}
