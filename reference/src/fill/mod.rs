//! Inputs for a graph: a value for every element, from a seed.
//!
//! Each value is a function of the seed, the tensor's uid and the element's index alone, so it
//! does not depend on the order in which, nor on how many threads, they are made.

mod aim;
mod drawn;
mod generate;
mod integer;
pub(crate) mod random;
mod recipe;
mod settle;
mod trace;

pub use drawn::Drawn;
pub use generate::{FillError, Ranges, generate, generate_and_evaluate, generate_within};
pub use settle::Settled;

pub(crate) use trace::broadcast;

#[cfg(test)]
mod tests;
