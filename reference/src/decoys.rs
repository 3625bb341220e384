//! Decoys: wrong outputs made from the reference alone, which a criterion must reject.
//!
//! A criterion that accepts an output of zeros has verified nothing, whatever it says of the
//! engine; the case is then *weak*.

use crate::compare::{Judge, Sample};
use crate::criterion::Criterion;
use crate::dtype::{Element, LayoutError, with_element};
use crate::estimate::Estimate;
use crate::ops::sums::{Same, in_trees};
use crate::parallel;
use dnn_assay_graph::Tensor;
use rayon::prelude::*;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A wrong output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Decoy {
    /// All zeros.
    Zeros,
    /// The mean of the finite elements everywhere.
    Mean,
    /// Each element from its neighbour along this axis, the last from the first.
    Shifted(usize),
    /// Rows (the last axis) in reverse order.
    RowsReversed,
    /// Batches (the first axis of rank 3 and more) in reverse order.
    OtherBatch,
    /// Everything × (1 + max(0.01, 8u)), u the unit roundoff of the output's type.
    Scaled,
    /// Every sum without its last term.
    LastTap,
}

impl fmt::Display for Decoy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeros => f.write_str("zeros"),
            Self::Mean => f.write_str("mean"),
            Self::Shifted(axis) => write!(f, "shifted-axis-{axis}"),
            Self::RowsReversed => f.write_str("rows-reversed"),
            Self::OtherBatch => f.write_str("other-batch"),
            Self::Scaled => f.write_str("scaled"),
            Self::LastTap => f.write_str("last-tap"),
        }
    }
}

/// What a criterion said of the decoys of one tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecoyReport {
    /// Decoys that, rounded to the output's type, differ from the rounded reference somewhere.
    pub applicable: Vec<Decoy>,
    /// The applicable ones that the criterion accepts.
    pub accepted: Vec<Decoy>,
    /// No last term is larger than its sum's bound, so that no rule of this tightness sees one that
    /// is missing.
    pub blind_to_last_tap: bool,
}

impl DecoyReport {
    /// Applicable decoys that the criterion rejects.
    pub fn rejected(&self) -> usize {
        self.applicable.len() - self.accepted.len()
    }

    /// The case verifies nothing: an applicable decoy passes, or none is applicable.
    pub fn is_weak(&self) -> bool {
        self.applicable.is_empty() || !self.accepted.is_empty()
    }
}

impl fmt::Display for DecoyReport {
    /// `6 of 6 decoys rejected`, `5 of 6 decoys rejected; accepted: scaled`, `no decoy applies`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.applicable.is_empty() {
            return f.write_str("no decoy applies");
        }
        write!(
            f,
            "{} of {} decoys rejected",
            self.rejected(),
            self.applicable.len()
        )?;
        let mut separator = "; accepted: ";
        for decoy in &self.accepted {
            write!(f, "{separator}{decoy}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// Judges every decoy of `estimate` by `criterion`. A criterion with a limit per element needs a
/// pass only up to the first element that it rejects.
///
/// # Errors
/// [`LayoutError`] if the tensor's type has no reference or the estimate is of another size.
pub fn check(
    tensor: &Tensor,
    estimate: &Estimate,
    criterion: &Criterion,
) -> Result<DecoyReport, LayoutError> {
    check_with_terms(tensor, estimate, criterion, None)
}

/// As [`check`], with the last term of every element's sum where there is one
/// ([`crate::last_terms`]).
///
/// # Errors
/// As [`check`].
pub fn check_with_terms(
    tensor: &Tensor,
    estimate: &Estimate,
    criterion: &Criterion,
    last_terms: Option<&[f64]>,
) -> Result<DecoyReport, LayoutError> {
    let shape = Shape::of(tensor, estimate)?;
    let judge = Judge::new(*criterion, tensor.data_type);
    let mut report = DecoyReport::default();
    let mut all = decoys(tensor, &shape, estimate);
    if let Some(terms) = last_terms.filter(|terms| terms.len() == shape.len) {
        if shows(tensor, estimate, terms) {
            all.push((Decoy::LastTap, Source::Less(terms)));
        } else {
            report.blind_to_last_tap = true;
        }
    }
    for (decoy, source) in all {
        let outcome = with_element!(tensor.data_type, E => {
            let trial = Trial { source, shape: &shape, estimate, judge: &judge };
            match criterion {
                Criterion::Rms { threshold } => trial.by_rms::<E>(*threshold),
                _ => trial.by_elements::<E>(),
            }
        });
        let outcome = outcome.ok_or(LayoutError::DataType {
            uid: tensor.uid,
            data_type: tensor.data_type,
        })?;
        if outcome.applicable {
            report.applicable.push(decoy);
            if outcome.accepted {
                report.accepted.push(decoy);
            }
        }
    }
    Ok(report)
}

/// Whether some term is larger than the bound of its sum and what rounding to the output's type
/// may hide.
fn shows(tensor: &Tensor, estimate: &Estimate, terms: &[f64]) -> bool {
    let u = crate::dtype::unit_roundoff(tensor.data_type);
    let half = crate::dtype::smallest_subnormal(tensor.data_type) / 2.0;
    let elements = estimate.value.iter().zip(&estimate.error);
    elements.zip(terms).any(|((y, &error), term)| {
        let e = f64::from(error);
        term.abs() > e + 2.0 * u * (y.abs() + e + term.abs()) + 2.0 * half
    })
}

/// Extents of a tensor with at least one element.
struct Shape {
    dims: Vec<usize>,
    len: usize,
}

impl Shape {
    fn of(tensor: &Tensor, estimate: &Estimate) -> Result<Self, LayoutError> {
        let shape_error = || LayoutError::Shape {
            uid: tensor.uid,
            dims: tensor.dims.clone(),
            strides: tensor.strides.clone(),
        };
        let len = tensor.element_count().ok_or_else(shape_error)?;
        let dims = tensor.dims.iter().map(|&dim| usize::try_from(dim));
        let dims = dims.collect::<Result<_, _>>().map_err(|_| shape_error())?;
        if estimate.value.len() != len || estimate.error.len() != len {
            return Err(LayoutError::Values {
                uid: tensor.uid,
                expected: len,
                seen: estimate.value.len(),
            });
        }
        Ok(Self { dims, len })
    }

    /// Elements from one step along the axis to the next.
    fn step(&self, axis: usize) -> usize {
        self.dims[axis + 1..].iter().product()
    }
}

/// Where a decoy's elements come from.
#[derive(Clone, Copy)]
enum Source<'a> {
    Constant(f64),
    Scaled(f64),
    /// The neighbour along an axis of this extent and step.
    Next {
        extent: usize,
        step: usize,
    },
    /// Blocks of this many elements in reverse order.
    Reversed {
        block: usize,
    },
    /// Each less this one.
    Less(&'a [f64]),
}

impl Source<'_> {
    #[inline]
    fn at(self, index: usize, shape: &Shape, values: &[f64]) -> f64 {
        match self {
            Self::Constant(value) => value,
            Self::Scaled(factor) => values[index] * factor,
            Self::Less(terms) => values[index] - terms[index],
            Self::Next { extent, step } => {
                let last = (index / step) % extent == extent - 1;
                let next = if last {
                    index - (extent - 1) * step
                } else {
                    index + step
                };
                values[next]
            }
            Self::Reversed { block } => {
                let start = index - index % block;
                values[shape.len - block - start + index % block]
            }
        }
    }
}

fn decoys<'a>(tensor: &Tensor, shape: &Shape, estimate: &Estimate) -> Vec<(Decoy, Source<'a>)> {
    if shape.len == 0 {
        return Vec::new();
    }
    let factor = 1.0 + (8.0 * crate::dtype::unit_roundoff(tensor.data_type)).max(0.01);
    let mut decoys = vec![
        (Decoy::Zeros, Source::Constant(0.0)),
        (Decoy::Mean, Source::Constant(mean(&estimate.value))),
        (Decoy::Scaled, Source::Scaled(factor)),
    ];
    for (axis, &extent) in shape
        .dims
        .iter()
        .enumerate()
        .filter(|(_, extent)| **extent > 1)
    {
        let step = shape.step(axis);
        decoys.push((Decoy::Shifted(axis), Source::Next { extent, step }));
    }
    if let Some(&row) = shape.dims.last().filter(|row| **row < shape.len) {
        decoys.push((Decoy::RowsReversed, Source::Reversed { block: row }));
    }
    if shape.dims.len() >= 3 && shape.dims[0] > 1 {
        let block = shape.step(0);
        decoys.push((Decoy::OtherBatch, Source::Reversed { block }));
    }
    decoys
}

/// Mean of the finite values, 0 if there are none; chunks of a fixed length, each a fixed tree, summed
/// in order.
fn mean(values: &[f64]) -> f64 {
    let chunk = |chunk: &[f64]| -> (f64, usize) {
        let [sum] = in_trees([chunk], Same);
        if sum.is_finite() {
            return (sum, chunk.len());
        }
        let finite = chunk.iter().filter(|value| value.is_finite());
        finite.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1))
    };
    let sums: Vec<(f64, usize)> = if parallel::worthwhile(values.len() / 4) {
        values.par_chunks(CHUNK).map(chunk).collect()
    } else {
        values.chunks(CHUNK).map(chunk).collect()
    };
    let (sum, count) = sums
        .iter()
        .fold((0.0, 0), |(s, n), (sum, count)| (s + sum, n + count));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Elements per task.
const CHUNK: usize = 1 << 13;

/// Elements all over a tensor that are tried before the others are, one after another.
const SPREAD: usize = 1 << 9;

/// The place of the `i`-th of [`SPREAD`] elements of a tensor: one in each of as many stretches, now
/// near its start, now near its end, so that no column or channel is missed for a period.
fn spread(i: usize, len: usize) -> usize {
    if len <= SPREAD {
        return i;
    }
    let stretch = len / SPREAD;
    i * stretch + i * 61 % stretch
}

struct Outcome {
    applicable: bool,
    accepted: bool,
}

struct Trial<'a> {
    source: Source<'a>,
    shape: &'a Shape,
    estimate: &'a Estimate,
    judge: &'a Judge,
}

impl Trial<'_> {
    fn sample<E: Element>(&self, index: usize) -> Sample {
        let value = self.estimate.value[index];
        let rounded = E::round(value);
        let got = E::round(self.source.at(index, self.shape, &self.estimate.value));
        Sample {
            value,
            error: f64::from(self.estimate.error[index]),
            rounded,
            got,
            ulps: E::ulps(rounded, got),
        }
    }

    fn chunks(&self) -> impl IndexedParallelIterator<Item = std::ops::Range<usize>> {
        let len = self.shape.len;
        (0..len.div_ceil(CHUNK))
            .into_par_iter()
            .map(move |i| i * CHUNK..len.min((i + 1) * CHUNK))
    }

    /// Stops at the first element that is found to differ and to be rejected; a decoy is accepted only
    /// after every element has been judged.
    fn by_elements<E: Element>(&self) -> Outcome {
        let applicable = AtomicBool::new(false);
        let rejects = |index: usize| {
            let values = &self.estimate.value;
            if self.source.at(index, self.shape, values) == values[index] {
                return false;
            }
            let sample = self.sample::<E>(index);
            if sample.ulps == Some(0) || sample.rounded.is_nan() && sample.got.is_nan() {
                return false;
            }
            applicable.store(true, Ordering::Relaxed);
            !self.judge.judge(index, &sample, self.estimate).accepted
        };
        // Nearly every decoy falls at once; starting the threads would cost more.
        let len = self.shape.len;
        let rejected = (0..SPREAD.min(len)).any(|i| rejects(spread(i, len)))
            || (0..len.min(CHUNK)).any(rejects)
            || self.chunks().skip(1).any(|mut range| range.any(rejects));
        Outcome {
            applicable: applicable.into_inner(),
            accepted: !rejected,
        }
    }

    /// The figure of the whole tensor.
    fn by_rms<E: Element>(&self, threshold: f64) -> Outcome {
        let partial: Vec<(f64, f64, bool)> = self
            .chunks()
            .map(|range| {
                range.fold((0.0, 0.0f64, true), |(squares, largest, finite), index| {
                    let Sample { rounded, got, .. } = self.sample::<E>(index);
                    (
                        squares + (got - rounded) * (got - rounded),
                        largest.max(rounded.abs()).max(got.abs()),
                        finite && got.is_finite() && rounded.is_finite(),
                    )
                })
            })
            .collect();
        let (squares, largest, finite) = partial.into_iter().fold((0.0, 0.0f64, true), |a, b| {
            (a.0 + b.0, a.1.max(b.1), a.2 && b.2)
        });
        let figure = crate::compare::rms_figure(squares, self.shape.len, largest);
        Outcome {
            applicable: !finite || squares > 0.0,
            accepted: finite && figure <= threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_graph::DataType;
    use proptest::prelude::*;
    use rstest::rstest;

    fn report(
        data_type: DataType,
        dims: &[i64],
        value: &[f64],
        error: f32,
        criterion: Criterion,
    ) -> String {
        let tensor = Tensor::packed(1, "y", data_type, dims);
        let estimate = Estimate::new(value.into(), vec![error; value.len()].into());
        let report = check(&tensor, &estimate, &criterion).unwrap();
        let applicable: Vec<_> = report.applicable.iter().map(Decoy::to_string).collect();
        let weak = if report.is_weak() { "weak" } else { "strong" };
        format!("{}: {report}: {weak}", applicable.join(" "))
    }

    const SIX: [f64; 6] = [1.0, -2.0, 3.0, 4.0, -5.0, 6.0];

    #[rstest]
    #[case::tight(DataType::Float, &[2, 3], &SIX, 1e-6, Criterion::Bound,
        "zeros mean scaled shifted-axis-0 shifted-axis-1 rows-reversed: \
         6 of 6 decoys rejected: strong")]
    #[case::loose(DataType::Float, &[2, 3], &SIX, 0.2, Criterion::Bound,
        "zeros mean scaled shifted-axis-0 shifted-axis-1 rows-reversed: \
         5 of 6 decoys rejected; accepted: scaled: weak")]
    #[case::vacuous(DataType::Half, &[6], &SIX, 100.0, Criterion::Bound,
        "zeros mean scaled shifted-axis-0: \
         0 of 4 decoys rejected; accepted: zeros, mean, scaled, shifted-axis-0: weak")]
    #[case::all_zero(DataType::Half, &[2, 2], &[0.0; 4], 0.0, Criterion::Bound,
        ": no decoy applies: weak")]
    #[case::constant(DataType::Bfloat16, &[2, 2], &[3.0; 4], 0.0, Criterion::Bound,
        "zeros scaled: 2 of 2 decoys rejected: strong")]
    #[case::empty(DataType::Float, &[0, 2], &[], 0.0, Criterion::Bound,
        ": no decoy applies: weak")]
    #[case::batches(DataType::Double, &[2, 1, 3], &SIX, 0.0, Criterion::Exact(Default::default()),
        "zeros mean scaled shifted-axis-0 shifted-axis-2 rows-reversed other-batch: \
         7 of 7 decoys rejected: strong")]
    #[case::table(DataType::Float, &[6], &SIX, 0.0, Criterion::Table { atol: 0.1, rtol: 0.1 },
        "zeros mean scaled shifted-axis-0: 3 of 4 decoys rejected; accepted: scaled: weak")]
    #[case::rms(DataType::Float, &[6], &SIX, 0.0, Criterion::Rms { threshold: 0.0656 },
        "zeros mean scaled shifted-axis-0: 3 of 4 decoys rejected; accepted: scaled: weak")]
    fn decoys_of_a_tensor(
        #[case] data_type: DataType,
        #[case] dims: &[i64],
        #[case] value: &[f64],
        #[case] error: f32,
        #[case] criterion: Criterion,
        #[case] expected: &str,
    ) {
        assert_eq!(report(data_type, dims, value, error, criterion), expected);
    }

    #[rstest]
    // A last term of 1 beside a bound of 0.1, and of 10.
    #[case::seen(0.1, Criterion::Bound, "5 of 5 decoys rejected; last tap seen")]
    #[case::blind(10.0, Criterion::Bound, "last tap hidden")]
    #[case::table(0.1, Criterion::Table { atol: 2.0, rtol: 0.0 }, "accepted: last-tap; last tap seen")]
    fn the_last_term_of_a_sum(
        #[case] error: f32,
        #[case] criterion: Criterion,
        #[case] expected: &str,
    ) {
        let tensor = Tensor::packed(1, "y", DataType::Float, &[1, 3]);
        let estimate = Estimate::new([1000.0, -400.0, 500.0].into(), [error; 3].into());
        let terms = [0.0, 1.0, 0.0];
        let report = check_with_terms(&tensor, &estimate, &criterion, Some(&terms)).unwrap();
        let seen = if report.blind_to_last_tap {
            "hidden"
        } else {
            "seen"
        };
        let text = format!("{report}; last tap {seen}");
        assert!(text.ends_with(expected), "{text}");
    }

    /// The element that gives a decoy away may be anywhere.
    #[test]
    fn late_elements_reject_too() {
        let mut value = vec![0.0; 100_000];
        value[99_999] = 1.0;
        let text = report(DataType::Float, &[100_000], &value, 0.0, Criterion::Bound);
        assert!(text.ends_with("4 of 4 decoys rejected: strong"), "{text}");
    }

    proptest! {
        /// Of a tensor that one element tells apart, every decoy that changes this element is
        /// rejected, wherever it lies; one that changes it within its bound is accepted.
        #[test]
        fn a_single_element_decides(
            len in 2usize..40_000,
            at in any::<prop::sample::Index>(),
            data_type in prop::sample::select(vec![DataType::Float, DataType::Half]),
            wide in any::<bool>(),
        ) {
            let at = at.index(len);
            let mut value = vec![0.0; len];
            value[at] = 1.0;
            let mut error = vec![0.0f32; len];
            error[at] = if wide { 2.0 } else { 0.0 };
            let tensor = Tensor::packed(1, "y", data_type, &[len as i64]);
            let estimate = Estimate::new(value.into(), error.into());
            let report = check(&tensor, &estimate, &Criterion::Bound).unwrap();
            prop_assert!(report.applicable.contains(&Decoy::Zeros));
            // A shift puts the 1 where there is no uncertainty; the others change nothing else.
            for decoy in [Decoy::Zeros, Decoy::Scaled] {
                prop_assert_eq!(report.accepted.contains(&decoy), wide, "{}", decoy);
            }
            prop_assert!(!report.accepted.contains(&Decoy::Shifted(0)));
        }

        /// The places that are tried first are places of the tensor.
        #[test]
        fn spread_places_lie_within(len in 1usize..1 << 40, i in 0..SPREAD) {
            prop_assume!(i < len);
            prop_assert!(spread(i, len) < len);
        }
    }
}
