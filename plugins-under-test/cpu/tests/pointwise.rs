//! Pointwise operations of the built plugin by hand, and the plugin as a whole.

#![allow(clippy::unwrap_used)]

#[path = "../../sdk/tests/host/mod.rs"]
#[allow(dead_code, clippy::undocumented_unsafe_blocks)]
mod host;
#[allow(dead_code)]
mod support;

use dnn_assay_graph::schema::*;
use dnn_assay_graph::semantics::pointwise_modes;
use dnn_assay_graph::{Attributes, DataType, PointwiseMode, Tensor};
use host::{graph, pointwise};
use support::{close, encode, f32s, open, plugin};

#[test]
fn exactly_the_abi_is_exported_and_the_memory_is_the_hosts() {
    let abi = host::abi_symbols_without(&["SerializeExecutionContext"]);
    assert_eq!(host::exported(&plugin()), abi);
    assert_eq!(host::memory_note(&plugin()).as_deref(), Some("memory=host"));
    let host = open();
    assert_eq!(
        host.engine_name(host.engines()[0]).unwrap(),
        "DNN_ASSAY_CPU_ENGINE"
    );
}

#[test]
fn pointwise_by_hand_in_every_arity() {
    let host = open();
    let run = |mode, operands: &[&[f32]]| {
        let n = operands[0].len() as i64;
        let graph = pointwise(mode, &vec![[n].as_slice(); operands.len()], &[n]);
        let inputs: Vec<(i64, &[f32])> = (1..).zip(operands.iter().copied()).collect();
        host.run(&graph, &inputs)[&9].clone()
    };
    use PointwiseMode::*;
    let x: &[f32] = &[-2.0, 0.0, 1.5];
    let y: &[f32] = &[3.0, 0.0, -1.5];
    assert_eq!(run(Neg, &[x]), [2.0, 0.0, -1.5]);
    assert_eq!(run(Floor, &[x]), [-2.0, 0.0, 1.0]);
    assert_eq!(run(LogicalNot, &[x]), [0.0, 1.0, 0.0]);
    close(&run(SigmoidFwd, &[x]), &[0.119_202_92, 0.5, 0.817_574_5]);
    close(&run(GeluFwd, &[x]), &[-0.045_500_264, 0.0, 1.399_789_2]);
    assert_eq!(run(Sub, &[x, y]), [-5.0, 0.0, 3.0]);
    assert_eq!(run(AddSquare, &[x, y]), [7.0, 0.0, 3.75]);
    assert_eq!(run(CmpGe, &[x, y]), [0.0, 1.0, 1.0]);
    assert_eq!(run(MaxOp, &[x, y]), [3.0, 0.0, 1.5]);
    // dy first, then the forward input.
    assert_eq!(run(ReluBwd, &[x, y]), [-2.0, 0.0, 0.0]);
    assert_eq!(
        run(BinarySelect, &[x, y, &[0.0, 1.0, -1.0]]),
        [3.0, 0.0, 1.5]
    );
}

#[test]
fn every_mode_is_taken_in_every_float_type() {
    let host = open();
    for facts in pointwise_modes() {
        for data_type in [
            DataType::Float,
            DataType::Half,
            DataType::Bfloat16,
            DataType::Double,
        ] {
            let dims = [2i64, 3];
            let mut graph = pointwise(facts.mode, &vec![dims.as_slice(); facts.arity()], &dims);
            graph
                .tensors
                .iter_mut()
                .for_each(|t| t.data_type = data_type);
            if let Attributes::Pointwise(a) = &mut graph.nodes[0].attributes
                && facts.mode == PointwiseMode::GenIndex
            {
                a.axis_tensor_uid = Some(1);
            }
            assert!(host.takes(&graph), "{} {data_type}", facts.name);
            let inputs = graph
                .inputs()
                .map(|t| (t.uid, encode(t, &[0.5; 6])))
                .collect();
            host.run_bytes(&graph, inputs);
        }
    }
}

#[test]
fn operands_are_broadcast_from_the_last_axis() {
    let host = open();
    let add = pointwise(PointwiseMode::Sub, &[&[2, 1, 3], &[2, 1]], &[2, 2, 3]);
    let got = host.run(
        &add,
        &[(1, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), (2, &[10.0, 20.0])],
    );
    let expected = [
        -9., -8., -7., -19., -18., -17., -6., -5., -4., -16., -15., -14.,
    ];
    assert_eq!(got[&9], expected);
    let mut index = pointwise(PointwiseMode::GenIndex, &[&[2, 3]], &[2, 3]);
    if let Attributes::Pointwise(a) = &mut index.nodes[0].attributes {
        a.axis_tensor_uid = Some(1);
    }
    assert_eq!(
        host.run(&index, &[(1, &[9.0; 6])])[&9],
        [0., 1., 2., 0., 1., 2.]
    );
}

#[test]
fn what_is_not_supported_is_declined() {
    let host = open();
    let add = || pointwise(PointwiseMode::Add, &[&[2], &[2]], &[2]);
    assert!(host.takes(&add()));
    let mut fp8 = add();
    fp8.tensors
        .iter_mut()
        .for_each(|t| t.data_type = DataType::Fp8E4m3);
    let mut ragged = add();
    ragged
        .tensors
        .push(Tensor::packed(20, "", DataType::Int32, &[2]));
    ragged.tensors[0].ragged_offset_uid = Some(20);
    let matmul = graph(
        vec![f32s(1, &[2, 2]), f32s(2, &[2, 2]), f32s(3, &[2, 2])],
        vec![
            MatmulAttributes {
                a_tensor_uid: 1,
                b_tensor_uid: 2,
                c_tensor_uid: 3,
            }
            .into(),
        ],
    );
    for (what, graph) in [("fp8", fp8), ("ragged", ragged), ("matmul", matmul)] {
        assert!(!host.takes(&graph), "{what}");
    }
}

#[test]
fn nan_goes_through_a_relu() {
    let host = open();
    let relu = pointwise(PointwiseMode::ReluFwd, &[&[2]], &[2]);
    assert!(host.run(&relu, &[(1, &[f32::NAN, 1.0])])[&9][0].is_nan());
}
