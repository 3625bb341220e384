//! The judgement of an output by some of its elements.

use super::crop::{Uncroppable, crop};
use super::{Choice, Source, coordinates};
use crate::arithmetic::Arithmetic;
use crate::compare::{Comparison, compare};
use crate::criterion::Criterion;
use crate::decoys::{self, DecoyReport};
use crate::dtype::{LayoutError, checked_view};
use crate::estimate::{Alternative, Estimate};
use crate::evaluate::{EvalError, evaluate};
use dnn_assay_graph::case::Fill;
use dnn_assay_graph::{Attributes, Graph, PointwiseMode, Tensor};
use rayon::prelude::*;

/// What samples of one output said.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The figures of the elements that were compared; indices and coordinates are those of the
    /// whole tensor.
    pub comparison: Comparison,
    /// Decoys of the same elements, as a row.
    pub decoys: DecoyReport,
    /// Elements of the tensor.
    pub total: usize,
    /// How many of the draws were at random.
    pub random: usize,
    /// Elements that were chosen and have no graph of their own.
    pub left_out: usize,
    /// The elements that were compared.
    pub row: Row,
}

/// Some elements of an output, as a tensor with one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The tensor of the row.
    pub tensor: Tensor,
    /// Their indices in the output, in logical row-major order, ascending.
    pub indices: Vec<usize>,
    /// What they should be.
    pub estimate: Estimate,
    /// What was written, one element behind the other.
    pub bytes: Vec<u8>,
}

/// What an engine wrote into the chosen elements of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The elements.
    pub choice: Choice,
    /// Their bytes, one element behind the other.
    pub bytes: Vec<u8>,
}

impl Seen {
    /// The chosen elements of `output`, whose strided bytes are `got`.
    ///
    /// # Errors
    /// [`LayoutError`] for a buffer that does not fit.
    pub fn gather(output: &Tensor, got: &[u8], choice: Choice) -> Result<Self, LayoutError> {
        let bytes = gather(output, got, &choice.indices)?;
        Ok(Self { choice, bytes })
    }

    /// Some of the elements, which are ascending, with none at random.
    #[must_use]
    pub fn only(&self, indices: &[usize]) -> Self {
        let size = self.bytes.len() / self.choice.indices.len().max(1);
        Self {
            bytes: self.of(indices, size.max(1)),
            choice: Choice {
                indices: indices.to_vec(),
                random: 0,
            },
        }
    }

    /// The bytes of some of the elements, which are ascending.
    fn of(&self, indices: &[usize], size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(indices.len() * size);
        let mut wanted = indices.iter().peekable();
        for (index, element) in self.choice.indices.iter().zip(self.bytes.chunks(size)) {
            if wanted.next_if_eq(&index).is_some() {
                bytes.extend_from_slice(element);
            }
        }
        bytes
    }
}

/// Why an output cannot be judged by samples.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// The reference failed on a sample.
    #[error("element {index} of tensor {uid}: {error}")]
    Element {
        /// The tensor.
        uid: i64,
        /// Its element.
        index: usize,
        /// What is wrong.
        error: EvalError,
    },
    /// The buffer is not that of the tensor.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// No chosen element could be computed by itself.
    #[error("no element of tensor {uid} can be computed by itself: {why}")]
    Nothing {
        /// The tensor.
        uid: i64,
        /// Why the first could not.
        why: String,
    },
}

/// Why a graph has to be judged as a whole, in words; `None` where samples can judge it.
pub fn refusal(graph: &Graph, fill: Fill, arithmetic: &Arithmetic) -> Option<String> {
    if !matches!(fill, Fill::Uniform | Fill::Integer) {
        return Some(format!(
            "the fill `{fill}` aims at elements, which samples may miss"
        ));
    }
    if graph
        .tensors
        .iter()
        .any(|tensor| tensor.ragged_offset_uid.is_some())
    {
        return Some("a tensor is ragged".to_owned());
    }
    let transforms = |attributes: &Attributes| {
        matches!(
            attributes,
            Attributes::ConvolutionFwd(_)
                | Attributes::ConvolutionBwd(_)
                | Attributes::ConvolutionWrw(_)
        )
    };
    let nodes = || graph.nodes.iter().map(|node| &node.attributes);
    if arithmetic.transform > 0.0 && nodes().any(transforms) {
        return Some("transforms err by the largest element of the whole tensor".to_owned());
    }
    nodes().find_map(|attributes| match attributes {
        Attributes::Pointwise(table) if table.operation == PointwiseMode::GenIndex => {
            Some("an index depends on its place in the whole tensor".to_owned())
        }
        Attributes::Pointwise(_)
        | Attributes::Matmul(_)
        | Attributes::BatchnormInference(_)
        | Attributes::BatchnormInferenceVariance(_) => None,
        conv if transforms(conv) => None,
        other => Some(format!("{} needs the whole tensor", other.kind())),
    })
}

/// The estimate of some elements of tensor `uid`, in their order: each has the value that
/// [`evaluate`] gives for it, bit for bit but for the tree of wgrad's sums, and the uncertainty as far as f32 sums the same squares alike
/// in another order. Elements without a graph of their own are left out; the second result
/// has the indices of those that are not.
///
/// # Errors
/// [`SampleError`] where the reference fails, or no element is left.
pub fn estimate(
    graph: &Graph,
    source: &dyn Source,
    arithmetic: &Arithmetic,
    output: &Tensor,
    indices: &[usize],
) -> Result<(Estimate, Vec<usize>), SampleError> {
    let uid = output.uid;
    let one = |&index: &usize| alone(graph, source, arithmetic, (output, index));
    let each: Vec<Result<Estimate, Uncroppable>> = indices
        .par_iter()
        .map(one)
        .collect::<Result<_, SampleError>>()?;
    let (mut estimates, mut kept, mut why) = (Vec::new(), Vec::new(), None);
    for (&index, element) in indices.iter().zip(each) {
        match element {
            Ok(estimate) => {
                estimates.push(estimate);
                kept.push(index);
            }
            Err(Uncroppable::Other(text)) => why = why.or(Some(text)),
            Err(Uncroppable::Dead) => {}
        }
    }
    if kept.is_empty() {
        let why = why.unwrap_or_else(|| "every window lies in the padding".to_owned());
        return Err(SampleError::Nothing { uid, why });
    }
    Ok((joined(estimates), kept))
}

/// The estimate of one element; the inner error where it has no graph of its own.
fn alone(
    graph: &Graph,
    source: &dyn Source,
    arithmetic: &Arithmetic,
    (output, index): (&Tensor, usize),
) -> Result<Result<Estimate, Uncroppable>, SampleError> {
    let place = coordinates(&output.dims, index);
    let crop = match crop(graph, source, output.uid, &place) {
        Ok(crop) => crop,
        // A sum of nothing is 0, in every arithmetic.
        Err(Uncroppable::Dead) if graph.nodes.len() == 1 => {
            return Ok(Ok(Estimate::exact(vec![0.0])));
        }
        Err(why) => return Ok(Err(why)),
    };
    let failed = |error| SampleError::Element {
        uid: output.uid,
        index,
        error,
    };
    let mut evaluation = evaluate(&crop.graph, &crop.values, arithmetic).map_err(failed)?;
    Ok(Ok(evaluation.tensors.remove(&crop.uid).unwrap_or_default()))
}

/// The estimates of some elements one by one; `None` where one of them has none.
pub(crate) fn each(
    graph: &Graph,
    source: &dyn Source,
    arithmetic: &Arithmetic,
    output: &Tensor,
    indices: &[usize],
) -> Option<Vec<Estimate>> {
    let one = |&index: &usize| alone(graph, source, arithmetic, (output, index)).ok()?.ok();
    indices.par_iter().map(one).collect()
}

/// Estimates of single elements as those of a row.
pub(crate) fn joined(estimates: Vec<Estimate>) -> Estimate {
    let (mut value, mut error, mut also) = (Vec::new(), Vec::new(), Vec::new());
    for (at, estimate) in estimates.into_iter().enumerate() {
        value.extend_from_slice(&estimate.value);
        error.extend_from_slice(&estimate.error);
        let others = estimate.also.into_iter();
        also.extend(others.map(|other| Alternative { index: at, ..other }));
    }
    let mut all = Estimate::new(value.into(), error.into());
    all.also = also;
    all
}

/// Compares the chosen elements of `output` with what was seen of them.
///
/// # Errors
/// [`SampleError`]: see [`estimate`]; or bytes that do not fit.
pub fn judge(
    graph: &Graph,
    source: &dyn Source,
    arithmetic: &Arithmetic,
    (output, seen): (&Tensor, &Seen),
    criterion: &Criterion,
) -> Result<Sampled, SampleError> {
    let chosen = &seen.choice.indices;
    let (estimate, indices) = estimate(graph, source, arithmetic, output, chosen)?;
    let row = Tensor {
        dims: vec![indices.len() as i64],
        strides: vec![1],
        ..output.clone()
    };
    let bytes = seen.of(&indices, output.data_type.size().unwrap_or(1));
    let mut comparison = compare(&row, &estimate, &bytes, criterion)?;
    for element in comparison.worst.iter_mut().chain(&mut comparison.first) {
        element.index = indices[element.index];
        let place = coordinates(&output.dims, element.index);
        element.coordinates = place.into_iter().map(|at| at as i64).collect();
    }
    Ok(Sampled {
        decoys: decoys::check(&row, &estimate, criterion)?,
        comparison,
        total: output.element_count().unwrap_or(0),
        random: seen.choice.random,
        left_out: chosen.len() - indices.len(),
        row: Row {
            tensor: row,
            indices,
            estimate,
            bytes,
        },
    })
}

/// The bytes of some elements, one behind the other.
fn gather(tensor: &Tensor, got: &[u8], indices: &[usize]) -> Result<Vec<u8>, LayoutError> {
    checked_view(tensor, got.len())?;
    let size = tensor.data_type.size().unwrap_or(1);
    let mut bytes = Vec::with_capacity(indices.len() * size);
    for &index in indices {
        let place = coordinates(&tensor.dims, index);
        let places = place.iter().zip(&tensor.strides);
        let offset: usize = places.map(|(&at, &stride)| at * stride as usize).sum();
        bytes.extend_from_slice(&got[offset * size..(offset + 1) * size]);
    }
    Ok(bytes)
}
