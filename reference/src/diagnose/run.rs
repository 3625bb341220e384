//! The search for the fault that explains a failed case.

use super::agreement;
use super::hypotheses::{HYPOTHESES, Hypothesis, Operation};
use super::outputs;
use super::scene::{Scene, Suspect};
use crate::arithmetic::Arithmetic;
use crate::criterion::Criterion;
use crate::dtype::LayoutError;
use crate::estimate::Values;
use crate::evaluate::{Evaluation, evaluate};
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
    if scene.outputs.iter().any(|output| !output.is_right()) {
        let operations = Operation::of(graph);
        for tier in 0..=HYPOTHESES.iter().map(|h| h.tier).max().unwrap_or(0) {
            // Weaker explanations are for what the stronger ones leave unexplained.
            if search.diagnosis.named.is_empty() {
                let fits = |h: &&Hypothesis| h.tier == tier && h.applies_to(&operations);
                HYPOTHESES
                    .iter()
                    .filter(fits)
                    .for_each(|h| search.consider(h));
            }
        }
    }
    Ok(search.diagnosis)
}

/// Passes over all tensors that the cheapest search takes.
const COPIES: f64 = 8.0;

struct Search<'a> {
    scene: &'a Scene<'a>,
    left: f64,
    diagnosis: Diagnosis,
}

impl Search<'_> {
    fn consider(&mut self, hypothesis: &Hypothesis) {
        if self.diagnosis.named.len() == MOST_NAMES {
            return;
        }
        for suspect in (hypothesis.suspects)(self.scene) {
            let Some(cost) = self.cost(&suspect).filter(|&cost| cost <= self.left) else {
                self.diagnosis.skipped += 1;
                continue;
            };
            self.left -= cost;
            self.diagnosis.tried += 1;
            if let Some(detail) = self.explains(suspect) {
                self.diagnosis.named.push(Named {
                    id: hypothesis.id,
                    text: hypothesis.text,
                    detail,
                });
                return;
            }
        }
    }

    fn cost(&self, suspect: &Suspect) -> Option<f64> {
        match suspect {
            Suspect::Case(case) => cost(&case.0),
            _ => Some(0.0),
        }
    }

    /// The detail, if the suspect explains what was seen.
    fn explains(&self, suspect: Suspect) -> Option<String> {
        let scene = self.scene;
        let yes = match suspect {
            Suspect::Case(case) => {
                let (graph, inputs) = *case;
                let Ok(mut other) = evaluate(&graph, &inputs, scene.arithmetic) else {
                    return None;
                };
                let uids: Vec<i64> = scene.outputs.iter().map(|o| o.tensor.uid).collect();
                other.tensors.retain(|uid, _| uids.contains(uid));
                agreement::explains(scene, &other.tensors, true)
            }
            Suspect::Outputs(estimates) => agreement::explains(scene, &estimates, true),
            Suspect::Map(map) => outputs::is_mapped(scene, map),
            Suspect::Found(detail) => return Some(detail),
        };
        yes.then(String::new)
    }
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
