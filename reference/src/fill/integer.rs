//! The range of the integer fill.
//!
//! Dense integers ±1…±m: small enough that every sum is exact in an f32 accumulator whatever its
//! order, large enough that f16 and bf16 outputs have to be rounded.

use super::generate::{FillError, Recipes};
use super::recipe::Recipe;
use crate::dtype;
use crate::exact::{Magnitude, Reason, propagate, wanted_rms};
use dnn_assay_graph::schema::Role;
use dnn_assay_graph::{Attributes, DataType, Graph, PointwiseMode, Tensor};
use std::collections::BTreeMap;

/// No m is larger.
const LARGEST: u32 = 4096;

/// An addend is drawn from this many times m, so that it shows beside a long sum.
const ADDEND: f64 = 16.0;

/// What an output's estimated root mean square should have in hand: padding shortens the sums at
/// the borders.
const MARGIN: f64 = 1.15;

/// Standard deviations within which every element of an output is taken to lie.
const DEVIATIONS: f64 = 6.5;

/// Replaces each range by integers: the smallest m at which every f16 and bf16 output has to be
/// rounded, the largest m that keeps sums exact where no m reaches that or no output is narrow.
pub(super) fn choose(graph: &Graph, recipes: &mut Recipes) -> Result<(), FillError> {
    match fits(graph, recipes, 1) {
        Ok(()) => {}
        Err(Reason::Sum { .. } | Reason::Virtual { .. } | Reason::Overflow { .. }) => {
            // Exact at no m; `exact::applies` will say why, and the bound judges.
            *recipes = ranges(graph, recipes, 1);
            return Ok(());
        }
        Err(reason) => return Err(reason.into()),
    }
    // The largest that fits, by bisection: what fits at m fits below.
    let largest = last(|m| fits(graph, recipes, m).is_ok());
    let narrow = graph
        .outputs()
        .any(|tensor| wanted_rms(tensor.data_type).is_some());
    let m = if narrow {
        let unexercised = last(|m| !exercises(graph, recipes, m));
        largest.min(unexercised + 1)
    } else {
        largest
    };
    *recipes = ranges(graph, recipes, m);
    Ok(())
}

/// The last m of 1…[`LARGEST`] for which `holds`, a condition that ends somewhere and does not
/// come back; 0 if it never holds.
fn last(holds: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, LARGEST);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if holds(middle) {
            low = middle
        } else {
            high = middle - 1
        }
    }
    low
}

fn ranges(graph: &Graph, recipes: &Recipes, m: u32) -> Recipes {
    let range = |(&uid, &recipe): (&i64, &Recipe)| {
        let data_type = graph
            .tensor(uid)
            .map_or(DataType::Unset, |tensor| tensor.data_type);
        let wanted = if is_addend(graph, uid) {
            ADDEND * f64::from(m)
        } else {
            f64::from(m)
        };
        let range = match recipe {
            Recipe::Mask | Recipe::Offsets(_) => recipe,
            Recipe::Quarters => Recipe::Integers(4.0),
            _ => Recipe::Integers(wanted.min(largest_integer(data_type))),
        };
        (uid, range)
    };
    recipes.iter().map(range).collect()
}

/// The largest m such that the type holds every integer up to it.
fn largest_integer(data_type: DataType) -> f64 {
    let precision = dtype::precision(data_type);
    if data_type.is_float() {
        f64::from(precision).exp2()
    } else {
        dtype::largest_finite(data_type)
    }
}

/// Whether the input is only added to what other nodes make: a bias.
fn is_addend(graph: &Graph, uid: i64) -> bool {
    let mut readers = graph
        .nodes
        .iter()
        .filter(|node| node.attributes.inputs().contains(&uid));
    let computed = |uid: &i64| {
        graph
            .nodes
            .iter()
            .any(|n| n.attributes.outputs().contains(uid))
    };
    readers.all(|node| match &node.attributes {
        Attributes::Pointwise(table) => {
            matches!(table.operation, PointwiseMode::Add | PointwiseMode::Sub)
                && node.attributes.inputs().iter().any(computed)
        }
        _ => false,
    })
}

fn magnitudes(
    graph: &Graph,
    recipes: &Recipes,
    m: u32,
) -> Result<BTreeMap<i64, Magnitude>, Reason> {
    let mut magnitudes = BTreeMap::new();
    for (uid, recipe) in ranges(graph, recipes, m) {
        let magnitude = match recipe {
            Recipe::Integers(m) => Magnitude {
                peak: m,
                rms: ((m + 1.0) * (2.0 * m + 1.0) / 6.0).sqrt(),
                spread: ((m + 1.0) * (2.0 * m + 1.0) / 6.0).sqrt(),
            },
            _ => Magnitude {
                peak: 1.0,
                rms: 0.5f64.sqrt(),
                spread: 0.5f64.sqrt(),
            },
        };
        magnitudes.insert(uid, magnitude);
    }
    for tensor in &graph.tensors {
        if let Some(value) = tensor.value.and_then(|value| value.as_f64()) {
            if value.fract() != 0.0 && reads(graph, tensor.uid) {
                return Err(Reason::NotInteger { uid: tensor.uid });
            }
            let magnitude = Magnitude {
                peak: value.abs(),
                rms: value.abs(),
                spread: value.abs(),
            };
            magnitudes.insert(tensor.uid, magnitude);
        }
    }
    propagate(graph, &mut magnitudes)?;
    Ok(magnitudes)
}

fn reads(graph: &Graph, uid: i64) -> bool {
    graph.nodes.iter().any(|node| {
        let mut found = false;
        node.attributes
            .visit_uids(Role::Input, &mut |_, read| found |= read == uid);
        found
    })
}

/// Sums, virtual tensors and outputs all stay where they must.
fn fits(graph: &Graph, recipes: &Recipes, m: u32) -> Result<(), Reason> {
    let magnitudes = magnitudes(graph, recipes, m)?;
    for tensor in &graph.tensors {
        let Some(magnitude) = magnitudes.get(&tensor.uid) else {
            continue;
        };
        let likely = magnitude.peak.min(DEVIATIONS * magnitude.spread);
        let (uid, data_type) = (tensor.uid, tensor.data_type);
        if tensor.is_virtual && dtype::supported(data_type) && likely > largest_integer(data_type) {
            return Err(Reason::Virtual { uid, data_type });
        }
        if !tensor.is_virtual && likely > dtype::largest_finite(data_type) {
            return Err(Reason::Overflow { uid, data_type });
        }
    }
    Ok(())
}

/// Every narrow output is large enough that most of its elements have to be rounded.
fn exercises(graph: &Graph, recipes: &Recipes, m: u32) -> bool {
    // Where sums no longer fit, they are large.
    let Ok(magnitudes) = magnitudes(graph, recipes, m) else {
        return true;
    };
    let enough = |tensor: &Tensor| match wanted_rms(tensor.data_type) {
        Some(wanted) => magnitudes
            .get(&tensor.uid)
            .is_some_and(|y| y.rms >= MARGIN * wanted),
        None => true,
    };
    graph.outputs().all(enough)
}
