//! Batch normalisation of the built plugin, against values computed by hand.

#![allow(clippy::unwrap_used)]

#[path = "../../sdk/tests/host/mod.rs"]
#[allow(dead_code, clippy::undocumented_unsafe_blocks)]
mod host;
#[allow(dead_code)]
mod support;

use dnn_assay_graph::schema::*;
use dnn_assay_graph::wire::{Generation, write_graph};
use dnn_assay_graph::{Attributes, Graph, PointwiseMode, Tensor};
use host::graph;
use support::{close, f32s, open, scalar};

/// Two channels of four: 1 2 3 4 (mean 2.5, variance 1.25) and 0 0 4 4 (mean 2, variance 4).
const X: [f32; 8] = [1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 4.0, 4.0];

fn training(running: bool) -> Graph {
    let mut tensors = vec![
        f32s(1, &[2, 2, 1, 2]),
        scalar(4, 0.75),
        f32s(5, &[2, 2, 1, 2]),
    ];
    tensors.extend([2, 3, 6, 7].map(|uid| f32s(uid, &[1, 2, 1, 1])));
    let mut node = BatchnormAttributes {
        x_tensor_uid: 1,
        scale_tensor_uid: 2,
        bias_tensor_uid: 3,
        epsilon_tensor_uid: 4,
        y_tensor_uid: 5,
        mean_tensor_uid: Some(6),
        inv_variance_tensor_uid: Some(7),
        ..Default::default()
    };
    if running {
        tensors.extend([10, 11, 12, 13].map(|uid| f32s(uid, &[1, 2, 1, 1])));
        tensors.push(scalar(14, 0.25));
        node.prev_running_mean_tensor_uid = Some(10);
        node.prev_running_variance_tensor_uid = Some(11);
        node.next_running_mean_tensor_uid = Some(12);
        node.next_running_variance_tensor_uid = Some(13);
        node.momentum_tensor_uid = Some(14);
    }
    graph(tensors, vec![node.into()])
}

#[test]
fn batchnorm_training_by_hand() {
    let host = open();
    let got = host.run(
        &training(false),
        &[(1, &X), (2, &[2.0, 1.0]), (3, &[0.5, -1.0])],
    );
    let (i0, i1) = (0.5f32.sqrt(), 1.0 / 4.75f32.sqrt());
    close(&got[&6], &[2.5, 2.0]);
    close(&got[&7], &[i0, i1]);
    let y = [
        0.5 - 3.0 * i0,
        0.5 - i0,
        -1.0 - 2.0 * i1,
        -1.0 - 2.0 * i1,
        0.5 + i0,
        0.5 + 3.0 * i0,
        -1.0 + 2.0 * i1,
        -1.0 + 2.0 * i1,
    ];
    close(&got[&5], &y);
}

#[test]
fn running_statistics_use_the_unbiased_variance() {
    let inputs: [(i64, &[f32]); 5] = [
        (1, &X),
        (2, &[2.0, 1.0]),
        (3, &[0.5, -1.0]),
        (10, &[0.0, 4.0]),
        (11, &[1.0, 2.0]),
    ];
    let got = open().run(&training(true), &inputs);
    close(&got[&12], &[0.625, 3.5]);
    close(
        &got[&13],
        &[0.75 + 0.25 * 5.0 / 3.0, 1.5 + 0.25 * 16.0 / 3.0],
    );
    let mut partial = training(true);
    if let Attributes::Batchnorm(a) = &mut partial.nodes[0].attributes {
        a.momentum_tensor_uid = None;
    }
    let bytes = write_graph(&partial, Generation::Current).unwrap();
    assert!(open().applicable(&bytes).map_or(true, |ids| ids.is_empty()));
}

#[test]
fn batchnorm_inference_by_hand() {
    let host = open();
    let per_channel = [2, 3, 4, 5].map(|uid| f32s(uid, &[1, 2, 1, 1]));
    let mut tensors = vec![f32s(1, &[2, 2, 1, 2]), f32s(6, &[2, 2, 1, 2])];
    tensors.extend(per_channel);
    let plain = BatchnormInferenceAttributes {
        x_tensor_uid: 1,
        mean_tensor_uid: 2,
        inv_variance_tensor_uid: 3,
        scale_tensor_uid: 4,
        bias_tensor_uid: 5,
        y_tensor_uid: 6,
    };
    let graph_of = |tensors: &[Tensor], node: Attributes| graph(tensors.to_vec(), vec![node]);
    let parameters: [(i64, &[f32]); 4] = [
        (1, &X),
        (2, &[1.0, 2.0]),
        (4, &[2.0, -1.0]),
        (5, &[0.5, 0.0]),
    ];
    let inputs = [parameters.as_slice(), &[(3, &[0.5, 2.0])]].concat();
    let got = host.run(&graph_of(&tensors, plain.into()), &inputs);
    close(&got[&6], &[0.5, 1.5, 4.0, 4.0, 2.5, 3.5, -4.0, -4.0]);

    tensors.push(scalar(7, 1.0));
    let with_variance = BatchnormInferenceAttributesVarianceExt {
        x_tensor_uid: 1,
        mean_tensor_uid: 2,
        variance_tensor_uid: 3,
        scale_tensor_uid: 4,
        bias_tensor_uid: 5,
        y_tensor_uid: 6,
        epsilon_tensor_uid: 7,
    };
    let inputs = [parameters.as_slice(), &[(3, &[3.0, 0.0])]].concat();
    let got = host.run(&graph_of(&tensors, with_variance.into()), &inputs);
    close(&got[&6], &[0.5, 1.5, 2.0, 2.0, 2.5, 3.5, -2.0, -2.0]);
}

fn backward(saved: bool) -> Graph {
    let mut tensors = [1, 2, 6].map(|uid| f32s(uid, &[2, 2, 1, 2])).to_vec();
    tensors.extend([5, 7, 8].map(|uid| f32s(uid, &[1, 2, 1, 1])));
    if saved {
        tensors.extend([3, 4].map(|uid| f32s(uid, &[1, 2, 1, 1])));
    }
    let node = BatchnormBackwardAttributes {
        dy_tensor_uid: 1,
        x_tensor_uid: 2,
        mean_tensor_uid: saved.then_some(3),
        inv_variance_tensor_uid: saved.then_some(4),
        scale_tensor_uid: 5,
        dx_tensor_uid: 6,
        dscale_tensor_uid: 7,
        dbias_tensor_uid: 8,
        ..Default::default()
    };
    graph(tensors, vec![node.into()])
}

#[test]
fn batchnorm_backward_by_hand() {
    let host = open();
    let dy = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0];
    let common: [(i64, &[f32]); 3] = [(1, &dy), (2, &X), (5, &[2.0, 3.0])];
    let i = [1.0 / 1.25001f32.sqrt(), 1.0 / 4.00001f32.sqrt()];
    let inputs = [common.as_slice(), &[(3, &[2.5, 2.0]), (4, &i)]].concat();
    let with = host.run(&backward(true), &inputs);
    // Channel 0: x̂ = (−1.5, −0.5, 0.5, 1.5)·i, dy = (1, 0, 0, 0).
    let dscale = -1.5 * i[0];
    close(&with[&8], &[1.0, 4.0]);
    close(&with[&7], &[dscale, 0.0]);
    let dx = |dy: f32, x: f32| 2.0 * i[0] * (dy - 0.25 - x * i[0] * dscale / 4.0);
    let expected = [
        dx(1.0, -1.5),
        dx(0.0, -0.5),
        0.0,
        0.0,
        dx(0.0, 0.5),
        dx(0.0, 1.5),
        0.0,
        0.0,
    ];
    close(&with[&6], &expected);
    let without = host.run(&backward(false), &common);
    for uid in [6, 7, 8] {
        close(&without[&uid], &with[&uid]);
    }
}

/// The graph with a ReLU behind the output of its first node, which becomes an intermediate.
fn then_relu(mut graph: Graph, y: i64, out: i64) -> Graph {
    let tensor = graph.tensors.iter_mut().find(|t| t.uid == y).unwrap();
    tensor.is_virtual = true;
    let activated = f32s(out, &tensor.dims);
    graph.tensors.push(activated);
    let mut node = graph.nodes[0].clone();
    node.attributes = PointwiseAttributes {
        operation: PointwiseMode::ReluFwd,
        in_0_tensor_uid: y,
        out_0_tensor_uid: out,
        ..Default::default()
    }
    .into();
    graph.nodes.push(node);
    graph
}

#[test]
fn training_and_activation_in_one_graph() {
    let host = open();
    let inputs: [(i64, &[f32]); 3] = [(1, &X), (2, &[2.0, 1.0]), (3, &[0.5, -1.0])];
    let alone = host.run(&training(false), &inputs);
    let fused = then_relu(training(false), 5, 20);
    assert!(host.takes(&fused));
    let got = host.run(&fused, &inputs);
    let expected: Vec<f32> = alone[&5].iter().map(|y| y.max(0.0)).collect();
    assert_eq!(got[&20], expected);
    assert_eq!((&got[&6], &got[&7]), (&alone[&6], &alone[&7]));
}

/// `batchnorm inference → drelu(dy, ·) → batchnorm backward`, both intermediates in no memory.
#[test]
fn inference_drelu_and_backward_in_one_graph() {
    let host = open();
    let image = [2i64, 2, 1, 2];
    let hidden = |uid| Tensor {
        is_virtual: true,
        ..f32s(uid, &image)
    };
    let mut tensors = vec![f32s(1, &image), f32s(2, &image), hidden(10), hidden(11)];
    tensors.push(f32s(6, &image));
    tensors.extend([3, 4, 5, 7, 8, 9].map(|uid| f32s(uid, &[1, 2, 1, 1])));
    let inference = BatchnormInferenceAttributes {
        x_tensor_uid: 2,
        mean_tensor_uid: 3,
        inv_variance_tensor_uid: 4,
        scale_tensor_uid: 5,
        bias_tensor_uid: 9,
        y_tensor_uid: 10,
    };
    let slope = PointwiseAttributes {
        operation: PointwiseMode::ReluBwd,
        in_0_tensor_uid: 1,
        in_1_tensor_uid: Some(10),
        out_0_tensor_uid: 11,
        ..Default::default()
    };
    let mut gradient = backward(true);
    if let Attributes::BatchnormBackward(a) = &mut gradient.nodes[0].attributes {
        a.dy_tensor_uid = 11;
    }
    let last = gradient.nodes[0].attributes.clone();
    let fused = graph(tensors, vec![inference.into(), slope.into(), last]);
    assert!(host.takes(&fused));
    let parameters: [(i64, &[f32]); 4] = [
        (2, &X),
        (3, &[2.5, 2.0]),
        (4, &[0.5, 0.25]),
        (5, &[2.0, 3.0]),
    ];
    let dy: &[f32] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let got = host.run(
        &fused,
        &[parameters.as_slice(), &[(1, dy), (9, &[0.0, 0.0])]].concat(),
    );
    // y is positive where x is above its mean: the last four elements.
    let masked: &[f32] = &[0.0, 0.0, 0.0, 0.0, 5.0, 6.0, 7.0, 8.0];
    let expected = host.run(
        &backward(true),
        &[parameters.as_slice(), &[(1, masked)]].concat(),
    );
    for uid in [6, 7, 8] {
        assert_eq!(got[&uid], expected[&uid], "tensor {uid}");
    }
}

#[test]
fn statistics_of_peers_are_declined() {
    let mut peers = training(false);
    if let Attributes::Batchnorm(a) = &mut peers.nodes[0].attributes {
        a.peer_stats_tensor_uid = vec![20];
    }
    peers.tensors.push(f32s(20, &[1, 2, 1, 1]));
    assert!(!open().takes(&peers));
}
