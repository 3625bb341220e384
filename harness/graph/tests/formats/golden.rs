//! The golden byte vectors decode to the content that their README states.

use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::wire::*;
use dnn_assay_graph::{DataType, Graph, Node, PointwiseMode, Tensor};
use rstest::rstest;
use std::path::Path;

/// The bytes of a vector in `fixtures/wire`.
pub fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/wire")
        .join(name)
        .with_extension("hex");
    let text = std::fs::read_to_string(&path).expect("the vector is in the repository");
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("hexadecimal")
        })
        .collect()
}

/// The graph that `graph_add.hex` holds.
pub fn add() -> Graph {
    let tensor = |uid| Tensor::packed(uid, "", DataType::Float, &[2, 3]);
    Graph {
        name: "g".to_owned(),
        compute_type: DataType::Float,
        intermediate_type: DataType::Float,
        io_type: DataType::Float,
        tensors: vec![tensor(1), tensor(2), tensor(3)],
        nodes: vec![Node {
            name: "add".to_owned(),
            compute_type: DataType::Float,
            attributes: PointwiseAttributes {
                operation: PointwiseMode::Add,
                in_0_tensor_uid: 1,
                in_1_tensor_uid: Some(2),
                out_0_tensor_uid: 3,
                ..Default::default()
            }
            .into(),
        }],
        ..Graph::default()
    }
}

#[test]
fn graph_add() {
    let (graph, generation) = read_graph(&bytes("graph_add")).unwrap();
    assert_eq!(generation, Generation::Current);
    assert_eq!(graph, add());
}

#[rstest]
#[case("engine_config_plain", 1_563_989_756_945_604_898, &[])]
#[case("engine_config_knob", -2, &[("global.benchmarking", KnobValue::Int(1))])]
#[case("engine_config_nov2025", -77, &[])]
fn engine_config(#[case] name: &str, #[case] engine_id: i64, #[case] knobs: &[(&str, KnobValue)]) {
    let knobs = knobs.iter().map(|(id, value)| KnobSetting {
        knob_id: (*id).to_owned(),
        value: value.clone(),
    });
    let expected = EngineConfig {
        engine_id,
        knobs: knobs.collect(),
    };
    assert_eq!(read_engine_config(&bytes(name)).unwrap(), expected);
}

#[test]
fn engine_config_is_written_as_the_backend_wrote_it() {
    let config = EngineConfig {
        engine_id: -77,
        knobs: Vec::new(),
    };
    for &generation in Generation::ALL {
        assert_eq!(
            write_engine_config(&config, generation).unwrap(),
            bytes("engine_config_nov2025")
        );
    }
}

#[test]
fn engine_details() {
    let plain = EngineDetails {
        engine_id: -2,
        ..Default::default()
    };
    assert_eq!(
        read_engine_details(&bytes("engine_details_plain")).unwrap(),
        plain
    );
    let knob = Knob {
        knob_id: "p.tile".to_owned(),
        description: "d".to_owned(),
        default_value: KnobValue::Int(4),
        constraint: Some(KnobConstraint::Int {
            min: 1,
            max: 8,
            step: 1,
            valid_values: Vec::new(),
        }),
        deprecated: false,
    };
    let expected = EngineDetails {
        engine_id: -2,
        knobs: vec![knob],
        behavior_notes: vec![2],
        name: "N".to_owned(),
    };
    assert_eq!(
        read_engine_details(&bytes("engine_details_knob")).unwrap(),
        expected
    );
}
