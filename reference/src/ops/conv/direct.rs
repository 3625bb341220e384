//! Convolution term by term: the terms of one element in their order. For single elements, for
//! inputs that hold Inf or NaN (padding contributes nothing, not 0·Inf), and for counting terms.

use super::Direction;
use super::geometry::{Axis, Geometry};
use std::ops::Range;

/// The terms of every element of one result, found once along each axis.
pub(crate) struct Terms<'a> {
    geometry: &'a Geometry,
    direction: Direction,
    /// For a coordinate along all axes but the last, and for one along the last.
    seen: [Seen; 2],
    /// Elements along the last axis of the result.
    inner: usize,
    /// Only one element's terms are there.
    alone: bool,
}

/// Per coordinate of the result: the places along what the sum runs over, ascending, and in the other
/// operand's plane. What lies in the padding is left out.
struct Seen {
    pairs: Vec<(usize, usize)>,
    /// Where the pairs of each coordinate end.
    ends: Vec<usize>,
}

impl Seen {
    fn of(&self, coordinate: usize) -> &[(usize, usize)] {
        let start = coordinate.checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.pairs[start..self.ends[coordinate]]
    }

    /// The pairs of some coordinates along an axis, inside those of the axes before it.
    fn along(
        axis: &Axis,
        direction: Direction,
        coordinates: Range<usize>,
        (sum_stride, other_stride): (usize, usize),
        before: Option<&Self>,
    ) -> Self {
        let sum = match direction {
            Direction::Fprop | Direction::Dgrad => axis.taps,
            Direction::Wgrad => axis.output,
        };
        let find = |own: usize, step: usize| match direction {
            Direction::Fprop => axis.input_at(own, step),
            Direction::Dgrad => axis.output_at(own, step),
            Direction::Wgrad => axis.input_at(step, own),
        };
        let mut seen = Self {
            pairs: Vec::new(),
            ends: Vec::new(),
        };
        let outer = before.map_or(1, |before| before.ends.len());
        let all = (0..outer).flat_map(|outer| coordinates.clone().map(move |own| (outer, own)));
        for (outer, own) in all {
            for &(step, at) in before.map_or(&[(0, 0)][..], |before| before.of(outer)) {
                let inner = (0..sum).filter_map(|inner| Some((inner, find(own, inner)?)));
                let pairs = inner
                    .map(|(inner, found)| (step + inner * sum_stride, at + found * other_stride));
                seen.pairs.extend(pairs);
            }
            seen.ends.push(seen.pairs.len());
        }
        seen
    }
}

impl Terms<'_> {
    /// Calls `visit(first index, second index)` with the operands of each term of the result's
    /// element `index`, in the order of the chain: fprop (channel, tap) with x and w; dgrad
    /// (filter, tap) with dy and w; wgrad (image, position) with dy and x.
    #[inline]
    pub fn of(&self, index: usize, visit: impl FnMut(usize, usize)) {
        match self.direction {
            Direction::Fprop => self.fprop(index, visit),
            Direction::Dgrad => self.dgrad(index, visit),
            Direction::Wgrad => self.wgrad(index, visit),
        }
    }

    /// The pairs of a place in a plane of the result.
    #[inline]
    fn pairs(&self, place: usize, mut visit: impl FnMut(usize, usize)) {
        let place = if self.alone { 0 } else { place };
        let inner = self.seen[1].of(place % self.inner);
        for &(step, at) in self.seen[0].of(place / self.inner) {
            for &(inner, found) in inner {
                visit(step + inner, at + found);
            }
        }
    }

    fn fprop(&self, index: usize, mut visit: impl FnMut(usize, usize)) {
        let g = self.geometry;
        let plane = g.output_plane();
        let (row, position) = (index / plane, index % plane);
        let (image, filter) = (row / g.outputs(), row % g.outputs());
        let group = filter / g.filters;
        let (inputs, window) = (g.input_plane(), g.window());
        for channel in 0..g.channels {
            let x = ((image * g.groups + group) * g.channels + channel) * inputs;
            let w = (filter * g.channels + channel) * window;
            self.pairs(position, |tap, at| visit(x + at, w + tap));
        }
    }

    fn dgrad(&self, index: usize, mut visit: impl FnMut(usize, usize)) {
        let g = self.geometry;
        let plane = g.input_plane();
        let (row, position) = (index / plane, index % plane);
        let inputs = g.groups * g.channels;
        let (image, input) = (row / inputs, row % inputs);
        let (group, channel) = (input / g.channels, input % g.channels);
        let (outputs, window) = (g.output_plane(), g.window());
        for filter in group * g.filters..(group + 1) * g.filters {
            let dy = (image * g.outputs() + filter) * outputs;
            let w = (filter * g.channels + channel) * window;
            self.pairs(position, |tap, at| visit(dy + at, w + tap));
        }
    }

    fn wgrad(&self, index: usize, mut visit: impl FnMut(usize, usize)) {
        let g = self.geometry;
        let window = g.window();
        let (row, tap) = (index / window, index % window);
        let (filter, channel) = (row / g.channels, row % g.channels);
        let group = filter / g.filters;
        for image in 0..g.batch {
            let dy = (image * g.outputs() + filter) * g.output_plane();
            let x = ((image * g.groups + group) * g.channels + channel) * g.input_plane();
            self.pairs(tap, |position, at| visit(dy + position, x + at));
        }
    }
}

impl Geometry {
    /// The terms of every element of the result.
    pub fn all_terms(&self, direction: Direction) -> Terms<'_> {
        self.terms_at(direction, None)
    }

    /// Calls `visit` with the operands of each term of one element, as [`Terms::of`] does.
    pub fn terms(&self, direction: Direction, index: usize, visit: impl FnMut(usize, usize)) {
        self.terms_at(direction, Some(index)).of(index, visit);
    }

    /// The terms of every element, or of one alone.
    fn terms_at(&self, direction: Direction, index: Option<usize>) -> Terms<'_> {
        let extent = |axis: &Axis| match direction {
            Direction::Fprop => axis.output,
            Direction::Dgrad => axis.input,
            Direction::Wgrad => axis.taps,
        };
        let coordinates = |axis: usize| {
            let inner: usize = self.axes[axis + 1..].iter().map(extent).product();
            let extent = extent(&self.axes[axis]);
            match index {
                Some(index) => {
                    let own = index / inner % extent;
                    own..own + 1
                }
                None => 0..extent,
            }
        };
        let strides = |axis: usize| {
            let inner = &self.axes[axis + 1..];
            let product = |extent: fn(&Axis) -> usize| inner.iter().map(extent).product();
            match direction {
                Direction::Fprop => (product(|a| a.taps), product(|a| a.input)),
                Direction::Dgrad => (product(|a| a.taps), product(|a| a.output)),
                Direction::Wgrad => (product(|a| a.output), product(|a| a.input)),
            }
        };
        let last = self.axes.len().saturating_sub(1);
        let mut outer = Seen {
            pairs: vec![(0, 0)],
            ends: vec![1],
        };
        for (index, axis) in self.axes[..last].iter().enumerate() {
            let own = coordinates(index);
            outer = Seen::along(axis, direction, own, strides(index), Some(&outer));
        }
        let axis = &self.axes[last];
        let inner = Seen::along(axis, direction, coordinates(last), strides(last), None);
        Terms {
            geometry: self,
            direction,
            inner: inner.ends.len(),
            seen: [outer, inner],
            alone: index.is_some(),
        }
    }

    fn outputs(&self) -> usize {
        self.groups * self.filters
    }

    /// How many terms each element has, padding left out, by position in a plane of the result
    /// (for wgrad, by tap).
    pub fn term_counts(&self, direction: Direction) -> Vec<f64> {
        let (factor, per_axis): (usize, Vec<Vec<usize>>) = match direction {
            Direction::Fprop => (
                self.channels,
                self.counts(|a| (a.output, a.taps), |a, o, t| a.input_at(o, t).is_some()),
            ),
            Direction::Dgrad => (
                self.filters,
                self.counts(|a| (a.input, a.taps), |a, i, t| a.output_at(i, t).is_some()),
            ),
            Direction::Wgrad => (
                self.batch,
                self.counts(|a| (a.taps, a.output), |a, t, o| a.input_at(o, t).is_some()),
            ),
        };
        per_axis.iter().fold(vec![factor as f64], |outer, axis| {
            outer
                .iter()
                .flat_map(|&outer| axis.iter().map(move |&inner| outer * inner as f64))
                .collect()
        })
    }

    fn counts(
        &self,
        extents: impl Fn(&Axis) -> (usize, usize),
        seen: impl Fn(&Axis, usize, usize) -> bool,
    ) -> Vec<Vec<usize>> {
        self.axes
            .iter()
            .map(|axis| {
                let (positions, others) = extents(axis);
                (0..positions)
                    .map(|p| (0..others).filter(|&o| seen(axis, p, o)).count())
                    .collect()
            })
            .collect()
    }
}
