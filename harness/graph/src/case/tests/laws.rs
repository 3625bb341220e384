//! Laws that hold for every case and every text.

use super::*;
use crate::enums::DataType;
use crate::semantics::{Parameter, pointwise};
use proptest::prelude::*;

fn dims(values: std::ops::Range<i64>, axes: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(values, axes).prop_map(|dims| {
        let texts: Vec<String> = dims.iter().map(ToString::to_string).collect();
        texts.join("x")
    })
}

fn any_op() -> impl Strategy<Value = Op> {
    prop::sample::select(Op::all().collect::<Vec<_>>())
}

fn shape(op: Op, axes: usize) -> impl Strategy<Value = String> {
    let filter = dims(1..4, axes);
    (1..3i64, 1..4i64, 1..4i64, 1..3i64, dims(3..8, axes), filter).prop_map(
        move |(n, c, k, g, i, f)| match op.is_conv() {
            true => format!("n{n}-c{}-k{}-i{i}-f{f}/g{g}", c * g, k * g),
            false => format!("n{n}-c{c}-i{i}/none"),
        },
    )
}

fn dtypes(op: Op) -> BoxedStrategy<String> {
    let floats = ["f32", "f16", "bf16", "f64"].map(str::to_owned).to_vec();
    let float = prop::sample::select(floats);
    match op {
        Op::Pointwise(_) => float.boxed(),
        _ => prop::collection::vec(float, 1..3)
            .prop_map(|names| names.join("+"))
            .boxed(),
    }
}

/// Attributes that suit the operation, each present or not.
fn attributes(op: Op, axes: usize) -> BoxedStrategy<Vec<String>> {
    let maybe = |strategy: BoxedStrategy<String>| {
        prop::option::of(strategy)
            .prop_map(Option::unwrap_or_default)
            .boxed()
    };
    let text = |prefix: &'static str, strategy: BoxedStrategy<String>| {
        maybe(
            strategy
                .prop_map(move |value| format!("{prefix}{value}"))
                .boxed(),
        )
    };
    // Padding of at least the largest reach, (3 - 1)·2, so that the filter always fits.
    let mut parts: Vec<BoxedStrategy<String>> = Vec::new();
    if op.is_conv() {
        parts.push(dims(4..6, axes).prop_map(|pre| format!("pre{pre}")).boxed());
        parts.push(text("post", dims(0..6, axes).boxed()));
        parts.push(text("str", dims(1..4, axes).boxed()));
        parts.push(text("dil", dims(1..3, axes).boxed()));
        parts.push(maybe(Just("mode-conv".to_owned()).boxed()));
    }
    for parameter in op.mode().map_or(&[][..], |mode| pointwise(mode).parameters) {
        let number = |low: f32, high: f32| (low..high).prop_map(|v| format!("{v:?}")).boxed();
        parts.push(match parameter {
            Parameter::ReluLower => text("lo", number(-2.0, 0.5)),
            Parameter::ReluUpper => text("up", number(0.5, 1e20)),
            Parameter::ReluSlope => text("slope", number(-1.0, 1.0)),
            Parameter::SwishBeta | Parameter::SoftplusBeta => text("beta", number(1e-9, 3.0)),
            Parameter::EluAlpha => text("alpha", number(-3.0, 3.0)),
            Parameter::Axis => text("axis", (0..axes + 2).prop_map(|a| a.to_string()).boxed()),
        });
    }
    match op {
        Op::Batchnorm(BatchnormPhase::Training)
        | Op::BatchnormActivation(BatchnormPhase::Training, _) => {
            parts.push(text("eps", Just("0.001".to_owned()).boxed()));
            parts.push(maybe(Just("run".to_owned()).boxed()));
            parts.push(maybe(Just("stats".to_owned()).boxed()));
        }
        Op::Batchnorm(BatchnormPhase::Backward) => {
            parts.push(maybe(Just("stats".to_owned()).boxed()));
        }
        Op::Pointwise(mode) => {
            for operand in 0..pointwise(mode).arity() {
                parts.push(maybe(Just(format!("in{operand}.1x1")).boxed()));
            }
        }
        _ => {}
    }
    parts.boxed()
}

fn any_short_text() -> impl Strategy<Value = String> {
    (any_op(), 1..4usize, any::<bool>(), any::<bool>()).prop_flat_map(
        |(op, axes, last, integer)| {
            let fill = if integer { "int" } else { "uni" };
            let layout = Layout::for_spatial(axes, last).unwrap().name();
            (shape(op, axes), dtypes(op), attributes(op, axes)).prop_map(
                move |(shape, dtypes, attributes)| {
                    let (shape, first) = shape.split_once('/').unwrap();
                    let mut attributes: Vec<&str> = attributes
                        .iter()
                        .map(String::as_str)
                        .chain([first])
                        .filter(|text| !text.is_empty() && *text != "none")
                        .collect();
                    attributes.reverse();
                    let attributes = attributes.join("-");
                    let separator = if attributes.is_empty() { "" } else { "/" };
                    format!("{op}/{fill}/{shape}/{dtypes}/{layout}{separator}{attributes}")
                },
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_case_round_trips_and_its_graph_is_valid(text in any_short_text()) {
        let case = Case::parse_short(&text);
        prop_assert!(case.is_ok(), "{text}: {case:?}");
        let case = case.unwrap();
        let id = case.to_string();
        prop_assert_eq!(Case::parse(&id), Ok(case.clone()), "{}", id);
        prop_assert_eq!(Case::parse_short(&id), Ok(case.clone()), "{}", id);
        let graph = case.graph();
        prop_assert!(graph.is_ok(), "{id}: {graph:?}");
        let graph = graph.unwrap();
        prop_assert_eq!(validate(&graph), Ok(()), "{}", id);
        prop_assert_eq!(&graph.name, &id);
        prop_assert!(case.work().flops > 0.0 && case.work().bytes > 0.0);
        let doubles = case.dtypes().contains(&DataType::Double);
        prop_assert_eq!(graph.compute_type == DataType::Double, doubles);
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,60}") {
        check_error(&text);
    }

    #[test]
    fn text_of_the_alphabet_never_panics(text in "[a-z0-9.+~_/x-]{0,80}") {
        check_error(&text);
    }

    #[test]
    fn a_changed_id_is_refused_in_place_or_read_as_another(
        which in 0..CANONICAL.len(), at in any::<prop::sample::Index>(), to in "[a-z0-9.+~_/-]{0,2}",
    ) {
        let id = CANONICAL[which];
        let at = at.index(id.len());
        check_error(&format!("{}{to}{}", &id[..at], &id[at + 1..]));
    }

    #[test]
    fn extents_of_any_size_give_a_graph_or_an_error(
        n in 1i64.., c in 1i64.., h in 1i64.., pad in 0i64.., f in 1i64..,
    ) {
        check_error(&format!("pointwise.add/n{n}-c{c}-i{h}x{h}"));
        check_error(&format!("conv.fprop/n{n}-c{c}-k{c}-i{h}-f{f}/pad{pad}-dil{f}"));
        check_error(&format!("conv.fprop/nhwc~s{n}x{c}x{h}x{f}/n2-c2-k1-i{f}x{f}-f1x1"));
    }
}

/// Reads a text both ways: a case reads back, an error lies on character borders.
fn check_error(text: &str) {
    for read in [Case::parse(text), Case::parse_short(text)] {
        match read {
            Ok(case) => {
                assert_eq!(Case::parse(&case.to_string()).as_ref(), Ok(&case), "{text}");
                let graph = case.graph().expect("a parsed case has a graph");
                assert_eq!(validate(&graph), Ok(()), "{text}");
            }
            Err(error) => {
                assert!(text.get(error.at.clone()).is_some(), "{text}: {error:?}");
                assert!(!error.message.is_empty());
            }
        }
    }
    if let Ok(case) = Case::parse(text) {
        assert_eq!(case.to_string(), text);
    }
}
