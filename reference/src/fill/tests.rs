use super::recipe::Recipe;
use super::*;
use crate::dtype;
use crate::evaluate::evaluate;
use crate::exact::{self, Exactness, Reason};
use dnn_assay_graph::case::{Case, Fill};
use dnn_assay_graph::{DataType, Graph, PointwiseMode};
use rstest::rstest;

fn graph(id: &str) -> Graph {
    Case::parse_short(id).unwrap().graph().unwrap()
}

fn values(id: &str, uid: i64, fill: Fill) -> Vec<f64> {
    generate(&graph(id), fill, 7).unwrap()[&uid].to_vec()
}

fn range(values: &[f64]) -> (f64, f64) {
    let fold = |(low, high): (f64, f64), &v: &f64| (low.min(v), high.max(v));
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), fold)
}

const CONV: &str = "conv.fprop/f16/nchw/n2-c64-k8-i14x14-f3x3";

#[test]
fn values_depend_on_seed_tensor_and_index_alone() {
    let graph = graph(CONV);
    let one = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| generate(&graph, Fill::Uniform, seed).unwrap())
    };
    assert_eq!(one(1, 5), one(3, 5));
    assert_ne!(one(1, 5), one(1, 6));
    let values = one(1, 5);
    assert_ne!(values[&1][..100], values[&2][..100]);
}

#[test]
fn uniform_values_are_signed_rounded_and_spread() {
    let x = values(CONV, 1, Fill::Uniform);
    let (low, high) = range(&x);
    assert!((-1.0..-0.99).contains(&low) && (0.99..=1.0).contains(&high));
    assert!(x.iter().all(|&v| dtype::round(DataType::Half, v) == v));
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    assert!(mean.abs() < 0.02, "{mean}");
    let below = x.iter().filter(|&&v| v < -0.5).count() as f64 / x.len() as f64;
    assert!((below - 0.25).abs() < 0.02, "{below}");
}

#[rstest]
#[case("batchnorm.inference/f32/nchw/n2-c64-i3x3", 10, 0.5, 1.5)]
#[case("batchnorm.inference_var/f32/nchw/n2-c64-i3x3", 11, 0.5, 1.5)]
#[case("batchnorm.inference/f32/nchw/n2-c64-i3x3", 9, -0.1, 0.1)]
#[case("batchnorm.training/f32/nchw/n2-c64-i3x3", 8, -1.0, 1.0)]
fn batchnorm_ranges(#[case] id: &str, #[case] uid: i64, #[case] low: f64, #[case] high: f64) {
    let (least, most) = range(&values(id, uid, Fill::Uniform));
    let margin = 0.1 * (high - low);
    assert!(least >= low && least < low + margin, "{least}");
    assert!(most <= high as f32 as f64 && most > high - margin, "{most}");
}

fn pointwise(mode: PointwiseMode, operand: usize) -> Vec<f64> {
    let name = dnn_assay_graph::semantics::pointwise(mode).name;
    values(
        &format!("pointwise.{name}/f32/nchw/n2-c8-i8x8"),
        30 + operand as i64,
        Fill::Uniform,
    )
}

#[test]
fn pointwise_ranges_follow_the_domain() {
    use PointwiseMode::*;
    for (mode, operand) in [(Log, 0), (Sqrt, 0), (Rsqrt, 0)] {
        assert!(pointwise(mode, operand).iter().all(|&v| v > 0.0), "{mode}");
    }
    for (mode, operand) in [(Div, 1), (Reciprocal, 0)] {
        let values = pointwise(mode, operand);
        assert!(values.iter().all(|v| v.abs() >= 0.25), "{mode}");
        assert!(values.iter().any(|&v| v < 0.0) && values.iter().any(|&v| v > 0.0));
    }
    let (low, high) = range(&pointwise(Tan, 0));
    assert!(low > -1.21 && high < 1.21);
    for (mode, operand) in [
        (LogicalAnd, 0),
        (LogicalOr, 1),
        (LogicalNot, 0),
        (BinarySelect, 2),
    ] {
        let values = pointwise(mode, operand);
        let zeros = values.iter().filter(|&&v| v == 0.0).count();
        let ones = values.iter().filter(|&&v| v == 1.0).count();
        assert!(
            zeros + ones == values.len() && zeros > 50 && ones > 50,
            "{mode}"
        );
    }
    for mode in [CmpEq, CmpGe, CmpLt, CmpNeq] {
        let (a, b) = (pointwise(mode, 0), pointwise(mode, 1));
        let equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        let less = a.iter().zip(&b).filter(|(a, b)| a < b).count();
        assert!(
            equal > 20 && less > 100 && less + equal < a.len() - 100,
            "{mode}"
        );
    }
}

#[test]
fn integers_are_dense_and_never_zero() {
    let x = values(CONV, 1, Fill::Integer);
    let m = range(&x).1;
    assert!(m >= 2.0 && range(&x).0 == -m);
    assert!(x.iter().all(|v| v.fract() == 0.0 && *v != 0.0));
    for wanted in 1..=m as i64 {
        assert!(
            x.contains(&(wanted as f64)) && x.contains(&(-wanted as f64)),
            "{wanted}"
        );
    }
}

/// The chosen range satisfies the rules: exact, away from overflow, rounding exercised.
#[rstest]
#[case("conv.fprop/f16/nchw/n2-c64-k8-i14x14-f3x3", true)]
#[case("conv.fprop/bf16/nchw/n2-c512-k4-i7x7-f3x3", true)]
#[case("conv.fprop/f16/nchw/n1-c512-k4-i7x7-f3x3", true)]
#[case("conv.fprop/f16/nchw/n1-c8-k8-i9x9-f1x1", true)]
#[case("conv.wgrad/bf16/nchw/n2-c8-k8-i14x14-f3x3", true)]
#[case("conv.dgrad/f32/nchw/n2-c8-k8-i14x14-f3x3", true)]
#[case("conv.fprop+relu_fwd/bf16/nchw/n2-c16-k8-i14x14-f3x3", true)]
// The half that a ReLU leaves is too small in f16 before the sum overflows; a bias is added in
// the input's type, which holds small integers only.
#[case("conv.fprop+relu_fwd/f16/nchw/n2-c16-k8-i14x14-f3x3", false)]
#[case("conv.fprop+bias+relu_fwd/bf16/nchw/n2-c16-k8-i14x14-f3x3", false)]
#[case("pointwise.add/bf16/nchw/n2-c8-i8x8", false)]
#[case("pointwise.mul/bf16/nchw/n2-c8-i8x8", true)]
#[case("pointwise.binary_select/f32/nchw/n2-c8-i8x8", true)]
#[case("pointwise.cmp_gt/f32/nchw/n2-c8-i8x8", true)]
fn integer_cases_are_exact(#[case] id: &str, #[case] exercised: bool) {
    let graph = graph(id);
    let inputs = generate(&graph, Fill::Integer, 1).unwrap();
    let evaluation = evaluate(&graph, &inputs, &Default::default()).unwrap();
    match exact::applies(&graph, &inputs, &evaluation) {
        Exactness::Applies(outputs) => {
            assert!(!outputs.is_empty());
            assert!(
                outputs.iter().all(|o| o.rounding_exercised == exercised),
                "{outputs:?}"
            );
        }
        Exactness::Not(reason) => panic!("{id}: {reason}"),
    }
}

/// Sums that fit no m are filled with ±1 all the same, and judged by the bound.
#[test]
fn sums_too_long_to_be_exact_are_filled_with_ones() {
    let graph = graph("conv.fprop+bias/bf16/nchw/n1-c64-k8-i6x6-f3x3");
    let inputs = generate(&graph, Fill::Integer, 1).unwrap();
    assert_eq!(range(&inputs[&1]), (-1.0, 1.0));
    let evaluation = evaluate(&graph, &inputs, &Default::default()).unwrap();
    match exact::applies(&graph, &inputs, &evaluation) {
        Exactness::Not(Reason::Sum { node: 1, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_filled_is_an_error() {
    let error = generate(
        &graph("pointwise.exp/f32/nchw/n2-c8-i8x8"),
        Fill::Integer,
        1,
    );
    let message = error.unwrap_err().to_string();
    assert_eq!(
        message,
        "integer fill: node 0: exp is not exact on integers"
    );
    let mut unsupported = graph(CONV);
    unsupported.tensors[0].data_type = DataType::Fp8E4m3;
    let message = generate(&unsupported, Fill::Uniform, 1)
        .unwrap_err()
        .to_string();
    assert_eq!(message, "tensor 1: no reference for element type FP8_E4M3");
}

/// A step on an intermediate: elements near it are moved away, the same ones every time.
#[rstest]
#[case("conv.fprop+relu_fwd/f32/nchw/n4-c64-k32-i28x28-f3x3")]
#[case("batchnorm.inference+relu_bwd+batchnorm.backward/f32/nchw/n4-c16-i28x28")]
fn intermediates_keep_away_from_kinks(#[case] id: &str) {
    let graph = graph(id);
    let all = || generate_and_evaluate(&graph, Fill::Uniform, 3, &Default::default()).unwrap();
    let (values, evaluation, settled) = all();
    assert_eq!(settled.near, 0, "{settled:?}");
    assert_eq!(values, generate(&graph, Fill::Uniform, 3).unwrap());
    assert_eq!(
        evaluation,
        evaluate(&graph, &values, &Default::default()).unwrap()
    );
}

#[test]
fn draws_stay_in_their_ranges() {
    let stream = super::random::Stream::new(1, 2);
    for index in 0..10_000 {
        let signed = Recipe::Integers(3.0).draw(stream, index, DataType::Int8);
        assert!((1.0..=3.0).contains(&signed.abs()));
        let unsigned = Recipe::Integers(8.0).draw(stream, index, DataType::Uint8);
        assert!((1.0..=8.0).contains(&unsigned));
    }
}

#[test]
fn the_images_of_a_ragged_tensor_lie_in_order_and_apart() {
    let id = "conv.fprop/f32/nchw/n3-c2-k2-i4x5-f1x1/pre0x0-post0x0-str1x1-dil1x1-g1-ragged/int";
    let graph = Case::parse(id).expect("an id").graph().expect("a graph");
    for fill in [Fill::Uniform, Fill::Integer] {
        let values = generate(&graph, fill, 1).expect("inputs");
        assert_eq!(
            values[&24],
            [0.0, 56.0, 112.0, 168.0],
            "40 elements and a gap of 16"
        );
    }
}
