//! Bytes that nobody vouches for: errors with a place, never a panic.

use crate::golden::{add, bytes};
use dnn_assay_graph::schema::{ConvolutionBwdAttributes, ConvolutionFwdAttributes};
use dnn_assay_graph::wire::*;
use dnn_assay_graph::{DataType, Graph, TensorValue};
use flatbuffers::FlatBufferBuilder;
use proptest::prelude::*;
use rstest::rstest;

const VECTORS: [&str; 7] = [
    "graph_add",
    "tensor_with_float32_value",
    "engine_config_plain",
    "engine_config_knob",
    "engine_config_nov2025",
    "engine_details_plain",
    "engine_details_knob",
];

/// Every reader; what they say does not matter.
fn read_all(bytes: &[u8]) {
    let _ = read_graph(bytes);
    for &generation in Generation::ALL {
        let _ = read_graph_as(bytes, generation);
    }
    let _ = read_engine_config(bytes);
    let _ = read_engine_details(bytes);
}

#[rstest]
fn every_truncation_is_an_error_or_a_value(#[values(0, 1, 2, 3, 4, 5, 6)] vector: usize) {
    let whole = bytes(VECTORS[vector]);
    for end in 0..whole.len() {
        read_all(&whole[..end]);
    }
}

/// Less than the whole is never the same graph.
#[test]
fn a_truncated_graph_is_malformed() {
    let whole = bytes("graph_add");
    let refused = (0..whole.len()).filter(|&end| read_graph(&whole[..end]).is_err());
    assert_eq!(refused.count(), whole.len());
}

#[test]
fn every_single_bit_flip() {
    for vector in VECTORS {
        let mut flipped = bytes(vector);
        for bit in 0..8 * flipped.len() {
            flipped[bit / 8] ^= 1 << (bit % 8);
            read_all(&flipped);
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

proptest! {
    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        read_all(&bytes);
    }

    #[test]
    fn several_random_changes(
        vector in 0..VECTORS.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut changed = bytes(VECTORS[vector]);
        for (at, byte) in changes {
            let at = at.index(changed.len());
            changed[at] = byte;
        }
        read_all(&changed);
    }
}

/// Writes a graph, replaces the only occurrence of some bytes, and reads it.
fn patch(graph: &Graph, from: &[u8], to: &[u8]) -> WireError {
    let mut bytes = write_graph(graph, Generation::Current).unwrap();
    let found: Vec<usize> = (0..bytes.len() - from.len())
        .filter(|&at| bytes[at..].starts_with(from))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    bytes[found[0]..found[0] + to.len()].copy_from_slice(to);
    read_graph(&bytes).unwrap_err()
}

#[test]
fn a_string_that_is_not_utf8() {
    let mut graph = add();
    graph.tensors[1].name = "abcdefg".to_owned();
    let error = patch(&graph, b"abcdefg", b"abc\xffefg");
    let text = error.to_string();
    assert!(
        text.contains("Utf8 error") && text.contains("`tensors`"),
        "{text}"
    );
    assert!(!text.contains('\n'), "{text}");
}

#[test]
fn a_string_without_its_end() {
    let mut graph = add();
    graph.tensors[1].name = "abcdefg".to_owned();
    let error = patch(&graph, b"abcdefg\0", b"abcdefg!");
    assert!(error.to_string().contains("null terminator"), "{error}");
}

/// The bytes of `a` with another byte at the first place where those of `b` differ.
fn with_differing_byte(a: &Graph, b: &Graph, generation: Generation, byte: u8) -> Vec<u8> {
    let mut bytes = write_graph(a, generation).unwrap();
    let other = write_graph(b, generation).unwrap();
    let at = bytes.iter().zip(&other).position(|(x, y)| x != y).unwrap();
    bytes[at] = byte;
    bytes
}

/// What the reader says of such bytes in the current wire.
fn set_differing_byte(a: &Graph, b: &Graph, byte: u8) -> WireError {
    read_graph(&with_differing_byte(a, b, Generation::Current, byte)).unwrap_err()
}

/// Each generation has its own members; the tag of a conv node becomes another.
#[rstest]
#[case(
    Generation::Nov2025,
    8,
    "union NodeAttributes has no member 8 in the 2025-11 wire (1 to 7)"
)]
#[case(
    Generation::Current,
    24,
    "union NodeAttributes has no member 24 in the current wire (1 to 23)"
)]
#[case(Generation::Nov2025, 0, "expected a value, saw none")]
#[case(Generation::Current, 0, "expected a value, saw none")]
fn an_unknown_node(#[case] generation: Generation, #[case] tag: u8, #[case] expected: &str) {
    let (mut a, mut b) = (add(), add());
    a.nodes[0].attributes = ConvolutionFwdAttributes::default().into();
    b.nodes[0].attributes = ConvolutionBwdAttributes::default().into();
    let bytes = with_differing_byte(&a, &b, generation, tag);
    assert_eq!(
        read_graph(&bytes).unwrap_err().to_string(),
        format!("nodes[0]: Node.attributes: {expected}")
    );
}

#[test]
fn a_data_type_of_a_later_generation() {
    let (a, mut b) = (add(), add());
    b.tensors[2].data_type = DataType::Half;
    let bytes = with_differing_byte(&a, &b, Generation::Nov2025, 7);
    assert_eq!(
        read_graph(&bytes).unwrap_err().to_string(),
        "tensors[2]: TensorAttributes.data_type: DataType has no value 7 in the 2025-11 wire \
         (0 to 6)"
    );
}

#[test]
fn an_unknown_data_type() {
    let (a, mut b) = (add(), add());
    b.tensors[2].data_type = DataType::Half;
    assert_eq!(
        set_differing_byte(&a, &b, 99).to_string(),
        "tensors[2]: TensorAttributes.data_type: DataType has no value 99 in the current wire \
         (0 to 17)"
    );
}

#[test]
fn an_unknown_pointwise_mode() {
    let (a, mut b) = (add(), add());
    if let dnn_assay_graph::Attributes::Pointwise(attributes) = &mut b.nodes[0].attributes {
        attributes.operation = dnn_assay_graph::PointwiseMode::Mul;
    }
    assert_eq!(
        set_differing_byte(&a, &b, 0x80).to_string(),
        "nodes[0]: PointwiseAttributes.operation: PointwiseMode has no value -128 in the current \
         wire (0 to 47)"
    );
}

#[test]
fn an_unknown_scalar() {
    let (mut a, mut b) = (add(), add());
    a.tensors[0].value = Some(TensorValue::Float32(1.0));
    b.tensors[0].value = Some(TensorValue::Float16(1.0));
    assert_eq!(
        set_differing_byte(&a, &b, 9).to_string(),
        "tensors[0]: TensorAttributes.value: union TensorValue has no member 9 in the current \
         wire (1 to 8)"
    );
}

/// One byte stands at an odd place; as an f32 it must not.
#[test]
fn a_misaligned_scalar() {
    let (mut a, mut b) = (add(), add());
    a.tensors[0].value = Some(TensorValue::Float8(1));
    b.tensors[0].value = Some(TensorValue::Bool(true));
    let error = set_differing_byte(&a, &b, 1);
    assert!(error.to_string().contains("unaligned"), "{error}");
}

/// A graph of `nodes` nodes that are all the same node, with a megabyte of payload.
fn shared_node(nodes: usize) -> Vec<u8> {
    let slot = |id: u16| 4 + 2 * id;
    let mut builder = FlatBufferBuilder::new();
    let data = builder.create_vector(&vec![7u8; 1 << 20]);
    let table = builder.start_table();
    builder.push_slot_always(slot(3), data);
    let attributes = builder.end_table(table);
    let table = builder.start_table();
    builder.push_slot_always(slot(3), attributes);
    builder.push_slot_always(slot(2), 16u8);
    let node = builder.end_table(table);
    let nodes = builder.create_vector(&vec![node; nodes]);
    let table = builder.start_table();
    builder.push_slot_always(slot(5), nodes);
    let root = builder.end_table(table);
    builder.finish_minimal(root);
    builder.finished_data().to_vec()
}

/// Shared parts are small on the wire and large when read.
#[test]
fn sharing_does_not_amplify_without_bound() {
    assert_eq!(read_graph(&shared_node(3)).unwrap().0.nodes.len(), 3);
    let error = read_graph(&shared_node(1000)).unwrap_err();
    assert!(
        error.to_string().contains("Apparent size too large"),
        "{error}"
    );
}

/// A force-defaults writer stores the tag NONE; no value is then no fault.
#[test]
fn a_stored_none_is_none() {
    let (mut a, mut b) = (add(), add());
    a.tensors[0].value = Some(TensorValue::Float32(1.0));
    b.tensors[0].value = Some(TensorValue::Float16(1.0));
    let bytes = with_differing_byte(&a, &b, Generation::Current, 0);
    assert_eq!(read_graph(&bytes).unwrap().0, add());
}
