//! The kernels of the baseline CPU engine: convolutions, batch normalisation and pointwise
//! operations on host memory, alone or chained.
//!
//! Tensors are read into packed `f32` (or `f64` where a graph has 8-byte or 32-bit integer
//! elements), the nodes are run one after another, intermediates stay wide, and each output is
//! rounded once. Graphs of pointwise nodes alone go through their tensors in parts, so that giant ones
//! need no copies. Everything happens on the calling thread: a library with threads of its own
//! cannot be unloaded safely.
//!
//! They are a library apart from the plugin so that a plugin with faults can be made of them.

mod batchnorm;
mod conv;
mod pointwise;
mod program;
mod support;

pub use program::{Num, Parts, Program, Storage, run};
pub use support::check;
