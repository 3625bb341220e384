//! What the graphs hold.

use super::*;
use crate::enums::{DataType, PointwiseMode};
use crate::model::{Graph, Tensor};
use crate::schema::Attributes as Node;
use crate::tensor_value::TensorValue;

fn graph(short: &str) -> Graph {
    Case::parse_short(short)
        .unwrap_or_else(|error| panic!("{short}: {error}"))
        .graph()
        .unwrap()
}

fn named<'a>(graph: &'a Graph, name: &str) -> &'a Tensor {
    let tensor = graph.tensors.iter().find(|tensor| tensor.name == name);
    tensor.unwrap_or_else(|| panic!("no tensor {name}"))
}

#[test]
fn channels_last_convolutions_have_channels_last_filters() {
    let graph = graph("conv.fprop/f16/nhwc/n2-c4-k6-i5x7-f3x3/pre1x1-post0x2-str2x1-g2");
    let [x, w, y] = ["x", "w", "y"].map(|name| named(&graph, name));
    assert_eq!(
        (x.dims.as_slice(), x.strides.as_slice()),
        (&[2, 4, 5, 7][..], &[140, 1, 28, 4][..])
    );
    assert_eq!(
        (w.dims.as_slice(), w.strides.as_slice()),
        (&[6, 2, 3, 3][..], &[18, 1, 6, 2][..])
    );
    // (5 + 1 + 0 - 3) / 2 + 1 and (7 + 1 + 2 - 3) / 1 + 1.
    assert_eq!(y.dims, [2, 6, 2, 8]);
    assert_eq!(graph.nodes[0].compute_type, DataType::Float);
    assert_eq!(graph.io_type, DataType::Half);
}

#[test]
fn fused_convolutions_follow_the_provider_table() {
    let plain = graph("conv.fprop+bias+relu/f16/c4-k6-i5x5-f3x3/lo0-up6");
    assert_eq!(plain.nodes.len(), 3);
    let types: Vec<DataType> = plain.nodes.iter().map(|node| node.compute_type).collect();
    assert_eq!(types, [DataType::Float, DataType::Half, DataType::Float]);
    assert_eq!(named(&plain, "bias").dims, [1, 6, 1, 1]);
    for name in ["conv_y", "bias_y"] {
        assert!(named(&plain, name).is_virtual);
        assert_eq!(named(&plain, name).data_type, DataType::Float);
    }
    let Node::Pointwise(activation) = &plain.nodes[2].attributes else {
        panic!("the third node is the activation");
    };
    assert_eq!(activation.relu_upper_clip, Some(6.0));
    assert_eq!(activation.relu_lower_clip_slope, None);
    let outputs: Vec<&str> = plain.outputs().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(outputs, ["y"]);

    let narrow = graph("conv.fprop+bias+relu/f16/c4-k6-i5x5-f3x3/vio");
    assert_eq!(named(&narrow, "conv_y").data_type, DataType::Half);
}

#[test]
fn training_has_statistics_only_where_asked_and_scalars_by_value() {
    let all = graph("batchnorm.training/bf16+f32/nhwc/n2-c3-i4x4/stats-run");
    let outputs: Vec<&str> = all.outputs().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(outputs.len(), 5, "{outputs:?}");
    assert_eq!(
        named(&all, "epsilon").value,
        Some(TensorValue::Float32(1e-5))
    );
    assert_eq!(named(&all, "momentum").dims, [1]);
    assert_eq!(named(&all, "scale").data_type, DataType::Float);
    assert_eq!(named(&all, "scale").dims, [1, 3, 1, 1]);
    let none = graph("batchnorm.training/f32/n2-c3-i4x4");
    assert_eq!(none.outputs().count(), 1);
    let double = graph("batchnorm.training/f64/n2-c3-i4x4");
    assert_eq!(
        named(&double, "epsilon").value,
        Some(TensorValue::Float64(1e-5))
    );
}

#[test]
fn the_backward_chain_shares_x_scale_and_statistics() {
    let graph = graph("batchnorm.inference+relu_bwd+batchnorm.backward/f16+f32/n2-c3-i4x4");
    assert_eq!(graph.nodes.len(), 3);
    let Node::Pointwise(middle) = &graph.nodes[1].attributes else {
        panic!("the second node is the activation");
    };
    assert_eq!(middle.operation, PointwiseMode::ReluBwd);
    assert_eq!(Some(middle.in_0_tensor_uid), tensor_uid("dy"));
    assert_eq!(middle.in_1_tensor_uid, tensor_uid("bn_y"));
    let Node::BatchnormBackward(last) = &graph.nodes[2].attributes else {
        panic!("the third node is the backward norm");
    };
    assert_eq!(Some(last.x_tensor_uid), tensor_uid("x"));
    assert_eq!(last.mean_tensor_uid, tensor_uid("mean"));
    let outputs: Vec<&str> = graph.outputs().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(outputs, ["dx", "dscale", "dbias"]);
}

#[test]
fn broadcast_operands_are_packed_in_the_layout_and_beta_goes_to_the_right_field() {
    let add = graph("pointwise.add/nhwc/n2-c3-i4x5/in0.3x4x5-in1.1x3x1x1");
    assert_eq!(named(&add, "in0").strides, [1, 15, 3]);
    assert_eq!(named(&add, "in1").dims, [1, 3, 1, 1]);
    for (op, swish, softplus) in [
        ("swish_bwd", Some(2.0), None),
        ("softplus_bwd", None, Some(2.0)),
    ] {
        let graph = graph(&format!("pointwise.{op}/c3-i4x5/beta2"));
        let Node::Pointwise(node) = &graph.nodes[0].attributes else {
            panic!("one pointwise node");
        };
        assert_eq!((node.swish_beta, node.softplus_beta), (swish, softplus));
    }
}

#[test]
fn strides_reach_every_tensor_of_full_shape() {
    let graph = graph("pointwise.add/nchw~s96x32x8x2/n2-c3-i4x4/in1.1");
    assert_eq!(named(&graph, "in0").strides, [96, 32, 8, 2]);
    assert_eq!(named(&graph, "out").strides, [96, 32, 8, 2]);
    assert_eq!(named(&graph, "in1").strides, [1]);
}

#[test]
fn select_takes_its_mask_last() {
    let graph = graph("pointwise.binary_select/f32+f32+u8+f32/c3-i4x4");
    assert_eq!(named(&graph, "in2").data_type, DataType::Uint8);
    assert_eq!(named(&graph, "out").data_type, DataType::Float);
}

#[test]
fn uids_and_names_are_unique() {
    for (i, (name, uid)) in TENSOR_UIDS.iter().enumerate() {
        assert_eq!(tensor_uid(name), Some(*uid));
        assert!(TENSOR_UIDS[i + 1..].iter().all(|other| other.1 != *uid));
    }
}
