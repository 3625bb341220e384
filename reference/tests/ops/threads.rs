//! The same bits for any number of threads.

use crate::graphs::{Axis, Direction, Shape, graph, inputs, run, tensor};
use dnn_assay_graph::schema::{BatchnormAttributes, PointwiseAttributes};
use dnn_assay_graph::{DataType, Graph, PointwiseMode, Tensor, TensorValue};
use dnn_assay_reference::{Evaluation, evaluate_values, release_memory};

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
        (1, 264, 136, vec![axis(11, 1, 1), axis(11, 1, 1)]),
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
    graphs.extend(
        [
            PointwiseMode::ReluFwd,
            PointwiseMode::Add,
            PointwiseMode::SigmoidFwd,
        ]
        .map(single),
    );
    graphs
}

/// One activation or sum of two tensors: nothing to round, the last step alone, several steps.
fn single(mode: PointwiseMode) -> Graph {
    let tensors = (1..=3).map(|uid| tensor(uid, DataType::Float, &[5, 90, 100]));
    let node = PointwiseAttributes {
        operation: mode,
        in_0_tensor_uid: 1,
        in_1_tensor_uid: (mode == PointwiseMode::Add).then_some(2),
        out_0_tensor_uid: 3,
        ..Default::default()
    };
    let mut graph = graph(tensors.collect(), vec![node.into()]);
    graph
        .tensors
        .retain(|tensor| tensor.uid != 2 || mode == PointwiseMode::Add);
    graph
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
        let results: Vec<Vec<u64>> = [1, 2, 3, 7, 12]
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

/// The memory of earlier results is used again; what it held must not show.
#[test]
fn used_memory_leaves_no_trace() {
    for (index, graph) in graphs().iter().enumerate() {
        let values = inputs(graph, index as u64);
        release_memory();
        let mut first = run(graph, &values);
        let expected = bits(&first);
        for estimate in first.tensors.values_mut() {
            estimate.value.fill(f64::NAN);
            estimate.error.fill(f32::NAN);
        }
        drop(first);
        assert_eq!(bits(&run(graph, &values)), expected, "graph {index}");
    }
}

/// Who asks for values alone gets those that come with their uncertainty.
#[test]
fn values_alone_have_the_same_bits() {
    for (index, graph) in graphs().iter().enumerate() {
        let values = inputs(graph, index as u64);
        let alone = evaluate_values(graph, &values).unwrap();
        let both = run(graph, &values);
        assert_eq!(alone.len(), both.tensors.len(), "graph {index}");
        for (uid, values) in alone {
            let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(
                bits(&values),
                bits(&both.tensors[&uid].value),
                "graph {index}, tensor {uid}"
            );
        }
    }
}
