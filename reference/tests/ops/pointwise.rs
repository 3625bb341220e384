use crate::graphs::{fill, graph, run, tensor, within};
use crate::naive::coordinates;
use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::semantics::{pointwise, pointwise_modes};
use dnn_assay_graph::{DataType, Graph, PointwiseMode, Tensor};
use dnn_assay_reference::{Values, dtype};
use proptest::prelude::*;
use rstest::rstest;

#[derive(Clone, Copy, Debug, Default)]
struct Set {
    lower: Option<f32>,
    upper: Option<f32>,
    slope: Option<f32>,
    beta: Option<f32>,
    alpha: Option<f32>,
    axis: Option<i64>,
}

fn node(mode: PointwiseMode, set: Set) -> PointwiseAttributes {
    let arity = pointwise(mode).operands.len();
    PointwiseAttributes {
        operation: mode,
        relu_lower_clip: set.lower,
        relu_upper_clip: set.upper,
        relu_lower_clip_slope: set.slope,
        swish_beta: set.beta,
        softplus_beta: set.beta,
        elu_alpha: set.alpha,
        axis_tensor_uid: set.axis,
        in_0_tensor_uid: 1,
        in_1_tensor_uid: (arity > 1).then_some(2),
        in_2_tensor_uid: (arity > 2).then_some(3),
        out_0_tensor_uid: 4,
    }
}

fn pointwise_graph(
    mode: PointwiseMode,
    set: Set,
    dims: [&[i64]; 4],
    types: [DataType; 2],
) -> Graph {
    let arity = pointwise(mode).operands.len();
    let mut tensors: Vec<Tensor> = (0..arity)
        .map(|i| tensor(i as i64 + 1, types[0], dims[i]))
        .collect();
    tensors.push(tensor(4, types[1], dims[3]));
    graph(tensors, vec![node(mode, set).into()])
}

/// The modes as a textbook prints them, in any float.
macro_rules! textbook {
    ($name:ident, $t:ident, $erf:path) => {
        #[allow(clippy::float_cmp)]
        fn $name(mode: PointwiseMode, set: Set, a: $t, b: $t, c: $t) -> $t {
            use PointwiseMode::*;
            let yes = |truth: bool| if truth { 1.0 } else { 0.0 };
            let beta = set.beta.unwrap_or(1.0) as $t;
            let alpha = set.alpha.unwrap_or(1.0) as $t;
            let lower = set.lower.unwrap_or(0.0) as $t;
            let upper = set.upper.map_or($t::INFINITY, |upper| upper as $t);
            let slope = set.slope.unwrap_or(0.0) as $t;
            let sigmoid = |x: $t| 1.0 / (1.0 + (-x).exp());
            let pi = std::f64::consts::PI as $t;
            let root = (2.0 / std::f64::consts::PI).sqrt() as $t;
            let cubic = 0.044715 as $t;
            match mode {
                Abs => a.abs(),
                Add => a + b,
                AddSquare => a + b * b,
                BinarySelect => {
                    if c != 0.0 {
                        a
                    } else {
                        b
                    }
                }
                Ceil => a.ceil(),
                CmpEq => yes(a == b),
                CmpGe => yes(a >= b),
                CmpGt => yes(a > b),
                CmpLe => yes(a <= b),
                CmpLt => yes(a < b),
                CmpNeq => yes(a != b),
                Div => a / b,
                EluFwd => {
                    if a > 0.0 {
                        a
                    } else {
                        alpha * (a.exp() - 1.0)
                    }
                }
                EluBwd => a * if b > 0.0 { 1.0 } else { alpha * b.exp() },
                Erf => $erf(a),
                Exp => a.exp(),
                Floor => a.floor(),
                GeluFwd => 0.5 * a * (1.0 + $erf(a / (2.0 as $t).sqrt())),
                GeluBwd => {
                    let phi = (-b * b / 2.0).exp() / (2.0 * pi).sqrt();
                    a * (0.5 * (1.0 + $erf(b / (2.0 as $t).sqrt())) + b * phi)
                }
                GeluApproxTanhFwd => 0.5 * a * (1.0 + (root * (a + cubic * a * a * a)).tanh()),
                GeluApproxTanhBwd => {
                    let t = (root * (b + cubic * b * b * b)).tanh();
                    let inner = root * (1.0 + 3.0 * cubic * b * b);
                    a * (0.5 * (1.0 + t) + 0.5 * b * (1.0 - t * t) * inner)
                }
                Identity => a,
                Log => a.ln(),
                LogicalAnd => yes(a != 0.0 && b != 0.0),
                LogicalNot => yes(a == 0.0),
                LogicalOr => yes(a != 0.0 || b != 0.0),
                MaxOp => a.max(b),
                MinOp => a.min(b),
                Mul => a * b,
                Neg => -a,
                Reciprocal => 1.0 / a,
                ReluFwd => {
                    if a <= lower {
                        slope * (a - lower) + lower
                    } else if a >= upper {
                        upper
                    } else {
                        a
                    }
                }
                ReluBwd => {
                    a * if b <= lower {
                        slope
                    } else if b > upper {
                        0.0
                    } else {
                        1.0
                    }
                }
                Rsqrt => 1.0 / a.sqrt(),
                SigmoidFwd => sigmoid(a),
                SigmoidBwd => a * sigmoid(b) * (1.0 - sigmoid(b)),
                Sin => a.sin(),
                SoftplusFwd => (1.0 + (beta * a).exp()).ln() / beta,
                SoftplusBwd => a * sigmoid(beta * b),
                Sqrt => a.sqrt(),
                Sub => a - b,
                SwishFwd => a / (1.0 + (-beta * a).exp()),
                SwishBwd => {
                    let s = sigmoid(beta * b);
                    a * (s + beta * b * s * (1.0 - s))
                }
                Tan => a.tan(),
                TanhFwd => a.tanh(),
                TanhBwd => a * (1.0 - b.tanh() * b.tanh()),
                GenIndex | Unset => unreachable!(),
            }
        }
    };
}

textbook!(in_f64, f64, libm::erf);
textbook!(in_f32, f32, libm::erff);

/// Another usual form of some modes, in f32.
fn other_form(mode: PointwiseMode, set: Set, a: f32, b: f32, c: f32) -> f32 {
    use PointwiseMode::*;
    let beta = set.beta.unwrap_or(1.0);
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let root = (2.0 / std::f64::consts::PI).sqrt() as f32;
    match mode {
        SwishFwd => a * sigmoid(beta * a),
        SwishBwd => {
            let s = sigmoid(beta * b);
            a * (s * (1.0 + beta * b * (1.0 - s)))
        }
        SoftplusFwd => (1.0 + (beta * a).exp()).ln() * (1.0 / beta),
        SoftplusBwd => a / (1.0 + (-beta * b).exp()),
        SigmoidBwd => {
            let s = sigmoid(b);
            a * (s * (1.0 - s))
        }
        GeluFwd => a * (0.5 * (1.0 + libm::erff(a * std::f32::consts::FRAC_1_SQRT_2))),
        GeluApproxTanhFwd => 0.5 * a * (1.0 + (root * a * (1.0 + 0.044_715 * a * a)).tanh()),
        AddSquare => b.mul_add(b, a),
        _ => in_f32(mode, set, a, b, c),
    }
}

fn any_mode() -> impl Strategy<Value = PointwiseMode> {
    let modes: Vec<PointwiseMode> = pointwise_modes()
        .map(|row| row.mode)
        .filter(|&mode| mode != PointwiseMode::GenIndex)
        .collect();
    prop::sample::select(modes)
}

fn any_set() -> impl Strategy<Value = Set> {
    let some = |values: &'static [f32]| prop::option::of(prop::sample::select(values));
    (
        some(&[0.0, -0.5, 0.25]),
        some(&[1.0, 0.5, 6.0]),
        some(&[0.01, 0.25]),
        some(&[0.5, 1.5, 2.0]),
        some(&[0.5, 1.0, 1.75]),
    )
        .prop_map(|(lower, upper, slope, beta, alpha)| Set {
            lower,
            upper,
            slope,
            beta,
            alpha,
            axis: None,
        })
}

/// Inputs that suit the mode's domain.
fn values_for(
    mode: PointwiseMode,
    data_type: DataType,
    count: usize,
    scale: f64,
    seed: u64,
) -> Values {
    let operands = pointwise(mode).operands.len() as i64;
    (1..=operands)
        .map(|uid| {
            let mut values = fill(data_type, count, seed ^ (uid as u64) << 40);
            for value in &mut values {
                *value *= scale;
                use PointwiseMode::*;
                if matches!(mode, Log | Sqrt | Rsqrt) {
                    *value = value.abs() + 1e-3;
                }
                if matches!(mode, LogicalAnd | LogicalNot | LogicalOr) || uid == 3 {
                    *value = if *value > 0.0 { *value } else { 0.0 };
                }
                if matches!(mode, CmpEq | CmpNeq | CmpLe | CmpGe) {
                    *value = value.round();
                }
                *value = dtype::round(data_type, *value);
            }
            (uid, values.into())
        })
        .collect()
}

const SIZE: usize = 96;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn agrees_with_the_textbook(
        mode in any_mode(), set in any_set(), scale in prop_oneof![Just(1.0), Just(4.0)], seed: u64,
    ) {
        let dims: &[i64] = &[SIZE as i64];
        let graph = pointwise_graph(mode, set, [dims; 4], [DataType::Float; 2]);
        let values = values_for(mode, DataType::Float, SIZE, scale, seed);
        let estimate = &run(&graph, &values).tensors[&4];
        let get = |uid: i64, i: usize| values.get(&uid).map_or(0.0, |values| values[i]);
        for i in 0..SIZE {
            let y = in_f64(mode, set, get(1, i), get(2, i), get(3, i));
            // The textbook itself cancels: its own f64 rounding is what the tracked error bounds.
            let own = f64::from(estimate.error[i]) * 1e-7;
            let got = estimate.value[i];
            prop_assert!((got - y).abs() <= 1e-12 * y.abs() + own, "{} {}: {} for {}", mode, i, got, y);
        }
    }

    #[test]
    fn textbook_f32_engines_fit(
        mode in any_mode(), set in any_set(), other: bool,
        scale in prop_oneof![Just(1.0), Just(4.0), Just(20.0)],
        input in prop_oneof![Just(DataType::Float), Just(DataType::Half), Just(DataType::Bfloat16)],
        output in prop_oneof![Just(DataType::Float), Just(DataType::Half), Just(DataType::Bfloat16)],
        seed: u64,
    ) {
        let dims: &[i64] = &[SIZE as i64];
        let graph = pointwise_graph(mode, set, [dims; 4], [input, output]);
        let values = values_for(mode, input, SIZE, scale, seed);
        let estimate = &run(&graph, &values).tensors[&4];
        let get = |uid: i64, i: usize| values.get(&uid).map_or(0.0, |values| values[i] as f32);
        let form = if other { other_form } else { in_f32 };
        let got: Vec<f64> = (0..SIZE)
            .map(|i| dtype::round(output, f64::from(form(mode, set, get(1, i), get(2, i), get(3, i)))))
            .collect();
        prop_assert_eq!(within(output, estimate, &got), Ok(()), "{}", mode);
    }

    #[test]
    fn broadcasts_as_coordinates_say(
        dims in prop::collection::vec(1..5i64, 1..5), keep in prop::collection::vec(any::<bool>(), 10),
        drop in 0..3usize, seed: u64,
    ) {
        let a: Vec<i64> = dims.iter().zip(&keep).map(|(&d, &k)| if k { d } else { 1 }).collect();
        let b: Vec<i64> = dims.iter().zip(&keep[5..]).map(|(&d, &k)| if k { d } else { 1 }).collect();
        let b = b[drop.min(dims.len() - 1)..].to_vec();
        let graph = pointwise_graph(
            PointwiseMode::Sub, Set::default(), [&a, &b, &[1], &dims], [DataType::Float; 2]);
        let values = crate::graphs::inputs(&graph, seed);
        let got = &run(&graph, &values).tensors[&4].value;
        let pick = |own: &[i64], at: &[i64]| {
            let at = &at[at.len() - own.len()..];
            own.iter().zip(at).fold(0, |index, (&d, &i)| index * d + if d == 1 { 0 } else { i }) as usize
        };
        for (i, at) in coordinates(&dims).iter().enumerate() {
            prop_assert_eq!(got[i], values[&1][pick(&a, at)] - values[&2][pick(&b, at)]);
        }
    }
}

fn single(
    mode: PointwiseMode,
    set: Set,
    operands: &[f64],
    output: DataType,
) -> (f64, f32, Vec<f64>) {
    let graph = pointwise_graph(mode, set, [&[1]; 4], [DataType::Float, output]);
    let values = (1..)
        .zip(operands)
        .map(|(uid, &x)| (uid, [x].into()))
        .collect();
    let estimate = run(&graph, &values).tensors.remove(&4).unwrap();
    let also = estimate.also.iter().map(|other| other.value).collect();
    (estimate.value[0], estimate.error[0], also)
}

/// The operand order of backward modes, the edges of the ReLU, masks.
#[rstest]
#[case::dy_first(PointwiseMode::ReluBwd, Set::default(), &[3.0, 2.0], 3.0)]
#[case::lower_is_exclusive(PointwiseMode::ReluBwd, Set::default(), &[3.0, 0.0], 0.0)]
#[case::slope_at_lower(PointwiseMode::ReluBwd, Set { slope: Some(0.5), ..Set::default() }, &[3.0, 0.0], 1.5)]
#[case::upper_is_inclusive(PointwiseMode::ReluBwd, Set { upper: Some(6.0), ..Set::default() }, &[3.0, 6.0], 3.0)]
#[case::above_upper(PointwiseMode::ReluBwd, Set { upper: Some(6.0), ..Set::default() }, &[3.0, 6.5], 0.0)]
#[case::leaky(PointwiseMode::ReluFwd, Set { lower: Some(-1.0), slope: Some(0.5), ..Set::default() }, &[-3.0], -2.0)]
#[case::clipped(PointwiseMode::ReluFwd, Set { upper: Some(6.0), ..Set::default() }, &[7.0], 6.0)]
#[case::mask_first(PointwiseMode::BinarySelect, Set::default(), &[1.0, 2.0, -0.5], 1.0)]
#[case::mask_second(PointwiseMode::BinarySelect, Set::default(), &[1.0, 2.0, 0.0], 2.0)]
#[case::tanh_bwd_takes_x(PointwiseMode::TanhBwd, Set::default(), &[2.0, 0.0], 2.0)]
#[case::and_not_bits(PointwiseMode::LogicalAnd, Set::default(), &[2.0, 1.0], 1.0)]
fn semantics(
    #[case] mode: PointwiseMode,
    #[case] set: Set,
    #[case] operands: &[f64],
    #[case] y: f64,
) {
    assert_eq!(single(mode, set, operands, DataType::Float).0, y);
}

#[rstest]
#[case(0, &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0])]
#[case(1, &[0.0, 1.0, 2.0, 0.0, 1.0, 2.0])]
fn gen_index_counts_along_its_axis(#[case] axis: i64, #[case] expected: &[f64]) {
    let set = Set {
        axis: Some(axis),
        ..Set::default()
    };
    let dims: &[i64] = &[2, 3];
    let graph = pointwise_graph(
        PointwiseMode::GenIndex,
        set,
        [dims; 4],
        [DataType::Float; 2],
    );
    let values = [(1, [0.0; 6].into())].into();
    assert_eq!(run(&graph, &values).tensors[&4].value, expected);
}

#[test]
fn an_overflow_inside_the_formula_is_accepted() {
    let set = Set::default();
    // ln(1 + e¹⁰⁰) is 100; in f32 the exponential is infinite.
    let (y, error, also) = single(PointwiseMode::SoftplusFwd, set, &[100.0], DataType::Float);
    assert!((y - 100.0).abs() < 1e-9 && error < 1e-3);
    assert_eq!(also, [f64::INFINITY]);
    // x/(1 + e¹⁰⁰) is −3.7e-42 or, through an infinity, −0.
    let (y, error, also) = single(PointwiseMode::SwishFwd, set, &[-100.0], DataType::Float);
    assert!(
        y < 0.0 && f64::from(error) >= -y && error < 1e-40,
        "{error:e}"
    );
    assert!(also.is_empty());
    let (_, _, also) = single(PointwiseMode::SoftplusFwd, set, &[3.0], DataType::Float);
    assert!(also.is_empty());
}

#[test]
fn a_textbook_gelu_far_from_its_value_is_legal_and_no_more() {
    // 0.5·x·(1 + erf) at −3 loses digits to the addition: some hundred units, not thousands.
    let (y, error, _) = single(
        PointwiseMode::GeluFwd,
        Set::default(),
        &[-3.0],
        DataType::Float,
    );
    let units = f64::from(error) / y.abs() * (24f64).exp2();
    assert!(units > 171.0 && units < 3500.0, "{units}");
    // Single operations are rounded correctly: nothing but the final rounding remains.
    let (_, error, _) = single(
        PointwiseMode::Add,
        Set::default(),
        &[0.1, 0.7],
        DataType::Float,
    );
    assert_eq!(error, 0.0);
    let (_, error, _) = single(
        PointwiseMode::Add,
        Set::default(),
        &[0.1, 0.7],
        DataType::Half,
    );
    assert!(error > 0.0 && error < 1e-7);
}
