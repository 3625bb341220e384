use super::*;
use crate::estimate::Estimate;
use dnn_assay_graph::Node;
use dnn_assay_graph::schema::{ConvolutionFwdAttributes, PointwiseAttributes};
use rstest::rstest;

/// A 1x1 convolution of 4 channels, optionally followed by an activation.
fn graph(data_type: DataType, activation: Option<PointwiseMode>) -> Graph {
    let conv = ConvolutionFwdAttributes {
        x_tensor_uid: 1,
        w_tensor_uid: 2,
        y_tensor_uid: 3,
        ..Default::default()
    };
    let mut graph = Graph {
        tensors: vec![
            Tensor::packed(1, "x", data_type, &[1, 4, 1, 2]),
            Tensor::packed(2, "w", data_type, &[1, 4, 1, 1]),
            Tensor::packed(3, "y", data_type, &[1, 1, 1, 2]),
        ],
        nodes: vec![node(conv.into())],
        ..Graph::default()
    };
    if let Some(operation) = activation {
        graph.tensors[2].is_virtual = true;
        graph
            .tensors
            .push(Tensor::packed(4, "z", data_type, &[1, 1, 1, 2]));
        let table = PointwiseAttributes {
            operation,
            in_0_tensor_uid: 3,
            out_0_tensor_uid: 4,
            ..Default::default()
        };
        graph.nodes.push(node(table.into()));
    }
    graph
}

fn node(attributes: Attributes) -> Node {
    Node {
        name: String::new(),
        compute_type: DataType::Float,
        attributes,
    }
}

fn says(graph: &Graph, x: f64, w: f64, y: f64) -> String {
    let inputs = Values::from([(1, vec![x; 8].into()), (2, vec![w; 4].into())]);
    let tensors = [
        (3, Estimate::exact(vec![y; 2])),
        (4, Estimate::exact(vec![y; 2])),
    ];
    let evaluation = Evaluation {
        tensors: tensors.into(),
        ..Evaluation::default()
    };
    match applies(graph, &inputs, &evaluation) {
        Exactness::Not(reason) => reason.to_string(),
        Exactness::Applies(outputs) => outputs
            .iter()
            .map(|o| {
                format!(
                    "{} {:?} exercised={}",
                    o.uid, o.zero_sign, o.rounding_exercised
                )
            })
            .collect(),
    }
}

#[rstest]
#[case(DataType::Float, None, 15.0, -7.0, -420.0, "3 Ignored exercised=true")]
#[case(DataType::Half, None, 60.0, 60.0, 14400.0, "3 Ignored exercised=true")]
#[case(DataType::Half, None, 2.0, 2.0, 16.0, "3 Ignored exercised=false")]
#[case(
    DataType::Half,
    None,
    2.5,
    2.0,
    20.0,
    "tensor 1 holds values that are no integers"
)]
#[case(
    DataType::Half,
    None,
    2048.0,
    2049.0,
    0.0,
    "node 0: the terms of a sum may reach 16785408, more than 16777216"
)]
#[case(
    DataType::Half,
    None,
    200.0,
    200.0,
    160000.0,
    "output 3 reaches the overflow threshold of HALF"
)]
#[case(
    DataType::Half,
    Some(PointwiseMode::ReluFwd),
    2.0,
    2.0,
    16.0,
    "4 Ignored exercised=false"
)]
#[case(
    DataType::Float,
    Some(PointwiseMode::Neg),
    2.0,
    2.0,
    16.0,
    "4 Significant exercised=true"
)]
#[case(
    DataType::Half,
    Some(PointwiseMode::ReluFwd),
    60.0,
    60.0,
    14401.0,
    "virtual tensor 3 is not exact in HALF"
)]
#[case(
    DataType::Float,
    Some(PointwiseMode::TanhFwd),
    2.0,
    2.0,
    1.0,
    "node 1: tanh_fwd is not exact on integers"
)]
fn cases(
    #[case] data_type: DataType,
    #[case] activation: Option<PointwiseMode>,
    #[case] x: f64,
    #[case] w: f64,
    #[case] y: f64,
    #[case] expected: &str,
) {
    assert_eq!(says(&graph(data_type, activation), x, w, y), expected);
}
