//! What a hypothesis may look at, and what it may suppose.

use super::agreement::Bench;
use super::layout::{Coordinates, sources, take};
use super::run::Observed;
use crate::arithmetic::Arithmetic;
use crate::array::Array;
use crate::criterion::Criterion;
use crate::dtype::{self, LayoutError};
use crate::estimate::{Estimate, Values};
use crate::evaluate::{Evaluation, evaluate};
use crate::sample::{self, Row, Source};
use dnn_assay_graph::{DataType, Graph, Tensor, TensorValue};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A failed case.
pub(super) struct Scene<'a> {
    pub graph: &'a Graph,
    pub arithmetic: &'a Arithmetic,
    /// Outputs, or rows of their samples.
    pub outputs: Vec<Output<'a>>,
    pub ground: Ground<'a>,
}

/// What is there of a case.
pub(super) enum Ground<'a> {
    /// Every element of every tensor.
    Whole {
        inputs: &'a Values,
        evaluation: &'a Evaluation,
    },
    /// Inputs by element, and some elements of each output by uid.
    Samples {
        source: &'a dyn Source,
        rows: BTreeMap<i64, &'a Row>,
    },
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
    /// The outputs of another graph on inputs read otherwise.
    Case(Box<Case>),
    /// These outputs instead of the true ones.
    Outputs(BTreeMap<i64, Estimate>),
    /// Every element of every output passed through a monotone function.
    Map(fn(DataType, f64) -> f64),
    /// Every element of the outputs holds what belongs to another one.
    Moved(Move),
    /// The hypothesis has seen for itself that it explains the output; with a detail.
    Found(String),
}

/// Another graph on inputs read otherwise; its outputs have the same uids and extents.
#[derive(Clone)]
pub(super) struct Case {
    pub graph: Graph,
    /// How inputs are read, by uid; the others as they are.
    pub readings: BTreeMap<i64, Reading>,
}

/// Coordinates of an element turned into those of another.
pub(super) type Place = Arc<dyn Fn(&mut [i64]) + Send + Sync>;

/// A value at its coordinates turned into another one.
pub(super) type Map = dyn Fn(&[i64], f64) -> f64 + Send + Sync;

/// How an input is read: a statement about each element by itself, so that it can be made of samples
/// as well as of whole tensors.
#[derive(Clone)]
pub(super) enum Reading {
    /// Each element is the sum of elements of input `of`, at the places that its own coordinates are
    /// turned into; 0 outside of that input.
    Taken { of: i64, from: Vec<Place> },
    /// Each element through a function of its coordinates and itself.
    Mapped(Arc<Map>),
}

/// Elements of outputs in other places.
#[derive(Clone, Copy)]
pub(super) struct Move {
    /// Turns the coordinates of an element into those of the one whose value it holds.
    pub from: fn(&Tensor, &mut [i64]),
    /// Whether outputs that are right are left as they are.
    pub skips_right: bool,
}

impl Reading {
    /// Each element from one place of the same input.
    pub(super) fn taken(of: i64, from: impl Fn(&mut [i64]) + Send + Sync + 'static) -> Self {
        let from: Vec<Place> = vec![Arc::new(from)];
        Self::Taken { of, from }
    }

    /// Each element through `map`.
    pub(super) fn mapped(map: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Self {
        Self::Mapped(Arc::new(move |_, value| map(value)))
    }
}

impl Case {
    /// The inputs as the case reads them; `None` where that and the graph are as they should be, or
    /// an input is not there.
    pub(super) fn inputs(&self, graph: &Graph, inputs: &Values) -> Option<Values> {
        let mut all = inputs.clone();
        for (&uid, reading) in &self.readings {
            all.insert(uid, self.read(uid, reading, graph, inputs)?);
        }
        (self.graph != *graph || all != *inputs).then_some(all)
    }

    fn read(
        &self,
        uid: i64,
        reading: &Reading,
        graph: &Graph,
        inputs: &Values,
    ) -> Option<Array<f64>> {
        let dims = &self.graph.tensor(uid)?.dims;
        match reading {
            Reading::Mapped(map) => {
                let mut at = Coordinates::new(dims);
                let values = inputs.get(&uid)?.iter().map(|&value| {
                    let mapped = map(at.get(), value);
                    at.advance();
                    mapped
                });
                Some(values.collect())
            }
            Reading::Taken { of, from } => {
                let (old, values) = (&graph.tensor(*of)?.dims, inputs.get(of)?);
                let part = |from: &Place| take(values, &sources(dims, old, |at| from(at)));
                let (first, rest) = from.split_first()?;
                let mut sum = part(first);
                for from in rest {
                    let more = part(from);
                    sum.iter_mut()
                        .zip(more.iter())
                        .for_each(|(sum, more)| *sum += more);
                }
                Some(sum)
            }
        }
    }
}

impl<'a> Scene<'a> {
    /// A case whose tensors are all there.
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
            arithmetic,
            outputs,
            ground: Ground::Whole { inputs, evaluation },
        })
    }

    /// A case of which some elements of each output are there, and inputs by element.
    pub(super) fn of_samples(
        graph: &'a Graph,
        source: &'a dyn Source,
        arithmetic: &'a Arithmetic,
        rows: impl Iterator<Item = (i64, &'a Row)>,
    ) -> Result<Self, LayoutError> {
        let rows: BTreeMap<i64, &Row> = rows.collect();
        let outputs = rows.values().map(|row| {
            let seen = Observed {
                bytes: &row.bytes,
                criterion: Criterion::Bound,
            };
            Output::new(&row.tensor, &row.estimate, &seen)
        });
        Ok(Self {
            graph,
            arithmetic,
            outputs: outputs.collect::<Result<_, _>>()?,
            ground: Ground::Samples { source, rows },
        })
    }

    /// Whether only some elements are there.
    pub(super) fn is_sampled(&self) -> bool {
        matches!(self.ground, Ground::Samples { .. })
    }

    /// The row-major index, in its whole tensor, of an element that is there of an output.
    pub(super) fn index(&self, output: &Output<'_>, at: usize) -> usize {
        match &self.ground {
            Ground::Whole { .. } => at,
            Ground::Samples { rows, .. } => {
                let row = rows.get(&output.tensor.uid);
                row.and_then(|row| row.indices.get(at))
                    .map_or(at, |&index| index)
            }
        }
    }

    /// A graph input with its values; `None` where they are not there as a whole.
    pub(super) fn input(&self, uid: i64) -> Option<(&'a Tensor, &'a [f64])> {
        let Ground::Whole { inputs, .. } = self.ground else {
            return None;
        };
        let tensor = self.graph.tensor(uid)?;
        Some((tensor, inputs.get(&uid)?))
    }

    /// A graph input whose values can be had.
    pub(super) fn input_tensor(&self, uid: i64) -> Option<&'a Tensor> {
        self.inputs()
            .contains(&uid)
            .then(|| self.graph.tensor(uid))?
    }

    /// Uids of the inputs whose values can be had, ascending.
    pub(super) fn inputs(&self) -> Vec<i64> {
        match &self.ground {
            Ground::Whole { inputs, .. } => inputs.keys().copied().collect(),
            Ground::Samples { source, .. } => {
                let there = |tensor: &&Tensor| source.value(tensor.uid, 0).is_some();
                let inputs = self.graph.inputs().filter(there);
                let mut uids: Vec<i64> = inputs.map(|tensor| tensor.uid).collect();
                uids.sort_unstable();
                uids
            }
        }
    }

    /// What a whole output should be.
    pub(super) fn truth(&self, uid: i64) -> Option<&'a Estimate> {
        match self.ground {
            Ground::Whole { evaluation, .. } => evaluation.tensors.get(&uid),
            Ground::Samples { .. } => None,
        }
    }

    /// What the outputs, or their rows, are under another arithmetic; `None` where that fails.
    pub(super) fn under(&self, arithmetic: &Arithmetic) -> Option<BTreeMap<i64, Estimate>> {
        match &self.ground {
            Ground::Whole { inputs, .. } => {
                Some(evaluate(self.graph, inputs, arithmetic).ok()?.tensors)
            }
            Ground::Samples { source, rows } => {
                let row = |(&uid, row): (&i64, &&Row)| {
                    let output = self.graph.tensor(uid)?;
                    let all = &row.indices;
                    let found = sample::estimate(self.graph, *source, arithmetic, output, all);
                    let (estimate, kept) = found.ok()?;
                    (kept.len() == all.len()).then_some((uid, estimate))
                };
                rows.iter().map(row).collect()
            }
        }
    }

    /// The same case with one input read otherwise; `None` where it is no input.
    pub(super) fn with_input(&self, uid: i64, reading: Reading) -> Option<Suspect> {
        self.input_tensor(uid)?;
        Some(self.with_readings([(uid, reading)]))
    }

    /// The same case with inputs read otherwise.
    pub(super) fn with_readings(
        &self,
        readings: impl IntoIterator<Item = (i64, Reading)>,
    ) -> Suspect {
        Suspect::Case(Box::new(Case {
            graph: self.graph.clone(),
            readings: readings.into_iter().collect(),
        }))
    }

    /// The same inputs through an edited graph; nothing where the edit changes nothing.
    pub(super) fn with_graph(&self, edit: impl FnOnce(&mut Graph)) -> Vec<Suspect> {
        let mut graph = self.graph.clone();
        edit(&mut graph);
        if graph == *self.graph {
            return Vec::new();
        }
        vec![Suspect::Case(Box::new(Case {
            graph,
            readings: BTreeMap::new(),
        }))]
    }

    /// The value of a scalar, wherever it travels.
    pub(super) fn scalar(&self, uid: i64) -> Option<f64> {
        let in_graph = self.graph.tensor(uid)?.value.and_then(TensorValue::as_f64);
        in_graph.or_else(|| match &self.ground {
            Ground::Whole { inputs, .. } => inputs.get(&uid)?.first().copied(),
            Ground::Samples { source, .. } => source.value(uid, 0),
        })
    }

    /// The same case with another value of a scalar.
    pub(super) fn with_scalar(&self, uid: i64, value: f64) -> Option<Suspect> {
        if self.graph.tensor(uid)?.value.is_none() {
            return self.with_input(uid, Reading::mapped(move |_| value));
        }
        let edited = self.with_graph(|graph| {
            let tensor = graph.tensors.iter_mut().find(|tensor| tensor.uid == uid);
            if let Some(tensor) = tensor {
                tensor.value = Some(TensorValue::Float64(value));
            }
        });
        edited.into_iter().next()
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
