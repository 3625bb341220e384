//! Values for every input of a graph.

use super::aim::aim;
use super::integer;
use super::random::Stream;
use super::recipe::{self, Recipe};
use super::settle::{self, Settled};
use crate::arithmetic::Arithmetic;
use crate::array::Array;
use crate::dtype;
use crate::estimate::Values;
use crate::evaluate::{EvalError, Evaluation, evaluate};
use crate::exact::Reason;
use dnn_assay_graph::case::Fill;
use dnn_assay_graph::{DataType, Graph, Tensor};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Why the inputs of a graph cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FillError {
    /// No reference for the element type.
    #[error("tensor {uid}: no reference for element type {data_type}")]
    DataType {
        /// The tensor.
        uid: i64,
        /// Its type.
        data_type: DataType,
    },
    /// A negative extent, or more elements than fit.
    #[error("tensor {uid}: dims {dims:?} cannot be filled")]
    Shape {
        /// The tensor.
        uid: i64,
        /// Its extents.
        dims: Vec<i64>,
    },
    /// Indices, offsets, seeds or saved results of another pass: they have a meaning that cannot
    /// be drawn.
    #[error("tensor {uid} cannot be drawn: it needs values with a meaning")]
    NotDrawn {
        /// The tensor.
        uid: i64,
    },
    /// The integer fill asks for operations that are exact on integers.
    #[error("integer fill: {0}")]
    NotExact(#[from] Reason),
    /// Nothing in the graph is what the fill aims at.
    #[error("the fill `{fill}` finds nothing to aim at in this graph")]
    NoTarget {
        /// The fill.
        fill: Fill,
    },
    /// Kinks on intermediates need the reference, and it failed.
    #[error(transparent)]
    Evaluate(#[from] EvalError),
}

/// Values for every input of `graph`, each exactly representable in its tensor's type.
///
/// Uniform inputs of a graph with a kink or a step on an intermediate are moved until the
/// intermediate keeps away from it; that takes the reference. What stays near is counted by
/// [`generate_and_evaluate`].
///
/// # Errors
/// [`FillError`] for types without a reference, shapes that do not fit, inputs that cannot be
/// drawn, and integer fills of graphs that are not exact on integers.
pub fn generate(graph: &Graph, fill: Fill, seed: u64) -> Result<Values, FillError> {
    generate_within(graph, fill, seed, &Ranges::new())
}

/// Lowest and highest value of inputs by uid, in place of those that their operations ask for.
pub type Ranges = BTreeMap<i64, (f64, f64)>;

/// As [`generate`], with some inputs uniform within `ranges`. Fills other than the uniform one say
/// themselves what inputs hold: there, ranges change nothing.
///
/// # Errors
/// As [`generate`].
pub fn generate_within(
    graph: &Graph,
    fill: Fill,
    seed: u64,
    ranges: &Ranges,
) -> Result<Values, FillError> {
    let mut recipes = recipes(graph, fill)?;
    if fill == Fill::Uniform {
        for (uid, &(low, high)) in ranges {
            if let Some(recipe) = recipes.get_mut(uid) {
                *recipe = Recipe::Between(low, high);
            }
        }
    }
    let mut values = draw(graph, &recipes, seed)?;
    if !fill.is_integer() && settle::is_needed(graph) {
        let aimed = |values: &mut Values| aim(graph, fill, seed, values);
        settle::settle(graph, &recipes, seed, &mut values, &aimed)?;
    } else {
        aim(graph, fill, seed, &mut values)?;
    }
    Ok(values)
}

/// The inputs of [`generate`] and what the reference makes of them under `arithmetic`, without
/// evaluating twice where it can be helped. The inputs do not depend on `arithmetic`.
///
/// # Errors
/// As [`generate`], and [`FillError::Evaluate`] where the reference fails.
pub fn generate_and_evaluate(
    graph: &Graph,
    fill: Fill,
    seed: u64,
    arithmetic: &Arithmetic,
) -> Result<(Values, Evaluation, Settled), FillError> {
    let recipes = recipes(graph, fill)?;
    let mut values = draw(graph, &recipes, seed)?;
    if !fill.is_integer() && settle::is_needed(graph) {
        let aimed = |values: &mut Values| aim(graph, fill, seed, values);
        let (evaluation, settled) = settle::settle(graph, &recipes, seed, &mut values, &aimed)?;
        if *arithmetic == Arithmetic::default() {
            return Ok((values, evaluation, settled));
        }
        let evaluation = evaluate(graph, &values, arithmetic)?;
        return Ok((values, evaluation, settled));
    }
    aim(graph, fill, seed, &mut values)?;
    let evaluation = evaluate(graph, &values, arithmetic)?;
    Ok((values, evaluation, Settled::default()))
}

/// A recipe for every input.
pub(super) type Recipes = BTreeMap<i64, Recipe>;

pub(super) fn recipes(graph: &Graph, fill: Fill) -> Result<Recipes, FillError> {
    let mut recipes = Recipes::new();
    for tensor in graph.inputs() {
        let (uid, data_type) = (tensor.uid, tensor.data_type);
        if !dtype::supported(data_type) {
            return Err(FillError::DataType { uid, data_type });
        }
        let recipe = recipe::of(graph, uid).for_type(data_type);
        if recipe == Recipe::NotDrawn {
            return Err(FillError::NotDrawn { uid });
        }
        recipes.insert(uid, recipe);
    }
    if fill == Fill::Integer {
        integer::choose(graph, &mut recipes)?;
    }
    Ok(recipes)
}

fn draw(graph: &Graph, recipes: &Recipes, seed: u64) -> Result<Values, FillError> {
    graph
        .inputs()
        .map(|tensor| {
            let count = element_count(tensor)?;
            let recipe = recipes[&tensor.uid];
            Ok((tensor.uid, draw_tensor(tensor, recipe, count, seed)))
        })
        .collect()
}

/// Elements of an input that can be drawn.
pub(super) fn element_count(tensor: &Tensor) -> Result<usize, FillError> {
    let count = tensor
        .element_count()
        .filter(|&count| count <= isize::MAX as usize / 8);
    count.ok_or_else(|| FillError::Shape {
        uid: tensor.uid,
        dims: tensor.dims.clone(),
    })
}

/// Elements that are drawn in one task.
const CHUNK: usize = 1 << 15;

fn draw_tensor(tensor: &Tensor, recipe: Recipe, count: usize, seed: u64) -> Array<f64> {
    let stream = Stream::new(seed, tensor.uid);
    let mut values = Array::unset(count);
    values
        .par_chunks_mut(CHUNK)
        .enumerate()
        .for_each(|(chunk, values)| {
            for (i, value) in values.iter_mut().enumerate() {
                *value = recipe.draw(stream, chunk * CHUNK + i, tensor.data_type);
            }
        });
    values
}
