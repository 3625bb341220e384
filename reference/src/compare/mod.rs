//! Compares what an engine wrote with an estimate: one pass over the output, every figure that a
//! report needs, on a pass too.

mod block;
mod comparison;
mod judge;
mod pass;
mod ulp;

pub use comparison::{Comparison, Element, Mismatch, Note};
pub use pass::{bounds, compare};
pub use ulp::UlpHistogram;

pub(crate) use judge::{Judge, Sample};
pub(crate) use pass::rms_figure;

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
