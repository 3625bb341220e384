//! Sums that were kept in too narrow a type. What such an engine gives depends on its order of
//! summation, so nothing can be computed that must agree; its errors are judged by their size.

use super::agreement::Bench;
use super::run::{BUDGET, cost};
use super::scene::{Output, Scene, Suspect};
use crate::arithmetic::Arithmetic;
use crate::criterion::Criterion;
use crate::estimate::Estimate;
use dnn_assay_graph::DataType;
use std::collections::BTreeSet;
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

/// Share of a channel's elements that must be wrong where its variance is.
const WRONG_SHARE: f64 = 0.25;

/// The variance from sums of squares: accepted once the bound allows for it, and wrong in whole
/// channels, not in single elements.
pub(super) fn one_pass_variance(scene: &Scene<'_>) -> Vec<Suspect> {
    let arithmetic = Arithmetic {
        one_pass_variance: true,
        ..scene.arithmetic.clone()
    };
    let Some(wider) = scene.under(&arithmetic) else {
        return Vec::new();
    };
    let explained = scene.outputs.iter().all(|output| {
        let bench = Bench::new(Criterion::Bound, output.tensor.data_type);
        let accepted = |estimate: &Estimate| {
            let mut elements = output.got.iter().enumerate();
            elements.all(|(index, &got)| bench.accepts(index, estimate, got))
        };
        let estimate = wider.get(&output.tensor.uid);
        estimate.is_some_and(accepted) && wrong_share(output) >= WRONG_SHARE
    });
    explained
        .then_some(Suspect::Found(String::new()))
        .into_iter()
        .collect()
}

/// The share of wrong elements in the channels that have any; 1 where there is none.
fn wrong_share(output: &Output<'_>) -> f64 {
    let dims = &output.tensor.dims;
    let extent = |axis: usize| dims.get(axis).map_or(1, |&dim| dim.max(1) as usize);
    let plane: usize = (2..dims.len()).map(extent).product();
    let channels: BTreeSet<usize> = output
        .wrong
        .iter()
        .map(|index| index / plane % extent(1))
        .collect();
    let elements = channels.len() * plane * extent(0);
    if elements == 0 {
        1.0
    } else {
        output.wrong.len() as f64 / elements as f64
    }
}

fn narrow(scene: &Scene<'_>, data_type: DataType, sizes: &Range<f64>) -> Vec<Suspect> {
    let cheap = |cost: f64| cost < BUDGET / 8.0;
    let affordable = scene.is_sampled() || cost(scene.graph).is_some_and(cheap);
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
    let Some(wider) = scene.under(&arithmetic) else {
        return false;
    };
    let mut told = false;
    for output in &scene.outputs {
        let Some(estimate) = wider.get(&output.tensor.uid) else {
            return false;
        };
        let Some(ratios) = ratios(output, estimate) else {
            return false;
        };
        if output.is_right() {
            continue;
        }
        let count = ratios.len().max(1) as f64;
        let mean = |f: fn(&(f64, f64)) -> f64| ratios.iter().map(f).sum::<f64>() / count;
        let root = mean(|(ratio, _)| ratio * ratio).sqrt();
        // Sums that are rounded to nearest drift neither up nor towards zero.
        let drift = mean(|(ratio, _)| *ratio).abs();
        let drift = drift.max(mean(|(ratio, sign)| ratio * sign).abs());
        let off = ratios
            .iter()
            .filter(|(ratio, _)| ratio.abs() > GOOD_PART * root)
            .count();
        let believable = ratios.len() >= LEAST
            && sizes.contains(&root)
            && drift < DRIFT * root
            && off as f64 >= SPREAD * count;
        if !believable {
            return false;
        }
        told = true;
    }
    told
}

/// Signed error over bound of every element, and its sign; `None` where one is outside.
fn ratios(output: &Output<'_>, estimate: &Estimate) -> Option<Vec<(f64, f64)>> {
    let bench = Bench::new(Criterion::Bound, output.tensor.data_type);
    let mut ratios = Vec::with_capacity(output.got.len());
    for (index, &got) in output.got.iter().enumerate() {
        if !bench.accepts(index, estimate, got) {
            return None;
        }
        let bound = bench.bound(index, estimate);
        let ratio = (got - estimate.value[index]) / bound;
        if ratio.is_finite() {
            ratios.push((ratio, estimate.value[index].signum()));
        }
    }
    Some(ratios)
}
