//! The pass over an output.
//!
//! The logical order is cut into chunks of a fixed length. Each is folded by one thread, and the
//! chunks are folded in order; so the figures have the same bits for any number of threads.

use super::block::{BLOCK, Block};
use super::comparison::{Comparison, Element as Located, Mismatch, Note};
use super::judge::{Judge, Judged, Plain, Sample, Special};
use super::ulp::UlpHistogram;
use crate::criterion::Criterion;
use crate::dtype::{Element, LayoutError, View, checked_view, load_run, with_element};
use crate::estimate::Estimate;
use crate::parallel;
use dnn_assay_graph::Tensor;
use rayon::prelude::*;
use std::ops::Range;

/// Elements per chunk. The figures' last bits depend on it.
const CHUNK: usize = 1 << 13;

/// Mismatches that are kept.
const FIRST: usize = 10;

/// Compares `got`, the bytes of `tensor`'s strided buffer, with `estimate`. Every element of the
/// tensor is compared; whether it was written at all is for the owner of the buffer to know.
///
/// # Errors
/// [`LayoutError`] if the tensor's type has no reference, its layout does not fit the buffer, or
/// the estimate is of another size.
///
/// # Panics
/// If the pass did not see each element once, which would be a defect of this function.
pub fn compare(
    tensor: &Tensor,
    estimate: &Estimate,
    got: &[u8],
    criterion: &Criterion,
) -> Result<Comparison, LayoutError> {
    let view = checked_view(tensor, got.len())?;
    for length in [estimate.value.len(), estimate.error.len()] {
        if length != view.len() {
            return Err(LayoutError::Values {
                uid: tensor.uid,
                expected: view.len(),
                seen: length,
            });
        }
    }
    let judge = Judge::new(*criterion, tensor.data_type);
    let figures = with_element!(
        tensor.data_type,
        E => fold::<E>(&Work { view: &view, estimate, got, judge: &judge })
    )
    .ok_or(LayoutError::DataType {
        uid: tensor.uid,
        data_type: tensor.data_type,
    })?;
    assert_eq!(
        figures.compared,
        view.len(),
        "every element is compared once"
    );
    Ok(figures.into_comparison(tensor, *criterion))
}

/// The largest error that `criterion` lets pass, for each element in logical order. Rules of the
/// whole tensor and of bits have no such number: theirs is that of [`Criterion::Bound`].
pub fn bounds(tensor: &Tensor, estimate: &Estimate, criterion: &Criterion) -> Vec<f64> {
    let judge = Judge::new(*criterion, tensor.data_type);
    let elements = estimate.value.iter().zip(&estimate.error).enumerate();
    let bound = |(index, (&value, &error)): (usize, (&f64, &f32))| {
        let rounded = crate::dtype::round(tensor.data_type, value);
        let sample = Sample {
            value,
            error: f64::from(error),
            rounded,
            got: value,
            ulps: Some(0),
        };
        judge.judge(index, &sample, estimate).bound
    };
    elements.map(bound).collect()
}

struct Work<'a> {
    view: &'a View,
    estimate: &'a Estimate,
    got: &'a [u8],
    judge: &'a Judge,
}

impl Work<'_> {
    /// What was written to these elements.
    fn load<E: Element>(&self, elements: Range<usize>, got: &mut [f64]) {
        let first = elements.start;
        self.view.runs(elements, |run| {
            let got = &mut got[run.logical.start - first..run.logical.end - first];
            load_run::<E>(&self.got[run.start * E::SIZE..], run.stride, got);
        });
    }

    /// The judgement of one element.
    fn judged<E: Element>(&self, index: usize, got: f64) -> Kept {
        let value = self.estimate.value[index];
        let rounded = E::round(value);
        let sample = Sample {
            value,
            error: f64::from(self.estimate.error[index]),
            rounded,
            got,
            ulps: E::ulps(rounded, got),
        };
        let judged = self.judge.judge(index, &sample, self.estimate);
        Kept {
            index,
            sample,
            judged,
        }
    }
}

fn fold<E: Element>(work: &Work<'_>) -> Figures {
    let chunks = work.view.len().div_ceil(CHUNK);
    let chunk = |i: usize| {
        let range = i * CHUNK..work.view.len().min((i + 1) * CHUNK);
        Figures::of_chunk::<E>(work, range)
    };
    let partial: Vec<Figures> = if chunks > 1 {
        (0..chunks).into_par_iter().map(chunk).collect()
    } else {
        (0..chunks).map(chunk).collect()
    };
    let mut total = Figures::default();
    for figures in partial {
        total.merge(figures);
    }
    total
}

/// An element that is kept.
#[derive(Clone, Copy)]
struct Kept {
    index: usize,
    sample: Sample,
    judged: Judged,
}

/// Sums, counts and extremes of a stretch of elements.
#[derive(Default)]
struct Figures {
    compared: usize,
    mismatched: usize,
    not_finite: usize,
    outside_bound: usize,
    zero_sign: usize,
    overflow: usize,
    alternative: usize,
    unbounded: usize,
    worst: Option<Kept>,
    first: Vec<Kept>,
    ulps: UlpHistogram,
    ratio_squares: f64,
    ratios: usize,
    drift: f64,
    drift_squares: f64,
    drifts: usize,
    difference_squares: f64,
    largest: f64,
}

impl Figures {
    fn of_chunk<E: Element>(work: &Work<'_>, range: Range<usize>) -> Self {
        let mut figures = Self::default();
        let mut block = Block::new();
        let plain = work.judge.plain();
        for start in range.clone().step_by(BLOCK) {
            let elements = start..range.end.min(start + BLOCK);
            work.load::<E>(elements.clone(), block.got_mut(elements.len()));
            let done = plain
                .as_ref()
                .is_some_and(|plain| figures.add_block::<E>(work, start, &mut block, plain));
            if !done {
                for (index, &got) in elements.zip(block.got()) {
                    figures.add(work.judged::<E>(index, got));
                }
            }
        }
        figures
    }

    /// Adds the elements from `start` on, unless one of them needs a rule of its own.
    fn add_block<E: Element>(
        &mut self,
        work: &Work<'_>,
        start: usize,
        block: &mut Block,
        plain: &Plain,
    ) -> bool {
        let elements = start..start + block.got().len();
        let value = &work.estimate.value[elements.clone()];
        let error = &work.estimate.error[elements.clone()];
        let counts = &mut self.ulps.counts;
        let found = parallel::vectorised(
            #[inline(always)]
            || {
                let found = block.assess::<E>(plain, value, error)?;
                if found.is_equal {
                    counts[0] += value.len() as u64;
                } else {
                    block.histogram::<E>(counts);
                }
                Some(found)
            },
        );
        let Some(found) = found else { return false };
        self.compared += elements.len();
        self.ratios += elements.len();
        self.drifts += found.drifts;
        self.zero_sign += found.zero_sign;
        self.largest = self.largest.max(found.largest);
        // Where all these are 0, adding them changes nothing.
        if found.ratio > 0.0 || !found.is_equal {
            block.add_to([
                &mut self.ratio_squares,
                &mut self.drift,
                &mut self.drift_squares,
                &mut self.difference_squares,
            ]);
        }
        let is_worse = |worst: &Kept| worst.judged.accepted && found.ratio > worst.judged.ratio;
        if self.worst.as_ref().is_none_or(is_worse) {
            let at = block.first_with(found.ratio);
            self.consider(work.judged::<E>(start + at, block.got()[at]));
        }
        true
    }

    #[inline]
    fn add(&mut self, element: Kept) {
        let Kept { sample, judged, .. } = element;
        self.compared += 1;
        self.ulps.add(sample.ulps);
        if sample.got == 0.0 && sample.rounded == 0.0 {
            let differs = sample.got.is_sign_negative() != sample.rounded.is_sign_negative();
            self.zero_sign += usize::from(differs);
        }
        if judged.ratio.is_finite() {
            self.ratio_squares += judged.ratio * judged.ratio;
            self.ratios += 1;
        }
        let difference = sample.got - sample.value;
        if difference.is_finite() && judged.special.is_none() {
            self.add_drift(difference, &element);
        }
        if !judged.accepted || judged.special.is_some() || judged.bound == f64::INFINITY {
            self.add_unusual(element);
        }
        self.outside_bound += usize::from(!judged.within_bound);
        self.consider(element);
    }

    #[inline]
    fn add_drift(&mut self, difference: f64, element: &Kept) {
        let Kept { sample, judged, .. } = element;
        let rounded_difference = sample.got - sample.rounded;
        if rounded_difference.is_finite() {
            self.difference_squares += rounded_difference * rounded_difference;
            self.largest = self.largest.max(sample.rounded.abs()).max(sample.got.abs());
        }
        if sample.value != 0.0 && judged.bound > 0.0 && judged.bound.is_finite() {
            let drift = (difference * sample.value.signum()) / judged.bound;
            self.drift += drift;
            self.drift_squares += drift * drift;
            self.drifts += 1;
        }
    }

    #[cold]
    fn add_unusual(&mut self, element: Kept) {
        let Kept { sample, judged, .. } = element;
        self.unbounded += usize::from(judged.bound == f64::INFINITY && sample.value.is_finite());
        match judged.special {
            Some(Special::Overflow) => self.overflow += 1,
            Some(Special::Alternative) => self.alternative += 1,
            Some(Special::Agrees) | None => {}
        }
        if !judged.accepted {
            self.mismatched += 1;
            let finite = sample.got.is_finite() && sample.rounded.is_finite();
            self.not_finite += usize::from(!finite);
            if self.first.len() < FIRST {
                self.first.push(element);
            }
        }
    }

    /// Keeps the worse of two: not accepted before accepted, then the larger margin, then the
    /// first.
    #[inline]
    fn consider(&mut self, element: Kept) {
        let worse = self.worst.is_none_or(|worst| {
            let (old, new) = (&worst.judged, &element.judged);
            match (old.accepted, new.accepted) {
                (true, false) => true,
                (false, true) => false,
                _ => new.ratio > old.ratio,
            }
        });
        if worse {
            self.worst = Some(element);
        }
    }

    /// Adds the figures of the elements that follow.
    fn merge(&mut self, next: Self) {
        self.compared += next.compared;
        self.mismatched += next.mismatched;
        self.not_finite += next.not_finite;
        self.outside_bound += next.outside_bound;
        self.zero_sign += next.zero_sign;
        self.overflow += next.overflow;
        self.alternative += next.alternative;
        self.unbounded += next.unbounded;
        if let Some(worst) = next.worst {
            self.consider(worst);
        }
        let room = FIRST - self.first.len();
        self.first.extend(next.first.into_iter().take(room));
        self.ulps.merge(&next.ulps);
        self.ratio_squares += next.ratio_squares;
        self.ratios += next.ratios;
        self.drift += next.drift;
        self.drift_squares += next.drift_squares;
        self.drifts += next.drifts;
        self.difference_squares += next.difference_squares;
        self.largest = self.largest.max(next.largest);
    }

    fn into_comparison(self, tensor: &Tensor, criterion: Criterion) -> Comparison {
        let mean = |sum: f64, count: usize| if count == 0 { 0.0 } else { sum / count as f64 };
        let mut margin = self.worst.map_or(0.0, |worst| worst.judged.ratio);
        let mut passed = self.mismatched == 0;
        if let Criterion::Rms { threshold } = criterion {
            let figure = rms_figure(self.difference_squares, self.compared, self.largest);
            passed &= figure <= threshold;
            margin = match figure {
                _ if self.mismatched > 0 => f64::INFINITY,
                0.0 => 0.0,
                figure => figure / threshold,
            };
        }
        Comparison {
            criterion,
            passed,
            kind: (!passed).then(|| self.kind(criterion)),
            margin,
            rms_margin: mean(self.ratio_squares, self.ratios).sqrt(),
            bias_z: if self.drift == 0.0 {
                0.0
            } else {
                self.drift / self.drift_squares.sqrt()
            },
            bias_mean: mean(self.drift, self.drifts),
            compared: self.compared,
            mismatched: self.mismatched,
            outside_bound: self.outside_bound,
            notes: self.notes(),
            worst: self.worst.map(|worst| worst.locate(tensor)),
            first: self
                .first
                .iter()
                .map(|element| element.locate(tensor))
                .collect(),
            ulps: self.ulps,
        }
    }

    fn kind(&self, criterion: Criterion) -> Mismatch {
        if self.not_finite > 0 {
            Mismatch::NotFinite
        } else if matches!(criterion, Criterion::Exact(_)) && self.outside_bound == 0 {
            Mismatch::Inexact
        } else {
            Mismatch::Numeric
        }
    }

    fn notes(&self) -> Vec<Note> {
        [
            (self.zero_sign, Note::ZeroSign as fn(usize) -> Note),
            (self.overflow, Note::Overflow),
            (self.alternative, Note::Alternative),
            (self.unbounded, Note::Unbounded),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, note)| note(count))
        .collect()
    }
}

/// MIOpenDriver's figure: root mean square difference over the largest magnitude.
pub(crate) fn rms_figure(difference_squares: f64, count: usize, largest: f64) -> f64 {
    if difference_squares == 0.0 {
        return 0.0;
    }
    difference_squares.sqrt() / ((count as f64).sqrt() * largest.max(f64::MIN_POSITIVE))
}

impl Kept {
    fn locate(&self, tensor: &Tensor) -> Located {
        Located {
            index: self.index,
            coordinates: coordinates(&tensor.dims, self.index),
            expected: self.sample.value,
            got: self.sample.got,
            bound: self.judged.bound,
            margin: self.judged.ratio,
            ulps: self.sample.ulps,
        }
    }
}

/// Coordinates of a row-major index.
fn coordinates(dims: &[i64], mut index: usize) -> Vec<i64> {
    let mut coordinates = vec![0; dims.len()];
    for (coordinate, &dim) in coordinates.iter_mut().zip(dims).rev() {
        let dim = usize::try_from(dim).expect("a tensor with elements");
        *coordinate = (index % dim) as i64;
        index /= dim;
    }
    coordinates
}
