//! Which graphs the kernels take, and the reason where it does not.

use crate::{batchnorm, conv, pointwise};
use dnn_assay_graph::{Attributes, DataType, Graph, Node, Tensor};
use std::collections::BTreeSet;

/// Whether every tensor and node of `graph` is one that the kernels can run.
///
/// # Errors
/// The first reason why not.
pub fn check(graph: &Graph) -> Result<(), String> {
    if graph.nodes.is_empty() {
        return Err("the graph has no nodes".to_owned());
    }
    for tensor in &graph.tensors {
        check_tensor(tensor)?;
    }
    check_order(graph)?;
    for node in &graph.nodes {
        check_compute_type(node)?;
        match &node.attributes {
            Attributes::ConvolutionFwd(a) => conv::check_fprop(a, graph)?,
            Attributes::ConvolutionBwd(a) => conv::check_dgrad(a, graph)?,
            Attributes::ConvolutionWrw(a) => conv::check_wgrad(a, graph)?,
            Attributes::BatchnormInference(a) => batchnorm::check_inference(a, graph)?,
            Attributes::BatchnormInferenceVariance(a) => {
                batchnorm::check_inference_with_variance(a, graph)?;
            }
            Attributes::Batchnorm(a) => batchnorm::check_training(a, graph)?,
            Attributes::BatchnormBackward(a) => batchnorm::check_backward(a, graph)?,
            Attributes::Pointwise(a) => pointwise::check(a, graph)?,
            other => return Err(format!("{} is not supported", other.kind())),
        }
    }
    Ok(())
}

fn check_tensor(tensor: &Tensor) -> Result<(), String> {
    let problem = if tensor.ragged_offset_uid.is_some() {
        "is ragged"
    } else if tensor.dims.iter().any(|&dim| dim < 1) {
        "has an extent below 1"
    } else if tensor.element_count().is_none() {
        "is too large"
    } else if tensor.is_virtual && tensor.data_type == DataType::Unset {
        return Ok(());
    } else if !readable(tensor.data_type) {
        "has a type that is not supported"
    } else if tensor.is_virtual || tensor.value.is_some() {
        return Ok(());
    } else if tensor.strides.len() != tensor.dims.len() {
        "has not as many strides as extents"
    } else if tensor.byte_size().is_none() {
        "is too large, or has a negative stride"
    } else {
        return Ok(());
    };
    Err(format!("tensor {} {problem}", describe(tensor)))
}

fn readable(data_type: DataType) -> bool {
    data_type.is_float()
        || matches!(
            data_type,
            DataType::Uint8 | DataType::Int8 | DataType::Int32 | DataType::Int64
        )
}

fn describe(tensor: &Tensor) -> String {
    format!(
        "{} '{}' ({} {:?})",
        tensor.uid, tensor.name, tensor.data_type, tensor.dims
    )
}

/// Unset means f32. Half types ask for no less than what is done; integers would be another
/// arithmetic.
fn check_compute_type(node: &Node) -> Result<(), String> {
    if node.compute_type == DataType::Unset || node.compute_type.is_float() {
        return Ok(());
    }
    Err(format!(
        "compute type {} is not supported",
        node.compute_type
    ))
}

/// Every tensor is written at most once, by a node before those that read it, and every
/// intermediate is written.
fn check_order(graph: &Graph) -> Result<(), String> {
    let will_be_written: BTreeSet<i64> = graph
        .nodes
        .iter()
        .flat_map(|node| node.attributes.outputs())
        .collect();
    let mut written = BTreeSet::new();
    for node in &graph.nodes {
        for uid in node.attributes.inputs() {
            let tensor = tensor(graph, uid)?;
            let late = will_be_written.contains(&uid) && !written.contains(&uid);
            if late || (tensor.is_virtual && !written.contains(&uid)) {
                return Err(format!(
                    "tensor {} is read before it is written",
                    describe(tensor)
                ));
            }
        }
        for uid in node.attributes.outputs() {
            if tensor(graph, uid)?.value.is_some() || !written.insert(uid) {
                return Err(format!(
                    "tensor {uid} cannot be written, or is written twice"
                ));
            }
        }
    }
    Ok(())
}

/// The tensor with this uid.
pub(crate) fn tensor(graph: &Graph, uid: i64) -> Result<&Tensor, String> {
    graph
        .tensor(uid)
        .ok_or_else(|| format!("the graph has no tensor {uid}"))
}

/// The tensor with this uid, which must be of a floating type (or a typeless intermediate).
pub(crate) fn float(graph: &Graph, uid: i64) -> Result<&Tensor, String> {
    let tensor = tensor(graph, uid)?;
    if tensor.data_type.is_float() || tensor.data_type == DataType::Unset {
        return Ok(tensor);
    }
    Err(format!(
        "tensor {} is not of a floating type",
        describe(tensor)
    ))
}

/// Whether the condition holds, and if not, why that matters.
pub(crate) fn ensure(condition: bool, otherwise: &str) -> Result<(), String> {
    if condition {
        Ok(())
    } else {
        Err(otherwise.to_owned())
    }
}
