//! A fault: its name, and the seam at which it goes wrong.

use crate::arithmetic::Arithmetic;
use crate::batchnorm::BatchnormFault;
use crate::behaviour::Behaviour;
use crate::knobs::KnobFault;
use crate::memory::MemoryFault;
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_plugin_sdk::Execution;

/// A named fault.
pub struct Fault {
    /// The value of `DNN_ASSAY_MUTANT`.
    pub name: &'static str,
    /// Where it goes wrong.
    pub effect: Effect,
}

/// The seam at which a fault sits.
pub enum Effect {
    /// Another graph is computed than the one given, with the same outputs.
    Graph(fn(&mut Graph)),
    /// As [`Effect::Graph`], and graphs are accepted that only the changed graph makes legal.
    Claim(fn(&mut Graph)),
    /// The inputs of these names are read wrongly.
    Input(&'static [&'static str], Edit),
    /// The input of this name is read wrongly, into other extents.
    Reshaped(fn(&mut Graph), &'static str, Reread),
    /// The outputs are written wrongly; an empty list means all.
    Output(&'static [&'static str], Edit),
    /// Elements for which this holds are not written.
    Unwritten(fn(&Tensor, &[usize]) -> bool),
    /// Outputs are written through indices of 32 bits.
    Wrapped,
    /// Sums are kept in another arithmetic.
    Arithmetic(Arithmetic),
    /// Batch normalisation goes by another formula.
    Batchnorm(BatchnormFault),
    /// Memory is touched that must not be.
    Memory(MemoryFault),
    /// The results are right, the manners are not.
    Behaviour(Behaviour),
    /// A knob is not what it says.
    Knob(KnobFault),
}

/// Changes a tensor's elements, packed in logical row-major order.
pub type Edit = fn(&Site<'_>, &mut [f64]);

/// Reads a tensor into the extents that it has in the computed graph.
pub type Reread = fn(&Site<'_>, &[f64]) -> Vec<f64>;

/// Where an edit takes place.
pub struct Site<'a> {
    /// The tensor, as the computed graph has it.
    pub tensor: &'a Tensor,
    /// The graph that is computed.
    pub graph: &'a Graph,
    /// What the host gave.
    pub execution: &'a Execution<'a>,
}

/// A tensor's extents; those of a graph that was accepted are positive.
pub fn extents(tensor: &Tensor) -> Vec<usize> {
    tensor.dims.iter().map(|&dim| dim as usize).collect()
}

/// The coordinates of a logical row-major index.
pub fn coordinates(dims: &[usize], index: usize) -> Vec<usize> {
    let mut rest = index;
    let mut at = vec![0; dims.len()];
    for axis in (0..dims.len()).rev() {
        at[axis] = rest % dims[axis];
        rest /= dims[axis];
    }
    at
}

/// The logical row-major index of coordinates.
pub fn index_of(dims: &[usize], at: &[usize]) -> usize {
    dims.iter()
        .zip(at)
        .fold(0, |index, (dim, at)| index * dim + at)
}

/// Rearranges `values`: the element at coordinates `at` becomes the one at `from(at)`.
pub fn rearrange(dims: &[usize], values: &mut [f64], from: impl Fn(&mut Vec<usize>)) {
    let taken: Vec<f64> = (0..values.len())
        .map(|index| {
            let mut at = coordinates(dims, index);
            from(&mut at);
            values[index_of(dims, &at)]
        })
        .collect();
    values.copy_from_slice(&taken);
}
