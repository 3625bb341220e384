//! `dnn-assay traits`: what an engine's arithmetic does, measured with designed inputs.
//!
//! A [`Probe`] is a small graph with inputs whose result differs between two kinds of arithmetic:
//! 2²⁴ + 1 − 2²⁴ is 1 in a wide accumulator and 0 in f32. What a result means is decided by pure
//! functions over the outputs, so it is tested without a plugin.

mod entry;
mod probe;
mod probes;
mod run;

pub use entry::{Measured, write_text};
pub use probe::{Fact, Probe};
pub use probes::PROBES;
pub use run::measure;

#[cfg(test)]
mod tests;
