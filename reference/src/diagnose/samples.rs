//! Hypotheses by samples: what another graph, inputs read otherwise or elements in other places would
//! give for the sampled elements, computed on the parts that they depend on.

use super::layout::{index, place_of};
use super::scene::{Case, Move, Output, Reading, Scene};
use crate::estimate::Estimate;
use crate::sample::{self, Row, Source};
use dnn_assay_graph::{Graph, Tensor};
use std::collections::BTreeMap;

/// Wrong elements that are looked at before the others: few wrong hypotheses survive them.
const FIRST: usize = 4;
/// Elements that are looked at together after those.
const CHUNK: usize = 256;
/// Axes of an input at most.
const MOST_AXES: usize = 8;

/// Inputs as a case reads them.
struct Altered<'a> {
    case: &'a Case,
    graph: &'a Graph,
    source: &'a dyn Source,
}

impl Source for Altered<'_> {
    fn value(&self, uid: i64, at: usize) -> Option<f64> {
        let Some(reading) = self.case.readings.get(&uid) else {
            return self.source.value(uid, at);
        };
        let dims = &self.case.graph.tensor(uid)?.dims;
        let (mut own, mut other) = ([0; MOST_AXES], [0; MOST_AXES]);
        let own = own.get_mut(..dims.len())?;
        place_of(dims, at, own);
        match reading {
            Reading::Mapped(map) => Some(map(own, self.source.value(uid, at)?)),
            Reading::Taken { of, from } => {
                let old = &self.graph.tensor(*of)?.dims;
                // A reading of other extents has coordinates for the larger of the two ranks.
                let other = other.get_mut(..dims.len().max(old.len()))?;
                let part = |from: &super::scene::Place, other: &mut [i64]| {
                    other[..dims.len()].copy_from_slice(own);
                    from(&mut other[..dims.len()]);
                    match index(old, &other[..dims.len()]) {
                        Some(at) => self.source.value(*of, at),
                        None => Some(0.0),
                    }
                };
                from.iter()
                    .try_fold(0.0, |sum, from| Some(sum + part(from, other)?))
            }
        }
    }
}

/// What the case would give for the samples; `None` as soon as one of them shows otherwise, where the
/// case has no such element, or where `left` is used up.
pub(super) fn of_case(
    scene: &Scene<'_>,
    case: &Case,
    source: &dyn Source,
    rows: &BTreeMap<i64, &Row>,
    left: &mut f64,
) -> Option<BTreeMap<i64, Estimate>> {
    let altered = Altered {
        case,
        graph: scene.graph,
        source,
    };
    let of = |output: &Output<'_>| {
        let tensor = case.graph.tensor(output.tensor.uid)?;
        let row = rows.get(&tensor.uid)?;
        let (places, graph) = (&row.indices, &case.graph);
        let estimate = estimate(scene, output, (graph, &altered, tensor), places, left)?;
        Some((tensor.uid, estimate))
    };
    scene.outputs.iter().map(of).collect()
}

/// What elements in other places would give; as [`of_case`].
pub(super) fn of_move(
    scene: &Scene<'_>,
    moved: Move,
    source: &dyn Source,
    rows: &BTreeMap<i64, &Row>,
    left: &mut f64,
) -> Option<BTreeMap<i64, Estimate>> {
    let of = |output: &Output<'_>| {
        let tensor = scene.graph.tensor(output.tensor.uid)?;
        if moved.skips_right && output.is_right() {
            return Some((tensor.uid, output.truth.clone()));
        }
        let from = |&at: &usize| {
            let mut place = vec![0; tensor.dims.len()];
            place_of(&tensor.dims, at, &mut place);
            (moved.from)(tensor, &mut place);
            index(&tensor.dims, &place)
        };
        let places = rows.get(&tensor.uid)?.indices.iter().map(from);
        let places: Vec<usize> = places.collect::<Option<_>>()?;
        let of = (scene.graph, source, tensor);
        let estimate = estimate(scene, output, of, &places, left)?;
        Some((tensor.uid, estimate))
    };
    scene.outputs.iter().map(of).collect()
}

/// The estimates of elements `places` of a tensor, one for each sample of an output.
fn estimate(
    scene: &Scene<'_>,
    output: &Output<'_>,
    (graph, source, tensor): (&Graph, &dyn Source, &Tensor),
    places: &[usize],
    left: &mut f64,
) -> Option<Estimate> {
    let bench = output.bench();
    let mut found: Vec<Option<Estimate>> = vec![None; places.len()];
    let wrong = output.wrong.iter().copied().take(FIRST);
    let mut order: Vec<usize> = wrong.collect();
    let first = order.len();
    order.extend((0..places.len()).filter(|at| !output.wrong[..first].contains(at)));
    let (first, rest) = order.split_at(first);
    for chunk in std::iter::once(first).chain(rest.chunks(CHUNK)) {
        if chunk.is_empty() {
            continue;
        }
        *left -= chunk.len() as f64;
        if *left < 0.0 {
            return None;
        }
        let wanted: Vec<usize> = chunk.iter().map(|&at| places[at]).collect();
        let estimates = sample::each(graph, source, scene.arithmetic, tensor, &wanted)?;
        for (&at, estimate) in chunk.iter().zip(estimates) {
            if !bench.accepts(0, &estimate, output.got[at]) {
                return None;
            }
            found[at] = Some(estimate);
        }
    }
    let found: Vec<Estimate> = found.into_iter().collect::<Option<_>>()?;
    Some(sample::joined(found))
}
