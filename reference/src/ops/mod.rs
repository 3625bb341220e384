//! The operations, each on packed f64 with an uncertainty per element.

pub(crate) mod account;
pub(crate) mod batchnorm;
pub(crate) mod conv;
pub(crate) mod matmul;
pub(crate) mod operand;
pub(crate) mod pointwise;
pub(crate) mod sums;
