//! The f64 reference: tensors, fills, operations with an uncertainty per element, graph execution,
//! criteria, comparison and decoys.
//!
//! This crate knows nothing of plugins, devices or files, and prints nothing.
#![forbid(unsafe_code)]

mod arithmetic;
mod array;
pub mod calibrate;
mod compare;
mod criterion;
pub mod decoys;
pub mod diagnose;
pub mod dtype;
mod estimate;
mod evaluate;
pub mod exact;
pub mod fill;
mod last_term;
mod memory;
mod ops;
mod parallel;
pub mod sample;
mod traits;

pub use arithmetic::{Arithmetic, FunctionErrors};
pub use array::{Array, Number, release_memory};
pub use compare::{Comparison, Element, Mismatch, Note, UlpHistogram, bounds, compare};
pub use criterion::{Criterion, ZeroSign};
pub use estimate::{Alternative, Estimate, Values};
pub use evaluate::{Account, EvalError, Evaluation, account, evaluate, evaluate_values, naive_f32};
pub use last_term::last_terms;
pub use memory::{array_bytes, memory_bytes};
pub use ops::account::Figure;
pub use traits::{FFT, Trait, Traits, UnknownTrait, WINOGRAD};
