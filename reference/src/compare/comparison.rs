//! What a comparison found.

use super::ulp::UlpHistogram;
use crate::criterion::Criterion;
use std::fmt;

/// The figures of one compared tensor, recorded whether it passed or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The rule.
    pub criterion: Criterion,
    /// Whether the rule accepts the tensor.
    pub passed: bool,
    /// What kind of difference made it fail.
    pub kind: Option<Mismatch>,
    /// Largest error over bound. Under `exact` this is the margin of `bound`; under `rms`, the
    /// tensor's figure over the threshold.
    pub margin: f64,
    /// Root mean square of error over bound; infinite ratios are left out.
    pub rms_margin: f64,
    /// Signed drift Σd/√Σd² with d = (got − y)·sign(y)/bound: about standard normal for independent
    /// errors of mean 0. A diagnosis, not a verdict.
    pub bias_z: f64,
    /// Mean of d.
    pub bias_mean: f64,
    /// Elements compared: all of them.
    pub compared: usize,
    /// Elements that the rule does not accept; under `rms`, those that are not finite.
    pub mismatched: usize,
    /// Elements outside [`Criterion::Bound`], whatever the rule.
    pub outside_bound: usize,
    /// The element with the largest margin, those that are not accepted first; `None` for a
    /// tensor without elements.
    pub worst: Option<Element>,
    /// The first elements that are not accepted, at most ten, in logical order.
    pub first: Vec<Element>,
    /// Elements by distance from the correctly rounded reference.
    pub ulps: UlpHistogram,
    /// What else was seen.
    pub notes: Vec<Note>,
}

/// One element of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// Index in logical row-major order.
    pub index: usize,
    /// The same as coordinates along the tensor's `dims`.
    pub coordinates: Vec<i64>,
    /// The f64 reference, not rounded.
    pub expected: f64,
    /// What the engine wrote.
    pub got: f64,
    /// The largest error that passes.
    pub bound: f64,
    /// Error over bound; infinite where it cannot be measured.
    pub margin: f64,
    /// Units in the last place from the correctly rounded reference; `None` with a NaN.
    pub ulps: Option<u64>,
}

/// Kinds of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Numbers too far apart.
    Numeric,
    /// A NaN or infinity on one side that the other does not warrant.
    NotFinite,
    /// Inside the bound everywhere, but not the bits that exact arithmetic gives.
    Inexact,
}

/// Things worth saying that are no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Elements that differ from the only exact result, inside the bound.
    NotIntegerExact(usize),
    /// Zeros of the other sign.
    ZeroSign(usize),
    /// Elements accepted because the reference is within its uncertainty of overflow.
    Overflow(usize),
    /// Elements accepted as an alternative that the estimate lists.
    Alternative(usize),
    /// Elements that have no finite bound: any number passes there.
    Unbounded(usize),
}

impl Comparison {
    /// The verdict of an `exact` comparison on an engine that does not declare `rn`: bits that
    /// differ inside the bound pass, with [`Note::NotIntegerExact`].
    #[must_use]
    pub fn allow_inexact(mut self) -> Self {
        if self.kind == Some(Mismatch::Inexact) {
            self.passed = true;
            self.kind = None;
            self.notes.push(Note::NotIntegerExact(self.mismatched));
        }
        self
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Numeric => "numeric",
            Self::NotFinite => "not-finite",
            Self::Inexact => "inexact",
        })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotIntegerExact(count) => write!(f, "not integer-exact: {count}"),
            Self::ZeroSign(count) => write!(f, "zeros of the other sign: {count}"),
            Self::Overflow(count) => write!(f, "accepted at overflow: {count}"),
            Self::Alternative(count) => write!(f, "accepted as an alternative: {count}"),
            Self::Unbounded(count) => write!(f, "without a bound: {count}"),
        }
    }
}

/// A number with all its digits, and with an exponent where there would be many zeros.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number) = self;
        let plain = *number == 0.0 || (1e-5..1e16).contains(&number.abs());
        if plain || !number.is_finite() {
            write!(f, "{number}")
        } else {
            write!(f, "{number:e}")
        }
    }
}

impl fmt::Display for Element {
    /// `[0, 2] expected 1.5, got 2, margin 3.4, 12 ulp`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            coordinates,
            expected,
            got,
            margin,
            ..
        } = self;
        let (expected, got) = (Short(*expected), Short(*got));
        write!(f, "{coordinates:?} expected {expected}, got {got}, margin ")?;
        if margin.is_finite() && *margin >= 1e6 {
            write!(f, "{margin:.2e}")?;
        } else {
            write!(f, "{margin:.3}")?;
        }
        match self.ulps {
            Some(ulps) => write!(f, ", {ulps} ulp"),
            None => Ok(()),
        }
    }
}
