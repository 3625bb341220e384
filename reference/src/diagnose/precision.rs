//! Sums that were kept in too narrow a type. What such an engine gives depends on its order of
//! summation, so nothing can be computed that must agree; its errors are judged by their size.

use super::agreement::Bench;
use super::run::{BUDGET, cost};
use super::scene::{Output, Scene, Suspect};
use crate::arithmetic::Arithmetic;
use crate::criterion::Criterion;
use crate::estimate::Estimate;
use crate::evaluate::evaluate;
use dnn_assay_graph::DataType;
use std::ops::Range;

/// Elements from which sizes of errors say anything.
const LEAST: usize = 32;
/// Share of elements that must be off by a good part of the root mean square: narrow sums err
/// everywhere, not in a few places.
const SPREAD: f64 = 0.6;
/// That part.
const GOOD_PART: f64 = 0.125;
/// Root mean square of error over the wider bound, between which a type is believable: every sum
/// is rounded to it, or only partial sums are.
const EVERY_SUM: Range<f64> = 0.02..0.35;
const PARTIAL_SUMS: Range<f64> = 0.003..0.15;
/// Largest |mean| of error over its root mean square.
const DRIFT: f64 = 0.5;

pub(super) fn f16_accumulator(scene: &Scene<'_>) -> Vec<Suspect> {
    narrow(scene, DataType::Half, &EVERY_SUM)
}

pub(super) fn bf16_accumulator(scene: &Scene<'_>) -> Vec<Suspect> {
    narrow(scene, DataType::Bfloat16, &EVERY_SUM)
}

pub(super) fn bf16_partials(scene: &Scene<'_>) -> Vec<Suspect> {
    narrow(scene, DataType::Bfloat16, &PARTIAL_SUMS)
}

/// f32 where every tensor is f64.
pub(super) fn f32_accumulator(scene: &Scene<'_>) -> Vec<Suspect> {
    let wide = |output: &Output<'_>| output.tensor.data_type == DataType::Double;
    if !scene.outputs.iter().all(wide) {
        return Vec::new();
    }
    narrow(scene, DataType::Float, &EVERY_SUM)
}

fn narrow(scene: &Scene<'_>, data_type: DataType, sizes: &Range<f64>) -> Vec<Suspect> {
    let affordable = cost(scene.graph).is_some_and(|cost| cost < BUDGET / 8.0);
    let explained = affordable && explains(scene, data_type, sizes);
    explained
        .then_some(Suspect::Found(String::new()))
        .into_iter()
        .collect()
}

fn explains(scene: &Scene<'_>, data_type: DataType, sizes: &Range<f64>) -> bool {
    let arithmetic = Arithmetic {
        accumulator_roundoff: Some(crate::dtype::unit_roundoff(data_type)),
        ..scene.arithmetic.clone()
    };
    let Ok(wider) = evaluate(scene.graph, scene.inputs, &arithmetic) else {
        return false;
    };
    let mut told = false;
    for output in &scene.outputs {
        let Some(estimate) = wider.tensors.get(&output.tensor.uid) else {
            return false;
        };
        let Some(ratios) = ratios(output, estimate) else {
            return false;
        };
        if output.is_right() {
            continue;
        }
        let count = ratios.len().max(1) as f64;
        let root = (ratios.iter().map(|ratio| ratio * ratio).sum::<f64>() / count).sqrt();
        let drift = ratios.iter().sum::<f64>() / count;
        let off = ratios
            .iter()
            .filter(|ratio| ratio.abs() > GOOD_PART * root)
            .count();
        let believable = ratios.len() >= LEAST
            && sizes.contains(&root)
            && drift.abs() < DRIFT * root
            && off as f64 >= SPREAD * count;
        if !believable {
            return false;
        }
        told = true;
    }
    told
}

/// Signed error over bound of every element; `None` where one is outside.
fn ratios(output: &Output<'_>, estimate: &Estimate) -> Option<Vec<f64>> {
    let bench = Bench::new(Criterion::Bound, output.tensor.data_type);
    let mut ratios = Vec::with_capacity(output.got.len());
    for (index, &got) in output.got.iter().enumerate() {
        if !bench.accepts(index, estimate, got) {
            return None;
        }
        let bound = bench.bound(index, estimate);
        let ratio = (got - estimate.value[index]) / bound;
        ratios.extend(Some(ratio).filter(|ratio| ratio.is_finite()));
    }
    Some(ratios)
}
