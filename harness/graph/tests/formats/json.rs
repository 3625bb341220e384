//! The bundle's JSON: upstream's spelling is written, more than that is read, errors say where.

use crate::arbitrary::{Tape, graphs, node};
use crate::golden::add;
use dnn_assay_abi::ApiVersion;
use dnn_assay_graph::json::{JsonError, from_str, to_string};
use dnn_assay_graph::schema::*;
use dnn_assay_graph::wire::Generation;
use dnn_assay_graph::{
    Attributes, ConvMode, DataType, Graph, Node, NormFwdPhase, PaddingMode, PointwiseMode,
    ReductionMode, ResampleMode, TensorValue,
};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use std::path::Path;

proptest! {
    #[test]
    fn graphs_round_trip(graph in graphs(Generation::Current)) {
        prop_assert_eq!(from_str(&to_string(&graph)).unwrap(), graph);
    }

    #[test]
    fn any_text_is_an_error_or_a_graph(text in "[\\[{}\\]\":,a-z0-9 ]{0,80}") {
        let _ = from_str(&text);
    }
}

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
            assert_eq!(
                from_str(&to_string(&graph)).unwrap(),
                graph,
                "{}",
                kind.kind()
            );
        }
    }
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/json")
        .join(name);
    std::fs::read_to_string(path).expect("the example is in the repository")
}

#[test]
fn conv_bias_relu() {
    let graph = from_str(&example("conv_bias_relu.json")).unwrap();
    assert_eq!(graph.io_type, DataType::Half);
    assert_eq!(graph.tensor(1).unwrap().strides, [392, 1, 56, 8]);
    assert!(graph.tensor(3).unwrap().is_virtual);
    let conv = ConvolutionFwdAttributes {
        x_tensor_uid: 1,
        w_tensor_uid: 2,
        y_tensor_uid: 3,
        pre_padding: vec![1, 1],
        post_padding: vec![1, 1],
        stride: vec![1, 1],
        dilation: vec![1, 1],
        conv_mode: ConvMode::CrossCorrelation,
    };
    assert_eq!(graph.nodes[0].attributes, conv.into());
    let relu = PointwiseAttributes {
        operation: PointwiseMode::ReluFwd,
        relu_lower_clip: Some(0.0),
        relu_upper_clip: Some(6.0),
        relu_lower_clip_slope: Some(0.1),
        in_0_tensor_uid: 5,
        out_0_tensor_uid: 6,
        ..Default::default()
    };
    assert_eq!(graph.nodes[2].attributes, relu.into());
    // Written again, it is the same JSON but for keys that had been left at their defaults.
    let written: Value = serde_json::from_str(&to_string(&graph)).unwrap();
    let original: Value = serde_json::from_str(&example("conv_bias_relu.json")).unwrap();
    assert_eq!(written["nodes"], original["nodes"]);
}

#[test]
fn batchnorm_training() {
    let graph = from_str(&example("batchnorm_training.json")).unwrap();
    assert_eq!(graph.preferred_engine_id, Some(-2));
    assert_eq!(graph.min_engine_api, Some(ApiVersion::new(1, 3, 0)));
    assert_eq!(
        graph.id.unwrap(),
        [
            1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd,
            0xef
        ]
    );
    assert_eq!(graph.tensor(1).unwrap().alignment, 64);
    assert_eq!(
        graph.tensor(4).unwrap().value,
        Some(TensorValue::Float32(1e-5))
    );
    assert_eq!(
        graph.tensor(5).unwrap().value,
        Some(TensorValue::Float64(0.1))
    );
    assert_eq!(graph.nodes[0].attributes.outputs(), [8, 9, 10]);
    let written: Value = serde_json::from_str(&to_string(&graph)).unwrap();
    let original: Value = serde_json::from_str(&example("batchnorm_training.json")).unwrap();
    assert_eq!(written["nodes"], original["nodes"]);
    for key in [
        "id",
        "preferred_engine_id",
        "min_required_engine_api_version",
    ] {
        assert_eq!(written[key], original[key]);
    }
}

#[test]
fn reduction_flat() {
    let graph = from_str(&example("reduction_flat.json")).unwrap();
    assert_eq!(graph.compute_type, DataType::Double);
    let reduction = ReductionAttributes {
        mode: ReductionMode::MaxOp,
        in_tensor_uid: 1,
        out_tensor_uid: 2,
        is_deterministic: true,
    };
    assert_eq!(graph.nodes[0].attributes, reduction.into());
    let written: Value = serde_json::from_str(&to_string(&graph)).unwrap();
    assert_eq!(written["nodes"][0]["mode"], "max");
}

/// The JSON of a node with these attributes.
fn written(attributes: impl Into<Attributes>) -> Value {
    let graph = Graph {
        nodes: vec![Node {
            name: "n".to_owned(),
            compute_type: DataType::Float,
            attributes: attributes.into(),
        }],
        ..Graph::default()
    };
    let value: Value = serde_json::from_str(&to_string(&graph)).unwrap();
    value["nodes"][0].clone()
}

/// Each kind's own habits: where parameters stand, what absent looks like, how enums are spelt.
#[test]
fn the_spelling_of_the_kinds() {
    let sdpa = written(SdpaAttributes::default());
    assert_eq!(sdpa["attributes"]["diagonal_alignment"], "TOP_LEFT");
    assert_eq!(sdpa["attributes"]["mma_core_mode"], "unset");
    assert_eq!(sdpa["inputs"]["scale_tensor_uid"], Value::Null);
    assert!(
        sdpa["inputs"]
            .as_object()
            .unwrap()
            .contains_key("scale_tensor_uid")
    );

    let backward = written(SdpaBackwardAttributes::default());
    assert_eq!(backward["parameters"]["alibi_mask"], false);

    let layernorm = written(LayernormAttributes {
        forward_phase: NormFwdPhase::Training,
        ..Default::default()
    });
    assert_eq!(layernorm["forward_phase"], 2);
    let rmsnorm = written(RMSNormAttributes {
        forward_phase: NormFwdPhase::Training,
        ..Default::default()
    });
    assert_eq!(rmsnorm["forward_phase"], "TRAINING");
    assert!(
        !rmsnorm["inputs"]
            .as_object()
            .unwrap()
            .contains_key("bias_tensor_uid")
    );

    let resample = written(ResampleFwdAttributes {
        resample_mode: ResampleMode::Maxpool,
        padding_mode: PaddingMode::ZeroPad,
        x_tensor_uid: 4,
        ..Default::default()
    });
    assert_eq!(
        (
            &resample["resample_mode"],
            &resample["padding_mode"],
            &resample["x_tensor_uid"]
        ),
        (&json!(1), &json!(2), &json!(4))
    );
    assert!(!resample.as_object().unwrap().contains_key("inputs"));

    let maximum = written(PointwiseAttributes {
        operation: PointwiseMode::MaxOp,
        ..Default::default()
    });
    assert_eq!(maximum["inputs"]["operation"], "max_op");
    let custom = written(CustomOpAttributes {
        data: vec![1, 255],
        ..Default::default()
    });
    assert_eq!(custom["data"], json!([1, 255]));
}

/// The add graph as JSON, changed.
fn changed(change: impl FnOnce(&mut Value)) -> Result<Graph, JsonError> {
    let mut value = serde_json::from_str(&to_string(&add())).unwrap();
    change(&mut value);
    from_str(&value.to_string())
}

#[test]
fn fields_are_found_wherever_a_kind_may_put_them() {
    let graph = changed(|value| {
        let node = &mut value["nodes"][0];
        node["inputs"].as_object_mut().unwrap().remove("operation");
        node["attributes"] = json!({"operation": "ADD"});
        node["type"] = json!("Pointwise");
        node["inputs"].as_object_mut().unwrap().remove("swish_beta");
        value["tensors"][0]["data_type"] = json!(1);
        value["x_future_key"] = json!({"anything": 1});
    });
    assert_eq!(graph.unwrap(), add());
}

#[test]
fn a_scalar_without_value_type_follows_the_tensor() {
    let graph = changed(|value| value["tensors"][0]["value"] = json!(0.5)).unwrap();
    assert_eq!(graph.tensors[0].value, Some(TensorValue::Float32(0.5)));
    let error = changed(|value| {
        value["tensors"][0]["value"] = json!(1);
        value["tensors"][0]["data_type"] = json!("uint8");
    });
    assert_eq!(
        error.unwrap_err().to_string(),
        "graph.tensors[0]: expected the key \"value_type\", saw none; did you mean \"value\"?"
    );
}

#[test]
fn what_json_has_no_numbers_for() {
    let mut graph = add();
    graph.tensors[0].value = Some(TensorValue::Float64(f64::NEG_INFINITY));
    assert_eq!(from_str(&to_string(&graph)).unwrap(), graph);
    graph.tensors[0].value = Some(TensorValue::Float32(f32::NAN));
    let read = from_str(&to_string(&graph)).unwrap();
    assert!(matches!(read.tensors[0].value, Some(TensorValue::Float32(v)) if v.is_nan()));
}

#[rstest]
#[case::wrong_type("/tensors/1/uid", json!("seven"),
    "graph.tensors[1].uid: expected a 64-bit integer, saw \"seven\"")]
#[case::too_large("/tensors/1/dims/0", json!(u64::MAX),
    "graph.tensors[1].dims[0]: expected a 64-bit integer, saw 18446744073709551615")]
#[case::fraction("/nodes/0/inputs/in_0_tensor_uid", json!(1.5),
    "graph.nodes[0].inputs.in_0_tensor_uid: expected a 64-bit integer, saw 1.5")]
#[case::data_type("/tensors/2/data_type", json!("flaot"),
    "graph.tensors[2].data_type: unknown DataType \"flaot\"; did you mean \"FLOAT\"?")]
#[case::data_type_number("/tensors/2/data_type", json!(18),
    "graph.tensors[2].data_type: expected a name or number of DataType, saw 18")]
#[case::node_type("/nodes/0/type", json!("PointwiseAtributes"),
    "graph.nodes[0].type: unknown node type \"PointwiseAtributes\"; did you mean \"PointwiseAttributes\"?")]
#[case::mode("/nodes/0/inputs/operation", json!("relu"),
    "graph.nodes[0].inputs.operation: unknown PointwiseMode \"relu\"; did you mean \"RELU_FWD\"?")]
#[case::not_an_array("/tensors", json!({}), "graph.tensors: expected an array, saw {}")]
#[case::not_an_object("/nodes/0", json!([1]), "graph.nodes[0]: expected an object, saw [1]")]
#[case::no_uid("/nodes/0/outputs", json!({"out_1_tensor_uid": 3}),
    "graph.nodes[0].outputs: unknown key \"out_1_tensor_uid\"; did you mean \"out_0_tensor_uid\"?")]
#[case::absent_uid("/nodes/0/outputs", json!({}),
    "graph.nodes[0].outputs: expected the key \"out_0_tensor_uid\", saw none")]
#[case::unknown_tensor("/nodes/0/outputs/mask_tensor_uid", json!(4),
    "graph.nodes[0].outputs: unknown key \"mask_tensor_uid\"; did you mean \"axis_tensor_uid\"?")]
#[case::twice("/nodes/0/operation", json!("mul"),
    "graph.nodes[0].operation: expected nothing, since graph.nodes[0].inputs.operation says it, saw \"mul\"")]
#[case::slip("/tensors/0/vritual", json!(true), 
    "graph.tensors[0]: unknown key \"vritual\"; did you mean \"virtual\"?")]
#[case::uuid("/id", json!("0123"),
    "graph.id: expected a UUID such as \"01234567-89ab-cdef-0123-456789abcdef\", saw \"0123\"")]
#[case::version(
    "/min_required_engine_api_version",
    json!({"major": 1, "minor": -2, "patch": 0}),
    "graph.min_required_engine_api_version.minor: expected an unsigned 32-bit integer, saw -2"
)]
#[case::half_a_version(
    "/min_required_engine_api_version",
    json!({"major": 1, "minr": 2}),
    "graph.min_required_engine_api_version: unknown key \"minr\"; did you mean \"minor\"?"
)]
#[case::value_type("/tensors/0/value_type", json!("Float23Value"),
    "graph.tensors[0].value_type: unknown value type \"Float23Value\"; did you mean \"Float32Value\"?")]
#[case::out_of_range("/nodes/0/inputs/elu_alpha", json!(1e39),
    "graph.nodes[0].inputs.elu_alpha: expected a number in the range of a 32-bit float, saw 1e+39")]
fn errors_name_the_place(#[case] pointer: &str, #[case] value: Value, #[case] expected: &str) {
    let result = changed(|graph| {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        if key == "vritual" {
            let tensor = graph.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            tensor.remove("virtual");
        }
        match graph.pointer_mut(parent).unwrap() {
            Value::Object(object) => {
                object.insert(key.to_owned(), value);
            }
            other => other[key.parse::<usize>().unwrap()] = value,
        }
    });
    assert_eq!(result.unwrap_err().to_string(), expected);
}

#[test]
fn syntax_errors_name_line_and_column() {
    assert_eq!(
        from_str("{\n  \"tensors\": [,]\n}")
            .unwrap_err()
            .to_string(),
        "line 2, column 15: expected value"
    );
    let deep = "[".repeat(100_000);
    assert!(matches!(from_str(&deep), Err(JsonError::Syntax { .. })));
    assert_eq!(
        from_str("{}").unwrap_err().to_string(),
        "graph: expected the key \"tensors\", saw none"
    );
}

/// Without the exact parser of `serde_json` some of these would move by a unit in the last place.
#[rstest]
#[case(f64::MIN_POSITIVE)]
#[case(5e-324)]
#[case(f64::MAX)]
#[case(0.1 + 0.2)]
#[case(9.007_199_254_740_993e15)]
#[case(-1.234_567_890_123_456_7e-300)]
fn floats_are_exact(#[case] number: f64) {
    let mut graph = add();
    graph.tensors[0].value = Some(TensorValue::Float64(number));
    assert_eq!(from_str(&to_string(&graph)).unwrap(), graph);
}
