//! Inputs that are drawn when they are asked for, for tensors that are too large to hold in f64.

use super::generate::{FillError, Ranges, Recipes, element_count, recipes};
use super::random::Stream;
use super::recipe::Recipe;
use crate::array::Array;
use crate::dtype::{Element, LayoutError, checked_view, with_element};
use crate::estimate::Values;
use dnn_assay_graph::case::Fill;
use dnn_assay_graph::{DataType, Graph, Tensor};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Elements per task.
const CHUNK: usize = 1 << 16;

/// The inputs of a graph by element: those that [`generate`](super::generate) draws, before it moves
/// any away from kinks and steps.
#[derive(Clone, Debug)]
pub struct Drawn {
    tensors: BTreeMap<i64, Input>,
}

#[derive(Clone, Copy, Debug)]
struct Input {
    recipe: Recipe,
    stream: Stream,
    data_type: DataType,
    count: usize,
}

impl Drawn {
    /// The inputs of `graph`. Of the fills, those that aim at something need every value at once:
    /// only uniform and integer data can be drawn so.
    ///
    /// # Errors
    /// As [`generate`](super::generate); [`FillError::NoTarget`] for a fill that aims.
    pub fn new(graph: &Graph, fill: Fill, seed: u64, ranges: &Ranges) -> Result<Self, FillError> {
        if !matches!(fill, Fill::Uniform | Fill::Integer) {
            return Err(FillError::NoTarget { fill });
        }
        let recipes: Recipes = recipes(graph, fill)?;
        let inputs = graph.inputs().map(|tensor| {
            let range = ranges.get(&tensor.uid).filter(|_| fill == Fill::Uniform);
            let input = Input {
                recipe: range.map_or(recipes[&tensor.uid], |&(low, high)| {
                    Recipe::Between(low, high)
                }),
                stream: Stream::new(seed, tensor.uid),
                data_type: tensor.data_type,
                count: element_count(tensor)?,
            };
            Ok((tensor.uid, input))
        });
        Ok(Self {
            tensors: inputs.collect::<Result<_, FillError>>()?,
        })
    }

    /// The value of element `index`, in logical row-major order, of input `uid`; `None` where there
    /// is no such element.
    #[inline]
    pub fn value(&self, uid: i64, index: usize) -> Option<f64> {
        let input = self.tensors.get(&uid)?;
        (index < input.count).then(|| input.at(index))
    }

    /// All values of all inputs.
    pub fn values(&self) -> Values {
        let of = |input: &Input| -> Array<f64> {
            let mut values = Array::unset(input.count);
            let chunks = values.par_chunks_mut(CHUNK).enumerate();
            chunks.for_each(|(chunk, values)| {
                for (i, value) in values.iter_mut().enumerate() {
                    *value = input.at(chunk * CHUNK + i);
                }
            });
            values
        };
        let inputs = self.tensors.iter();
        inputs.map(|(&uid, input)| (uid, of(input))).collect()
    }

    /// Writes an input where the strides of `tensor` say; bytes in the gaps stay as they are.
    ///
    /// # Errors
    /// [`LayoutError`] where `tensor` is no input of the graph, or does not fit the buffer.
    pub fn encode(&self, tensor: &Tensor, bytes: &mut [u8]) -> Result<(), LayoutError> {
        let view = checked_view(tensor, bytes.len())?;
        let input = self.tensors.get(&tensor.uid).copied();
        let input = input.filter(|input| input.count == view.len());
        let input = input.ok_or(LayoutError::Values {
            uid: tensor.uid,
            expected: view.len(),
            seen: 0,
        })?;
        let is_packed = view.span() == view.len() && view.axes().len() <= 1;
        with_element!(tensor.data_type, E => if is_packed {
            input.store_packed::<E>(&mut bytes[..view.len() * E::SIZE]);
        } else {
            view.runs(0..view.len(), |run| {
                for (i, index) in run.logical.enumerate() {
                    let at = (run.start + i * run.stride) * E::SIZE;
                    E::store(input.at(index), &mut bytes[at..]);
                }
            });
        })
        .ok_or(LayoutError::DataType {
            uid: tensor.uid,
            data_type: tensor.data_type,
        })
    }
}

impl Input {
    #[inline]
    fn at(&self, index: usize) -> f64 {
        self.recipe.draw(self.stream, index, self.data_type)
    }

    fn store_packed<E: Element>(&self, bytes: &mut [u8]) {
        let chunks = bytes.par_chunks_mut(CHUNK * E::SIZE).enumerate();
        chunks.for_each(|(chunk, bytes)| {
            for (i, bytes) in bytes.chunks_exact_mut(E::SIZE).enumerate() {
                E::store(self.at(chunk * CHUNK + i), bytes);
            }
        });
    }
}
