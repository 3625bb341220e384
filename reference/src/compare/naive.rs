//! The comparison said plainly, one element after another, and held against the one in blocks.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::judge::{Judge, Judged, Sample, Special};
use super::*;
use crate::criterion::{Criterion, ZeroSign};
use crate::dtype::{self, Element as _, with_element};
use crate::estimate::{Alternative, Estimate};
use dnn_assay_graph::{DataType, Tensor};
use proptest::prelude::*;

/// Elements whose sums are added up before they are added to those before.
const CHUNK: usize = 8192;

/// Σ over chunks in order of Σ over a chunk in order.
fn sum(terms: &[Option<f64>]) -> f64 {
    let chunks = terms.chunks(CHUNK);
    let sums = chunks.map(|chunk| chunk.iter().flatten().fold(0.0, |sum, term| sum + term));
    sums.fold(0.0, |sum, chunk| sum + chunk)
}

/// Sums are added up by `sum` alone, so that the order is said in one place.
fn naive(tensor: &Tensor, estimate: &Estimate, got: &[u8], criterion: Criterion) -> Comparison {
    let judge = Judge::new(criterion, tensor.data_type);
    let got = dtype::decode(tensor, got).unwrap();
    let samples: Vec<(Sample, Judged)> = (0..got.len())
        .map(|index| {
            let value = estimate.value[index];
            let rounded = dtype::round(tensor.data_type, value);
            let got = got[index];
            let ulps = with_element!(tensor.data_type, E => E::ulps(rounded, got)).unwrap();
            let error = f64::from(estimate.error[index]);
            let sample = Sample {
                value,
                error,
                rounded,
                got,
                ulps,
            };
            (sample, judge.judge(index, &sample, estimate))
        })
        .collect();
    let count = |holds: &dyn Fn(&Sample, &Judged) -> bool| {
        samples.iter().filter(|(s, j)| holds(s, j)).count()
    };
    let special = |wanted: Special| count(&|_, j| j.special == Some(wanted));
    let zeros = |s: &Sample| s.got == 0.0 && s.rounded == 0.0;
    let mut ulps = UlpHistogram::default();
    for (sample, _) in &samples {
        let bin = sample
            .ulps
            .map_or(15, |ulps| (ulps as f64 + 1.0).log2().ceil() as usize);
        ulps.counts[bin.min(15)] += 1;
    }
    let ratios: Vec<Option<f64>> = samples
        .iter()
        .map(|(_, j)| j.ratio.is_finite().then_some(j.ratio * j.ratio))
        .collect();
    let counted = |s: &Sample, j: &Judged| (s.got - s.value).is_finite() && j.special.is_none();
    let drifts: Vec<Option<f64>> = samples
        .iter()
        .map(|(s, j)| {
            let has = counted(s, j) && s.value != 0.0 && j.bound > 0.0 && j.bound.is_finite();
            has.then(|| (s.got - s.value) * s.value.signum() / j.bound)
        })
        .collect();
    let differences = |s: &Sample, j: &Judged| counted(s, j) && (s.got - s.rounded).is_finite();
    let squares: Vec<Option<f64>> = samples
        .iter()
        .map(|(s, j)| differences(s, j).then_some((s.got - s.rounded) * (s.got - s.rounded)))
        .collect();
    let with_difference = samples.iter().filter(|(s, j)| differences(s, j));
    let largest = with_difference.fold(0.0, |l: f64, (s, _)| {
        l.max(s.got.abs()).max(s.rounded.abs())
    });
    let mismatched = count(&|_, j| !j.accepted);
    let not_finite = count(&|s, j| !(j.accepted || s.got.is_finite() && s.rounded.is_finite()));
    let outside_bound = count(&|_, j| !j.within_bound);
    // The first of the worst: not accepted before accepted, then by ratio.
    let mut worst: Option<usize> = None;
    for (index, (_, judged)) in samples.iter().enumerate() {
        let is_worse = worst.is_none_or(|at| {
            let old = samples[at].1;
            (old.accepted && !judged.accepted)
                || old.accepted == judged.accepted && judged.ratio > old.ratio
        });
        if is_worse {
            worst = Some(index);
        }
    }
    let element = |index: usize| {
        let (sample, judged) = samples[index];
        let mut rest = index as i64;
        let mut coordinates: Vec<i64> = tensor
            .dims
            .iter()
            .rev()
            .map(|dim| {
                let at = rest % dim;
                rest /= dim;
                at
            })
            .collect();
        coordinates.reverse();
        Element {
            index,
            coordinates,
            expected: sample.value,
            got: sample.got,
            bound: judged.bound,
            margin: judged.ratio,
            ulps: sample.ulps,
        }
    };
    let rms = pass::rms_figure(sum(&squares), samples.len(), largest);
    let (mut passed, mut margin) = (mismatched == 0, worst.map_or(0.0, |at| samples[at].1.ratio));
    if let Criterion::Rms { threshold } = criterion {
        margin = if mismatched > 0 {
            f64::INFINITY
        } else {
            rms / threshold
        };
        passed &= rms <= threshold;
    }
    let kind = match criterion {
        _ if passed => None,
        _ if not_finite > 0 => Some(Mismatch::NotFinite),
        Criterion::Exact(_) if outside_bound == 0 => Some(Mismatch::Inexact),
        _ => Some(Mismatch::Numeric),
    };
    let signs = count(&|s, _| zeros(s) && s.got.is_sign_negative() != s.rounded.is_sign_negative());
    let unbounded = count(&|s, j| {
        let noticed = !j.accepted || j.special.is_some() || j.bound == f64::INFINITY;
        noticed && j.bound == f64::INFINITY && s.value.is_finite()
    });
    let notes = [
        (signs, Note::ZeroSign(signs)),
        (
            special(Special::Overflow),
            Note::Overflow(special(Special::Overflow)),
        ),
        (
            special(Special::Alternative),
            Note::Alternative(special(Special::Alternative)),
        ),
        (unbounded, Note::Unbounded(unbounded)),
    ];
    let number = |terms: &[Option<f64>]| terms.iter().flatten().count() as f64;
    let mean = |sum: f64, count: f64| if count == 0.0 { 0.0 } else { sum / count };
    let drift = sum(&drifts);
    let drift_squares: Vec<Option<f64>> = drifts.iter().map(|d| d.map(|d| d * d)).collect();
    let rejected = (0..samples.len()).filter(|&index| !samples[index].1.accepted);
    Comparison {
        criterion,
        passed,
        kind,
        margin,
        rms_margin: mean(sum(&ratios), number(&ratios)).sqrt(),
        bias_z: if drift == 0.0 {
            0.0
        } else {
            drift / sum(&drift_squares).sqrt()
        },
        bias_mean: mean(drift, number(&drifts)),
        compared: samples.len(),
        mismatched,
        outside_bound,
        worst: worst.map(element),
        first: rejected.take(10).map(element).collect(),
        ulps,
        notes: notes
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(_, note)| note)
            .collect(),
    }
}

/// What may be odd about an element, beside a number that is a little off.
#[derive(Clone, Copy, Debug)]
enum Oddity {
    None,
    /// The reference itself, not rounded: exact where the type holds it.
    Zero,
    OtherZero,
    NotANumber,
    Infinite,
    Far,
    NoBound,
    Overflowing,
}

/// A value, its error, what was written.
fn element(
    data_type: DataType,
    i: usize,
    scale: f64,
    slip: f64,
    oddity: Oddity,
) -> (f64, f32, f64) {
    let unit = ((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
    let value = (unit - 0.5) * scale.exp2();
    let error = (value.abs() * 1e-3) as f32;
    let largest = dtype::largest_finite(data_type);
    match oddity {
        Oddity::None => (value, error, value * (1.0 + slip * (unit - 0.4))),
        Oddity::Zero => (0.0, 0.0, 0.0),
        Oddity::OtherZero => (0.0, error, -0.0),
        Oddity::NotANumber => (value, error, f64::NAN),
        Oddity::Infinite => (f64::INFINITY, 0.0, f64::INFINITY),
        Oddity::Far => (value, error, value + 1.0),
        Oddity::NoBound => (value, f32::INFINITY, 7.0),
        Oddity::Overflowing => (largest, error, f64::INFINITY),
    }
}

fn oddities() -> impl Strategy<Value = Oddity> {
    prop::sample::select(vec![
        Oddity::Zero,
        Oddity::OtherZero,
        Oddity::NotANumber,
        Oddity::Infinite,
        Oddity::Far,
        Oddity::NoBound,
        Oddity::Overflowing,
        Oddity::None,
    ])
}

fn criteria() -> impl Strategy<Value = Criterion> {
    prop::sample::select(vec![
        Criterion::Bound,
        Criterion::Bound,
        Criterion::Exact(ZeroSign::Ignored),
        Criterion::Exact(ZeroSign::Significant),
        Criterion::Table {
            atol: 1e-3,
            rtol: 1e-2,
        },
        Criterion::Rms { threshold: 1e-2 },
        Criterion::Ulp { limit: 2 },
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Every recorded figure has the bits of the naive comparison: of all types and rules, of data
    /// without and with special values, in any layout.
    #[test]
    fn every_figure_is_that_of_the_naive_comparison(
        data_type in prop::sample::select(vec![
            DataType::Float, DataType::Half, DataType::Bfloat16, DataType::Double, DataType::Int32,
        ]),
        criterion in criteria(),
        extents in (1usize..9, 1usize..50, 1usize..50),
        channels_last in any::<bool>(),
        (scale, slip) in (-30f64..18.0, prop::sample::select(vec![0.0, 1e-7, 1e-4, 1e-3, 2e-3])),
        odd in prop::collection::vec((any::<prop::sample::Index>(), oddities()), 0..4),
        every in prop::sample::select(vec![0usize, 2, 300]),
        also in any::<bool>(),
    ) {
        let (a, b, c) = (extents.0 as i64, extents.1 as i64, extents.2 as i64);
        let mut tensor = Tensor::packed(1, "y", data_type, &[a, b, c]);
        if channels_last {
            tensor.strides = vec![b * c, 1, b];
        }
        let len = tensor.element_count().unwrap();
        let mut rows: Vec<_> = (0..len)
            .map(|i| {
                // Zeros among the rest, as a ReLU has them.
                let zero = every > 0 && i % every == 0;
                let oddity = if zero { Oddity::Zero } else { Oddity::None };
                element(data_type, i, scale, slip, oddity)
            })
            .collect();
        let mut estimate_also = Vec::new();
        for (at, oddity) in odd {
            let at = at.index(len);
            rows[at] = element(data_type, at, scale, slip, oddity);
            if also {
                estimate_also.push(Alternative { index: at, value: f64::NAN });
            }
        }
        estimate_also.sort_by_key(|other| other.index);
        let estimate = Estimate {
            also: estimate_also,
            ..Estimate::new(
                rows.iter().map(|row| row.0).collect(),
                rows.iter().map(|row| row.1).collect(),
            )
        };
        let got: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let mut bytes = vec![0; tensor.byte_size().unwrap()];
        dtype::encode(&tensor, &got, &mut bytes).unwrap();
        let fused = compare(&tensor, &estimate, &bytes, &criterion).unwrap();
        let plain = naive(&tensor, &estimate, &bytes, criterion);
        // As text, in which a NaN equals itself and every bit of a number shows.
        prop_assert_eq!(format!("{fused:?}"), format!("{plain:?}"));
    }
}
