//! How much a graph computes and moves: estimates for plans, not measurements.

use crate::model::{Graph, Tensor};
use crate::schema::Attributes;
use crate::semantics::{Category, pointwise};

/// Arithmetic and memory of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Floating-point operations; a multiply-accumulate counts as two, a transcendental as ten.
    pub flops: f64,
    /// Bytes of all tensors that have a buffer, gaps of strided ones included.
    pub bytes: f64,
}

impl Work {
    /// Estimates a graph. Operations that cases cannot name count one operation per output
    /// element.
    pub fn of(graph: &Graph) -> Self {
        let buffers = graph.tensors.iter();
        let buffers = buffers.filter(|tensor| !tensor.is_virtual && tensor.value.is_none());
        Self {
            flops: graph
                .nodes
                .iter()
                .map(|node| flops(graph, &node.attributes))
                .sum(),
            bytes: buffers
                .filter_map(Tensor::byte_size)
                .map(|bytes| bytes as f64)
                .sum(),
        }
    }
}

fn flops(graph: &Graph, attributes: &Attributes) -> f64 {
    let elements = |uid| graph.tensor(uid).map_or(0.0, elements);
    // Every element of y takes one multiply-accumulate per element of its filter.
    let conv = |y, w| {
        let outputs = graph
            .tensor(w)
            .and_then(|w| w.dims.first())
            .copied()
            .unwrap_or(1);
        2.0 * elements(y) * elements(w) / outputs.max(1) as f64
    };
    match attributes {
        Attributes::BatchnormInference(norm) => 4.0 * elements(norm.x_tensor_uid),
        Attributes::BatchnormInferenceVariance(norm) => 4.0 * elements(norm.x_tensor_uid),
        Attributes::Batchnorm(norm) => 8.0 * elements(norm.x_tensor_uid),
        Attributes::BatchnormBackward(norm) => 14.0 * elements(norm.x_tensor_uid),
        Attributes::Pointwise(node) => {
            let each = match pointwise(node.operation).category {
                Category::Transcendental => 10.0,
                _ => 1.0,
            };
            each * elements(node.out_0_tensor_uid)
        }
        other => match other.convolution() {
            Some(node) => conv(node.y, node.w),
            None => other.outputs().into_iter().map(elements).sum(),
        },
    }
}

fn elements(tensor: &Tensor) -> f64 {
    tensor.dims.iter().map(|dim| *dim as f64).product()
}
