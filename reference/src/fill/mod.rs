//! Inputs for a graph: a value for every element, from a seed.
//!
//! Each value is a function of the seed, the tensor's uid and the element's index alone, so it
//! does not depend on the order in which, nor on how many threads, they are made.

mod aim;
mod generate;
mod integer;
mod random;
mod recipe;
mod settle;
mod trace;

pub use generate::{FillError, generate, generate_and_evaluate};
pub use settle::Settled;

#[cfg(test)]
mod tests;
