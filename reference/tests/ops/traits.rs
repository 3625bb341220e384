//! Engines with a trait fit the bound that the trait gives, and not the plain one.

use dnn_assay_graph::case::{Case, Fill};
use dnn_assay_graph::{DataType, Graph};
use dnn_assay_reference::dtype::{encode, round};
use dnn_assay_reference::{
    Arithmetic, Criterion, Trait, Traits, Values, compare, dtype, evaluate, fill,
};
use rstest::rstest;

/// A 1 × 1 convolution of one pixel: 48 sums of `terms` products.
fn sums(data_type: &str, terms: usize, fill: Fill, seed: u64) -> (Graph, Values) {
    let id = format!("conv.fprop/{data_type}/nchw/n1-c{terms}-k48-i1x1-f1x1");
    let graph = Case::parse_short(&id).unwrap().graph().unwrap();
    let inputs = fill::generate(&graph, fill, seed).unwrap();
    (graph, inputs)
}

/// Sums by `step(sum, product, index)`, of operands through `read`.
fn engine(inputs: &Values, read: fn(f64) -> f64, step: fn(&mut Partial, f64, usize)) -> Vec<f64> {
    let (x, w) = (&inputs[&1], &inputs[&2]);
    w.chunks(x.len())
        .map(|w| {
            let mut sum = Partial::default();
            for (at, (x, w)) in x.iter().zip(w).enumerate() {
                step(&mut sum, read(*x) * read(*w), at);
            }
            sum.total + sum.part
        })
        .collect()
}

#[derive(Default)]
struct Partial {
    total: f64,
    part: f64,
}

fn all(x: f64) -> f64 {
    x
}

fn nearest_11(x: f64) -> f64 {
    let unit = (x.abs().log2().floor() - 10.0).exp2();
    if x == 0.0 {
        0.0
    } else {
        (x / unit).round() * unit
    }
}

fn cut_11(x: f64) -> f64 {
    f64::from(f32::from_bits((x as f32).to_bits() & !0x1fff))
}

fn plain(sum: &mut Partial, product: f64, _: usize) {
    sum.part = f64::from((sum.part + product) as f32);
}

fn towards_zero(sum: &mut Partial, product: f64, _: usize) {
    let exact = sum.part + product;
    let near = exact as f32;
    let less = if f64::from(near).abs() > exact.abs() {
        f32::from_bits(near.to_bits() - 1)
    } else {
        near
    };
    sum.part = f64::from(less);
}

fn in_half(sum: &mut Partial, product: f64, _: usize) {
    sum.part = round(DataType::Half, sum.part + product);
}

fn split_in_bf16(sum: &mut Partial, product: f64, at: usize) {
    plain(sum, product, at);
    if at % 32 == 31 {
        let part = round(DataType::Bfloat16, sum.part);
        sum.total = round(DataType::Bfloat16, sum.total + part);
        sum.part = 0.0;
    }
}

/// Whether outputs lie within the bound of an engine with these traits.
fn fits(graph: &Graph, inputs: &Values, got: &[f64], traits: &Traits) -> bool {
    let arithmetic: Arithmetic = traits.arithmetic();
    let evaluation = evaluate(graph, inputs, &arithmetic).unwrap();
    let tensor = graph.outputs().next().unwrap();
    let got: Vec<f64> = got.iter().map(|&y| round(tensor.data_type, y)).collect();
    let mut bytes = vec![0; tensor.byte_size().unwrap()];
    encode(tensor, &got, &mut bytes).unwrap();
    let estimate = &evaluation.tensors[&tensor.uid];
    compare(tensor, estimate, &bytes, &Criterion::Bound)
        .unwrap()
        .passed
}

#[rstest]
#[case::rounded(Trait::Xf32, "f32", nearest_11, plain)]
#[case::cut(Trait::Xf32, "f32", cut_11, plain)]
#[case::rz(Trait::Rz, "f32", all, towards_zero)]
#[case::f16_in_f32(Trait::F16, "f32", all, in_half)]
#[case::f16(Trait::F16, "f16", all, in_half)]
#[case::split(Trait::Bf16Partials, "bf16", all, split_in_bf16)]
fn sums_fit_the_bound_of_their_trait(
    #[case] which: Trait,
    #[case] data_type: &str,
    #[case] read: fn(f64) -> f64,
    #[case] step: fn(&mut Partial, f64, usize),
) {
    let traits = Traits::default().with(which);
    let mut exceeded = 0;
    for terms in [3, 16, 64, 300, 2000] {
        for seed in 0..6 {
            let (graph, inputs) = sums(data_type, terms, Fill::Uniform, seed);
            let got = engine(&inputs, read, step);
            assert!(
                fits(&graph, &inputs, &got, &traits),
                "{which} {terms} {seed}"
            );
            exceeded += usize::from(!fits(&graph, &inputs, &got, &Traits::default()));
            let right = engine(&inputs, all, plain);
            assert!(fits(&graph, &inputs, &right, &Traits::default()));
        }
    }
    // One-sided rounding of signed data stays within the plain bound for the most part.
    let least = if which == Trait::Rz { 0 } else { 10 };
    assert!(
        exceeded >= least,
        "{which} is no wider than nothing: {exceeded}"
    );
}

/// Data of one sign are where rounding towards zero shows.
#[test]
fn one_signed_sums_towards_zero_exceed_the_plain_bound_and_fit_their_own() {
    let (graph, mut inputs) = sums("f32", 2000, Fill::Uniform, 1);
    for values in inputs.values_mut() {
        values.iter_mut().for_each(|x| *x = x.abs());
    }
    let got = engine(&inputs, all, towards_zero);
    assert!(fits(
        &graph,
        &inputs,
        &got,
        &Traits::default().with(Trait::Rz)
    ));
    let right = engine(&inputs, all, plain);
    assert!(fits(&graph, &inputs, &right, &Traits::default()));
    // Ten times the operands of a wrong engine fit neither.
    let wrong: Vec<f64> = got.iter().map(|y| y * 1.001).collect();
    assert!(!fits(
        &graph,
        &inputs,
        &wrong,
        &Traits::default().with(Trait::Rz)
    ));
}

#[test]
fn flushed_denormals_fit_only_where_they_are_declared() {
    let id = "pointwise.mul/f16/nchw/n2-c5-i9x6/special";
    let graph = Case::parse_short(id).unwrap().graph().unwrap();
    let inputs = fill::generate(&graph, Fill::Special, 1).unwrap();
    let evaluation = evaluate(&graph, &inputs, &Arithmetic::default()).unwrap();
    let tensor = graph.outputs().next().unwrap();
    let least = (-14f64).exp2();
    let flush = |y: f64| if y.abs() < least { 0.0 } else { y };
    let value = &evaluation.tensors[&tensor.uid].value;
    let got: Vec<f64> = value
        .iter()
        .map(|&y| flush(round(tensor.data_type, y)))
        .collect();
    let traits = Traits::default().with(Trait::FlushDenormals);
    assert!(!fits(&graph, &inputs, &got, &Traits::default()));
    assert!(fits(&graph, &inputs, &got, &traits));
    // A normal number that is zero is wrong all the same.
    let mut wrong = got;
    let normal = wrong
        .iter_mut()
        .find(|y| y.abs() >= 4.0 * least && y.is_finite());
    *normal.unwrap() = 0.0;
    assert!(!fits(&graph, &inputs, &wrong, &traits));
}

/// Winograd and Fourier may disturb elements whose own terms are few or none; the plain bound does
/// not allow it.
#[test]
fn transforms_may_disturb_their_neighbours() {
    let id = "conv.fprop/f32/nchw/n1-c8-k4-i16x16-f3x3/pad1";
    let graph = Case::parse_short(id).unwrap().graph().unwrap();
    let mut inputs = fill::generate(&graph, Fill::Uniform, 1).unwrap();
    inputs.get_mut(&1).unwrap()[1..].fill(0.0);
    let evaluation = evaluate(&graph, &inputs, &Arithmetic::default()).unwrap();
    let value = &evaluation.tensors[&3].value;
    assert!(value.contains(&0.0), "some sums are empty");
    let got: Vec<f64> = value.iter().map(|y| y + 2e-7).collect();
    assert!(!fits(&graph, &inputs, &got, &Traits::default()));
    assert!(fits(
        &graph,
        &inputs,
        &got,
        &Traits::default().with(Trait::Winograd)
    ));
    let wrong: Vec<f64> = value.iter().map(|y| y * 1.01 + 1e-3).collect();
    assert!(!fits(
        &graph,
        &inputs,
        &wrong,
        &Traits::default().with(Trait::Fft)
    ));
}

/// Quotients and roots off by this many units of u.
fn inexact(id: &str, units: f64, traits: &Traits) -> bool {
    let graph = Case::parse_short(id).unwrap().graph().unwrap();
    let inputs = fill::generate(&graph, Fill::Uniform, 3).unwrap();
    let evaluation = evaluate(&graph, &inputs, &traits.arithmetic()).unwrap();
    let output = graph.outputs().next().unwrap();
    let estimate = &evaluation.tensors[&output.uid];
    let off = |y: &f64| dtype::round(output.data_type, y * (1.0 + units * (-24f64).exp2()));
    let got: Vec<f64> = estimate.value.iter().map(off).collect();
    let mut bytes = vec![0; output.byte_size().unwrap()];
    dtype::encode(output, &got, &mut bytes).unwrap();
    compare(output, estimate, &bytes, &Criterion::Bound)
        .unwrap()
        .passed
}

#[test]
fn approximate_division_and_roots_need_their_trait() {
    let (none, approximate) = (
        Traits::default(),
        Traits::default().with(Trait::ApproxDivSqrt),
    );
    for (id, units) in [
        ("pointwise.div/f32/nchw/n1-c2-i8x8", 5.0),
        ("pointwise.reciprocal/f32/nchw/n1-c2-i8x8", 5.0),
        ("pointwise.sqrt/f32/nchw/n1-c2-i8x8", 6.0),
        ("pointwise.rsqrt/f32/nchw/n1-c2-i8x8", 11.0),
    ] {
        // As the definition says: inside of it with its trait, outside without, and outside beyond.
        assert!(inexact(id, 0.9 * units, &approximate), "{id}");
        assert!(!inexact(id, 0.9 * units, &none), "{id}");
        assert!(!inexact(id, 1.5 * units, &approximate), "{id}");
        assert!(inexact(id, 0.0, &none), "{id}");
    }
    // Nothing else becomes wider.
    assert!(!inexact(
        "pointwise.add/f32/nchw/n1-c2-i8x8",
        4.0,
        &approximate
    ));
}
