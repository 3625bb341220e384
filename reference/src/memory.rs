//! How much memory an evaluation needs.

use dnn_assay_graph::{Graph, Tensor};

/// Bytes of an input's element: a f64.
const INPUT: f64 = 8.0;
/// Bytes of a written element: the value and its uncertainty.
const WRITTEN: f64 = 12.0;
/// Bytes for everything else: padded slabs, packed filters, lists, memory kept for later arrays.
const ALLOWANCE: f64 = 64.0 * 1024.0 * 1024.0;

/// Bytes that [`evaluate`](crate::evaluate) holds at most, the inputs' values included: 8 for each
/// element of an input, 12 for each that a node writes, 12 more where a later node reads an output
/// that is not virtual (rounded and unrounded are both kept), and 64 MiB.
///
/// Memory that [`Array`](crate::Array) keeps for later cases counts as 16 of the 64 MiB: it is never more
/// than that together with what the largest case needs.
///
/// What threads lay out for themselves fits into the 64 MiB for up to 16 of them; each more may need
/// 8 MiB.
///
/// More is needed in these cases only: an image's result of a convolution, or a filter's gradient,
/// of more than 2²⁰ elements whose sums have one sign or lose their squares to underflow, at 48 bytes
/// each; more than 10⁵ terms in the sums of a convolution, at 8 bytes; an uncertain filter, at 16
/// bytes for each of its elements; a filter that is flipped, at 8; elements that may overflow inside
/// an operation, at 16 for each of their alternatives. Tensors without a size count nothing.
pub fn memory_bytes(graph: &Graph) -> f64 {
    array_bytes(graph) + ALLOWANCE
}

/// Bytes of the arrays in [`memory_bytes`]: all but the allowance. Their memory is kept for later cases,
/// up to 1 GiB.
pub fn array_bytes(graph: &Graph) -> f64 {
    let elements = |tensor: &Tensor| tensor.element_count().unwrap_or(0) as f64;
    let of = |uid: &i64| graph.tensor(*uid).map_or(0.0, elements);
    let inputs: f64 = graph.inputs().map(elements).sum();
    let mut written = 0.0;
    for (index, node) in graph.nodes.iter().enumerate() {
        let later = &graph.nodes[index + 1..];
        for uid in node.attributes.outputs() {
            let is_virtual = graph.tensor(uid).is_some_and(|tensor| tensor.is_virtual);
            let read = later
                .iter()
                .any(|node| node.attributes.inputs().contains(&uid));
            let copies = if read && !is_virtual { 2.0 } else { 1.0 };
            written += copies * of(&uid);
        }
    }
    INPUT * inputs + WRITTEN * written
}
