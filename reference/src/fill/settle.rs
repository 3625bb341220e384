//! Moves inputs until intermediates keep away from kinks and steps.
//!
//! Near a kink or step two correct engines may take different branches, so an element there
//! verifies little. An intermediate t counts as near a place k where |t − k| ≤ 8e.

use super::generate::{FillError, Recipes};
use super::random::Stream;
use super::trace;
use crate::arithmetic::Arithmetic;
use crate::estimate::{Estimate, Values};
use crate::evaluate::{Evaluation, evaluate};
use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::semantics::{Parameters, Place, Where, pointwise};
use dnn_assay_graph::{Attributes, Graph};
use std::collections::BTreeSet;

/// Uncertainties within which an intermediate counts as near.
const NEAR: f64 = 8.0;

/// Rounds of moving. Each moves what the last one left or brought near.
const ROUNDS: u64 = 6;

/// What settling did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Input elements that were drawn anew.
    pub moved: usize,
    /// Elements of intermediates that stayed near a kink or step.
    pub near: usize,
}

/// Whether a node has a kink or step on something that another node makes.
pub(super) fn is_needed(graph: &Graph) -> bool {
    kinked(graph).next().is_some()
}

/// Draws the inputs behind elements near a kink or step anew, round by round, and keeps the round
/// that leaves the fewest. `aim` finishes values that were drawn. The result depends on the graph,
/// the recipes, the seed and `aim` alone.
pub(super) fn settle(
    graph: &Graph,
    recipes: &Recipes,
    seed: u64,
    values: &mut Values,
    aim: &dyn Fn(&mut Values) -> Result<(), FillError>,
) -> Result<(Evaluation, Settled), FillError> {
    let arithmetic = Arithmetic::default();
    let mut drawn = values.clone();
    aim(values)?;
    let mut best = evaluate(graph, values, &arithmetic)?;
    let mut near = near_elements(graph, values, &best);
    let mut settled = Settled {
        moved: 0,
        near: near.len(),
    };
    for round in 1..=ROUNDS {
        let mut redrawn = drawn.clone();
        let moved = redraw(graph, recipes, seed, round, &near, &mut redrawn);
        if moved == 0 {
            break;
        }
        let mut trial = redrawn.clone();
        aim(&mut trial)?;
        let evaluation = evaluate(graph, &trial, &arithmetic)?;
        let left = near_elements(graph, &trial, &evaluation);
        if left.len() >= near.len() {
            break;
        }
        settled = Settled {
            moved: settled.moved + moved,
            near: left.len(),
        };
        (*values, drawn, best, near) = (trial, redrawn, evaluation, left);
    }
    Ok((best, settled))
}

/// An element of an intermediate.
type At = (i64, usize);

fn redraw(
    graph: &Graph,
    recipes: &Recipes,
    seed: u64,
    round: u64,
    near: &BTreeSet<At>,
    values: &mut Values,
) -> usize {
    let behind = near
        .iter()
        .filter_map(|&(uid, index)| trace::input_behind(graph, uid, index));
    let behind: BTreeSet<At> = behind.collect();
    for &(uid, index) in &behind {
        let (Some(recipe), Some(tensor)) = (recipes.get(&uid), graph.tensor(uid)) else {
            continue;
        };
        let stream = Stream::new(seed, uid).salted(round);
        if let Some(value) = values
            .get_mut(&uid)
            .and_then(|values| values.get_mut(index))
        {
            *value = recipe.draw(stream, index, tensor.data_type);
        }
    }
    behind.len()
}

/// Operands with a kink or step that some node makes.
fn kinked(graph: &Graph) -> impl Iterator<Item = (&PointwiseAttributes, Place, i64)> {
    graph.nodes.iter().flat_map(move |node| {
        let table = match &node.attributes {
            Attributes::Pointwise(table) => Some(table),
            _ => None,
        };
        table.into_iter().flat_map(move |table| {
            let facts = pointwise(table.operation);
            let places = facts.kinks.iter().chain(facts.steps).copied();
            places.filter_map(move |place| {
                let uid = operand(table, place.operand)?;
                trace::producer(graph, uid).map(|_| (table, place, uid))
            })
        })
    })
}

fn operand(table: &PointwiseAttributes, index: usize) -> Option<i64> {
    match index {
        0 => Some(table.in_0_tensor_uid),
        1 => table.in_1_tensor_uid,
        2 => table.in_2_tensor_uid,
        _ => None,
    }
}

fn near_elements(graph: &Graph, values: &Values, evaluation: &Evaluation) -> BTreeSet<At> {
    let mut near = BTreeSet::new();
    for (table, place, uid) in kinked(graph) {
        let Some(estimate) = evaluation.tensors.get(&uid) else {
            continue;
        };
        let parameters = Parameters::of(table);
        match place.at {
            Where::EqualToOperand(other) => {
                let other = operand(table, other);
                near_other(graph, values, evaluation, uid, other, &mut near);
            }
            Where::Integers => collect(uid, estimate, |t| (t - t.round()).abs(), &mut near),
            Where::OddHalfPi => {}
            at => {
                if let Some(k) = at.value(&parameters) {
                    collect(uid, estimate, |t| (t - k).abs(), &mut near);
                }
            }
        }
    }
    near
}

fn collect(uid: i64, estimate: &Estimate, distance: impl Fn(f64) -> f64, near: &mut BTreeSet<At>) {
    let elements = estimate.value.iter().zip(&estimate.error).enumerate();
    near.extend(elements.filter_map(|(index, (&value, &error))| {
        let uncertain = error > 0.0 && distance(value) <= NEAR * f64::from(error);
        uncertain.then_some((uid, index))
    }));
}

/// Elements near the operand that they are compared with; broadcast operands of another shape
/// are passed over.
fn near_other(
    graph: &Graph,
    values: &Values,
    evaluation: &Evaluation,
    uid: i64,
    other: Option<i64>,
    near: &mut BTreeSet<At>,
) {
    let Some(other) = other else { return };
    let (Some(a), Some(b)) = (graph.tensor(uid), graph.tensor(other)) else {
        return;
    };
    let Some(left) = evaluation.tensors.get(&uid) else {
        return;
    };
    for (index, (&value, &error)) in left.value.iter().zip(&left.error).enumerate() {
        let at = trace::broadcast(&a.dims, &b.dims, index);
        let (right, right_error) = match (evaluation.tensors.get(&other), values.get(&other)) {
            (Some(right), _) => (right.value.get(at), right.error.get(at).copied()),
            (None, Some(right)) => (right.get(at), Some(0.0)),
            (None, None) => (None, None),
        };
        let (Some(right), Some(right_error)) = (right, right_error) else {
            continue;
        };
        let error = f64::from(error) + f64::from(right_error);
        if error > 0.0 && (value - right).abs() <= NEAR * error {
            near.insert((uid, index));
        }
    }
}
