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
mod pack;
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
use crate::parallel;
use bound::{Rule, Scale, Squares, repeated};
use lane::Lane;
use lanes::Dots;
use lattice::Lattice;
use map::{Map, Side};
use narrow::Narrow;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;
use wgrad::Wgrad;
use wide::Wide;

/// Terms up to which a sum of squares in f32 is within the margin that [`MARGIN`] gives.
const F32_TERMS: f64 = 1e5;
/// What a term by itself, an element of a pass and a term in a pass cost, roughly, in nanoseconds.
const TERM: f64 = 15.0;
const PASS_ELEMENT: f64 = 1.5;
const PASS_TERM: f64 = 0.02;

/// Elements of the result that are listed at a time, if an image has no more.
const AT_ONCE: usize = 1 << 18;

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

/// What the sums run over, in the order of the lattice's direction: for fprop, filters are y's
/// channels and channels x's; for dgrad the other way round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    pub batch: usize,
    pub groups: usize,
    /// Results per group.
    pub filters: usize,
    /// Channels of the source per group.
    pub channels: usize,
    /// Elements of one plane of the result.
    pub plane: usize,
}

/// The filter `[G·K, C, R…]` as [`Sums`] see it: elements from one group, filter and channel to the
/// next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights<'a> {
    pub side: Side<'a>,
    pub group: usize,
    pub filter: usize,
    pub channel: usize,
}

/// The lattice passes over one convolution, with a flipped filter laid straight.
struct Passes<'a> {
    geometry: &'a Geometry,
    direction: Direction,
    lattice: Lattice,
    sums: Sums,
    first: Cow<'a, [f64]>,
    second: Cow<'a, [f64]>,
    /// The largest magnitude of each operand; NaN counts as beyond infinity.
    largest: [f64; 2],
    /// Inf or NaN among the operands: term by term, so that padding contributes nothing.
    direct: bool,
}

impl Convolution<'_> {
    /// The result, packed, and how many of its elements have linear growth.
    ///
    /// # Errors
    /// A text where a size does not fit.
    pub fn run(&self) -> Result<(Estimate, usize), String> {
        let passes = Passes::new(self)?;
        let value: Array<f64> = passes.products(Map::Same, self.exact_products());
        if value.is_empty() {
            return Ok((Estimate::default(), 0));
        }
        let (error, also, linear) = self.errors(&passes, &value);
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
    ) -> (Array<f32>, Vec<crate::Alternative>, usize) {
        let counts = repeated(self.geometry.term_counts(self.direction));
        let roots: Vec<f64> = counts.iter().map(|terms| terms.sqrt()).collect();
        let most = counts.iter().copied().fold(0.0, f64::max);
        let Squares { sums, scale } = passes.squares(most);
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
            let listed = rule.assess(error, value, &counts, &roots);
            let place = |index: usize| (counts[index % counts.len()], roots[index % counts.len()]);
            let listed = passes.found_again(&images, listed, |index, q| {
                error[index] = rule.random(place(index), value[index], q);
                rule.needs_sum(place(index).1, value[index], q)
            });
            let indices: Vec<usize> = listed.iter().map(|&(index, _)| index).collect();
            let magnitudes = passes.select(&images, &indices, Map::Abs);
            for (&(index, q), &s) in listed.iter().zip(&magnitudes) {
                let (terms, y) = (place(index).0, value[index]);
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

impl<'a> Passes<'a> {
    fn new(convolution: &'a Convolution<'_>) -> Result<Self, String> {
        let geometry = &convolution.geometry;
        let direction = convolution.direction;
        let too_large = || "the padded tensors do not fit in memory".to_owned();
        let (lattice, filters, channels, plane) = match direction {
            Direction::Fprop | Direction::Wgrad => (
                Lattice::fprop(geometry),
                geometry.filters,
                geometry.channels,
                geometry.output_plane(),
            ),
            Direction::Dgrad => (
                Lattice::dgrad(geometry),
                geometry.channels,
                geometry.filters,
                geometry.input_plane(),
            ),
        };
        let lattice = lattice.ok_or_else(too_large)?;
        let sums = Sums {
            batch: geometry.batch,
            groups: geometry.groups,
            filters,
            channels,
            plane,
        };
        let (first, second) = (convolution.first.value, convolution.second.value);
        let largest = [largest(first), largest(second)];
        let mut passes = Self {
            geometry,
            direction,
            lattice,
            sums,
            first: Cow::Borrowed(first),
            second: Cow::Borrowed(second),
            largest,
            direct: largest.iter().any(|largest| !largest.is_finite()),
        };
        if let Cow::Owned(straight) = passes.straight(second, direction) {
            passes.second = Cow::Owned(straight);
        }
        Ok(passes)
    }

    /// The filter with its taps in the order of a cross-correlation; x (wgrad) as it is.
    fn straight<'v>(&self, second: &'v [f64], direction: Direction) -> Cow<'v, [f64]> {
        if self.geometry.flipped && direction != Direction::Wgrad {
            let windows = second.chunks_exact(self.geometry.window());
            Cow::Owned(
                windows
                    .flat_map(|window| window.iter().rev().copied())
                    .collect(),
            )
        } else {
            Cow::Borrowed(second)
        }
    }

    /// Elements of the result.
    fn len(&self) -> usize {
        let (x, w, y) = self.geometry.sizes();
        match self.direction {
            Direction::Fprop => y,
            Direction::Dgrad => x,
            Direction::Wgrad => w,
        }
    }

    /// Terms of an element away from the borders.
    fn most_terms(&self) -> f64 {
        let geometry = self.geometry;
        (match self.direction {
            Direction::Fprop => geometry.channels * geometry.window(),
            Direction::Dgrad => geometry.filters * geometry.window(),
            Direction::Wgrad => geometry.batch * geometry.output_plane(),
        }) as f64
    }

    /// Elements of the result that belong to one image; all of a filter's gradient.
    fn image(&self) -> usize {
        match self.direction {
            Direction::Wgrad => self.len(),
            _ => self.len() / self.sums.batch.max(1),
        }
    }

    /// The images whose results can be computed by themselves: one stands for all of wgrad's.
    fn all_images(&self) -> Range<usize> {
        match self.direction {
            Direction::Wgrad => 0..1,
            _ => 0..self.sums.batch,
        }
    }

    /// A few images at a time.
    fn some_images(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let all = self.all_images();
        let step = (AT_ONCE / self.image().max(1)).max(1);
        let runs = all.clone().step_by(step);
        runs.map(move |first| first..(first + step).min(all.end))
    }

    /// The elements of the first operand that these images read.
    fn of_first(&self, images: &Range<usize>) -> Range<usize> {
        let all = self.all_images().len().max(1);
        let image = self.first.len() / all;
        images.start * image..images.end * image
    }

    /// Σ map(first)·map(second) of the convolution's own operands, for all images.
    fn products<T: Lane>(&self, map: Map, fused: bool) -> Array<T> {
        self.products_of(&self.all_images(), [map; 2], fused)
    }

    /// The same for some images.
    fn products_of<T: Lane>(
        &self,
        images: &Range<usize>,
        [first, second]: [Map; 2],
        fused: bool,
    ) -> Array<T> {
        let first = Side {
            values: &self.first[self.of_first(images)],
            map: first,
        };
        let second = Side {
            values: &self.second,
            map: second,
        };
        self.run(images, first, second, fused)
    }

    /// Σ first·second for every element of some images, of which `first` holds the operand.
    fn run<T: Lane>(
        &self,
        images: &Range<usize>,
        first: Side<'_>,
        second: Side<'_>,
        fused: bool,
    ) -> Array<T> {
        let mut out = Array::zeros(images.len() * self.image());
        if out.is_empty() || first.values.is_empty() || second.values.is_empty() {
            return out;
        }
        if self.direct {
            self.run_direct(images, first, second, &mut out);
            return out;
        }
        let (geometry, lattice, mut sums) = (self.geometry, &self.lattice, self.sums);
        let window = geometry.window();
        if self.direction == Direction::Wgrad {
            let (dy, x) = (first, second);
            if Wgrad::suits(&sums, window) {
                Wgrad {
                    lattice,
                    sums,
                    dy,
                    x,
                    fused,
                }
                .run(&mut out);
            } else {
                Dots {
                    lattice,
                    sums,
                    dy,
                    x,
                    fused,
                }
                .run(&mut out);
            }
            return out;
        }
        sums.batch = images.len();
        let (own, other) = (geometry.channels * window, window);
        let (filter, channel) = match self.direction {
            Direction::Fprop => (own, other),
            _ => (other, own),
        };
        let weights = Weights {
            side: second,
            group: geometry.filters * own,
            filter,
            channel,
        };
        if sums.filters <= narrow::FILTERS {
            Narrow {
                lattice,
                sums,
                source: first,
                weights,
                fused,
            }
            .run(&mut out);
        } else {
            Wide {
                lattice,
                sums,
                source: first,
                weights,
                fused,
            }
            .run(&mut out);
        }
        out
    }

    fn run_direct<T: Lane>(
        &self,
        images: &Range<usize>,
        first: Side<'_>,
        second: Side<'_>,
        out: &mut [T],
    ) {
        let (start, missing) = (images.start * self.image(), self.of_first(images).start);
        out.par_iter_mut().enumerate().for_each(|(index, out)| {
            let mut sum = T::default();
            self.geometry.terms(self.direction, start + index, |a, b| {
                let a = T::of(first.map, first.values[a - missing]);
                sum = sum.plus(a.times(T::of(second.map, second.values[b])));
            });
            *out = sum;
        });
    }

    /// Σ map(a)·map(b) in f64 of some elements of some images, counted from the first of those: one
    /// by one, or all of them where that is cheaper.
    fn select(&self, images: &Range<usize>, indices: &[usize], map: Map) -> Vec<f64> {
        let terms = self.most_terms();
        let start = images.start * self.image();
        let alone = indices.len() as f64 * terms * TERM;
        let all = (images.len() * self.image()) as f64;
        let together = all * (PASS_ELEMENT + terms * PASS_TERM);
        if alone > together && !self.direct {
            let all: Array<f64> = self.products_of(images, [map; 2], false);
            return indices.iter().map(|&index| all[index]).collect();
        }
        let one = |&index: &usize| {
            let mut sum = 0.0;
            self.geometry.terms(self.direction, start + index, |a, b| {
                sum += f64::of(map, self.first[a]) * f64::of(map, self.second[b]);
            });
            sum
        };
        if parallel::worthwhile(indices.len() * 64) {
            indices.par_iter().map(one).collect()
        } else {
            indices.iter().map(one).collect()
        }
    }

    /// The sum of squares of every element.
    fn squares(&self, most_terms: f64) -> Squares {
        if most_terms > F32_TERMS || self.direct {
            let squares: Array<f64> = self.products(Map::Square(1.0), false);
            return Squares {
                sums: squares.iter().map(|q| round_up(q.sqrt())).collect(),
                scale: Scale::Rooted,
            };
        }
        let [first, second] = self.largest.map(scale);
        let maps = [Map::Square(first), Map::Square(second)];
        Squares {
            sums: self.products_of(&self.all_images(), maps, true),
            scale: Scale::Squared(1.0 / (first * second)),
        }
    }

    /// Q in f64 of the elements that lost theirs; of those, the ones that `keep` wants, and the
    /// others of the list.
    fn found_again(
        &self,
        images: &Range<usize>,
        listed: Vec<(usize, Option<f64>)>,
        mut keep: impl FnMut(usize, f64) -> bool,
    ) -> Vec<(usize, f64)> {
        let lost = listed.iter().filter(|(_, q)| q.is_none());
        let indices: Vec<usize> = lost.map(|&(index, _)| index).collect();
        let mut found = self
            .select(images, &indices, Map::Square(1.0))
            .into_iter()
            .map(f64::sqrt);
        listed
            .into_iter()
            .filter_map(|(index, q)| match q {
                Some(q) => Some((index, q)),
                None => found.next().filter(|&q| keep(index, q)).map(|q| (index, q)),
            })
            .collect()
    }
}

/// The power of two that brings a magnitude into [½, 1).
fn scale(largest: f64) -> f64 {
    if largest == 0.0 {
        return 1.0;
    }
    let exponent = libm::frexp(largest).1;
    libm::ldexp(1.0, -exponent)
}

/// The largest magnitude, infinite where any value is Inf or NaN.
fn largest(values: &[f64]) -> f64 {
    /// Magnitudes are ordered as their bits are, NaN beyond all.
    struct Bits<'a>(&'a [f64]);
    impl WithSimd for Bits<'_> {
        type Output = u64;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> u64 {
            let bits = self.0.iter().map(|value| value.abs().to_bits());
            bits.fold(0, u64::max)
        }
    }
    let bits = |values: &[f64]| Arch::new().dispatch(Bits(values));
    let most = if parallel::worthwhile(values.len() / 4) {
        values.par_chunks(1 << 14).map(bits).reduce(|| 0, u64::max)
    } else {
        bits(values)
    };
    let most = f64::from_bits(most);
    if most.is_finite() {
        most
    } else {
        f64::INFINITY
    }
}

/// Values as they are.
fn same(values: &[f64]) -> Side<'_> {
    Side {
        values,
        map: Map::Same,
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
