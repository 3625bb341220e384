//! What each pointwise mode computes: one table of facts for the reference, the plugins under test,
//! the fills, validation and case ids. There is no evaluation here; each of them has its own.
//!
//! Rules that hold for every mode:
//! * Operands are broadcast to the output, aligned at the last axis.
//! * Backward modes take `in_0 = dy` and `in_1 = x`, the forward *input* (not the forward output).
//! * Masks and logical operands are of any type; non-zero is true (so is NaN).
//! * Comparisons and logic give 1 or 0 in the output's type.

mod conv;
mod facts;
mod parameters;
mod table;

pub use conv::conv_output_extent;
pub use facts::{Category, Direction, Domain, DtypeClass, Place, PointwiseSemantics, Where};
pub use parameters::{Parameter, Parameters};
pub use table::{pointwise, pointwise_by_name, pointwise_modes};

#[cfg(test)]
mod tests;
