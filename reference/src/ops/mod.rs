//! The operations, each on packed f64 with an uncertainty per element.

pub(crate) mod account;
pub(crate) mod batchnorm;
pub(crate) mod conv;
pub(crate) mod matmul;
pub(crate) mod operand;
pub(crate) mod pointwise;
pub(crate) mod sums;

/// What is asked of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Values alone; there need be no errors, and those that there are mean nothing.
    Values,
    /// Values with their uncertainty.
    Uncertainty,
}
