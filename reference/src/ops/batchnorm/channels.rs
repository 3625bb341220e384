//! What the forms share: the shape, sums over a channel, rows of elements, bounds.

use super::row::{Row, fill_row};
use crate::arithmetic::FunctionErrors;
use crate::array::Array;
use crate::estimate::{Alternative, Estimate};
use crate::ops::Wanted;
use crate::ops::operand::{Operand, any_overflow};
use crate::ops::sums::{Same, SumBound, Term, in_trees};
use crate::parallel;
use rayon::prelude::*;

/// x `[N, C, S…]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub batch: usize,
    pub channels: usize,
    /// Elements of one channel of one image.
    pub plane: usize,
}

impl Shape {
    /// # Errors
    /// A text where the rank is less than 2 or a size does not fit.
    pub fn new(dims: &[i64]) -> Result<Self, String> {
        let sizes: Option<Vec<usize>> = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect();
        match sizes.as_deref() {
            Some([batch, channels, spatial @ ..]) => Ok(Self {
                batch: *batch,
                channels: *channels,
                plane: spatial.iter().product(),
            }),
            _ => Err(format!(
                "batchnorm of {dims:?}: at least N and C are needed"
            )),
        }
    }

    /// Checks that an operand has one value per channel.
    pub fn per_channel(&self, name: &str, operand: &Operand<'_>) -> Result<(), String> {
        if operand.value.len() == self.channels {
            Ok(())
        } else {
            Err(format!(
                "{name} is {:?}, one value for each of {} channels is needed",
                operand.dims, self.channels
            ))
        }
    }

    /// Elements in a channel.
    pub fn count(&self) -> usize {
        self.batch * self.plane
    }

    /// Elements in all.
    pub fn elements(&self) -> usize {
        self.count() * self.channels
    }

    /// First element of a channel in an image.
    fn start(&self, image: usize, channel: usize) -> usize {
        (image * self.channels + channel) * self.plane
    }

    /// Sums of `term` over a channel of packed tensors: each image in a fixed tree, the images in
    /// ascending order.
    pub fn sums<const ROWS: usize, const SUMS: usize>(
        &self,
        channel: usize,
        tensors: [&[f64]; ROWS],
        term: impl Term<ROWS, SUMS>,
    ) -> [f64; SUMS] {
        let mut totals = [0.0; SUMS];
        for image in 0..self.batch {
            let start = self.start(image, channel);
            let rows = tensors.map(|tensor| &tensor[start..start + self.plane]);
            for (total, sum) in totals.iter_mut().zip(in_trees(rows, term)) {
                *total += sum;
            }
        }
        totals
    }

    /// Σ `term(element)` over a channel, in the order of [`Self::sums`].
    pub fn sum(&self, channel: usize, term: impl Fn(usize) -> f64) -> f64 {
        let mut row = vec![0.0; self.plane];
        let mut total = 0.0;
        for image in 0..self.batch {
            let start = self.start(image, channel);
            for (i, value) in row.iter_mut().enumerate() {
                *value = term(start + i);
            }
            let [sum] = in_trees([&row], Same);
            total += sum;
        }
        total
    }

    /// How much faster than √M the roundings of a channel's sums grow because values repeat:
    /// √(1 + M·ρ), where ρ is the share of equal pairs among some of the channel's values.
    ///
    /// While a partial sum stays within a binade, adding the same value rounds by the same amount.
    /// Of M terms with few different values, as f16 and bf16 hold them far from 0, the roundings
    /// are those of the different values, each as often as it occurs.
    fn repetition(&self, channel: usize, values: &[f64]) -> f64 {
        let count = self.count();
        let mut sample = [0u64; SAMPLE];
        let sample = &mut sample[..count.min(SAMPLE)];
        let taken = sample.len();
        for (i, value) in sample.iter_mut().enumerate() {
            let at = i * count / taken;
            let own = values[self.start(at / self.plane, channel) + at % self.plane];
            // Zeros of both signs get the same bits. A NaN makes the channel overflow, where none of
            // this counts.
            *value = (own + 0.0).to_bits();
        }
        sample.sort_unstable();
        let equal: usize = sample
            .chunk_by(|a, b| a == b)
            .map(|run| run.len() * (run.len() - 1))
            .sum();
        let pairs = (taken * taken.saturating_sub(1)).max(1);
        (1.0 + count as f64 * equal as f64 / pairs as f64).sqrt()
    }

    /// `f(channel)` for every channel.
    pub fn each_channel<T: Send>(&self, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
        if parallel::worthwhile(self.elements()) {
            (0..self.channels).into_par_iter().map(f).collect()
        } else {
            (0..self.channels).map(f).collect()
        }
    }

    /// Value and error of every element. `prepare(channel)` gives the function of an element's
    /// values in `tensors` and their errors, which runs over whole rows.
    pub fn each_element<const ROWS: usize, F>(
        &self,
        wanted: Wanted,
        tensors: [&Operand<'_>; ROWS],
        prepare: impl Fn(usize) -> F + Sync + Send,
    ) -> Estimate
    where
        F: Fn([f64; ROWS], [f64; ROWS]) -> (f64, f64),
    {
        let mut estimate = self.unset(wanted);
        let rows_per_task = (8192 / self.plane.max(1)).max(1);
        let task = |(task, rows): (usize, Row<'_>)| {
            let first = task * rows_per_task;
            for (row, own) in (first..).zip(rows.chunks(self.plane)) {
                let element = prepare(row % self.channels);
                fill_row(tensors, row * self.plane, own, &element);
            }
        };
        let tasks: Vec<Row<'_>> = Row::of(&mut estimate)
            .chunks(rows_per_task * self.plane)
            .collect();
        if parallel::worthwhile(self.elements()) {
            tasks.into_par_iter().enumerate().for_each(task);
        } else {
            tasks.into_iter().enumerate().for_each(task);
        }
        estimate
    }

    /// What `statistics(channel)` gives for every channel, and value and error of every element, for
    /// which `prepare` is told what the element's channel gave. A channel's elements follow its
    /// statistics at once, while its values are still in the cache.
    pub fn each_channel_and_element<const ROWS: usize, C: Send + Sync, F>(
        &self,
        wanted: Wanted,
        tensors: [&Operand<'_>; ROWS],
        statistics: impl Fn(usize) -> C + Sync + Send,
        prepare: impl Fn(usize, &C) -> F + Sync + Send,
    ) -> (Vec<C>, Estimate)
    where
        F: Fn([f64; ROWS], [f64; ROWS]) -> (f64, f64),
    {
        let is_parallel = parallel::worthwhile(self.elements());
        let few = is_parallel && self.channels < 2 * rayon::current_num_threads();
        if few || self.plane < SHORT_ROW {
            let channels = self.each_channel(statistics);
            let estimate = self.each_element(wanted, tensors, |c| prepare(c, &channels[c]));
            return (channels, estimate);
        }
        let mut estimate = self.unset(wanted);
        let task = |(channel, rows): (usize, Vec<Row<'_>>)| {
            let found = statistics(channel);
            let element = prepare(channel, &found);
            for (image, row) in rows.into_iter().enumerate() {
                fill_row(tensors, self.start(image, channel), row, &element);
            }
            found
        };
        let rows = self.rows_by_channel(&mut estimate);
        let channels = if is_parallel {
            rows.into_par_iter().enumerate().map(task).collect()
        } else {
            rows.into_iter().enumerate().map(task).collect()
        };
        (channels, estimate)
    }

    /// Room for what is wanted of every element.
    fn unset(&self, wanted: Wanted) -> Estimate {
        match wanted {
            Wanted::Values => Estimate {
                value: Array::unset(self.elements()),
                ..Estimate::default()
            },
            Wanted::Uncertainty => Estimate::unset(self.elements()),
        }
    }

    /// The rows of an estimate that belong to each channel, the images in order.
    fn rows_by_channel<'a>(&self, estimate: &'a mut Estimate) -> Vec<Vec<Row<'a>>> {
        let rows = || Vec::with_capacity(self.batch);
        let mut channels: Vec<Vec<Row<'a>>> = (0..self.channels).map(|_| rows()).collect();
        for (row, own) in Row::of(estimate).chunks(self.plane).enumerate() {
            channels[row % self.channels].push(own);
        }
        channels
    }

    /// Channels that hold an element which an operand may have otherwise.
    pub fn channels_with_alternatives(&self, operands: &[&Operand<'_>]) -> Vec<bool> {
        let mut marked = vec![false; self.channels];
        for operand in operands {
            for other in operand.also {
                let channel = if operand.value.len() == self.channels {
                    other.index
                } else {
                    other.index / self.plane.max(1) % self.channels
                };
                marked[channel] = true;
            }
        }
        marked
    }

    /// Anything that an overflow leaves behind, for every element of the marked channels.
    pub fn whole_channels(&self, marked: &[bool]) -> Vec<Alternative> {
        if !marked.contains(&true) {
            return Vec::new();
        }
        (0..self.elements())
            .filter(|element| marked[element / self.plane % self.channels])
            .flat_map(any_overflow)
            .collect()
    }

    /// The same for tensors of one value per channel.
    pub fn channel_values(marked: &[bool]) -> Vec<Alternative> {
        let channels = marked.iter().enumerate().filter(|&(_, &marked)| marked);
        channels
            .flat_map(|(channel, _)| any_overflow(channel))
            .collect()
    }
}

/// Elements of a row below which a list of rows is not worth its memory.
const SHORT_ROW: usize = 64;

/// Values of a channel that [`Shape::repetition`] compares with each other.
const SAMPLE: usize = 512;

/// The arithmetic of a batchnorm node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    pub sum: SumBound,
    pub functions: &'a FunctionErrors,
    /// Without uncertainty nothing here means anything.
    pub wanted: Wanted,
}

impl Bounds<'_> {
    /// Unit roundoff of the compute type.
    pub fn u(&self) -> f64 {
        self.sum.roundoff()
    }

    /// Relative error of 1/√(v + ε): one addition and the function.
    pub fn inverse_root(&self) -> f64 {
        (1.0 + self.functions.rsqrt) * self.u()
    }

    /// [`Shape::repetition`], where it matters.
    pub fn repetition(&self, shape: &Shape, channel: usize, values: &[f64]) -> f64 {
        match self.wanted {
            Wanted::Values => 1.0,
            Wanted::Uncertainty => shape.repetition(channel, values),
        }
    }

    /// A sum of three terms, whatever the form that an engine gives it.
    #[inline]
    pub fn three(&self, y: f64, terms: [f64; 3]) -> f64 {
        let [a, b, c] = terms;
        self.sum.random(3.0, y, (a * a + b * b + c * c).sqrt())
    }

    /// A long sum of values that repeat (see [`Shape::repetition`]), by the rule for its growth.
    pub fn long(&self, terms: f64, [y, q, s]: [f64; 3], repetition: f64) -> f64 {
        let worst = self.sum.worst(terms, y, q, s);
        if self.sum.grows_linearly(terms, y, q, s) {
            worst
        } else {
            let random = self.sum.random(terms, y, q);
            random.max(worst.min(random * repetition))
        }
    }
}
