//! The passes over the lattice of one convolution: each sums the products of what it makes of the
//! operands.

use super::bound::{Scale, Squares};
use super::geometry::Geometry;
use super::lane::Lane;
use super::lanes::Dots;
use super::lattice::Lattice;
use super::map::{Map, Side};
use super::narrow::{self, Narrow};
use super::operands::{Gradient, Product, Sums, Weights};
use super::wgrad::Wgrad;
use super::wide::Wide;
use super::{Convolution, Direction};
use crate::array::Array;
use crate::estimate::round_up;
use crate::parallel;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Terms up to which a sum of squares in f32 is within the margin that [`MARGIN`] gives.
const F32_TERMS: f64 = 1e5;
/// What an element by itself and its term, an element of a pass and a term in a pass cost, roughly,
/// in nanoseconds.
const ELEMENT: f64 = 30.0;
const TERM: f64 = 3.0;
const PASS_ELEMENT: f64 = 1.5;
const PASS_TERM: f64 = 0.02;

/// Elements of the result that are listed at a time, if an image has no more.
const AT_ONCE: usize = 1 << 18;

/// The lattice passes over one convolution, with a flipped filter laid straight.
pub(super) struct Passes<'a> {
    geometry: &'a Geometry,
    direction: Direction,
    lattice: Lattice,
    sums: Sums,
    pub first: Cow<'a, [f64]>,
    second: Cow<'a, [f64]>,
    /// The largest magnitude of each operand; NaN counts as beyond infinity.
    largest: [f64; 2],
    /// Inf or NaN among the operands: term by term, so that padding contributes nothing.
    pub direct: bool,
}

impl<'a> Passes<'a> {
    pub fn new(convolution: &'a Convolution<'_>) -> Result<Self, String> {
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
    pub fn straight<'v>(&self, second: &'v [f64], direction: Direction) -> Cow<'v, [f64]> {
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
    pub fn len(&self) -> usize {
        let (x, w, y) = self.geometry.sizes();
        match self.direction {
            Direction::Fprop => y,
            Direction::Dgrad => x,
            Direction::Wgrad => w,
        }
    }

    /// Terms of an element away from the borders.
    pub fn most_terms(&self) -> f64 {
        let geometry = self.geometry;
        (match self.direction {
            Direction::Fprop => geometry.channels * geometry.window(),
            Direction::Dgrad => geometry.filters * geometry.window(),
            Direction::Wgrad => geometry.batch * geometry.output_plane(),
        }) as f64
    }

    /// Elements of the result that belong to one image; all of a filter's gradient.
    pub fn image(&self) -> usize {
        match self.direction {
            Direction::Wgrad => self.len(),
            _ => self.len() / self.sums.batch.max(1),
        }
    }

    /// The images whose results can be computed by themselves: one stands for all of wgrad's.
    pub fn all_images(&self) -> Range<usize> {
        match self.direction {
            Direction::Wgrad => 0..1,
            _ => 0..self.sums.batch,
        }
    }

    /// A few images at a time.
    pub fn some_images(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let all = self.all_images();
        let step = (AT_ONCE / self.image().max(1)).max(1);
        let runs = all.clone().step_by(step);
        runs.map(move |first| first..(first + step).min(all.end))
    }

    /// The elements of the first operand that these images read.
    pub fn of_first(&self, images: &Range<usize>) -> Range<usize> {
        let all = self.all_images().len().max(1);
        let image = self.first.len() / all;
        images.start * image..images.end * image
    }

    /// Σ map(first)·map(second) of the convolution's own operands, for all images.
    pub fn products<T: Lane>(&self, map: Map, fused: bool) -> Array<T> {
        self.products_of(&self.all_images(), [map; 2], fused)
    }

    /// The same for some images.
    pub fn products_of<T: Lane>(
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
    pub fn run<T: Lane>(
        &self,
        images: &Range<usize>,
        first: Side<'_>,
        second: Side<'_>,
        fused: bool,
    ) -> Array<T> {
        let len = images.len() * self.image();
        if len == 0 || first.values.is_empty() || second.values.is_empty() {
            return Array::zeros(len);
        }
        // Every kernel writes every element.
        let mut out = Array::unset(len);
        if self.direct {
            self.run_direct(images, first, second, &mut out);
            return out;
        }
        if self.direction == Direction::Wgrad {
            let gradient = Gradient {
                lattice: &self.lattice,
                sums: self.sums,
                dy: first,
                x: second,
                fused,
            };
            if Wgrad::suits(&self.sums, self.geometry.window()) {
                Wgrad(gradient).run(&mut out);
            } else {
                Dots(gradient).run(&mut out);
            }
            return out;
        }
        let product = self.product(images, [first, second], fused);
        if product.sums.filters <= narrow::FILTERS {
            Narrow(product).run(&mut out);
        } else {
            Wide(product).run(&mut out);
        }
        out
    }

    /// What fprop and dgrad multiply for some images, of which `first` holds the operand.
    fn product<'s>(
        &'s self,
        images: &Range<usize>,
        [first, second]: [Side<'s>; 2],
        fused: bool,
    ) -> Product<'s> {
        let geometry = self.geometry;
        let window = geometry.window();
        let (own, other) = (geometry.channels * window, window);
        let (filter, channel) = match self.direction {
            Direction::Fprop => (own, other),
            _ => (other, own),
        };
        Product {
            lattice: &self.lattice,
            sums: Sums {
                batch: images.len(),
                ..self.sums
            },
            source: first,
            weights: Weights {
                side: second,
                group: geometry.filters * own,
                filter,
                channel,
            },
            fused,
        }
    }

    fn run_direct<T: Lane>(
        &self,
        images: &Range<usize>,
        first: Side<'_>,
        second: Side<'_>,
        out: &mut [T],
    ) {
        let (start, missing) = (images.start * self.image(), self.of_first(images).start);
        let terms = self.geometry.all_terms(self.direction);
        out.par_iter_mut().enumerate().for_each(|(index, out)| {
            let mut sum = T::default();
            terms.of(start + index, |a, b| {
                let a = T::of(first.map, first.values[a - missing]);
                sum = sum.plus(a.times(T::of(second.map, second.values[b])));
            });
            *out = sum;
        });
    }

    /// Σ map(a)·map(b) in f64 of some elements of some images, counted from the first of those: one
    /// by one, or all of them where that is cheaper.
    pub fn select(&self, images: &Range<usize>, indices: &[usize], map: Map) -> Vec<f64> {
        let terms = self.most_terms();
        let start = images.start * self.image();
        let alone = indices.len() as f64 * (ELEMENT + terms * TERM);
        let all = (images.len() * self.image()) as f64;
        let together = all * (PASS_ELEMENT + terms * PASS_TERM);
        if alone > together && !self.direct {
            let all: Array<f64> = self.products_of(images, [map; 2], false);
            return indices.iter().map(|&index| all[index]).collect();
        }
        if indices.is_empty() {
            return Vec::new();
        }
        let terms = self.geometry.all_terms(self.direction);
        let one = |&index: &usize| {
            let mut sum = 0.0;
            terms.of(start + index, |a, b| {
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

    /// Every element and its sum of squares. `fused`: products are exact in f64.
    pub fn values_and_squares(&self, most_terms: f64, fused: bool) -> (Array<f64>, Squares) {
        let len = self.len();
        let wgrad = self.direction == Direction::Wgrad;
        let empty = len == 0 || self.first.is_empty() || self.second.is_empty();
        let narrow = !wgrad && !empty && self.sums.filters <= narrow::FILTERS;
        if !narrow || self.direct || most_terms > F32_TERMS {
            let values = self.products(Map::Same, fused);
            return (values, self.squares(most_terms));
        }
        let sides = [&self.first, &self.second].map(|values| same(values));
        let product = self.product(&self.all_images(), sides, fused);
        let (mut values, mut sums) = (Array::unset(len), Array::unset(len));
        let scales = self.largest.map(scale);
        Narrow(product).run_with_squares(scales, &mut values, &mut sums);
        let scale = Scale::Squared(1.0 / (scales[0] * scales[1]));
        (values, Squares { sums, scale })
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
    pub fn found_again(
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
pub(super) fn same(values: &[f64]) -> Side<'_> {
    Side {
        values,
        map: Map::Same,
    }
}
