//! Every case that cannot show a missing last tap has a twin with the fill `edges` that can.

use dnn_assay_graph::Graph;
use dnn_assay_graph::case::Work;
use dnn_assay_reference::decoys::check_with_terms;
use dnn_assay_reference::{Arithmetic, Criterion, Values, evaluate, fill, last_terms};

use super::{Suite, SuiteCase, load, load_source};
use crate::yaml::Source;

/// Work up to which a case is looked at with every change; larger ones every night.
const SMALL: f64 = 2e7;
/// The seed of a run that asks for none.
const SEED: u64 = 1;

/// Whether some output is a sum whose last term is nowhere larger than its bound.
fn is_blind(graph: &Graph, inputs: &Values) -> bool {
    let terms = |uid: i64| last_terms(graph, inputs, uid);
    let sums: Vec<_> = graph
        .outputs()
        .filter_map(|tensor| Some((tensor, terms(tensor.uid)?)))
        .collect();
    if sums.is_empty() {
        return false;
    }
    let evaluation = evaluate(graph, inputs, &Arithmetic::default()).expect("a reference");
    sums.iter().any(|(tensor, terms)| {
        let estimate = &evaluation.tensors[&tensor.uid];
        let report = check_with_terms(tensor, estimate, &Criterion::Bound, Some(terms));
        report.expect("a layout").blind_to_last_tap
    })
}

fn case_is_blind(case: &SuiteCase) -> bool {
    let graph = case.case.graph().expect("a case of a suite has a graph");
    let inputs = fill::generate(&graph, case.case.fill(), SEED).expect("inputs");
    is_blind(&graph, &inputs)
}

/// Blind cases without a twin that sees, and how many blind ones there are.
fn without_twin(suite: &Suite, takes: impl Fn(f64) -> bool) -> (Vec<String>, usize) {
    let (mut lonely, mut blind) = (Vec::new(), 0);
    for case in &suite.cases {
        let is_sum = case.id.starts_with("conv.");
        let graph = case.case.graph().expect("a case of a suite has a graph");
        if !is_sum || !takes(Work::of(&graph).flops) || !case_is_blind(case) {
            continue;
        }
        blind += 1;
        let stem = case.id.rsplit_once('/').map_or("", |(stem, _)| stem);
        let twin = suite.case(&format!("{stem}/edges"));
        if twin.is_none_or(case_is_blind) {
            lonely.push(case.id.clone());
        }
    }
    (lonely, blind)
}

fn check(name: &str, takes: impl Fn(f64) -> bool) -> usize {
    let suite = load(name).expect("an embedded suite");
    let (lonely, blind) = without_twin(&suite, takes);
    assert!(
        lonely.is_empty(),
        "these cases of {name} are blind to the last tap and have no twin with the fill edges that \
         sees it: {lonely:#?}"
    );
    blind
}

#[test]
fn every_blind_case_has_a_twin_that_sees() {
    // The fill `index` is blind: its numbers grow along the sum's axes.
    assert!(check("full", |flops| flops <= SMALL) > 0);
}

#[test]
#[ignore = "minutes: every night"]
fn every_large_blind_case_has_a_twin_that_sees() {
    check("full", |flops| flops > SMALL);
}

#[test]
fn a_blind_case_without_a_twin_is_found() {
    let of = |fills: &str| {
        let text = format!(
            "schema: 1\ngroups:\n  - name: blind\n    ops: [conv.fprop]\n    dtypes: [f32]\n    \
             layouts: [nchw]\n    fills: [{fills}]\n    shapes: [n2-c18-k10-i9x13-f3x3/pad1]\n"
        );
        let suite = load_source(Source::new("my.yaml", text)).expect("a suite");
        without_twin(&suite, |_| true)
    };
    assert_eq!(of("uni"), (Vec::new(), 0));
    assert_eq!(of("index, edges"), (Vec::new(), 1));
    let (lonely, blind) = of("index");
    assert_eq!((lonely.len(), blind), (1, 1));
}
