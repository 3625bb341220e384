//! The judgement of one element.

use crate::criterion::{Criterion, ZeroSign};
use crate::dtype;
use crate::estimate::Estimate;
use dnn_assay_graph::DataType;

/// A criterion with the constants of an output type.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    criterion: Criterion,
    is_float: bool,
    roundoff: f64,
    half_smallest: f64,
    overflow: f64,
    largest: f64,
    /// The smallest number of an integer type, and how many numbers it has.
    integers: (f64, f64),
}

/// One element's operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// The f64 reference.
    pub(crate) value: f64,
    /// Its uncertainty before the final rounding.
    pub(crate) error: f64,
    /// The reference rounded once to the output type.
    pub(crate) rounded: f64,
    /// What the engine wrote.
    pub(crate) got: f64,
    /// Their distance in units in the last place; `None` with a NaN.
    pub(crate) ulps: Option<u64>,
}

/// One element's judgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    /// The criterion accepts the element.
    pub(crate) accepted: bool,
    /// [`Criterion::Bound`] accepts it.
    pub(crate) within_bound: bool,
    /// The largest error that passes.
    pub(crate) bound: f64,
    /// Error over bound; infinite where the element cannot be measured and is not accepted, 0
    /// where a rule of special values accepts it.
    pub(crate) ratio: f64,
    /// Which rule of special values accepted it.
    pub(crate) special: Option<Special>,
}

/// Why an element is accepted that the bound alone does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// NaN for NaN, an infinity for the same infinity.
    Agrees,
    /// The reference is within its uncertainty of overflow.
    Overflow,
    /// The estimate lists the value as one that a correct engine may give.
    Alternative,
}

impl Judge {
    pub(crate) fn new(criterion: Criterion, data_type: DataType) -> Self {
        Self {
            criterion,
            is_float: data_type.is_float(),
            roundoff: dtype::unit_roundoff(data_type),
            half_smallest: dtype::smallest_subnormal(data_type) / 2.0,
            overflow: dtype::overflow_threshold(data_type),
            largest: dtype::largest_finite(data_type),
            integers: integers(data_type),
        }
    }

    /// The constants for elements that no special rule is about; `None` where a rule has something of
    /// its own for every element.
    pub(super) fn plain(&self) -> Option<Plain> {
        let (wants_equal, wants_bits) = match self.criterion {
            _ if !self.is_float => return None,
            Criterion::Bound => (false, false),
            Criterion::Exact(ZeroSign::Ignored) => (true, false),
            Criterion::Exact(ZeroSign::Significant) => (true, true),
            Criterion::Table { .. } | Criterion::Rms { .. } | Criterion::Ulp { .. } => return None,
        };
        Some(Plain {
            roundoff: self.roundoff,
            half_smallest: self.half_smallest,
            wants_equal,
            wants_bits,
        })
    }

    /// Judges element `index`.
    #[inline]
    pub(crate) fn judge(&self, index: usize, sample: &Sample, estimate: &Estimate) -> Judged {
        let by_bound = if self.is_float {
            self.by_bound(index, sample, estimate)
        } else {
            self.by_integer(sample)
        };
        match self.criterion {
            // Integers are judged exactly by either rule: see `by_integer`.
            Criterion::Exact(_) if !self.is_float => by_bound,
            Criterion::Bound => by_bound,
            Criterion::Exact(zero_sign) => Judged {
                accepted: same_bits(sample.rounded, sample.got, zero_sign),
                ..by_bound
            },
            Criterion::Table { atol, rtol } => {
                let bound = if self.is_float {
                    atol + rtol * sample.rounded.abs()
                } else {
                    0.0
                };
                by_limit(sample, bound, by_bound.within_bound)
            }
            Criterion::Rms { .. } => Judged {
                accepted: sample.rounded.is_finite() && sample.got.is_finite(),
                ..by_bound
            },
            Criterion::Ulp { limit } => self.by_ulps(sample, limit, by_bound),
        }
    }

    #[inline]
    fn by_bound(&self, index: usize, sample: &Sample, estimate: &Estimate) -> Judged {
        let Sample {
            value, error, got, ..
        } = *sample;
        let bound = bound(self.roundoff, self.half_smallest, value, error);
        let distance = (got - value).abs();
        if distance <= bound && distance.is_finite() && bound.is_finite() {
            let ratio = if distance == 0.0 {
                0.0
            } else {
                distance / bound
            };
            return Judged {
                accepted: true,
                within_bound: true,
                bound,
                ratio,
                special: None,
            };
        }
        self.by_special_values(index, sample, bound, estimate)
    }

    /// An integer output. hipDNN does not say how a number becomes an integer: C++ drops the
    /// fraction, others round to nearest, and both are right for every number within the
    /// uncertainty. Beyond the type's range, a conversion may saturate or wrap.
    fn by_integer(&self, sample: &Sample) -> Judged {
        let Sample {
            value, error, got, ..
        } = *sample;
        let least = |t: f64| t.trunc().min(t.round()).min(t.round_ties_even());
        let most = |t: f64| t.trunc().max(t.round()).max(t.round_ties_even());
        let (low, high) = (least(value - error), most(value + error));
        let (smallest, count) = self.integers;
        let saturates = |t: f64| t.clamp(smallest, self.largest);
        let inside = saturates(low) <= got && got <= saturates(high);
        let is_beyond = low < smallest || high > self.largest;
        let wraps = is_beyond && (got - low).rem_euclid(count) <= high - low;
        // Without an uncertainty that is finite there is no rule but that it is a number.
        let accepted = inside || wraps || !(high - low).is_finite() && !value.is_nan();
        let bound = if got > value {
            high - value
        } else {
            value - low
        };
        let bound = bound.max(0.0);
        let distance = (got - value).abs();
        let ratio = match (accepted, distance) {
            (true, 0.0) => 0.0,
            (true, _) if wraps || bound == 0.0 || !bound.is_finite() => 0.0,
            (true, distance) => (distance / bound).min(1.0),
            (false, distance) if bound > 0.0 && distance.is_finite() => {
                (distance / bound).max(1.0f64.next_up())
            }
            (false, _) => f64::INFINITY,
        };
        Judged {
            accepted,
            within_bound: accepted,
            bound,
            ratio,
            special: None,
        }
    }

    /// NaN, infinities, overflow, and everything outside the bound.
    #[cold]
    fn by_special_values(
        &self,
        index: usize,
        sample: &Sample,
        bound: f64,
        estimate: &Estimate,
    ) -> Judged {
        let Sample {
            value, error, got, ..
        } = *sample;
        let special = if (value.is_nan() && got.is_nan()) || (value.is_infinite() && got == value) {
            Some(Special::Agrees)
        } else if self.may_overflow(value, error, got) {
            Some(Special::Overflow)
        } else if estimate.allows_also(index, got) {
            Some(Special::Alternative)
        } else {
            None
        };
        // No bound at all (an infinite uncertainty) still asks for a number.
        let unbounded = value.is_finite() && got.is_finite() && bound == f64::INFINITY;
        let within_bound = special.is_some() || unbounded;
        let ratio = if within_bound {
            0.0
        } else {
            let ratio = (got - value).abs() / bound;
            if ratio.is_finite() && value.is_finite() {
                ratio
            } else {
                f64::INFINITY
            }
        };
        Judged {
            accepted: within_bound,
            within_bound,
            bound,
            ratio,
            special,
        }
    }

    /// Where |y| + e reaches the overflow threshold, the infinity of y's sign and the largest
    /// finite number are right too.
    fn may_overflow(&self, value: f64, error: f64, got: f64) -> bool {
        value.is_finite()
            && self.is_float
            && value.abs() + error >= self.overflow
            && (got.abs() == f64::INFINITY || got.abs() == self.largest)
            && got.is_sign_negative() == value.is_sign_negative()
    }

    fn by_ulps(&self, sample: &Sample, limit: u64, by_bound: Judged) -> Judged {
        let agrees = sample.rounded.is_nan() && sample.got.is_nan();
        let finite_pair = sample.rounded.is_finite() == sample.got.is_finite();
        let accepted = agrees || finite_pair && sample.ulps.is_some_and(|ulps| ulps <= limit);
        let ratio = match sample.ulps {
            _ if agrees => 0.0,
            Some(0) => 0.0,
            Some(ulps) if finite_pair => ulps as f64 / limit as f64,
            _ => f64::INFINITY,
        };
        let magnitude = sample.rounded.abs().min(self.largest);
        let spacing = (2.0 * self.roundoff * magnitude).max(2.0 * self.half_smallest);
        Judged {
            accepted,
            bound: limit as f64 * spacing,
            ratio,
            special: None,
            ..by_bound
        }
    }
}

/// The bound's constants, and what a rule asks beyond it.
pub(super) struct Plain {
    roundoff: f64,
    half_smallest: f64,
    /// The rounded reference itself.
    pub(super) wants_equal: bool,
    /// Its bits.
    pub(super) wants_bits: bool,
}

impl Plain {
    /// The largest error that passes.
    #[inline(always)]
    pub(super) fn bound(&self, value: f64, error: f64) -> f64 {
        bound(self.roundoff, self.half_smallest, value, error)
    }
}

#[inline(always)]
fn bound(roundoff: f64, half_smallest: f64, value: f64, error: f64) -> f64 {
    error + roundoff * (value.abs() + error) + half_smallest
}

/// The smallest number of an integer type, and how many numbers it has; zeros for floats.
fn integers(data_type: DataType) -> (f64, f64) {
    let largest = dtype::largest_finite(data_type);
    match data_type {
        _ if data_type.is_float() => (0.0, 0.0),
        DataType::Uint8 => (0.0, 256.0),
        DataType::Int64 => (-largest, 2.0 * largest),
        _ => (-largest - 1.0, 2.0 * (largest + 1.0)),
    }
}

/// `|got − rounded| ≤ bound` between finite numbers.
fn by_limit(sample: &Sample, bound: f64, within_bound: bool) -> Judged {
    let finite = sample.rounded.is_finite() && sample.got.is_finite();
    let distance = (sample.got - sample.rounded).abs();
    let ratio = match distance {
        _ if !finite => f64::INFINITY,
        0.0 => 0.0,
        distance => distance / bound,
    };
    Judged {
        accepted: finite && distance <= bound,
        within_bound,
        bound,
        ratio,
        special: None,
    }
}

fn same_bits(expected: f64, got: f64, zero_sign: ZeroSign) -> bool {
    match zero_sign {
        _ if expected.is_nan() => got.is_nan(),
        ZeroSign::Ignored => expected == got,
        ZeroSign::Significant => expected.to_bits() == got.to_bits(),
    }
}
