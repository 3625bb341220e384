//! Uncertainty through graphs of several nodes.

use crate::engines::{any_order, dot};
use crate::graphs::{
    Axis, Direction, Shape, W, X, Y, any_shape, graph, inputs, pointwise, run, tensor, within,
};
use crate::naive;
use dnn_assay_graph::schema::{MatmulAttributes, ReductionAttributes};
use dnn_assay_graph::{DataType, Graph, PointwiseMode, Tensor};
use dnn_assay_reference::{Arithmetic, EvalError, dtype, evaluate};
use proptest::prelude::*;

const BIAS: i64 = 10;
const SUM: i64 = 11;
const OUT: i64 = 12;

/// conv (virtual, of type `between`) + bias (virtual) + activation.
fn fused(shape: &Shape, between: DataType, mode: PointwiseMode) -> Graph {
    let mut graph = shape.graph(Direction::Fprop, DataType::Half, between);
    for tensor in &mut graph.tensors {
        tensor.is_virtual = tensor.uid == Y;
    }
    let dims = shape.y();
    let mut bias = vec![1; dims.len()];
    bias[1] = dims[1];
    graph.tensors.extend([
        tensor(BIAS, DataType::Float, &bias),
        Tensor {
            is_virtual: true,
            ..tensor(SUM, between, &dims)
        },
        tensor(OUT, DataType::Half, &dims),
    ]);
    for (operation, in_0, in_1, out) in [
        (PointwiseMode::Add, Y, Some(BIAS), SUM),
        (mode, SUM, None, OUT),
    ] {
        graph.nodes.push(pointwise(operation, in_0, in_1, out));
    }
    graph
}

fn activate(mode: PointwiseMode, x: f32) -> f32 {
    match mode {
        PointwiseMode::ReluFwd => x.max(0.0),
        PointwiseMode::SwishFwd => x / (1.0 + (-x).exp()),
        PointwiseMode::TanhFwd => x.tanh(),
        _ => 0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn wide_and_rounded_intermediates_fit(
        shape in any_shape(), order in any_order(), rounded: bool, fused_step: bool,
        between in prop_oneof![Just(DataType::Float), Just(DataType::Half), Just(DataType::Bfloat16)],
        mode in prop::sample::select(vec![
            PointwiseMode::ReluFwd, PointwiseMode::SwishFwd, PointwiseMode::TanhFwd, PointwiseMode::GeluFwd]),
        seed: u64,
    ) {
        let graph = fused(&shape, between, mode);
        let values = inputs(&graph, seed);
        let estimate = &run(&graph, &values).tensors[&OUT];
        let store = |x: f32| if rounded { dtype::round(between, f64::from(x)) as f32 } else { x };
        let plane: usize = shape.y()[2..].iter().product::<i64>() as usize;
        let filters = shape.y()[1] as usize;
        let got: Vec<f64> = naive::terms(&shape, Direction::Fprop)
            .iter()
            .enumerate()
            .map(|(i, terms)| {
                let terms: Vec<_> = terms.iter().map(|&(a, b)| (values[&X][a], values[&W][b])).collect();
                let y = store(dot(order, fused_step, &terms) as f32);
                let sum = store(y + values[&BIAS][i / plane % filters] as f32);
                dtype::round(DataType::Half, f64::from(activate(mode, sum)))
            })
            .collect();
        prop_assert_eq!(within(DataType::Half, estimate, &got), Ok(()));
    }

    #[test]
    fn matmul_is_the_naive_chain(
        m in 1..9i64, k in 1..20i64, n in 1..14i64, batch in 1..4i64, shared: bool, seed: u64,
    ) {
        let own = if shared { 1 } else { batch };
        let graph = graph(
            vec![
                tensor(1, DataType::Float, &[batch, m, k]),
                tensor(2, DataType::Float, &[own, k, n]),
                tensor(3, DataType::Float, &[batch, m, n]),
            ],
            vec![MatmulAttributes { a_tensor_uid: 1, b_tensor_uid: 2, c_tensor_uid: 3 }.into()],
        );
        let values = inputs(&graph, seed);
        let got = &run(&graph, &values).tensors[&3].value;
        let (mm, kk, nn) = (m as usize, k as usize, n as usize);
        for (i, got) in got.iter().enumerate() {
            let (b, row, column) = (i / (mm * nn), i / nn % mm, i % nn);
            let second = if shared { 0 } else { b };
            let y = (0..kk).fold(0.0, |sum, k| {
                sum + values[&1][(b * mm + row) * kk + k] * values[&2][(second * kk + k) * nn + column]
            });
            prop_assert_eq!(got.to_bits(), y.to_bits());
        }
    }
}

fn pixel() -> Shape {
    let axis = Axis {
        input: 4,
        taps: 1,
        pre: 0,
        post: 0,
        stride: 1,
        dilation: 1,
    };
    Shape {
        batch: 1,
        groups: 1,
        channels: 2,
        filters: 1,
        axes: vec![axis],
    }
}

#[test]
fn a_step_within_the_uncertainty_is_counted_and_allowed() {
    let mut graph = fused(&pixel(), DataType::Float, PointwiseMode::Floor);
    graph.nodes.remove(1);
    if let dnn_assay_graph::Attributes::Pointwise(node) = &mut graph.nodes[1].attributes {
        node.in_0_tensor_uid = Y;
    }
    let mut values = inputs(&graph, 1);
    values.remove(&BIAS);
    // Sums of exactly 1, 1.5, 2 and −0.25: two of them at a step.
    values.insert(X, [0.5, 0.75, 1.0, 0.0, 0.5, 0.75, 1.0, -0.25].into());
    values.insert(W, [1.0, 1.0].into());
    let evaluation = run(&graph, &values);
    let estimate = &evaluation.tensors[&OUT];
    assert_eq!(estimate.value, [1.0, 1.0, 2.0, -1.0]);
    assert_eq!(evaluation.uncertain_steps, 2);
    assert_eq!(
        within(DataType::Half, estimate, &[0.0, 1.0, 1.0, -1.0]),
        Ok(())
    );
    assert!(within(DataType::Half, estimate, &[0.0, 0.0, 1.0, -1.0]).is_err());
}

#[test]
fn a_virtual_tensor_that_overflows_its_type_may_be_infinite_or_wide() {
    let mut graph = fused(&pixel(), DataType::Half, PointwiseMode::TanhFwd);
    for tensor in &mut graph.tensors {
        if tensor.uid == OUT {
            tensor.data_type = DataType::Float;
        }
    }
    if let dnn_assay_graph::Attributes::Pointwise(node) = &mut graph.nodes[2].attributes {
        node.operation = PointwiseMode::Identity;
    }
    let mut values = inputs(&graph, 1);
    values.insert(X, [60000.0; 8].into());
    values.insert(W, [1.0, 1.0].into());
    let estimate = &run(&graph, &values).tensors[&OUT];
    assert!((estimate.value[0] - 120_000.0).abs() < 2.0);
    assert!(estimate.allows_also(0, f64::INFINITY));
    assert!(!estimate.allows_also(0, f64::NAN));
}

#[test]
fn node_kinds_without_a_reference_are_named() {
    let graph = graph(
        vec![
            tensor(1, DataType::Float, &[2]),
            tensor(2, DataType::Float, &[1]),
        ],
        vec![
            ReductionAttributes {
                in_tensor_uid: 1,
                out_tensor_uid: 2,
                ..Default::default()
            }
            .into(),
        ],
    );
    let values = inputs(&graph, 1);
    let error = evaluate(&graph, &values, &Arithmetic::default()).unwrap_err();
    assert!(matches!(error, EvalError::Unsupported { node: 0, .. }));
    assert!(error.to_string().contains("Reduction"), "{error}");
}
