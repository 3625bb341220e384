//! Whether an estimate explains what was seen.

use super::scene::{Output, Scene};
use crate::compare::{Judge, Sample};
use crate::criterion::Criterion;
use crate::dtype::{Element, with_element};
use crate::estimate::Estimate;
use dnn_assay_graph::DataType;
use std::collections::BTreeMap;

/// A criterion for a type.
pub(super) struct Bench {
    judge: Judge,
    round: fn(f64) -> f64,
}

/// Rounding to a type; NaN for one that the reference does not compute with.
pub(super) fn rounding(data_type: DataType) -> fn(f64) -> f64 {
    with_element!(data_type, E => <E as Element>::round as fn(f64) -> f64).unwrap_or(|_| f64::NAN)
}

impl Bench {
    pub(super) fn new(criterion: Criterion, data_type: DataType) -> Self {
        Self {
            judge: Judge::new(criterion, data_type),
            round: rounding(data_type),
        }
    }

    /// `value` rounded to the type.
    pub(super) fn round(&self, value: f64) -> f64 {
        (self.round)(value)
    }

    /// Whether the criterion accepts `got` for element `index`.
    pub(super) fn accepts(&self, index: usize, estimate: &Estimate, got: f64) -> bool {
        self.judge
            .judge(index, &self.sample(index, estimate, got), estimate)
            .accepted
    }

    fn sample(&self, index: usize, estimate: &Estimate, got: f64) -> Sample {
        let value = estimate.value[index];
        Sample {
            value,
            error: f64::from(estimate.error[index]),
            rounded: (self.round)(value),
            got,
            ulps: None,
        }
    }

    /// The largest error that passes at element `index`.
    pub(super) fn bound(&self, index: usize, estimate: &Estimate) -> f64 {
        let value = estimate.value[index];
        self.judge
            .judge(index, &self.sample(index, estimate, value), estimate)
            .bound
    }
}

/// Whether outputs with these estimates would look like what was seen, and not like the truth.
/// Outputs that are not listed are as they should be. `exact`: the estimates are as exact as the
/// truth, so where the truth is judged bit for bit they are too.
pub(super) fn explains(
    scene: &Scene<'_>,
    estimates: &BTreeMap<i64, Estimate>,
    exact: bool,
) -> bool {
    let of = |output: &Output<'_>| estimates.get(&output.tensor.uid);
    scene.outputs.iter().all(|output| match of(output) {
        Some(other) => matches(output, other, exact),
        None => output.is_right(),
    }) && scene
        .outputs
        .iter()
        .any(|output| of(output).is_some_and(|other| differs(output, other)))
}

/// Whether what was seen agrees with another estimate in every element.
fn matches(output: &Output<'_>, other: &Estimate, exact: bool) -> bool {
    if other.value.len() != output.got.len() {
        return false;
    }
    let criterion = if exact {
        output.criterion
    } else {
        Criterion::Bound
    };
    let bench = Bench::new(criterion, output.tensor.data_type);
    output.got.iter().enumerate().all(|(index, &got)| {
        let vague = other.error[index].is_infinite() && output.truth.error[index].is_finite();
        !vague && bench.accepts(index, other, got)
    })
}

/// Whether the truth rejects another estimate's values somewhere.
pub(super) fn differs(output: &Output<'_>, other: &Estimate) -> bool {
    let bench = output.bench();
    let rejects =
        |(index, &value): (usize, &f64)| !bench.accepts(index, output.truth, bench.round(value));
    other.value.iter().enumerate().any(rejects)
}
