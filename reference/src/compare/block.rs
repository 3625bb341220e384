//! Elements that need no rule of their own, judged together in vectors.
//!
//! Nearly every element of nearly every output is a number inside its bound. Of those all figures are
//! plain arithmetic, done here for a block at a time; a block with any other element is left to the
//! pass that judges one after another. Both give the same bits: sums are added in the elements' order.

use super::judge::Plain;
use super::ulp::bin;
use crate::dtype::Element;

/// Elements of a block.
pub(super) const BLOCK: usize = 256;

/// A block's elements and what comes of them.
pub(super) struct Block {
    len: usize,
    got: [f64; BLOCK],
    /// The reference rounded to the output's type.
    rounded: [f64; BLOCK],
    ratio: [f64; BLOCK],
    /// The ratio with the sign of the drift; 0 where the element has none.
    drift: [f64; BLOCK],
    /// (got − rounded)².
    squares: [f64; BLOCK],
    bins: [u8; BLOCK],
}

/// What is known of a block without adding anything up.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// The largest error over bound.
    pub ratio: f64,
    /// The largest magnitude of what was written and of the rounded reference.
    pub largest: f64,
    /// Elements that count for the drift.
    pub drifts: usize,
    /// Zeros of the other sign.
    pub zero_sign: usize,
    /// Every element is the rounded reference.
    pub is_equal: bool,
}

impl Block {
    pub(super) fn new() -> Self {
        Self {
            len: 0,
            got: [0.0; BLOCK],
            rounded: [0.0; BLOCK],
            ratio: [0.0; BLOCK],
            drift: [0.0; BLOCK],
            squares: [0.0; BLOCK],
            bins: [0; BLOCK],
        }
    }

    /// What was written.
    pub(super) fn got(&self) -> &[f64] {
        &self.got[..self.len]
    }

    /// The place of `len` elements' values, to be overwritten.
    pub(super) fn got_mut(&mut self, len: usize) -> &mut [f64] {
        self.len = len;
        &mut self.got[..len]
    }

    /// Judges the block; `None` where an element needs a rule of its own.
    #[inline(always)]
    pub(super) fn assess<E: Element>(
        &mut self,
        plain: &Plain,
        value: &[f64],
        error: &[f32],
    ) -> Option<Found> {
        if self.is_reference(value) {
            return self.assess_reference(plain, value, error);
        }
        for (rounded, &value) in self.rounded[..self.len].iter_mut().zip(value) {
            *rounded = E::round(value);
        }
        let largest = self.largest();
        if !(self.is_plain(plain, value, error) && largest.is_finite()) {
            return None;
        }
        let (drifts, zero_sign) = self.counts(plain, value, error);
        Some(Found {
            ratio: largest_of(&self.ratio[..self.len]),
            largest,
            drifts,
            zero_sign,
            is_equal: self.compare(),
        })
    }

    /// Whether the reference itself was written. Then the type holds it, and it is its own rounding.
    #[inline(always)]
    fn is_reference(&self, value: &[f64]) -> bool {
        let mut differs = 0;
        for (&got, &value) in self.got[..self.len].iter().zip(value) {
            differs |= u64::from(got != value);
        }
        differs == 0
    }

    /// As [`Self::assess`] where the reference itself was written: there is no error to measure.
    #[inline(always)]
    fn assess_reference(&self, plain: &Plain, value: &[f64], error: &[f32]) -> Option<Found> {
        let (mut outside, mut drifts, mut zero_sign) = (0u64, 0u64, 0u64);
        for ((&got, &value), &error) in self.got[..self.len].iter().zip(value).zip(error) {
            let bound = plain.bound(value, f64::from(error));
            let other = (got.to_bits() ^ value.to_bits()) != 0;
            let is_plain = (bound < f64::INFINITY) & !(plain.wants_bits & other);
            outside |= u64::from(!is_plain);
            drifts += u64::from((value != 0.0) & (bound > 0.0));
            zero_sign += u64::from(other);
        }
        let largest = largest_of(&self.got[..self.len]);
        (outside == 0 && largest.is_finite()).then_some(Found {
            ratio: 0.0,
            largest,
            drifts: drifts as usize,
            zero_sign: zero_sign as usize,
            is_equal: true,
        })
    }

    #[inline(always)]
    fn largest(&self) -> f64 {
        let len = self.len;
        largest_of(&self.got[..len]).max(largest_of(&self.rounded[..len]))
    }

    /// Error over bound, and whether all are within a finite one and what the rule asks beyond it.
    #[inline(always)]
    fn is_plain(&mut self, plain: &Plain, value: &[f64], error: &[f32]) -> bool {
        let (got, rounded) = (&self.got[..self.len], &self.rounded[..self.len]);
        let ratio = &mut self.ratio[..self.len];
        let (value, error) = (&value[..self.len], &error[..self.len]);
        let mut outside = 0;
        for i in 0..ratio.len() {
            let bound = plain.bound(value[i], f64::from(error[i]));
            let distance = (got[i] - value[i]).abs();
            // A NaN is not within.
            let within = (distance <= bound) & (bound < f64::INFINITY);
            outside |= u64::from(!within);
            let quotient = distance / bound;
            ratio[i] = if distance == 0.0 { 0.0 } else { quotient };
        }
        if plain.wants_equal | plain.wants_bits {
            for i in 0..ratio.len() {
                let other_bits = got[i].to_bits() != rounded[i].to_bits();
                let other = if plain.wants_bits {
                    other_bits
                } else {
                    got[i] != rounded[i]
                };
                outside |= u64::from(other);
            }
        }
        outside == 0
    }

    #[inline(always)]
    fn counts(&mut self, plain: &Plain, value: &[f64], error: &[f32]) -> (usize, usize) {
        let (got, rounded) = (&self.got[..self.len], &self.rounded[..self.len]);
        let (ratio, drift) = (&self.ratio[..self.len], &mut self.drift[..self.len]);
        let (value, error) = (&value[..self.len], &error[..self.len]);
        let (mut drifts, mut zero_sign) = (0u64, 0u64);
        for i in 0..ratio.len() {
            let drifting = (value[i] != 0.0) & (plain.bound(value[i], f64::from(error[i])) > 0.0);
            drifts += u64::from(drifting);
            let sign = (got[i] - value[i]).to_bits() ^ value[i].to_bits();
            let signed = f64::from_bits(ratio[i].to_bits() | sign & SIGN);
            drift[i] = if drifting { signed } else { 0.0 };
            let zeros = (got[i] == 0.0) & (rounded[i] == 0.0);
            let other = (got[i].to_bits() ^ rounded[i].to_bits()) & SIGN != 0;
            zero_sign += u64::from(zeros & other);
        }
        (drifts as usize, zero_sign as usize)
    }

    /// Squares of the differences from the rounded reference; whether there are none.
    #[inline(always)]
    fn compare(&mut self) -> bool {
        let (got, rounded) = (&self.got[..self.len], &self.rounded[..self.len]);
        let squares = &mut self.squares[..self.len];
        let mut differs = 0;
        for i in 0..squares.len() {
            let difference = got[i] - rounded[i];
            squares[i] = difference * difference;
            differs |= u64::from(got[i] != rounded[i]);
        }
        differs == 0
    }

    /// Elements by bin of [`UlpHistogram`](super::UlpHistogram).
    #[inline(always)]
    pub(super) fn histogram<E: Element>(&mut self, counts: &mut [u64]) {
        let (got, rounded) = (&self.got[..self.len], &self.rounded[..self.len]);
        let bins = &mut self.bins[..self.len];
        for i in 0..bins.len() {
            let ulps = E::finite_ordinal(rounded[i]).abs_diff(E::finite_ordinal(got[i]));
            bins[i] = bin(ulps) as u8;
        }
        for (bin, count) in counts.iter_mut().enumerate() {
            let is_in = bins.iter().map(|&own| u64::from(own == bin as u8));
            *count += is_in.sum::<u64>();
        }
    }

    /// Adds the squares of the ratios, the drifts, their squares and the squared differences, each in
    /// the order of the elements.
    pub(super) fn add_to(&self, sums: [&mut f64; 4]) {
        let [ratios, drift, drifts, differences] = sums;
        for i in 0..self.len {
            *ratios += self.ratio[i] * self.ratio[i];
            *drift += self.drift[i];
            *drifts += self.drift[i] * self.drift[i];
            *differences += self.squares[i];
        }
    }

    /// The first element with this ratio, the largest of the block.
    pub(super) fn first_with(&self, ratio: f64) -> usize {
        if ratio == 0.0 {
            return 0;
        }
        let mut ratios = self.ratio[..self.len].iter();
        ratios.position(|&own| own == ratio).unwrap_or(0)
    }
}

const SIGN: u64 = 1 << 63;

/// The largest magnitude; magnitudes are ordered as their bits are, NaN beyond all.
#[inline(always)]
fn largest_of(values: &[f64]) -> f64 {
    let bits = values.iter().map(|value| value.to_bits() & !SIGN);
    f64::from_bits(bits.fold(0, u64::max))
}
