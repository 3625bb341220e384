use crate::engines::{any_order, dot, narrow_dot};
use crate::graphs::{
    Axis, Direction, Shape, W, X, Y, any_direction, any_shape, inputs, result, run, within,
};
use crate::naive;
use dnn_assay_graph::{ConvMode, DataType};
use dnn_assay_reference::{Arithmetic, Estimate, EvalError, Values, dtype, evaluate};
use proptest::prelude::*;
use rstest::rstest;

/// Operands of each element's terms in order.
fn products(shape: &Shape, direction: Direction, values: &Values) -> Vec<Vec<(f64, f64)>> {
    let (first, second) = match direction {
        Direction::Fprop => (X, W),
        Direction::Dgrad => (Y, W),
        Direction::Wgrad => (Y, X),
    };
    naive::terms(shape, direction)
        .iter()
        .map(|terms| {
            let pair = |&(a, b): &(usize, usize)| (values[&first][a], values[&second][b]);
            terms.iter().map(pair).collect()
        })
        .collect()
}

fn chain(terms: &[(f64, f64)]) -> f64 {
    terms.iter().fold(0.0, |sum, (a, b)| sum + a * b)
}

fn any_input() -> impl Strategy<Value = DataType> {
    prop_oneof![
        Just(DataType::Float),
        Just(DataType::Half),
        Just(DataType::Bfloat16),
        Just(DataType::Double),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn fprop_and_dgrad_are_the_naive_chain_bit_for_bit(
        shape in any_shape(), forward: bool, data_type in any_input(), seed: u64,
    ) {
        let direction = if forward { Direction::Fprop } else { Direction::Dgrad };
        let graph = shape.graph(direction, data_type, data_type);
        let values = inputs(&graph, seed);
        let estimate = &run(&graph, &values).tensors[&result(direction)];
        for (i, terms) in products(&shape, direction, &values).iter().enumerate() {
            prop_assert_eq!(estimate.value[i].to_bits(), chain(terms).to_bits(), "element {}", i);
        }
    }

    #[test]
    fn wgrad_is_the_naive_sum(shape in any_shape(), data_type in any_input(), seed: u64) {
        let graph = shape.graph(Direction::Wgrad, data_type, data_type);
        let values = inputs(&graph, seed);
        let estimate = &run(&graph, &values).tensors[&W];
        for (i, terms) in products(&shape, Direction::Wgrad, &values).iter().enumerate() {
            let size: f64 = terms.iter().map(|(a, b)| (a * b).abs()).sum();
            prop_assert!((estimate.value[i] - chain(terms)).abs() <= 1e-13 * size, "element {}", i);
        }
    }

    #[test]
    fn uncertainty_is_the_stated_formula(shape in any_shape(), direction in any_direction(), seed: u64) {
        let graph = shape.graph(direction, DataType::Half, DataType::Half);
        let values = inputs(&graph, seed);
        let estimate = &run(&graph, &values).tensors[&result(direction)];
        for (i, terms) in products(&shape, direction, &values).iter().enumerate() {
            let k = terms.len() as f64;
            let y = chain(terms).abs();
            let q = terms.iter().map(|(a, b)| (a * b).powi(2)).sum::<f64>().sqrt();
            let s: f64 = terms.iter().map(|(a, b)| (a * b).abs()).sum();
            let u = (-24f64).exp2();
            let linear = s > 0.9 * k.sqrt() * q && y > 0.9 * s;
            let e = if linear { k * u * s } else { 4.0 * u * k.sqrt() * (y + q) };
            let near = |a: f64, b: f64| (a - b).abs() < 1e-4 * b;
            if near(s, 0.9 * k.sqrt() * q) || near(y, 0.9 * s) {
                continue;
            }
            let got = f64::from(estimate.error[i]);
            prop_assert!(got >= e * (1.0 - 1e-6), "element {}: {} < {}", i, got, e);
            prop_assert!(got <= e * 1.03 + k * 1e-44, "element {}: {} > {}", i, got, e);
        }
    }

    #[test]
    fn correct_f32_engines_fit(
        shape in any_shape(), direction in any_direction(), order in any_order(), fused: bool,
        output in prop_oneof![Just(DataType::Float), Just(DataType::Half), Just(DataType::Bfloat16)],
        seed: u64,
    ) {
        let graph = shape.graph(direction, DataType::Half, output);
        let values = inputs(&graph, seed);
        let estimate = &run(&graph, &values).tensors[&result(direction)];
        let got: Vec<f64> = products(&shape, direction, &values)
            .iter()
            .map(|terms| dtype::round(output, dot(order, fused, terms)))
            .collect();
        prop_assert_eq!(within(output, estimate, &got), Ok(()));
    }

    #[test]
    fn a_flipped_filter_is_a_flipped_filter(shape in any_shape(), direction in any_direction(), seed: u64) {
        let flipped = shape.graph_with(
            direction, DataType::Float, DataType::Float, ConvMode::Convolution);
        let plain = shape.graph(direction, DataType::Float, DataType::Float);
        let window = shape.axes.iter().map(|a| a.taps as usize).product();
        let flip = |w: &[f64]| -> Vec<f64> {
            w.chunks(window).flat_map(|w| w.iter().rev().copied()).collect()
        };
        let values = inputs(&plain, seed);
        let mut other = values.clone();
        if let Some(w) = other.get_mut(&W) {
            *w = flip(w).into();
        }
        let a = &run(&plain, &values).tensors[&result(direction)];
        let b = &run(&flipped, &other).tensors[&result(direction)];
        if direction == Direction::Wgrad {
            prop_assert_eq!(flip(&a.value), b.value.clone());
        } else {
            prop_assert_eq!(&a.value, &b.value);
            prop_assert_eq!(&a.error, &b.error);
        }
    }

    #[test]
    fn inf_and_nan_reach_exactly_what_sees_them(
        shape in any_shape(), direction in any_direction(), at: prop::sample::Index, inf: bool, seed: u64,
    ) {
        let graph = shape.graph(direction, DataType::Float, DataType::Float);
        let mut values = inputs(&graph, seed);
        let uid = [X, Y, Y][direction as usize];
        let planted = values.get_mut(&uid).unwrap();
        let place = at.index(planted.len());
        planted[place] = if inf { f64::INFINITY } else { f64::NAN };
        let estimate = &run(&graph, &values).tensors[&result(direction)];
        for (i, terms) in naive::terms(&shape, direction).iter().enumerate() {
            let sees = terms.iter().any(|&(a, _)| a == place);
            prop_assert_eq!(!estimate.value[i].is_finite(), sees, "element {}", i);
        }
    }
}

/// A square 2-D shape.
fn square(batch: i64, channels: i64, filters: i64, size: i64, taps: i64) -> Shape {
    let axis = Axis {
        input: size,
        taps,
        pre: taps / 2,
        post: taps / 2,
        stride: 1,
        dilation: 1,
    };
    Shape {
        batch,
        groups: 1,
        channels,
        filters,
        axes: vec![axis; 2],
    }
}

fn worst(estimate: &Estimate, data_type: DataType, got: &[f64]) -> f64 {
    (0..got.len())
        .map(|i| {
            let e = f64::from(estimate.error[i]);
            (got[i] - estimate.value[i]).abs()
                / crate::graphs::bound(data_type, estimate.value[i], e)
        })
        .fold(0.0, f64::max)
}

#[rstest]
#[case(Direction::Fprop)]
#[case(Direction::Dgrad)]
#[case(Direction::Wgrad)]
fn an_accumulator_in_f16_exceeds_the_bound(#[case] direction: Direction) {
    let shape = square(2, 16, 16, 8, 3);
    let graph = shape.graph(direction, DataType::Half, DataType::Half);
    let values = inputs(&graph, 7);
    let estimate = &run(&graph, &values).tensors[&result(direction)];
    let products = products(&shape, direction, &values);
    let narrow: Vec<f64> = products
        .iter()
        .map(|terms| narrow_dot(DataType::Half, terms))
        .collect();
    assert!(worst(estimate, DataType::Half, &narrow) > 1.5);
    let zeros = vec![0.0; narrow.len()];
    assert!(worst(estimate, DataType::Half, &zeros) > 100.0);
}

#[test]
fn one_signed_data_grows_linearly() {
    let shape = square(1, 64, 2, 4, 3);
    let graph = shape.graph(Direction::Fprop, DataType::Float, DataType::Float);
    let ones: Values = [
        (X, vec![0.1f32 as f64; 64 * 16].into()),
        (W, vec![1.0; 2 * 64 * 9].into()),
    ]
    .into();
    let evaluation = run(&graph, &ones);
    assert_eq!(evaluation.linear_growth, 32);
    assert_eq!(run(&graph, &inputs(&graph, 3)).linear_growth, 0);
}

/// Shapes beyond those of the property tests: several blocks of filters, steps in several runs,
/// sources that jobs share, filters that one job packs for itself, gradients that tiles write
/// themselves, rows of a plane in whole vectors.
fn large_shapes() -> Vec<Shape> {
    vec![
        square(2, 37, 29, 23, 3),
        square(1, 3, 70, 40, 7),
        square(4, 304, 200, 7, 1),
        square(4, 301, 43, 7, 1),
        square(8, 64, 128, 14, 1),
        square(8, 16, 130, 14, 3),
        Shape {
            groups: 12,
            ..square(3, 1, 1, 28, 3)
        },
        Shape {
            groups: 5,
            ..square(2, 1, 1, 14, 3)
        },
        Shape {
            groups: 3,
            ..square(2, 24, 40, 9, 1)
        },
    ]
}

#[test]
fn large_dense_shapes_agree_with_the_chain_on_samples() {
    for (seed, shape) in (1..).zip(large_shapes()) {
        let mut directions = vec![Direction::Fprop, Direction::Dgrad];
        // The chunks of the weight gradient's sums: as many whole images as have 768 positions.
        let plane = shape.y()[2..].iter().product::<i64>() as usize;
        let one_tap = shape.axes.iter().all(|axis| axis.taps == 1);
        let one_chunk = plane * shape.batch as usize <= 768;
        if plane <= 768 && (one_tap || one_chunk) && shape.filters >= 8 {
            directions.push(Direction::Wgrad);
        }
        for direction in directions {
            let graph = shape.graph(direction, DataType::Float, DataType::Float);
            let values = inputs(&graph, seed);
            let estimate = &run(&graph, &values).tensors[&result(direction)];
            let (result, first, second) = match direction {
                Direction::Fprop => (shape.y(), X, W),
                Direction::Dgrad => (shape.x(), Y, W),
                Direction::Wgrad => (shape.w(), Y, X),
            };
            let coordinates = naive::coordinates(&result);
            for (i, at) in coordinates.iter().enumerate().step_by(97) {
                let terms: Vec<_> = naive::terms_of(&shape, direction, at)
                    .iter()
                    .map(|&(a, b)| (values[&first][a], values[&second][b]))
                    .collect();
                let chunk = match direction {
                    Direction::Wgrad if !one_chunk => 768 / plane * plane,
                    _ => terms.len(),
                };
                let y = terms.chunks(chunk).map(chain).fold(0.0, |y, sum| y + sum);
                let got = estimate.value[i];
                let place = format!("{shape:?} {direction:?} element {i}");
                assert_eq!(got.to_bits(), y.to_bits(), "{place}");
                let q = terms.iter().map(|(a, b)| (a * b).powi(2)).sum::<f64>();
                let terms = terms.len() as f64;
                let e = 4.0 * (-24f64).exp2() * terms.sqrt() * (y.abs() + q.sqrt());
                let ratio = f64::from(estimate.error[i]) / e;
                // Linear growth is at most √K/4 of it and rare.
                assert!(
                    ratio >= 1.0 - 1e-6 || y.abs() > 0.7 * (terms * q).sqrt(),
                    "{place}"
                );
                assert!(
                    ratio <= 1.03 || y.abs() > 0.7 * (terms * q).sqrt(),
                    "{place}: {ratio}"
                );
            }
        }
    }
}

#[test]
fn tiny_and_huge_operands_keep_their_uncertainty() {
    let shape = square(1, 4, 4, 5, 3);
    let graph = shape.graph(Direction::Fprop, DataType::Double, DataType::Double);
    let values = inputs(&graph, 5);
    let plain = run(&graph, &values).tensors[&Y].clone();
    for scale in [1e-18, 1e15] {
        let mut scaled = values.clone();
        scaled
            .get_mut(&X)
            .unwrap()
            .iter_mut()
            .for_each(|x| *x *= scale);
        // One image holds terms far below the others: their squares vanish in f32.
        scaled.get_mut(&X).unwrap()[..25]
            .iter_mut()
            .for_each(|x| *x *= 1e-30);
        let estimate = &run(&graph, &scaled).tensors[&Y];
        for (error, plain) in estimate.error.iter().zip(&plain.error) {
            let ratio = f64::from(*error) / (f64::from(*plain) * scale);
            assert!(ratio > 0.01 && ratio < 100.0, "{ratio}");
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let shape = square(1, 4, 4, 5, 3);
    let graph = shape.graph(Direction::Fprop, DataType::Float, DataType::Float);
    let values = inputs(&graph, 1);
    let arithmetic = Arithmetic::default();
    let mut wrong = graph.clone();
    wrong.tensors[2].dims[3] = 4;
    let error = evaluate(&wrong, &values, &arithmetic).unwrap_err();
    assert!(
        matches!(error, EvalError::Invalid { node: 0, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("axis 1"), "{error}");
    let mut missing = values.clone();
    missing.remove(&W);
    let error = evaluate(&graph, &missing, &arithmetic).unwrap_err();
    assert_eq!(error.to_string(), "tensor 2: no values were given");
    let mut short = values;
    let x = short.get_mut(&X).unwrap();
    *x = x[1..].into();
    assert!(matches!(
        evaluate(&graph, &short, &arithmetic),
        Err(EvalError::Input { uid: X, .. })
    ));
}
