//! Outputs that were computed rightly and then written wrongly.

use super::layout::{is_dense, other_strides, reread};
use super::scene::{Move, Output, Scene, Suspect};
use crate::dtype;
use crate::estimate::{Estimate, round_up};
use dnn_assay_graph::{DataType, Tensor};

/// Elements that must speak for a rounding, so that it is no coincidence.
const WITNESSES: usize = 4;

/// Whether every element is what `map` makes of a correct one, and enough of them show it.
pub(super) fn is_mapped(scene: &Scene<'_>, map: fn(DataType, f64) -> f64) -> bool {
    let mut witnesses = 0;
    for output in &scene.outputs {
        let data_type = output.tensor.data_type;
        let bench = output.bench();
        let mapped = |value: f64| bench.round(map(data_type, value));
        for (index, &got) in output.got.iter().enumerate() {
            let (low, high) = output.interval(index);
            if low.is_nan() || high.is_nan() {
                if !got.is_nan() {
                    return false;
                }
                continue;
            }
            let (low, high) = (mapped(low), mapped(high));
            if output.truth.allows_also(index, got) {
                continue;
            }
            if !(low <= got && got <= high) {
                return false;
            }
            let telling = low == high && !bench.accepts(index, output.truth, low);
            witnesses += usize::from(telling);
        }
    }
    let wrong: usize = scene.outputs.iter().map(|output| output.wrong.len()).sum();
    witnesses >= WITNESSES.min(wrong) && witnesses > 0
}

fn one_map(map: fn(DataType, f64) -> f64) -> Vec<Suspect> {
    vec![Suspect::Map(map)]
}

/// Digits cut off.
pub(super) fn truncated(_: &Scene<'_>) -> Vec<Suspect> {
    one_map(|data_type, value| {
        let near = dtype::round(data_type, value);
        if !data_type.is_float() || near.abs() <= value.abs() {
            return near;
        }
        // One unit in the last place towards zero.
        let bits = dtype::precision(data_type);
        let step = (near.abs().log2().ceil() - f64::from(bits)).exp2();
        let step = step.max(dtype::smallest_subnormal(data_type));
        dtype::round(data_type, (near.abs() - step).copysign(near))
    })
}

pub(super) fn by_way_of_bf16(_: &Scene<'_>) -> Vec<Suspect> {
    one_map(|_, value| dtype::round(DataType::Bfloat16, value))
}

pub(super) fn by_way_of_f16(_: &Scene<'_>) -> Vec<Suspect> {
    one_map(|_, value| dtype::round(DataType::Half, value))
}

pub(super) fn by_way_of_f32(_: &Scene<'_>) -> Vec<Suspect> {
    one_map(|_, value| dtype::round(DataType::Float, value))
}

/// Subnormal numbers as zero.
pub(super) fn flushed(data_type: DataType, value: f64) -> f64 {
    let smallest = match data_type {
        DataType::Half => (-14f64).exp2(),
        DataType::Double => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    };
    if value.abs() < smallest {
        0.0f64.copysign(value)
    } else {
        value
    }
}

pub(super) fn denormals_flushed(_: &Scene<'_>) -> Vec<Suspect> {
    one_map(flushed)
}

/// The largest finite number for infinity.
pub(super) fn saturated(_: &Scene<'_>) -> Vec<Suspect> {
    one_map(|data_type, value| {
        let largest = dtype::largest_finite(data_type);
        value.clamp(-largest, largest)
    })
}

pub(super) fn nan_swallowed(scene: &Scene<'_>) -> Vec<Suspect> {
    let without = |output: &Output<'_>| {
        let mut estimate = output.truth.clone();
        for (value, error) in estimate.value.iter_mut().zip(&mut estimate.error) {
            if value.is_nan() {
                (*value, *error) = (0.0, 0.0);
            }
        }
        Some(estimate)
    };
    scene.each_output(without).into_iter().collect()
}

pub(super) fn zero_sign(scene: &Scene<'_>) -> Vec<Suspect> {
    let other = |output: &Output<'_>| {
        let mut estimate = output.truth.clone();
        for value in estimate.value.iter_mut().filter(|value| **value == 0.0) {
            *value = -*value;
        }
        Some(estimate)
    };
    scene.each_output(other).into_iter().collect()
}

pub(super) fn zeros(scene: &Scene<'_>) -> Vec<Suspect> {
    constant(scene, |_| Some(0.0))
}

/// One value everywhere, whichever it is.
pub(super) fn constants(scene: &Scene<'_>) -> Vec<Suspect> {
    constant(scene, |output| {
        let first = output.got.first().copied()?;
        (output.got.len() >= WITNESSES && first.is_finite() && first != 0.0).then_some(first)
    })
}

fn constant(scene: &Scene<'_>, value: impl Fn(&Output<'_>) -> Option<f64>) -> Vec<Suspect> {
    let whole = |output: &Output<'_>| Some(Estimate::exact(vec![value(output)?; output.got.len()]));
    scene.each_output(whole).into_iter().collect()
}

pub(super) fn negated(scene: &Scene<'_>) -> Vec<Suspect> {
    scene
        .each_output(|output| Some(scaled(output.truth, -1.0, 0.0)))
        .into_iter()
        .collect()
}

fn scaled(truth: &Estimate, factor: f64, doubt: f64) -> Estimate {
    let error =
        truth.value.iter().zip(&truth.error).map(|(value, &error)| {
            round_up(f64::from(error) * factor.abs() + (value * doubt).abs())
        });
    let value = truth.value.iter().map(|value| value * factor);
    Estimate::new(value.collect(), error.collect())
}

/// Every output times a factor of its own, found by least squares.
pub(super) fn times_constant(scene: &Scene<'_>) -> Vec<Suspect> {
    let mut detail = String::new();
    let mut estimates = std::collections::BTreeMap::new();
    for output in scene.outputs.iter().filter(|output| !output.is_right()) {
        let u = dtype::unit_roundoff(output.tensor.data_type).max(FLOAT);
        let Some(factor) = factor(output, 0..output.got.len()) else {
            return Vec::new();
        };
        if (factor - 1.0).abs() < 1.5 * u || factor.abs() < 1e-3 {
            return Vec::new();
        }
        if detail.is_empty() {
            detail = format!("by {}", short(factor));
        }
        let estimate = scaled(output.truth, factor, 0.25 * u);
        estimates.insert(output.tensor.uid, estimate);
    }
    let explained = super::agreement::explains(scene, &estimates, false);
    explained
        .then_some(Suspect::Found(detail))
        .into_iter()
        .collect()
}

/// Unit roundoff of f32.
const FLOAT: f64 = 1.0 / 16_777_216.0;

/// Σ got·y / Σ y² over finite elements; `None` with too few of them.
fn factor(output: &Output<'_>, elements: impl Iterator<Item = usize>) -> Option<f64> {
    let (mut products, mut squares, mut count) = (0.0, 0.0, 0);
    for index in elements {
        let (got, value) = (output.got[index], output.truth.value[index]);
        if got.is_finite() && value.is_finite() && value != 0.0 {
            products += got * value;
            squares += value * value;
            count += 1;
        }
    }
    (count >= WITNESSES && squares > 0.0 && squares.is_finite()).then(|| products / squares)
}

fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Slices of the output in other places: every one is a slice of the truth.
fn gathered(scene: &Scene<'_>, axis_of: impl Fn(usize) -> usize) -> Option<Vec<Vec<usize>>> {
    let mut found = Vec::new();
    for output in scene.outputs.iter().filter(|output| !output.is_right()) {
        let dims = &output.tensor.dims;
        let axis = axis_of(dims.len());
        found.push(slices(
            output,
            *dims.get(axis).filter(|&&dim| dim > 1)? as usize,
            axis,
        )?);
    }
    (!found.is_empty()).then_some(found)
}

/// For each slice along the axis, the slice of the truth that it equals; `None` where one equals
/// none, or every slice is in its place.
fn slices(output: &Output<'_>, extent: usize, axis: usize) -> Option<Vec<usize>> {
    let dims = &output.tensor.dims;
    let inner: usize = dims[axis + 1..].iter().map(|&dim| dim as usize).product();
    let outer = output.got.len() / (inner * extent);
    if inner * outer < 2 || extent > MOST_SLICES {
        return None;
    }
    let bench = output.bench();
    let equals = |to: usize, from: usize| {
        (0..outer * inner).all(|i| {
            let (block, rest) = (i / inner * extent, i % inner);
            let (to, from) = ((block + to) * inner + rest, (block + from) * inner + rest);
            bench.accepts(from, output.truth, output.got[to])
        })
    };
    let source = |to: usize| {
        let others = (0..extent).filter(|&from| from != to);
        std::iter::once(to)
            .chain(others)
            .find(|&from| equals(to, from))
    };
    let all = (0..extent).map(source).collect::<Option<Vec<_>>>()?;
    all.iter()
        .enumerate()
        .any(|(to, &from)| to != from)
        .then_some(all)
}

/// Slices along an axis that are compared with each other at most.
const MOST_SLICES: usize = 512;

fn sources_in_words(found: &[Vec<usize>], unit: &str) -> String {
    let moved = found[0].iter().enumerate().find(|(to, from)| *to != **from);
    moved.map_or_else(String::new, |(to, from)| {
        format!("{unit} {to} holds {unit} {from}")
    })
}

/// Every image is the first.
pub(super) fn first_image_everywhere(scene: &Scene<'_>) -> Vec<Suspect> {
    if scene.is_sampled() {
        return vec![Suspect::Moved(Move {
            from: |_, at| at.iter_mut().take(1).for_each(|image| *image = 0),
            skips_right: false,
        })];
    }
    let found = gathered(scene, |_| 0);
    let first = |all: &Vec<usize>| all.iter().all(|&from| from == 0);
    found
        .filter(|found| found.iter().all(first))
        .map(|_| Suspect::Found(String::new()))
        .into_iter()
        .collect()
}

pub(super) fn images_permuted(scene: &Scene<'_>) -> Vec<Suspect> {
    let found = gathered(scene, |_| 0).filter(|found| found[0].iter().any(|&from| from != 0));
    found
        .map(|found| Suspect::Found(sources_in_words(&found, "image")))
        .into_iter()
        .collect()
}

pub(super) fn channels_permuted(scene: &Scene<'_>) -> Vec<Suspect> {
    let found = gathered(scene, |_| 1);
    found
        .map(|found| Suspect::Found(sources_in_words(&found, "channel")))
        .into_iter()
        .collect()
}

pub(super) fn rows_permuted(scene: &Scene<'_>) -> Vec<Suspect> {
    if scene
        .outputs
        .iter()
        .any(|output| output.tensor.dims.len() < 3)
    {
        return Vec::new();
    }
    let along = |back: usize, unit: &str| {
        let found = gathered(
            scene,
            |rank| if rank >= 2 + back { rank - back } else { rank },
        );
        found.map(|found| Suspect::Found(sources_in_words(&found, unit)))
    };
    along(1, "column")
        .or_else(|| along(2, "row"))
        .into_iter()
        .collect()
}

/// The last two axes written in each other's order.
pub(super) fn transposed(scene: &Scene<'_>) -> Vec<Suspect> {
    let wide = |output: &Output<'_>| {
        let tensor = scene.graph.tensor(output.tensor.uid);
        output.is_right() || tensor.is_some_and(|tensor| tensor.dims.len() >= 2)
    };
    let from = |tensor: &Tensor, at: &mut [i64]| {
        let (dims, rank) = (&tensor.dims, at.len());
        let (height, width) = (dims[rank - 2], dims[rank - 1]);
        let place = at[rank - 2] * width + at[rank - 1];
        (at[rank - 2], at[rank - 1]) = (place % height, place / height);
    };
    let moved = Move {
        from,
        skips_right: true,
    };
    let all = scene.outputs.iter().all(wide);
    all.then_some(Suspect::Moved(moved)).into_iter().collect()
}

/// Written in another layout than the tensor has: packed, or with the channels last.
pub(super) fn layout_ignored(scene: &Scene<'_>) -> Vec<Suspect> {
    let dense = |output: &Output<'_>| {
        let tensor = scene.graph.tensor(output.tensor.uid);
        tensor.is_some_and(|tensor| is_dense(&tensor.dims, &tensor.strides))
    };
    let from = |Tensor { dims, strides, .. }: &Tensor, at: &mut [i64]| {
        reread(dims, strides, &other_strides(dims, strides), at);
    };
    let moved = Move {
        from,
        skips_right: false,
    };
    let all = scene.outputs.iter().all(dense);
    all.then_some(Suspect::Moved(moved)).into_iter().collect()
}

/// All wrong elements are zero: a part was not computed.
pub(super) fn part_zero(scene: &Scene<'_>) -> Vec<Suspect> {
    wrong_elements(scene, |output, index| {
        let truth = output.truth.value[index];
        truth.is_finite() && truth != 0.0 && output.got[index] == 0.0
    })
}

/// Every wrong element is twice what it should be.
pub(super) fn part_doubled(scene: &Scene<'_>) -> Vec<Suspect> {
    wrong_elements(scene, |output, index| {
        let twice = scaled_element(output, index, 2.0);
        twice.0.is_finite() && (output.got[index] - twice.0).abs() <= twice.1
    })
}

/// Every wrong element is off by the same factor.
pub(super) fn part_scaled(scene: &Scene<'_>) -> Vec<Suspect> {
    let failed: Vec<&Output<'_>> = scene.outputs.iter().filter(|o| !o.is_right()).collect();
    let [output] = failed.as_slice() else {
        return Vec::new();
    };
    let Some(factor) = factor(output, output.wrong.iter().copied()) else {
        return Vec::new();
    };
    let fits = output.wrong.iter().all(|&index| {
        let (value, bound) = scaled_element(output, index, factor);
        (output.got[index] - value).abs() <= bound
    });
    let told = fits && telling(scene) && (factor - 1.0).abs() > 1e-6 && factor.abs() > 1e-3;
    let text = format!("by {}", short(factor));
    told.then_some(Suspect::Found(text)).into_iter().collect()
}

/// One element of each output that is not right.
pub(super) fn single_element(scene: &Scene<'_>) -> Vec<Suspect> {
    if scene.is_sampled() {
        return Vec::new();
    }
    let single = scene.outputs.iter().all(|output| output.wrong.len() <= 1);
    single
        .then_some(Suspect::Found(String::new()))
        .into_iter()
        .collect()
}

/// Part of one channel of each output that is not right, off by the same factor.
pub(super) fn channel_share(scene: &Scene<'_>) -> Vec<Suspect> {
    let shares = scene
        .outputs
        .iter()
        .filter(|output| !output.is_right())
        .all(|output| {
            let whole = scene.graph.tensor(output.tensor.uid);
            let dims = &whole.unwrap_or(output.tensor).dims;
            let plane: usize = dims.iter().skip(2).map(|&dim| dim as usize).product();
            let channels = dims.get(1).map_or(1, |&dim| dim as usize);
            let channel = |&index: &usize| scene.index(output, index) / plane % channels;
            let one = output
                .wrong
                .iter()
                .all(|index| channel(index) == channel(&output.wrong[0]));
            let first = output.wrong[0];
            let factor = output.got[first] / output.truth.value[first];
            one && factor.is_finite() && share_scaled(output, factor)
        });
    (shares && telling(scene))
        .then_some(Suspect::Found(String::new()))
        .into_iter()
        .collect()
}

/// Whether every wrong element is the true one times `factor`.
fn share_scaled(output: &Output<'_>, factor: f64) -> bool {
    output.wrong.iter().all(|&index| {
        let (value, bound) = scaled_element(output, index, factor);
        // The factor itself comes from one rounded element.
        (output.got[index] - value).abs() <= 2.0 * bound
    })
}

/// A true element times a factor, and how far it may be off.
fn scaled_element(output: &Output<'_>, index: usize, factor: f64) -> (f64, f64) {
    let bound = output.bench().bound(index, output.truth);
    (
        output.truth.value[index] * factor,
        bound * factor.abs().max(1.0),
    )
}

fn wrong_elements(scene: &Scene<'_>, holds: impl Fn(&Output<'_>, usize) -> bool) -> Vec<Suspect> {
    let all = scene
        .outputs
        .iter()
        .all(|output| output.wrong.iter().all(|&index| holds(output, index)));
    (all && telling(scene))
        .then_some(Suspect::Found(String::new()))
        .into_iter()
        .collect()
}

/// Whether there are enough wrong elements to speak for those between them that are not there.
fn telling(scene: &Scene<'_>) -> bool {
    let wrong: usize = scene.outputs.iter().map(|output| output.wrong.len()).sum();
    !scene.is_sampled() || wrong >= WITNESSES
}

/// Every element is NaN where none should be: added to the NaNs that the buffer held before.
pub(super) fn accumulated(scene: &Scene<'_>) -> Vec<Suspect> {
    let stale = scene.outputs.iter().all(|output| {
        let float = output.tensor.data_type.is_float();
        float
            && output.truth.value.iter().all(|value| value.is_finite())
            && output.got.iter().all(|got| got.is_nan())
    });
    let any = scene.outputs.iter().any(|output| !output.got.is_empty());
    (stale && any)
        .then_some(Suspect::Found(String::new()))
        .into_iter()
        .collect()
}
