//! The search for the fault that explains a failed case.

use super::agreement;
use super::hypotheses::{HYPOTHESES, Hypothesis, Operation};
use super::layout::{sources, take_estimate};
use super::scene::{Ground, Move, Output, Scene, Suspect};
use super::{outputs, samples};
use crate::arithmetic::Arithmetic;
use crate::criterion::Criterion;
use crate::dtype::LayoutError;
use crate::estimate::{Estimate, Values};
use crate::evaluate::{Evaluation, evaluate};
use crate::sample::{Row, Source};
use dnn_assay_graph::{Attributes, Graph};
use std::collections::BTreeMap;

/// What was seen of one output.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The bytes of its strided buffer.
    pub bytes: &'a [u8],
    /// The rule by which it was judged.
    pub criterion: Criterion,
}

/// What may be wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// The faults that explain what was seen, most telling first; at most [`MOST_NAMES`].
    pub named: Vec<Named>,
    /// Alternative results that were computed and compared.
    pub tried: usize,
    /// Alternative results that the budget did not allow.
    pub skipped: usize,
    /// Faults that samples cannot show, and that were not looked for.
    pub left_out: Vec<&'static str>,
}

/// A fault that explains what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its id in [`HYPOTHESES`].
    pub id: &'static str,
    /// What it is, in one phrase.
    pub text: &'static str,
    /// The figure that was found with it, such as a factor; empty for most.
    pub detail: String,
}

/// Names that are given at most: a longer list tells nothing.
pub const MOST_NAMES: usize = 3;

/// Work that a diagnosis may take by default, in products and elements: a second or so of two
/// cores.
pub const BUDGET: f64 = 1.0e9;

/// Looks for faults that explain the `outputs` of a failed case. Every output must be explained,
/// or right as it is. `budget` limits the work, in products and elements.
///
/// # Errors
/// [`LayoutError`] where an output's bytes do not fit its tensor.
pub fn diagnose(
    graph: &Graph,
    inputs: &Values,
    evaluation: &Evaluation,
    arithmetic: &Arithmetic,
    outputs: &BTreeMap<i64, Observed<'_>>,
    budget: f64,
) -> Result<Diagnosis, LayoutError> {
    let elements: f64 = graph
        .tensors
        .iter()
        .filter_map(|t| t.element_count())
        .map(|n| n as f64)
        .sum();
    if elements * COPIES > budget {
        return Ok(Diagnosis {
            skipped: HYPOTHESES.len(),
            ..Diagnosis::default()
        });
    }
    let scene = Scene::new(graph, inputs, evaluation, arithmetic, outputs)?;
    let mut search = Search {
        scene: &scene,
        left: budget,
        diagnosis: Diagnosis::default(),
    };
    search.run();
    Ok(search.diagnosis)
}

/// Looks for faults that explain the `rows` of samples of a failed case, by uid: each hypothesis is
/// computed for the sampled elements only, on the parts of the graph that they depend on. Those that need
/// the whole tensor are listed as left out.
///
/// # Errors
/// [`LayoutError`] where a row's bytes do not fit it.
pub fn diagnose_samples<'a>(
    graph: &'a Graph,
    source: &'a dyn Source,
    arithmetic: &'a Arithmetic,
    rows: impl Iterator<Item = (i64, &'a Row)>,
) -> Result<Diagnosis, LayoutError> {
    let scene = Scene::of_samples(graph, source, arithmetic, rows)?;
    let elements: usize = scene.outputs.iter().map(|output| output.got.len()).sum();
    let mut search = Search {
        scene: &scene,
        left: elements as f64 * PASSES,
        diagnosis: Diagnosis::default(),
    };
    search.run();
    let operations = Operation::of(graph);
    let left_out = HYPOTHESES
        .iter()
        .filter(|h| h.needs_whole() && h.applies_to(&operations));
    search.diagnosis.left_out = left_out.map(|hypothesis| hypothesis.id).collect();
    Ok(search.diagnosis)
}

/// Passes over all tensors that the cheapest search takes.
const COPIES: f64 = 8.0;

/// Passes over all samples that a search may take. A wrong hypothesis ends at the first few.
const PASSES: f64 = 16.0;

struct Search<'a> {
    scene: &'a Scene<'a>,
    /// Products and elements that are left; of samples, elements.
    left: f64,
    diagnosis: Diagnosis,
}

impl Search<'_> {
    fn run(&mut self) {
        if self.scene.outputs.iter().all(Output::is_right) {
            return;
        }
        let operations = Operation::of(self.scene.graph);
        for tier in 0..=HYPOTHESES.iter().map(|h| h.tier).max().unwrap_or(0) {
            // Weaker explanations are for what the stronger ones leave unexplained.
            if self.diagnosis.named.is_empty() {
                let fits = |h: &&Hypothesis| h.tier == tier && h.applies_to(&operations);
                HYPOTHESES
                    .iter()
                    .filter(fits)
                    .for_each(|h| self.consider(h));
            }
        }
    }

    fn consider(&mut self, hypothesis: &Hypothesis) {
        if self.diagnosis.named.len() == MOST_NAMES {
            return;
        }
        for suspect in (hypothesis.suspects)(self.scene) {
            let Some(cost) = self.cost(&suspect).filter(|&cost| cost <= self.left) else {
                self.diagnosis.skipped += 1;
                continue;
            };
            let left = self.left;
            self.left -= cost;
            let Some(explains) = self.explains(suspect) else {
                // Nothing would be otherwise.
                self.left = left;
                continue;
            };
            self.diagnosis.tried += 1;
            if let Some(detail) = explains {
                self.diagnosis.named.push(Named {
                    id: hypothesis.id,
                    text: hypothesis.text,
                    detail,
                });
                return;
            }
        }
    }

    /// Work before a suspect is looked at; what samples take is counted as they are computed.
    fn cost(&self, suspect: &Suspect) -> Option<f64> {
        match suspect {
            Suspect::Case(case) if !self.scene.is_sampled() => cost(&case.graph),
            _ => Some(0.0),
        }
    }

    /// The detail, if the suspect explains what was seen; `None` where it changes nothing.
    fn explains(&mut self, suspect: Suspect) -> Option<Option<String>> {
        let scene = self.scene;
        let agrees = |estimates: Option<BTreeMap<i64, Estimate>>| {
            estimates.is_some_and(|estimates| agreement::explains(scene, &estimates, true))
        };
        let yes =
            match (suspect, &scene.ground) {
                (Suspect::Case(case), Ground::Whole { inputs, .. }) => {
                    let inputs = case.inputs(scene.graph, inputs)?;
                    let other = evaluate(&case.graph, &inputs, scene.arithmetic);
                    agrees(other.ok().map(|mut other| {
                        let uids: Vec<i64> = scene.outputs.iter().map(|o| o.tensor.uid).collect();
                        other.tensors.retain(|uid, _| uids.contains(uid));
                        other.tensors
                    }))
                }
                (Suspect::Case(case), Ground::Samples { source, rows }) => agrees(
                    samples::of_case(scene, &case, *source, rows, &mut self.left),
                ),
                (Suspect::Moved(moved), Ground::Whole { .. }) => {
                    agrees(Some(moved_whole(scene, moved)))
                }
                (Suspect::Moved(moved), Ground::Samples { source, rows }) => agrees(
                    samples::of_move(scene, moved, *source, rows, &mut self.left),
                ),
                (Suspect::Outputs(estimates), _) => agrees(Some(estimates)),
                (Suspect::Map(map), _) => outputs::is_mapped(scene, map),
                (Suspect::Found(detail), _) => return Some(Some(detail)),
            };
        Some(yes.then(String::new))
    }
}

/// Outputs whose elements hold what belongs to others.
fn moved_whole(scene: &Scene<'_>, moved: Move) -> BTreeMap<i64, Estimate> {
    let of = |output: &Output<'_>| {
        let tensor = output.tensor;
        let estimate = if moved.skips_right && output.is_right() {
            output.truth.clone()
        } else {
            let from = sources(&tensor.dims, &tensor.dims, |at| (moved.from)(tensor, at));
            take_estimate(output.truth, &from)
        };
        (tensor.uid, estimate)
    };
    scene.outputs.iter().map(of).collect()
}

/// Products and elements of one evaluation; `None` where a size does not fit.
pub(super) fn cost(graph: &Graph) -> Option<f64> {
    let size = |uid: i64| Some(graph.tensor(uid)?.element_count()? as f64);
    let extent = |uid: i64, axis: usize| Some(*graph.tensor(uid)?.dims.get(axis)? as f64);
    let nodes = graph.nodes.iter().map(|node| match &node.attributes {
        Attributes::ConvolutionFwd(a) => {
            Some(size(a.y_tensor_uid)? * size(a.w_tensor_uid)? / extent(a.w_tensor_uid, 0)?)
        }
        Attributes::ConvolutionBwd(a) => {
            Some(size(a.dy_tensor_uid)? * size(a.w_tensor_uid)? / extent(a.w_tensor_uid, 0)?)
        }
        Attributes::ConvolutionWrw(a) => {
            Some(size(a.dy_tensor_uid)? * size(a.dw_tensor_uid)? / extent(a.dw_tensor_uid, 0)?)
        }
        Attributes::Matmul(a) => {
            let last = graph.tensor(a.a_tensor_uid)?.dims.last().copied()?;
            Some(size(a.c_tensor_uid)? * last as f64)
        }
        _ => Some(0.0),
    });
    let products: f64 = nodes.sum::<Option<f64>>()?;
    let elements = graph
        .tensors
        .iter()
        .map(|t| Some(t.element_count()? as f64));
    Some(products + 8.0 * elements.sum::<Option<f64>>()?)
}
