//! Whether a graph means anything: references, order, shapes, strides, arities.

mod problem;
mod strides;

pub use problem::Problem;
pub use strides::overlap;

use crate::model::Graph;

/// Checks a graph.
///
/// # Errors
/// Every problem found.
pub fn validate(_graph: &Graph) -> Result<(), Vec<Problem>> {
    Ok(())
}
