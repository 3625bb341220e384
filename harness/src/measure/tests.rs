//! What answers mean, on answers computed here.

use super::entry::{Measured, Reply};
use super::probe::{Answer, Outputs, Probe};
use super::*;
use crate::plan::Engine;
use dnn_assay_graph::case::Case;
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::{Arithmetic, Trait, Values, dtype, evaluate, fill};
use rstest::rstest;

fn setting(probe: &Probe) -> (Graph, Values) {
    let case = Case::parse_short(probe.id).expect("a case");
    let graph = case.graph().expect("a graph");
    let mut inputs = fill::generate(&graph, case.fill(), 1).expect("inputs");
    (probe.inputs)(&graph, &mut inputs);
    for tensor in graph.inputs() {
        for value in &inputs[&tensor.uid] {
            let held = dtype::round(tensor.data_type, *value);
            assert_eq!(
                held, *value,
                "{}: {} holds every value",
                probe.id, tensor.name
            );
        }
    }
    (graph, inputs)
}

fn read(probe: &Probe, compute: &dyn Fn(&Graph, &Values) -> Outputs) -> Fact {
    let (graph, inputs) = setting(probe);
    let outputs = compute(&graph, &inputs);
    (probe.read)(&Answer {
        graph: &graph,
        inputs: &inputs,
        outputs: &outputs,
        again: &outputs,
    })
}

/// As exact as can be: the reference, rounded.
fn right(graph: &Graph, inputs: &Values) -> Outputs {
    let evaluation = evaluate(graph, inputs, &Arithmetic::default()).expect("a reference");
    let rounded = |tensor: &Tensor| {
        let values = evaluation.tensors[&tensor.uid].value.iter();
        let rounded = values.map(|&y| dtype::round(tensor.data_type, y));
        (tensor.uid, rounded.collect())
    };
    graph.outputs().map(rounded).collect()
}

#[test]
fn a_right_engine_has_no_trait_but_rn() {
    let replies = PROBES
        .iter()
        .map(|probe| (*probe, Reply::Says(read(probe, &right))))
        .collect::<Vec<_>>();
    for (probe, reply) in &replies {
        let Reply::Says(fact) = reply else { continue };
        assert!(
            fact.which.is_none() && !fact.against_rn,
            "{}: {}",
            probe.id,
            fact.text
        );
    }
    let measured = Measured {
        engine: Engine {
            id: 1,
            name: Some("E".to_owned()),
        },
        replies,
    };
    let found: Vec<_> = measured.entries().into_iter().map(|e| e.which).collect();
    assert_eq!(found, [Trait::Rn; 3]);
}

/// A 1 × 1 convolution of one pixel by its own loop: `keep` rounds the sum after every term.
fn loops(keep: fn(f64) -> f64, read: fn(f64) -> f64) -> impl Fn(&Graph, &Values) -> Outputs {
    move |graph, inputs| {
        let (x, w) = (&inputs[&1], &inputs[&2]);
        let output = graph.outputs().next().expect("an output");
        let filters = w.chunks(x.len());
        let sum = |w: &[f64]| {
            let products = x.iter().zip(w).map(|(x, w)| read(*x) * read(*w));
            let sum = products.fold(0.0, |sum, product| keep(sum + product));
            dtype::round(output.data_type, sum)
        };
        [(output.uid, filters.map(sum).collect())].into()
    }
}

fn in_type(data_type: dnn_assay_graph::DataType) -> fn(f64) -> f64 {
    use dnn_assay_graph::DataType::{Bfloat16, Half};
    match data_type {
        Half => |x| dtype::round(Half, x),
        Bfloat16 => |x| dtype::round(Bfloat16, x),
        _ => |x| f64::from(x as f32),
    }
}

fn towards_zero(x: f64) -> f64 {
    let nearest = x as f32;
    if f64::from(nearest).abs() > x.abs() {
        f64::from(f32::from_bits(nearest.to_bits() - 1))
    } else {
        f64::from(nearest)
    }
}

fn eleven_bits(x: f64) -> f64 {
    f64::from(f32::from_bits((x as f32).to_bits() & !0x1fff))
}

fn all(x: f64) -> f64 {
    x
}

#[rstest]
#[case(0, in_type(dnn_assay_graph::DataType::Float), all, None)]
#[case(1, in_type(dnn_assay_graph::DataType::Float), all, None)]
#[case(0, in_type(dnn_assay_graph::DataType::Half), all, Some(Trait::F16))]
#[case(1, in_type(dnn_assay_graph::DataType::Half), all, Some(Trait::F16))]
#[case(
    2,
    in_type(dnn_assay_graph::DataType::Bfloat16),
    all,
    Some(Trait::Bf16Partials)
)]
#[case(3, in_type(dnn_assay_graph::DataType::Float), all, None)]
#[case(3, towards_zero, all, Some(Trait::Rz))]
#[case(4, towards_zero, all, Some(Trait::Rz))]
#[case(5, in_type(dnn_assay_graph::DataType::Float), all, None)]
#[case(
    5,
    in_type(dnn_assay_graph::DataType::Float),
    eleven_bits,
    Some(Trait::Xf32)
)]
fn sums_are_told_apart(
    #[case] probe: usize,
    #[case] keep: fn(f64) -> f64,
    #[case] reads: fn(f64) -> f64,
    #[case] expected: Option<Trait>,
) {
    let fact = read(&PROBES[probe], &loops(keep, reads));
    assert_eq!(fact.which, expected, "{}", fact.text);
    assert_eq!(fact.against_rn, expected.is_some(), "{}", fact.text);
}

fn probe(about: &str, part: &str) -> &'static Probe {
    let found = PROBES
        .iter()
        .find(|probe| probe.about == about && probe.id.contains(part));
    found.expect("a probe")
}

#[test]
fn cut_off_outputs_are_odd_and_no_trait() {
    let cut = |graph: &Graph, inputs: &Values| {
        let mut outputs = right(graph, inputs);
        outputs.values_mut().flatten().for_each(|y| *y = 1.0);
        outputs
    };
    let fact = read(probe("rounding of outputs", "f16"), &cut);
    assert!(fact.which.is_none() && fact.against_rn && fact.text.contains("cut off"));
}

#[test]
fn denormals_that_are_zero_are_flushed() {
    for part in [
        "pointwise.mul/f32",
        "pointwise.mul/f16",
        "conv.fprop/f32",
        "conv.fprop/f16",
    ] {
        let flushed = |graph: &Graph, inputs: &Values| {
            let mut outputs = right(graph, inputs);
            for tensor in graph.outputs() {
                let least = dtype::smallest_normal(tensor.data_type);
                for y in outputs.get_mut(&tensor.uid).expect("an output") {
                    *y = if y.abs() < least { 0.0 } else { *y };
                }
            }
            outputs
        };
        let fact = read(probe("denormals", part), &flushed);
        assert_eq!(
            fact.which,
            Some(Trait::FlushDenormals),
            "{part}: {}",
            fact.text
        );
    }
}

/// Quotients and square roots in f32 by way of a reciprocal that is `off` by so many units in its last
/// place, as fast instructions give it.
fn by_reciprocals(off: u32) -> impl Fn(&Graph, &Values) -> Outputs {
    move |graph, inputs| {
        let operands: Vec<&[f64]> = graph.inputs().map(|t| &inputs[&t.uid][..]).collect();
        let beside = |value: f32| f32::from_bits(value.to_bits() + off);
        let one = |i: usize| match operands[..] {
            [x] => x[i] as f32 * beside(1.0 / (x[i] as f32).sqrt()),
            [x, y] => x[i] as f32 * beside(1.0 / y[i] as f32),
            _ => panic!("a quotient has two operands, and a root one"),
        };
        let all = (0..operands[0].len()).map(|i| f64::from(one(i)));
        let output = graph.outputs().next().expect("an output");
        [(output.uid, all.collect())].into()
    }
}

#[rstest]
#[case("pointwise.div", 1, Some(Trait::ApproxDivSqrt))]
#[case("pointwise.sqrt", 1, Some(Trait::ApproxDivSqrt))]
#[case("pointwise.div", 9, None)]
#[case("pointwise.sqrt", 9, None)]
fn approximate_quotients_and_roots_are_measured(
    #[case] part: &str,
    #[case] off: u32,
    #[case] expected: Option<Trait>,
) {
    let probe = probe("division and square root", part);
    let fact = read(probe, &by_reciprocals(off));
    // Beyond 3 ulp it is no trait, and no engine of correct rounding either.
    assert_eq!(fact.which, expected, "{}", fact.text);
    let far = fact.text.contains("off by more than 3 ulp");
    assert_eq!(far, expected.is_none(), "{}", fact.text);
    let fact = read(probe, &right);
    assert_eq!((fact.which, fact.against_rn), (None, false));
    assert!(fact.text.contains("correctly rounded"), "{}", fact.text);
}

/// Outputs disturbed near the large pixel, or everywhere.
#[rstest]
#[case(4, Some(Trait::Winograd))]
#[case(15, Some(Trait::Fft))]
#[case(1, None)]
fn transforms_disturb_their_surroundings(#[case] reach: usize, #[case] expected: Option<Trait>) {
    let disturbed = |graph: &Graph, inputs: &Values| {
        let mut outputs = right(graph, inputs);
        for values in outputs.values_mut() {
            for (i, y) in values.iter_mut().enumerate() {
                let (row, column) = (i / 32 % 32, i % 32);
                if row.abs_diff(16).max(column.abs_diff(16)) <= reach {
                    *y += 8.0;
                }
            }
        }
        outputs
    };
    let fact = read(probe("algorithm", "f32"), &disturbed);
    assert_eq!(fact.which, expected, "{}", fact.text);
}

#[test]
fn a_variance_from_squares_in_f32_is_one_pass() {
    let one_pass = |graph: &Graph, inputs: &Values| {
        let mut outputs = right(graph, inputs);
        let (x, scale, bias) = (&inputs[&1], &inputs[&8], &inputs[&4]);
        let plane = 16 * 16;
        for c in 0..8 {
            let of_channel = (0..4).flat_map(|n| {
                let start = (n * 8 + c) * plane;
                start..start + plane
            });
            let (mut sum, mut squares) = (0.0f32, 0.0f32);
            for i in of_channel.clone() {
                let x = x[i] as f32;
                sum += x;
                squares += x * x;
            }
            let count = (4 * plane) as f32;
            let mean = sum / count;
            let inverse = 1.0 / (squares / count - mean * mean + 1e-5f32).sqrt();
            for i in of_channel {
                let y = (x[i] as f32 - mean) * inverse * scale[c] as f32 + bias[c] as f32;
                outputs.get_mut(&3).expect("y")[i] = f64::from(y);
            }
            outputs.get_mut(&10).expect("the inverse")[c] = f64::from(inverse);
        }
        outputs
    };
    let fact = read(probe("variance", "means"), &one_pass);
    assert_eq!(fact.which, Some(Trait::OnePassVariance), "{}", fact.text);
}

#[test]
fn other_bits_the_second_time_are_odd() {
    let probe = probe("determinism", "fprop");
    let (graph, inputs) = setting(probe);
    let outputs = right(&graph, &inputs);
    let mut again = outputs.clone();
    again.values_mut().next().expect("an output")[3] += 1e-6;
    let fact = (probe.read)(&Answer {
        graph: &graph,
        inputs: &inputs,
        outputs: &outputs,
        again: &again,
    });
    assert!(fact.against_rn && fact.which.is_none());
}
