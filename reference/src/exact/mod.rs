//! Where exact arithmetic leaves an engine no choice: integer inputs whose sums fit the
//! accumulator, so that the only rounding is the last one and the result is unique.

mod magnitude;

pub(crate) use magnitude::{Magnitude, propagate};

use crate::criterion::ZeroSign;
use crate::dtype;
use crate::estimate::Values;
use crate::evaluate::Evaluation;
use dnn_assay_graph::{Attributes, DataType, Graph, Node, PointwiseMode, Tensor};
use std::collections::BTreeMap;

/// Whether a case can be judged by [`crate::Criterion::Exact`].
#[derive(Clone, Debug, PartialEq)]
pub enum Exactness {
    /// It can: how, for each output in the order of the graph's tensors.
    Applies(Vec<ExactOutput>),
    /// It cannot.
    Not(Reason),
}

/// How one output is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactOutput {
    /// The tensor.
    pub uid: i64,
    /// Whether −0 and +0 differ: they do after neg, abs and identity.
    pub zero_sign: ZeroSign,
    /// For f16 and bf16: the root mean square of y is at least 4·2ᵖ, so most elements had to be
    /// rounded. Where it is false the report says `rounding not exercised`.
    pub rounding_exercised: bool,
}

/// Why exact arithmetic does not decide a case.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Reason {
    /// The operation rounds whatever its inputs are.
    #[error("node {node}: {what} is not exact on integers")]
    Operation {
        /// Index of the node.
        node: usize,
        /// The node kind, mode or parameter.
        what: String,
    },
    /// An input holds something else than integers.
    #[error("tensor {uid} holds values that are no integers")]
    NotInteger {
        /// The tensor.
        uid: i64,
    },
    /// A sum may leave the accumulator's exact range.
    #[error("node {node}: the terms of a sum may reach {terms}, more than {limit}")]
    Sum {
        /// Index of the node.
        node: usize,
        /// Largest sum of magnitudes.
        terms: f64,
        /// Largest integer up to which the accumulator is exact.
        limit: f64,
    },
    /// An intermediate would be rounded to its declared type, or not.
    #[error("virtual tensor {uid} is not exact in {data_type}")]
    Virtual {
        /// The tensor.
        uid: i64,
        /// Its type.
        data_type: DataType,
    },
    /// An output comes near overflow.
    #[error("output {uid} reaches the overflow threshold of {data_type}")]
    Overflow {
        /// The tensor.
        uid: i64,
        /// Its type.
        data_type: DataType,
    },
    /// A tensor has no values.
    #[error("tensor {uid} has no values")]
    Missing {
        /// The tensor.
        uid: i64,
    },
}

/// The outputs of a graph that only copies: neg, abs and identity into the type they read. Whatever
/// its inputs, nothing is rounded, and zeros keep their sign; `None` for any other graph.
pub fn copies(graph: &Graph) -> Option<Exactness> {
    use PointwiseMode::{Abs, Identity, Neg};
    let data_type = |uid| graph.tensor(uid).map(|tensor| tensor.data_type);
    let copies = |node: &Node| match &node.attributes {
        Attributes::Pointwise(table) => {
            let read = data_type(table.in_0_tensor_uid);
            matches!(table.operation, Neg | Abs | Identity)
                && read == data_type(table.out_0_tensor_uid)
                && read.is_some_and(|read| holds(graph, node, read))
        }
        _ => false,
    };
    let outputs = graph.outputs().map(|tensor| ExactOutput {
        uid: tensor.uid,
        zero_sign: ZeroSign::Significant,
        rounding_exercised: true,
    });
    (!graph.nodes.is_empty() && graph.nodes.iter().all(copies))
        .then(|| Exactness::Applies(outputs.collect()))
}

/// Whether a node computes in a type that holds every number of `data_type`.
fn holds(graph: &Graph, node: &Node, data_type: DataType) -> bool {
    let computes = [node.compute_type, graph.compute_type]
        .into_iter()
        .find(|&compute| compute != DataType::Unset);
    computes.is_none_or(|compute| {
        compute == data_type || dtype::precision(compute) > dtype::precision(data_type)
    })
}

/// Whether exact arithmetic decides this case.
pub fn applies(graph: &Graph, inputs: &Values, evaluation: &Evaluation) -> Exactness {
    match outputs(graph, inputs, evaluation) {
        Ok(outputs) => Exactness::Applies(outputs),
        Err(reason) => Exactness::Not(reason),
    }
}

fn outputs(
    graph: &Graph,
    inputs: &Values,
    evaluation: &Evaluation,
) -> Result<Vec<ExactOutput>, Reason> {
    let mut magnitudes = BTreeMap::new();
    for (&uid, values) in inputs {
        magnitudes.insert(uid, integers(uid, values)?);
    }
    for tensor in &graph.tensors {
        if let Some(value) = tensor.value.and_then(|value| value.as_f64()) {
            magnitudes.insert(tensor.uid, integers(tensor.uid, &[value])?);
        }
    }
    propagate(graph, &mut magnitudes)?;
    for (uid, estimate) in &evaluation.tensors {
        let Some(tensor) = graph.tensor(*uid).filter(|tensor| tensor.is_virtual) else {
            continue;
        };
        let data_type = declared_type(graph, tensor);
        if estimate
            .value
            .iter()
            .any(|&value| dtype::round(data_type, value) != value)
        {
            return Err(Reason::Virtual {
                uid: *uid,
                data_type,
            });
        }
    }
    graph
        .outputs()
        .map(|tensor| output(graph, tensor, evaluation))
        .collect()
}

/// A virtual tensor's type; where it says none, the graph's.
fn declared_type(graph: &Graph, tensor: &Tensor) -> DataType {
    [
        tensor.data_type,
        graph.intermediate_type,
        graph.compute_type,
    ]
    .into_iter()
    .find(|&data_type| data_type != DataType::Unset)
    .unwrap_or(DataType::Float)
}

fn integers(uid: i64, values: &[f64]) -> Result<Magnitude, Reason> {
    let (mut peak, mut squares) = (0.0f64, 0.0);
    for &value in values {
        if value.fract() != 0.0 {
            return Err(Reason::NotInteger { uid });
        }
        peak = peak.max(value.abs());
        squares += value * value;
    }
    let rms = (squares / values.len().max(1) as f64).sqrt();
    Ok(Magnitude {
        peak,
        rms,
        spread: rms,
    })
}

fn output(graph: &Graph, tensor: &Tensor, evaluation: &Evaluation) -> Result<ExactOutput, Reason> {
    let uid = tensor.uid;
    let estimate = evaluation
        .tensors
        .get(&uid)
        .ok_or(Reason::Missing { uid })?;
    let threshold = dtype::overflow_threshold(tensor.data_type);
    let mut squares = 0.0;
    for &value in &estimate.value {
        if value.abs() >= threshold || !value.is_finite() {
            return Err(Reason::Overflow {
                uid,
                data_type: tensor.data_type,
            });
        }
        squares += value * value;
    }
    let rms = (squares / estimate.value.len().max(1) as f64).sqrt();
    Ok(ExactOutput {
        uid,
        zero_sign: zero_sign(graph, uid),
        rounding_exercised: wanted_rms(tensor.data_type).is_none_or(|wanted| rms >= wanted),
    })
}

/// The root mean square from which the rounding to f16 or bf16 is exercised; `None` for wider
/// types, where exact sums are never rounded.
pub(crate) fn wanted_rms(data_type: DataType) -> Option<f64> {
    matches!(data_type, DataType::Half | DataType::Bfloat16)
        .then(|| 4.0 * f64::from(dtype::precision(data_type)).exp2())
}

fn zero_sign(graph: &Graph, uid: i64) -> ZeroSign {
    use PointwiseMode::{Abs, Identity, Neg};
    let keeps = graph.nodes.iter().any(|node| match &node.attributes {
        Attributes::Pointwise(table) => {
            table.out_0_tensor_uid == uid && matches!(table.operation, Neg | Abs | Identity)
        }
        _ => false,
    });
    if keeps {
        ZeroSign::Significant
    } else {
        ZeroSign::Ignored
    }
}

#[cfg(test)]
mod tests;
