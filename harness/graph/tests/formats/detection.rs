//! Which generation a buffer is of.

use crate::golden::add;
use dnn_assay_graph::schema::MatmulAttributes;
use dnn_assay_graph::wire::*;
use dnn_assay_graph::{Graph, Node};
use rstest::rstest;

/// A graph of several relu-like nodes, all alike.
fn several() -> Graph {
    let mut graph = add();
    let node = graph.nodes[0].clone();
    graph.nodes.extend([node.clone(), node]);
    graph
}

#[rstest]
fn what_was_written_is_detected(
    #[values(Generation::Nov2025, Generation::Current)] generation: Generation,
) {
    let bytes = write_graph(&several(), generation).unwrap();
    assert_eq!(detect(&bytes), Ok(generation));
}

#[test]
fn no_nodes_is_current() {
    let empty = Graph::default();
    for &generation in Generation::ALL {
        let bytes = write_graph(&empty, generation).unwrap();
        assert_eq!(detect(&bytes), Ok(Generation::Current));
    }
}

/// Where the vtable of each node stands in a buffer, found by walking it as the format says.
fn node_vtables(bytes: &[u8]) -> Vec<usize> {
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let i32_at = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let vtable = |table: usize| (table as i64 - i64::from(i32_at(table))) as usize;
    let root = i32_at(0) as usize;
    let slot = root + u16_at(vtable(root) + 14);
    let vector = slot + i32_at(slot) as usize;
    (0..i32_at(vector) as usize)
        .map(|index| {
            let at = vector + 4 + 4 * index;
            vtable(at + i32_at(at) as usize)
        })
        .collect()
}

/// A buffer in which one node has another vtable than the rest: the nodes differ in shape so
/// that the writer does not share their vtables, then one vtable's size is patched.
fn patched(generation: Generation, node: usize, size: u16) -> Vec<u8> {
    let mut graph = several();
    graph.nodes[node].compute_type = match generation {
        Generation::Current => dnn_assay_graph::DataType::Unset,
        Generation::Nov2025 => graph.nodes[node].compute_type,
    };
    let mut bytes = write_graph(&graph, generation).unwrap();
    let at = node_vtables(&bytes)[node];
    bytes[at..at + 2].copy_from_slice(&size.to_le_bytes());
    bytes
}

#[test]
fn mixed_generations_are_an_error() {
    let bytes = patched(Generation::Current, 2, 10);
    assert_eq!(
        detect(&bytes),
        Err(WireError::MixedGenerations {
            first: Generation::Current,
            index: 2,
            other: Generation::Nov2025,
        })
    );
    assert_eq!(read_graph(&bytes).unwrap_err(), detect(&bytes).unwrap_err());
}

#[rstest]
#[case(12, Ok(Generation::Current))]
#[case(14, Ok(Generation::Current))]
#[case(10, Ok(Generation::Nov2025))]
#[case(8, Err(WireError::NodeShape { index: 0, size: 8 }))]
#[case(4, Err(WireError::NodeShape { index: 0, size: 4 }))]
#[case(11, Err(WireError::NodeShape { index: 0, size: 11 }))]
fn the_vtable_decides(#[case] size: u16, #[case] expected: Result<Generation, WireError>) {
    let mut bytes = write_graph(&add(), Generation::Current).unwrap();
    let at = node_vtables(&bytes)[0];
    bytes[at..at + 2].copy_from_slice(&size.to_le_bytes());
    assert_eq!(detect(&bytes), expected);
}

/// Reading as the other generation does not panic and does not invent a graph.
#[test]
fn the_wrong_generation_is_refused() {
    let bytes = write_graph(&several(), Generation::Nov2025).unwrap();
    let error = read_graph_as(&bytes, Generation::Current).unwrap_err();
    assert!(error.to_string().contains("nodes"), "{error}");
    let mut graph = several();
    graph.nodes.push(Node {
        attributes: MatmulAttributes::default().into(),
        ..graph.nodes[0].clone()
    });
    let bytes = write_graph(&graph, Generation::Current).unwrap();
    read_graph_as(&bytes, Generation::Nov2025).unwrap_err();
}
