//! What was written into the outputs of a case, as far as samples look at it.

use dnn_assay_device::Snapshot;
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::Arithmetic;
use dnn_assay_reference::sample::{self, Seen, Written};

use super::Finding;
use crate::verdict::{SkipReason, Verdict};

/// What was written into an output.
#[derive(Clone, Debug)]
pub struct Looked {
    /// The output.
    pub uid: i64,
    /// Its chosen elements.
    pub seen: Seen,
    /// Its sums over channels; or why there are none.
    pub sums: Result<Vec<Written>, String>,
}

/// Looks at the outputs of `graph`: `random` elements of each, drawn by `seed`, beside those at chosen
/// places.
///
/// # Errors
/// A finding where an output has no buffer, or one that does not fit: the case is skipped.
pub fn look(
    graph: &Graph,
    snapshot: &Snapshot,
    arithmetic: &Arithmetic,
    (random, seed): (u32, u64),
) -> Result<Vec<Looked>, Finding> {
    let one = |tensor: &Tensor| {
        let check = snapshot.buffer(tensor.uid);
        let check = check.ok_or_else(|| skip(format!("there is no buffer of {}", tensor.name)))?;
        let choice = sample::choose(tensor, groups(graph), random as usize, seed);
        let seen = Seen::gather(tensor, &check.bytes, choice);
        Ok(Looked {
            uid: tensor.uid,
            seen: seen.map_err(|error| skip(error.to_string()))?,
            sums: sample::written(graph, arithmetic, tensor, &check.bytes),
        })
    };
    graph.outputs().map(one).collect()
}

pub(super) fn skip(why: String) -> Finding {
    Finding::new(Verdict::Skipped(SkipReason::NoReference), why)
}

/// Groups of the graph's convolution; 1 where there is none.
fn groups(graph: &Graph) -> usize {
    let of = |x: i64, w: i64| {
        let channels = |uid: i64| graph.tensor(uid)?.dims.get(1).copied();
        let groups = channels(x)? / channels(w)?.max(1);
        usize::try_from(groups).ok()
    };
    let mut nodes = graph.nodes.iter().map(|node| &node.attributes);
    let groups = nodes.find_map(|attributes| {
        let conv = attributes.convolution()?;
        of(conv.x, conv.w)
    });
    groups.unwrap_or(1).max(1)
}
