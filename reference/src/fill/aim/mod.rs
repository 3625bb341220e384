//! Fills that aim at one kind of fault: values that were drawn, and then moved to where a faulty
//! engine goes wrong. What is aimed at follows from the graph alone, where from the seed.

mod edges;
mod index;
mod places;
mod probe;
mod special;
mod statistics;

use super::generate::FillError;
use crate::dtype;
use crate::estimate::Values;
use dnn_assay_graph::case::Fill;
use dnn_assay_graph::{Attributes, Graph, Tensor};

/// Moves drawn values to what `fill` asks for.
///
/// # Errors
/// [`FillError::NoTarget`] where the graph has nothing that the fill aims at.
pub(super) fn aim(
    graph: &Graph,
    fill: Fill,
    seed: u64,
    values: &mut Values,
) -> Result<(), FillError> {
    let mut sight = Sight {
        graph,
        seed,
        values,
        hit: false,
    };
    match fill {
        Fill::Uniform | Fill::Integer => return Ok(()),
        Fill::Special => special::aim(&mut sight),
        Fill::Means => statistics::means(&mut sight),
        Fill::Spreads => statistics::spreads(&mut sight),
        Fill::Edges => edges::aim(&mut sight),
        Fill::Index => index::aim(&mut sight),
        Fill::Probe => probe::aim(&mut sight),
    }
    if sight.hit {
        Ok(())
    } else {
        Err(FillError::NoTarget { fill })
    }
}

/// The inputs of a graph, to be edited.
struct Sight<'a> {
    graph: &'a Graph,
    seed: u64,
    values: &'a mut Values,
    /// Something was edited.
    hit: bool,
}

impl<'a> Sight<'a> {
    /// Edits an input; `uid` may be no input, and then nothing happens. What is written is rounded
    /// to the tensor's type.
    fn edit(&mut self, uid: i64, edit: impl FnOnce(&Tensor, &mut [f64])) {
        let graph = self.graph;
        let (Some(tensor), Some(values)) = (graph.tensor(uid), self.values.get_mut(&uid)) else {
            return;
        };
        edit(tensor, values);
        for value in values.iter_mut() {
            *value = dtype::round(tensor.data_type, *value);
        }
        self.hit = true;
    }

    fn nodes(&self) -> impl Iterator<Item = &'a Attributes> + use<'a> {
        self.graph.nodes.iter().map(|node| &node.attributes)
    }
}
