//! What is written is read back the same, and what cannot be written is refused by name.

use crate::arbitrary::{Tape, configs, details, graphs, node};
use crate::golden::add;
use dnn_assay_abi::ApiVersion;
use dnn_assay_graph::schema::{MatmulAttributes, PointwiseAttributes};
use dnn_assay_graph::wire::*;
use dnn_assay_graph::{Attributes, DataType, Graph, Node, Tensor, TensorValue};
use proptest::prelude::*;
use rstest::rstest;

proptest! {
    #[test]
    fn current_graphs(graph in graphs(Generation::Current)) {
        let bytes = write_graph(&graph, Generation::Current).unwrap();
        let (read, generation) = read_graph(&bytes).unwrap();
        prop_assert_eq!(generation, Generation::Current);
        prop_assert_eq!(read, graph);
    }

    #[test]
    fn graphs_of_2025_11(graph in graphs(Generation::Nov2025)) {
        let bytes = write_graph(&graph, Generation::Nov2025).unwrap();
        let seen = detect(&bytes).unwrap();
        prop_assert_eq!(seen == Generation::Nov2025, !graph.nodes.is_empty());
        prop_assert_eq!(read_graph_as(&bytes, Generation::Nov2025).unwrap(), graph);
    }

    #[test]
    fn engine_configs(config in configs()) {
        let bytes = write_engine_config(&config, Generation::Current).unwrap();
        prop_assert_eq!(read_engine_config(&bytes).unwrap(), config);
    }

    #[test]
    fn engine_details(details in details()) {
        let bytes = write_engine_details(&details, Generation::Current).unwrap();
        prop_assert_eq!(read_engine_details(&bytes).unwrap(), details);
    }
}

/// Chance might pass a kind over; this does not.
#[test]
fn every_kind_with_every_field() {
    for kind in Attributes::all() {
        for seed in 1..20u64 {
            let words = (1..200).map(|i| (seed * i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7);
            let node = node(
                kind.clone(),
                &mut Tape::new(words.collect()),
                DataType::Half,
            );
            let graph = Graph {
                nodes: vec![node],
                ..Graph::default()
            };
            let bytes = write_graph(&graph, Generation::Current).unwrap();
            assert_eq!(read_graph(&bytes).unwrap().0, graph, "{}", kind.kind());
        }
    }
}

/// Zero is a value where presence is the value.
#[test]
fn present_zeros_stay_present() {
    let mut graph = add();
    graph.preferred_engine_id = Some(0);
    graph.min_engine_api = Some(ApiVersion::new(0, 0, 0));
    graph.id = Some([0; 16]);
    graph.tensors[0].ragged_offset_uid = Some(0);
    graph.tensors[1].value = Some(TensorValue::Bool(false));
    graph.nodes[0].attributes = PointwiseAttributes {
        relu_lower_clip: Some(0.0),
        in_1_tensor_uid: Some(0),
        ..Default::default()
    }
    .into();
    let bytes = write_graph(&graph, Generation::Current).unwrap();
    assert_eq!(read_graph(&bytes).unwrap().0, graph);
}

/// The bits of a NaN pass through.
#[test]
fn nan_payloads_survive() {
    let bits = 0x7fc1_2345;
    let mut graph = add();
    graph.tensors[0].value = Some(TensorValue::Float32(f32::from_bits(bits)));
    let bytes = write_graph(&graph, Generation::Current).unwrap();
    match read_graph(&bytes).unwrap().0.tensors[0].value {
        Some(TensorValue::Float32(value)) => assert_eq!(value.to_bits(), bits),
        other => panic!("{other:?}"),
    }
}

fn with(change: impl FnOnce(&mut Graph)) -> Graph {
    let mut graph = add();
    change(&mut graph);
    graph
}

#[rstest]
#[case(with(|g| g.preferred_engine_id = Some(3)), "Graph.preferred_engine_id")]
#[case(with(|g| g.override_shapes = true), "Graph.is_override_shape_enabled")]
#[case(with(|g| g.min_engine_api = Some(ApiVersion::new(1, 0, 0))), "Graph.min_required_engine_api_version")]
#[case(with(|g| g.id = Some([1; 16])), "Graph.id")]
#[case(with(|g| g.io_type = DataType::Int8), "Graph.io_data_type")]
#[case(with(|g| g.tensors[1].data_type = DataType::Int64), "tensors[1]: TensorAttributes.data_type")]
#[case(with(|g| g.tensors[2].value = Some(TensorValue::Int64(1))), "tensors[2]: TensorAttributes.value")]
#[case(with(|g| g.tensors[0].runtime_pass_by_value = true), "tensors[0]: TensorAttributes.is_runtime_pass_by_value")]
#[case(with(|g| g.tensors[0].ragged_offset_uid = Some(1)), "tensors[0]: TensorAttributes.ragged_offset_tensor_uid")]
#[case(with(|g| g.tensors[0].alignment = 64), "tensors[0]: TensorAttributes.alignment")]
#[case(with(|g| g.tensors[0].ragged_offset_multiplier = 2), "tensors[0]: TensorAttributes.ragged_offset_multiplier")]
#[case(with(|g| g.nodes[0].compute_type = DataType::Half), "nodes[0]: Node.compute_data_type")]
#[case(with(|g| g.nodes[0].attributes = MatmulAttributes::default().into()), "nodes[0]: Node.attributes")]
fn what_2025_11_cannot_express_is_named(#[case] graph: Graph, #[case] place: &str) {
    let error = write_graph(&graph, Generation::Nov2025).unwrap_err();
    assert!(matches!(error, WireError::Inexpressible { .. }), "{error}");
    let expected = format!("{place}: the 2025-11 wire cannot express ");
    assert!(error.to_string().starts_with(&expected), "{error}");
    let bytes = write_graph(&graph, Generation::Current).unwrap();
    assert_eq!(read_graph(&bytes).unwrap().0, graph);
}

/// In 2025-11 the graph's compute type holds for every node, so the same type is no loss.
#[test]
fn a_node_that_computes_as_its_graph_is_expressible() {
    let bytes = write_graph(&add(), Generation::Nov2025).unwrap();
    let expected = with(|graph| graph.nodes[0].compute_type = DataType::Unset);
    assert_eq!(read_graph(&bytes).unwrap(), (expected, Generation::Nov2025));
}

#[test]
fn knobs_details_and_names_need_the_current_wire() {
    let config = EngineConfig {
        engine_id: 1,
        knobs: vec![KnobSetting {
            knob_id: "k".to_owned(),
            value: KnobValue::Int(1),
        }],
    };
    let error = write_engine_config(&config, Generation::Nov2025).unwrap_err();
    assert_eq!(
        error.to_string(),
        "EngineConfig.knobs: the 2025-11 wire cannot express settings of knobs"
    );
    let details = EngineDetails {
        name: "N".to_owned(),
        ..Default::default()
    };
    let error = write_engine_details(&details, Generation::Nov2025).unwrap_err();
    assert!(
        error.to_string().starts_with("EngineDetails.name: "),
        "{error}"
    );
}

#[test]
fn a_graph_that_no_reader_would_take_is_refused() {
    let graph = Graph {
        tensors: vec![Tensor::default(); 200_000],
        ..Graph::default()
    };
    let error = write_graph(&graph, Generation::Current).unwrap_err();
    assert!(matches!(error, WireError::TooLarge { .. }), "{error}");
    let data = vec![0; 65 << 20];
    let custom = dnn_assay_graph::schema::CustomOpAttributes {
        data,
        ..Default::default()
    };
    let graph = Graph {
        nodes: vec![Node {
            name: String::new(),
            compute_type: DataType::Unset,
            attributes: custom.into(),
        }],
        ..Graph::default()
    };
    let error = write_graph(&graph, Generation::Current).unwrap_err();
    assert!(matches!(error, WireError::TooLarge { .. }), "{error}");
}
