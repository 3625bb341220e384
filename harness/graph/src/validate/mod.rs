//! Whether a graph means anything: references, order, extents, strides, shapes per operation.
//!
//! Convolutions, batchnorms, pointwise nodes, matmuls, reductions and the forward norms are checked
//! in full; of the other kinds the tensors they name are. All arithmetic is checked, so hostile
//! graphs give problems, never panics.

mod conv;
mod matmul;
mod node;
mod norm;
mod pointwise;
mod problem;
mod references;
mod strides;
mod tensors;

pub use problem::Problem;
pub use strides::overlap;

use crate::model::{Graph, Tensor};
use crate::schema::Attributes;
use node::NodeCheck;
use std::collections::HashMap;

/// Checks a graph.
///
/// # Errors
/// Every problem found, at least one. Shapes of a node are looked at only where all tensors that it
/// names exist.
pub fn validate(graph: &Graph) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    let by_uid: HashMap<i64, &Tensor> = graph
        .tensors
        .iter()
        .map(|tensor| (tensor.uid, tensor))
        .collect();
    tensors::check(graph, &by_uid, &mut problems);
    references::check(graph, &by_uid, &mut problems);
    for (index, node) in graph.nodes.iter().enumerate() {
        check_node(
            &mut NodeCheck::new(index, &by_uid, &mut problems),
            &node.attributes,
        );
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// `None` where a tensor is absent, which [`references`] has reported.
fn check_node(check: &mut NodeCheck<'_, '_>, attributes: &Attributes) -> Option<()> {
    if let Some(node) = attributes.convolution() {
        return conv::check(check, &node);
    }
    match attributes {
        Attributes::BatchnormInference(node) => norm::inference(check, node),
        Attributes::BatchnormInferenceVariance(node) => norm::inference_variance(check, node),
        Attributes::Batchnorm(node) => norm::training(check, node),
        Attributes::BatchnormBackward(node) => norm::backward(check, node),
        Attributes::RMSNorm(node) => norm::rms(check, node),
        Attributes::Layernorm(node) => norm::layer(check, node),
        Attributes::Pointwise(node) => pointwise::check(check, node),
        Attributes::Matmul(node) => matmul::check(check, node),
        Attributes::Reduction(node) => matmul::reduction(check, node),
        _ => Some(()),
    }
}

#[cfg(test)]
mod tests;
