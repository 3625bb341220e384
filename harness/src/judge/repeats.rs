//! Whether further executions gave the same bits as the first.

use dnn_assay_device::Snapshot;
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::dtype::decode;

use super::Finding;
use super::geometry::coordinates;
use crate::verdict::{FailKind, Verdict};

/// The verdict that follows from outputs that differ between two executions of one case; `None`
/// where all elements are equal bit for bit. Gaps of strided outputs are not looked at.
pub fn judge_repeats(graph: &Graph, first: &Snapshot, again: &Snapshot) -> Option<Finding> {
    graph
        .outputs()
        .find_map(|tensor| difference(tensor, first, again))
}

fn difference(tensor: &Tensor, first: &Snapshot, again: &Snapshot) -> Option<Finding> {
    // The same bytes, without the values of what may be a giant.
    if first.buffer(tensor.uid)?.bytes == again.buffer(tensor.uid)?.bytes {
        return None;
    }
    let values = |snapshot: &Snapshot| {
        let check = snapshot.buffer(tensor.uid)?;
        decode(tensor, &check.bytes).ok()
    };
    let (a, b) = (values(first)?, values(again)?);
    let differs = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits();
    let count = a.iter().zip(&b).filter(|pair| differs(*pair)).count();
    let at = a.iter().zip(&b).position(differs)?;
    let reason = format!(
        "executed again, {count} of {} elements of {} are other ones, the first at {:?}: {} and then {}",
        a.len(),
        tensor.name,
        coordinates(&tensor.dims, at as u64),
        a[at],
        b[at],
    );
    Some(Finding::new(
        Verdict::Fail(FailKind::Nondeterministic),
        reason,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_device::{BufferCheck, Role};
    use dnn_assay_graph::{Attributes, DataType, Node, schema::PointwiseAttributes};

    fn graph() -> Graph {
        let node = PointwiseAttributes {
            in_0_tensor_uid: 1,
            out_0_tensor_uid: 3,
            ..PointwiseAttributes::default()
        };
        Graph {
            tensors: vec![
                Tensor::packed(1, "x", DataType::Float, &[1, 2]),
                Tensor::packed(3, "y", DataType::Float, &[1, 2]),
            ],
            nodes: vec![Node {
                attributes: Attributes::Pointwise(node),
                name: "identity".to_owned(),
                compute_type: DataType::Float,
            }],
            ..Graph::default()
        }
    }

    fn snapshot(values: [f32; 2]) -> Snapshot {
        Snapshot {
            buffers: vec![BufferCheck::intact(
                3,
                Role::Output,
                values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            )],
            workspace: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn one_bit_is_a_difference_and_none_is_not() {
        let first = snapshot([1.0, 2.0]);
        assert_eq!(judge_repeats(&graph(), &first, &first), None);
        let again = snapshot([1.0, 2.0f32.next_up()]);
        let finding = judge_repeats(&graph(), &first, &again).expect("a bit differs");
        assert_eq!(finding.verdict, Verdict::Fail(FailKind::Nondeterministic));
        assert!(finding.reason.contains("1 of 2") && finding.reason.contains("[0, 1]"));
        // NaN is equal to itself, and −0 is not 0.
        let nan = snapshot([f32::NAN, 0.0]);
        assert_eq!(judge_repeats(&graph(), &nan, &nan), None);
        assert!(judge_repeats(&graph(), &nan, &snapshot([f32::NAN, -0.0])).is_some());
    }
}
