//! What a hypothesis may look at, and what it may suppose.

use super::agreement::Bench;
use super::run::Observed;
use crate::arithmetic::Arithmetic;
use crate::array::Array;
use crate::criterion::Criterion;
use crate::dtype::{self, LayoutError};
use crate::estimate::{Estimate, Values};
use crate::evaluate::Evaluation;
use dnn_assay_graph::{DataType, Graph, Tensor, TensorValue};
use std::collections::BTreeMap;

/// A failed case.
pub(super) struct Scene<'a> {
    pub graph: &'a Graph,
    pub inputs: &'a Values,
    pub evaluation: &'a Evaluation,
    pub arithmetic: &'a Arithmetic,
    pub outputs: Vec<Output<'a>>,
}

/// An output with a buffer.
pub(super) struct Output<'a> {
    pub tensor: &'a Tensor,
    pub truth: &'a Estimate,
    /// What was seen, packed.
    pub got: Array<f64>,
    /// `exact` where exact arithmetic decides the output, else `bound`.
    pub criterion: Criterion,
    /// Elements that the criterion rejects.
    pub wrong: Vec<usize>,
}

/// What an output, or a case, would look like under a hypothesis.
pub(super) enum Suspect {
    /// The outputs of another graph on other inputs; its outputs have the same uids and extents.
    Case(Box<(Graph, Values)>),
    /// These outputs instead of the true ones.
    Outputs(BTreeMap<i64, Estimate>),
    /// Every element of every output passed through a monotone function.
    Map(fn(DataType, f64) -> f64),
    /// The hypothesis has seen for itself that it explains the output; with a detail.
    Found(String),
}

impl Suspect {
    pub(super) fn case(graph: Graph, inputs: Values) -> Self {
        Self::Case(Box::new((graph, inputs)))
    }
}

impl<'a> Scene<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        inputs: &'a Values,
        evaluation: &'a Evaluation,
        arithmetic: &'a Arithmetic,
        seen: &BTreeMap<i64, Observed<'_>>,
    ) -> Result<Self, LayoutError> {
        let mut outputs = Vec::new();
        for tensor in graph.outputs() {
            let (Some(truth), Some(seen)) =
                (evaluation.tensors.get(&tensor.uid), seen.get(&tensor.uid))
            else {
                continue;
            };
            outputs.push(Output::new(tensor, truth, seen)?);
        }
        Ok(Self {
            graph,
            inputs,
            evaluation,
            arithmetic,
            outputs,
        })
    }

    /// A graph input with its values.
    pub(super) fn input(&self, uid: i64) -> Option<(&'a Tensor, &'a [f64])> {
        let tensor = self.graph.tensor(uid)?;
        Some((tensor, self.inputs.get(&uid)?))
    }

    /// The same case with one input's values edited; `None` where it is no input or nothing
    /// changes.
    pub(super) fn with_input(
        &self,
        uid: i64,
        edit: impl FnOnce(&Tensor, &mut Vec<f64>),
    ) -> Option<Suspect> {
        let (tensor, values) = self.input(uid)?;
        let mut edited = values.to_vec();
        edit(tensor, &mut edited);
        (edited.len() == values.len() && edited != values).then(|| {
            let mut inputs = self.inputs.clone();
            inputs.insert(uid, edited.into());
            Suspect::case(self.graph.clone(), inputs)
        })
    }

    /// The same inputs through an edited graph; nothing where the edit changes nothing.
    pub(super) fn with_graph(&self, edit: impl FnOnce(&mut Graph)) -> Vec<Suspect> {
        let mut graph = self.graph.clone();
        edit(&mut graph);
        if graph == *self.graph {
            return Vec::new();
        }
        vec![Suspect::case(graph, self.inputs.clone())]
    }

    /// The value of a scalar, wherever it travels.
    pub(super) fn scalar(&self, uid: i64) -> Option<f64> {
        let in_graph = self.graph.tensor(uid)?.value.and_then(TensorValue::as_f64);
        in_graph.or_else(|| self.inputs.get(&uid)?.first().copied())
    }

    /// The same case with another value of a scalar.
    pub(super) fn with_scalar(&self, uid: i64, value: f64) -> Option<Suspect> {
        let (mut graph, mut inputs) = (self.graph.clone(), self.inputs.clone());
        let tensor = graph.tensors.iter_mut().find(|tensor| tensor.uid == uid)?;
        if tensor.value.is_some() {
            tensor.value = Some(TensorValue::Float64(value));
        } else {
            inputs.get_mut(&uid)?.fill(value);
        }
        Some(Suspect::case(graph, inputs))
    }

    /// Every output through `edit`.
    pub(super) fn each_output(
        &self,
        edit: impl Fn(&Output<'a>) -> Option<Estimate>,
    ) -> Option<Suspect> {
        let estimates = self
            .outputs
            .iter()
            .map(|output| Some((output.tensor.uid, edit(output)?)))
            .collect::<Option<BTreeMap<_, _>>>()?;
        Some(Suspect::Outputs(estimates))
    }
}

impl<'a> Output<'a> {
    fn new(
        tensor: &'a Tensor,
        truth: &'a Estimate,
        seen: &Observed<'_>,
    ) -> Result<Self, LayoutError> {
        let got = dtype::decode(tensor, seen.bytes)?;
        if truth.value.len() != got.len() || truth.error.len() != got.len() {
            return Err(LayoutError::Values {
                uid: tensor.uid,
                expected: got.len(),
                seen: truth.value.len(),
            });
        }
        let criterion = match seen.criterion {
            Criterion::Exact(sign) => Criterion::Exact(sign),
            _ => Criterion::Bound,
        };
        let mut output = Self {
            tensor,
            truth,
            got,
            criterion,
            wrong: Vec::new(),
        };
        let bench = output.bench();
        let wrong =
            (0..output.got.len()).filter(|&index| !bench.accepts(index, truth, output.got[index]));
        output.wrong = wrong.collect();
        Ok(output)
    }

    /// The rule by which the output failed, or did not.
    pub(super) fn bench(&self) -> Bench {
        Bench::new(self.criterion, self.tensor.data_type)
    }

    pub(super) fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Whether exact arithmetic decides the output.
    pub(super) fn is_exact(&self) -> bool {
        matches!(self.criterion, Criterion::Exact(_))
    }

    /// The interval of what a correct engine may have before the final rounding.
    pub(super) fn interval(&self, index: usize) -> (f64, f64) {
        let value = self.truth.value[index];
        let error = if self.is_exact() {
            0.0
        } else {
            f64::from(self.truth.error[index])
        };
        (value - error, value + error)
    }
}
