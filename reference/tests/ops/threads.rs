//! The same bits for any number of threads.

use crate::graphs::{Axis, Direction, Shape, graph, inputs, run, tensor};
use dnn_assay_graph::schema::{BatchnormAttributes, PointwiseAttributes};
use dnn_assay_graph::{DataType, Graph, PointwiseMode, Tensor, TensorValue};
use dnn_assay_reference::Evaluation;

fn graphs() -> Vec<Graph> {
    let axis = |input, taps, stride| Axis {
        input,
        taps,
        pre: taps / 2,
        post: 0,
        stride,
        dilation: 1,
    };
    let mut graphs = Vec::new();
    for (groups, channels, filters, axes) in [
        (1, 13, 21, vec![axis(31, 3, 1), axis(29, 3, 1)]),
        (1, 3, 2, vec![axis(64, 5, 2), axis(50, 3, 1)]),
        (12, 1, 1, vec![axis(40, 3, 1), axis(41, 3, 2)]),
        (2, 4, 4, vec![axis(9, 3, 1), axis(12, 3, 2), axis(13, 2, 1)]),
    ] {
        let shape = Shape {
            batch: 3,
            groups,
            channels,
            filters,
            axes,
        };
        for direction in [Direction::Fprop, Direction::Dgrad, Direction::Wgrad] {
            graphs.push(shape.graph(direction, DataType::Float, DataType::Float));
        }
    }
    graphs.push(chain());
    graphs
}

/// Batchnorm training and an activation.
fn chain() -> Graph {
    let dims = [6, 17, 33, 21];
    let channel = [1, 17, 1, 1];
    let virtual_y = Tensor {
        is_virtual: true,
        ..tensor(5, DataType::Half, &dims)
    };
    let epsilon = Tensor {
        value: Some(TensorValue::Float32(1e-5)),
        ..tensor(4, DataType::Float, &[1])
    };
    graph(
        vec![
            tensor(1, DataType::Half, &dims),
            tensor(2, DataType::Float, &channel),
            tensor(3, DataType::Float, &channel),
            epsilon,
            virtual_y,
            tensor(6, DataType::Half, &dims),
            tensor(7, DataType::Float, &channel),
        ],
        vec![
            BatchnormAttributes {
                x_tensor_uid: 1,
                scale_tensor_uid: 2,
                bias_tensor_uid: 3,
                epsilon_tensor_uid: 4,
                y_tensor_uid: 5,
                mean_tensor_uid: Some(7),
                ..Default::default()
            }
            .into(),
            PointwiseAttributes {
                operation: PointwiseMode::GeluFwd,
                in_0_tensor_uid: 5,
                out_0_tensor_uid: 6,
                ..Default::default()
            }
            .into(),
        ],
    )
}

fn bits(evaluation: &Evaluation) -> Vec<u64> {
    let estimates = evaluation.tensors.values();
    estimates
        .flat_map(|estimate| {
            let values = estimate.value.iter().map(|value| value.to_bits());
            let errors = estimate
                .error
                .iter()
                .map(|&error| f64::from(error).to_bits());
            values.chain(errors)
        })
        .collect()
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for (index, graph) in graphs().iter().enumerate() {
        let values = inputs(graph, index as u64);
        let results: Vec<Vec<u64>> = [1, 2, 3, 7]
            .iter()
            .map(|&threads| {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                pool.install(|| bits(&run(graph, &values)))
            })
            .collect();
        for other in &results[1..] {
            assert_eq!(other, &results[0], "graph {index}");
        }
    }
}
