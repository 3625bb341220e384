//! Convolution term by term: the terms of one element in their order. For single elements, for
//! inputs that hold Inf or NaN (padding contributes nothing, not 0·Inf), and for counting terms.

use super::Direction;
use super::geometry::Geometry;

impl Geometry {
    /// Calls `visit(first index, second index)` with the operands of each term of the result's
    /// element `index`, in the order of the chain: fprop (channel, tap) with x and w; dgrad
    /// (filter, tap) with dy and w; wgrad (image, position) with dy and x.
    pub fn terms(&self, direction: Direction, index: usize, mut visit: impl FnMut(usize, usize)) {
        match direction {
            Direction::Fprop => self.fprop_terms(index, &mut visit),
            Direction::Dgrad => self.dgrad_terms(index, &mut visit),
            Direction::Wgrad => self.wgrad_terms(index, &mut visit),
        }
    }

    fn fprop_terms(&self, index: usize, visit: &mut impl FnMut(usize, usize)) {
        let plane = self.output_plane();
        let (row, position) = (index / plane, index % plane);
        let (image, filter) = (row / self.outputs(), row % self.outputs());
        let group = filter / self.filters;
        let window = self.window();
        for channel in 0..self.channels {
            let x = (image * self.groups + group) * self.channels + channel;
            for tap in 0..window {
                if let Some(at) = self.input_of(position, tap) {
                    let w = (filter * self.channels + channel) * window + tap;
                    visit(x * self.input_plane() + at, w);
                }
            }
        }
    }

    fn dgrad_terms(&self, index: usize, visit: &mut impl FnMut(usize, usize)) {
        let plane = self.input_plane();
        let (row, position) = (index / plane, index % plane);
        let inputs = self.groups * self.channels;
        let (image, input) = (row / inputs, row % inputs);
        let (group, channel) = (input / self.channels, input % self.channels);
        let window = self.window();
        for filter in group * self.filters..(group + 1) * self.filters {
            let dy = image * self.outputs() + filter;
            for tap in 0..window {
                if let Some(at) = self.output_of(position, tap) {
                    let w = (filter * self.channels + channel) * window + tap;
                    visit(dy * self.output_plane() + at, w);
                }
            }
        }
    }

    fn wgrad_terms(&self, index: usize, visit: &mut impl FnMut(usize, usize)) {
        let window = self.window();
        let (row, tap) = (index / window, index % window);
        let (filter, channel) = (row / self.channels, row % self.channels);
        let group = filter / self.filters;
        for image in 0..self.batch {
            let dy = image * self.outputs() + filter;
            let x = (image * self.groups + group) * self.channels + channel;
            for position in 0..self.output_plane() {
                if let Some(at) = self.input_of(position, tap) {
                    visit(
                        dy * self.output_plane() + position,
                        x * self.input_plane() + at,
                    );
                }
            }
        }
    }

    fn outputs(&self) -> usize {
        self.groups * self.filters
    }

    /// The element of x's plane that `tap` sees from an output position.
    fn input_of(&self, mut position: usize, mut tap: usize) -> Option<usize> {
        let (mut at, mut stride) = (0, 1);
        for axis in self.axes.iter().rev() {
            let seen = axis.input_at(position % axis.output, tap % axis.taps)?;
            at += seen * stride;
            stride *= axis.input;
            position /= axis.output;
            tap /= axis.taps;
        }
        Some(at)
    }

    /// The output position that sees an element of x's plane through `tap`.
    fn output_of(&self, mut position: usize, mut tap: usize) -> Option<usize> {
        let (mut at, mut stride) = (0, 1);
        for axis in self.axes.iter().rev() {
            let seen = axis.output_at(position % axis.input, tap % axis.taps)?;
            at += seen * stride;
            stride *= axis.output;
            position /= axis.input;
            tap /= axis.taps;
        }
        Some(at)
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
        extents: impl Fn(&super::geometry::Axis) -> (usize, usize),
        seen: impl Fn(&super::geometry::Axis, usize, usize) -> bool,
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
