//! Convolution in its three directions: values in f64, and an uncertainty from the squares of the
//! same products.

mod account;
mod bound;
mod chunks;
mod direct;
mod geometry;
mod jobs;
mod lane;
mod lanes;
mod lattice;
mod map;
mod narrow;
mod operands;
mod pack;
mod passes;
mod scratch;
mod slab;
mod tile;
mod wgrad;
mod wide;

pub(crate) use dnn_assay_graph::case::ConvDirection as Direction;
pub(crate) use geometry::{Axis, Geometry};

use crate::array::Array;
use crate::estimate::{Estimate, round_up};
use crate::ops::operand::{Operand, any_overflow};
use crate::ops::sums::SumBound;
use bound::{Counts, Rule, Squares};
use map::Map;
use passes::{Passes, same};
use std::ops::Range;

/// A convolution: the operands in the order of [`Geometry::terms`].
pub(crate) struct Convolution<'a> {
    pub geometry: Geometry,
    pub direction: Direction,
    /// x; dy for dgrad and wgrad.
    pub first: Operand<'a>,
    /// w; x for wgrad.
    pub second: Operand<'a>,
    pub bound: SumBound,
    /// Reading the operands into the compute type rounds them.
    pub rounds_inputs: bool,
    /// What transforms add to the bound.
    pub transform: Transform,
}

/// The uids of a node's factors, in the order of [`Geometry::terms`].
pub(crate) fn factors(node: &dnn_assay_graph::Convolution<'_>) -> [i64; 2] {
    match node.direction {
        Direction::Fprop => [node.x, node.w],
        Direction::Dgrad => [node.y, node.w],
        Direction::Wgrad => [node.y, node.x],
    }
}

/// How far a convolution by transforms (Winograd's, Fourier's) may err. A transform mixes the
/// elements of a tile or of the image, so its error goes by the largest of them, not by the
/// element's own terms; and what it stores, it rounds once more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transform {
    /// Over the largest error of direct sums; 0 without transforms.
    pub amplification: f64,
    /// Unit roundoff of the stored transforms over that of the accumulator.
    pub storage: f64,
}

impl Convolution<'_> {
    /// The result, packed, and how many of its elements have linear growth.
    ///
    /// # Errors
    /// A text where a size does not fit.
    pub fn run(&self) -> Result<(Estimate, usize), String> {
        let passes = Passes::new(self)?;
        let counts = Counts::new(self.geometry.term_counts(self.direction));
        let (value, squares) = passes.values_and_squares(counts.most(), self.exact_products());
        if value.is_empty() {
            return Ok((Estimate::default(), 0));
        }
        let (error, also, linear) = self.errors(&passes, &value, squares, &counts);
        let mut estimate = Estimate { value, error, also };
        if self.transform.amplification > 0.0 && self.geometry.can_be_transformed() {
            self.transform.widen(&mut estimate, passes.most_terms());
            if passes.direct {
                // NaN and infinities reach the whole tile.
                estimate.also = (0..estimate.value.len()).flat_map(any_overflow).collect();
            }
        }
        self.unflip(&mut estimate);
        Ok((estimate, linear))
    }

    /// The result alone, packed, in f64.
    ///
    /// # Errors
    /// A text where a size does not fit.
    pub fn values(&self) -> Result<Array<f64>, String> {
        let mut estimate = Estimate {
            value: Passes::new(self)?.products(Map::Same, self.exact_products()),
            ..Estimate::default()
        };
        self.unflip(&mut estimate);
        Ok(estimate.value)
    }

    /// Whether a product of the operands is exact in f64.
    fn exact_products(&self) -> bool {
        self.first.significand() + self.second.significand() <= 53
    }

    /// Turns the taps of a flipped filter's gradient round.
    fn unflip(&self, estimate: &mut Estimate) {
        if self.geometry.flipped && self.direction == Direction::Wgrad {
            flip(estimate, self.geometry.window());
        }
    }

    fn errors(
        &self,
        passes: &Passes<'_>,
        value: &[f64],
        squares: Squares,
        counts: &Counts,
    ) -> (Array<f32>, Vec<crate::Alternative>, usize) {
        let Squares { sums, scale } = squares;
        let mut error = sums;
        let rule = Rule {
            bound: &self.bound,
            scale,
            extra: if self.rounds_inputs {
                8.0 * self.bound.roundoff()
            } else {
                0.0
            },
        };
        // The sum of squares becomes the error in place; what needs more than that is listed, for
        // some images at a time, because a list takes more memory than what it is of.
        let mut linear = 0;
        let mut also = Vec::new();
        for images in passes.some_images() {
            let start = images.start * passes.image();
            let error = &mut error[start..images.end * passes.image()];
            let value = &value[start..][..error.len()];
            let listed = rule.assess(error, value, counts);
            let listed = passes.found_again(&images, listed, |index, q| {
                error[index] = rule.random(counts.at(index), value[index], q);
                rule.needs_sum(counts.at(index).1, value[index], q)
            });
            let indices: Vec<usize> = listed.iter().map(|&(index, _)| index).collect();
            let magnitudes = passes.select(&images, &indices, Map::Abs);
            for (&(index, q), &s) in listed.iter().zip(&magnitudes) {
                let (terms, y) = (counts.at(index).0, value[index]);
                if self.bound.grows_linearly(terms, y, q, s) {
                    linear += 1;
                    error[index] = round_up(self.bound.worst(terms, y, q, s) + rule.extra * q);
                }
                // Infinite operands give the same in every order; finite ones may overflow or not.
                if s.is_finite() && s >= self.bound.overflow {
                    also.extend(any_overflow(start + index));
                }
            }
        }
        self.propagate(passes, &mut error);
        self.footprint(passes, &mut also);
        (error, also, linear)
    }

    /// Adds Σ|a|·e_b + Σe_a·(|b| + e_b).
    fn propagate(&self, passes: &Passes<'_>, error: &mut [f32]) {
        let magnitude = |operand: &Operand<'_>, values: &[f64]| -> Vec<f64> {
            let with_error = |(index, value): (usize, &f64)| value.abs() + operand.error_at(index);
            values.iter().enumerate().map(with_error).collect()
        };
        let widen =
            |errors: &[f32]| -> Vec<f64> { errors.iter().map(|&error| f64::from(error)).collect() };
        let mut add = |first: &dyn Fn(Range<usize>) -> Vec<f64>, second: &[f64]| {
            for images in passes.some_images() {
                let first = first(passes.of_first(&images));
                let sums: Array<f64> = passes.run(&images, same(&first), same(second), false);
                let error = &mut error[images.start * passes.image()..][..sums.len()];
                for (error, sum) in error.iter_mut().zip(sums) {
                    *error = round_up(f64::from(*error) + sum * (1.0 + 1e-9));
                }
            }
        };
        if !self.second.is_exact() {
            let errors = widen(self.second.error);
            let magnitudes =
                |range: Range<usize>| passes.first[range].iter().map(|x| x.abs()).collect();
            add(&magnitudes, &passes.straight(&errors, self.direction));
        }
        if !self.first.is_exact() {
            let second = magnitude(&self.second, self.second.value);
            let errors = |range: Range<usize>| widen(&self.first.error[range]);
            add(&errors, &passes.straight(&second, self.direction));
        }
    }

    /// Whatever a non-finite alternative of an operand reaches may become anything.
    fn footprint(&self, passes: &Passes<'_>, also: &mut Vec<crate::Alternative>) {
        let marked = |operand: &Operand<'_>| {
            let mut marks = vec![0.0; operand.value.len()];
            operand
                .also
                .iter()
                .for_each(|other| marks[other.index] = 1.0);
            marks
        };
        for first in [true, false] {
            let operand = if first { &self.first } else { &self.second };
            if operand.also.is_empty() {
                continue;
            }
            let marks = marked(operand);
            let ones = vec![
                1.0;
                if first {
                    self.second.value.len()
                } else {
                    self.first.value.len()
                }
            ];
            let reached: Array<f64> = if first {
                passes.run(&passes.all_images(), same(&marks), same(&ones), true)
            } else {
                let marks = passes.straight(&marks, self.direction);
                passes.run(&passes.all_images(), same(&ones), same(&marks), true)
            };
            let hit = reached
                .iter()
                .enumerate()
                .filter(|&(_, &count)| count > 0.0);
            also.extend(hit.flat_map(|(index, _)| any_overflow(index)));
        }
        also.sort_by_key(|other| other.index);
        also.dedup_by(|a, b| a.index == b.index && a.value.to_bits() == b.value.to_bits());
    }
}

impl Transform {
    /// Sums are formed directly.
    pub const NONE: Self = Self {
        amplification: 0.0,
        storage: 1.0,
    };

    fn widen(&self, estimate: &mut Estimate, terms: f64) {
        let finite = estimate.error.iter().filter(|error| error.is_finite());
        let largest = f64::from(finite.copied().fold(0.0, f32::max));
        let stored = if self.storage > 1.0 {
            self.storage / terms.max(1.0).sqrt()
        } else {
            0.0
        };
        let error = round_up(self.amplification * largest * (1.0 + stored));
        for own in &mut estimate.error {
            *own = own.max(error);
        }
    }
}

/// Reverses the taps of every window.
fn flip(estimate: &mut Estimate, window: usize) {
    estimate
        .value
        .chunks_exact_mut(window)
        .for_each(<[f64]>::reverse);
    estimate
        .error
        .chunks_exact_mut(window)
        .for_each(<[f32]>::reverse);
    for other in &mut estimate.also {
        let tap = other.index % window;
        other.index += window - 1 - 2 * tap;
    }
    estimate.also.sort_by_key(|other| other.index);
}
