//! wgrad of few filters, depthwise above all: dot products of dy, laid on the lattice with zeros
//! between its rows, and x shifted by each tap.
//!
//! The order is a fixed tree: lattice point `q` of a chunk's slab goes to lane `q mod 8`; the lanes
//! run on through the images of the chunk (see [`Chunks`]); a chunk's lanes are added pairwise
//! ([`fold`]), and the chunks in ascending order.

use super::chunks::Chunks;
use super::lane::Lane;
use super::operands::Gradient;
use super::scratch::{Scratch, sized};
use super::slab::Slab;
use crate::parallel;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// Lanes of the tree, whatever the machine's vectors.
const LANES: usize = 8;
/// Positions of a chunk.
const CHUNK: usize = 4096;

/// The sum of the lanes: ((0+4)+(2+6)) + ((1+5)+(3+7)).
#[inline(always)]
fn fold<T: Lane>(lanes: [T; LANES]) -> T {
    let [a, b, c, d, e, f, g, h] = lanes;
    let even = a.plus(e).plus(c.plus(g));
    let odd = b.plus(f).plus(d.plus(h));
    even.plus(odd)
}

/// The kernel for this gradient.
pub(crate) struct Dots<'a>(pub Gradient<'a>);

/// All filters of a group × some channels.
struct Job<'a, T> {
    group: usize,
    channels: Range<usize>,
    /// Per filter, `[channel, tap]`.
    dw: Vec<&'a mut [T]>,
}

impl Dots<'_> {
    /// dw `[G·K, C, R…]`.
    pub fn run<T: Lane>(&self, dw: &mut [T]) {
        let sums = &self.0.sums;
        let taps = self.0.lattice.parts[0].taps.len();
        if dw.is_empty() || taps == 0 || sums.plane == 0 {
            dw.fill(T::default());
            return;
        }
        let chunks = Chunks::new(self.0.lattice, sums.batch, sums.plane, CHUNK);
        let small = !parallel::worthwhile(dw.len() * sums.batch * sums.plane / 8);
        let pieces = if small {
            1
        } else {
            (4 * rayon::current_num_threads()).div_ceil(sums.groups)
        };
        let step = sums.channels.div_ceil(pieces);
        let mut jobs: Vec<Job<'_, T>> = Vec::new();
        for (group, dw) in dw
            .chunks_exact_mut(sums.filters * sums.channels * taps)
            .enumerate()
        {
            let first = jobs.len();
            jobs.extend((0..sums.channels).step_by(step).map(|from| Job {
                group,
                channels: from..(from + step).min(sums.channels),
                dw: Vec::with_capacity(sums.filters),
            }));
            for row in dw.chunks_exact_mut(sums.channels * taps) {
                let runs = row.chunks_mut(step * taps);
                jobs[first..]
                    .iter_mut()
                    .zip(runs)
                    .for_each(|(job, own)| job.dw.push(own));
            }
        }
        let run = |mut job: Job<'_, T>| {
            T::with(|scratch| {
                for (index, (images, slab)) in chunks.iter().enumerate() {
                    dispatch(Work {
                        gradient: &self.0,
                        chunks: &chunks,
                        images,
                        slab,
                        scratch,
                        job: &mut job,
                        first: index == 0,
                    });
                }
            });
        };
        if small {
            jobs.into_iter().for_each(run);
        } else {
            jobs.into_par_iter().for_each(run);
        }
    }
}

/// Runs on vectors of at most eight lanes of any element type.
fn dispatch<T: Lane>(work: Work<'_, '_, T>) {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        // Sixteen lanes of f32 are too many for the tree.
        if !T::ALWAYS_FUSED
            && let Some(simd) = pulp::x86::V4::try_new()
        {
            return Simd::vectorize(simd, work);
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Simd::vectorize(simd, work);
        }
        Simd::vectorize(pulp::Scalar::new(), work);
    }
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    pulp::Arch::new().dispatch(work);
}

/// One chunk of one job.
struct Work<'a, 'b, T> {
    gradient: &'a Gradient<'a>,
    chunks: &'a Chunks,
    images: Range<usize>,
    slab: &'a Slab,
    scratch: &'a mut Scratch<T>,
    job: &'a mut Job<'b, T>,
    /// The chunk's sums replace what was there; others are added.
    first: bool,
}

impl<T: Lane> WithSimd for Work<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        self.lay_out();
        // Conditions that are constant per instance come first: they keep the kernels that an
        // instance cannot need out of the binary.
        if T::ALWAYS_FUSED || self.gradient.fused {
            self.with_step::<S, true>(simd);
        } else {
            self.with_step::<S, false>(simd);
        }
    }
}

impl<T: Lane> Work<'_, '_, T> {
    /// Lattice points from the slab's first position to its last, rounded up to whole lanes.
    fn points(&self) -> usize {
        let end = self.slab.rows[0].last().map_or(0, |row| row.at + row.len);
        end.next_multiple_of(LANES)
    }

    /// x padded, dy on the lattice.
    #[inline(always)]
    fn lay_out(&mut self) {
        let (gradient, job) = (self.gradient, &*self.job);
        let sums = &gradient.sums;
        let (pitch, points) = (self.chunks.slabs.pitch, self.points());
        let plane: usize = gradient.lattice.source.extents.iter().product();
        let channels = job.channels.len();
        let count = self.images.len();
        let x = sized(&mut self.scratch.source, count * channels * pitch + points);
        let dy = sized(&mut self.scratch.other, count * sums.filters * points);
        dy.fill(T::default());
        for (i, image) in self.images.clone().enumerate() {
            let image = image * sums.groups + job.group;
            for (c, channel) in job.channels.clone().enumerate() {
                let values =
                    &gradient.x.values[(image * sums.channels + channel) * plane..][..plane];
                let target = &mut x[(i * channels + c) * pitch..][..pitch];
                self.slab.fill(values, gradient.x.map, target);
            }
            for filter in 0..sums.filters {
                let row = (image * sums.filters + filter) * sums.plane;
                let values = &gradient.dy.values[row..][self.slab.result.clone()];
                let target = &mut dy[(i * sums.filters + filter) * points..][..points];
                for row in &self.slab.rows[0] {
                    let target = &mut target[row.at..row.at + row.len];
                    gradient.dy.map.copy(&values[row.out..], 1, target);
                }
            }
        }
    }

    /// Vectors per accumulator: the tree has eight lanes whatever the vectors hold.
    #[inline(always)]
    fn with_step<S: Simd, const FUSED: bool>(self, simd: S) {
        if T::lanes::<S>() == 8 {
            self.filters::<S, 1, 9, FUSED>(simd);
        } else if T::lanes::<S>() == 4 {
            self.filters::<S, 2, 3, FUSED>(simd);
        } else if T::lanes::<S>() == 2 {
            self.filters::<S, 4, 2, FUSED>(simd);
        } else {
            self.filters::<S, 8, 1, FUSED>(simd);
        }
    }

    #[inline(always)]
    fn filters<S: Simd, const NV: usize, const NC: usize, const FUSED: bool>(mut self, simd: S) {
        let taps = self.chunks.slabs.shifts[0].len();
        let columns = self.job.channels.len() * taps;
        for filter in 0..self.gradient.sums.filters {
            let mut column = 0;
            while column + NC <= columns {
                self.tile::<S, NV, NC, FUSED>(simd, filter, column);
                column += NC;
            }
            while column < columns {
                self.tile::<S, NV, 1, FUSED>(simd, filter, column);
                column += 1;
            }
        }
    }

    /// One filter × some columns.
    #[inline(always)]
    fn tile<S: Simd, const NV: usize, const NC: usize, const FUSED: bool>(
        &mut self,
        simd: S,
        filter: usize,
        column: usize,
    ) {
        let (sums, slabs) = (&self.gradient.sums, &self.chunks.slabs);
        let (channels, points) = (self.job.channels.len(), self.points());
        let shifts = &slabs.shifts[0];
        let starts: [usize; NC] = std::array::from_fn(|c| {
            let column = column + c;
            column / shifts.len() * slabs.pitch + shifts[column % shifts.len()]
        });
        let mut lanes = [[T::splat(simd, T::default()); NV]; NC];
        for image in 0..self.images.len() {
            let dy = &self.scratch.other[(image * sums.filters + filter) * points..][..points];
            let dy = T::vectors::<S>(dy);
            let seen: [&[T::Vector<S>]; NC] = std::array::from_fn(|c| {
                let from = image * channels * slabs.pitch + starts[c];
                &T::vectors::<S>(&self.scratch.source[from..from + points])[..dy.len()]
            });
            for (step, dy) in dy.chunks_exact(NV).enumerate() {
                for v in 0..NV {
                    for c in 0..NC {
                        let (sum, seen) = (&mut lanes[c][v], seen[c][step * NV + v]);
                        *sum = if FUSED {
                            T::fused(simd, dy[v], seen, *sum)
                        } else {
                            T::separate(simd, dy[v], seen, *sum)
                        };
                    }
                }
            }
        }
        for (lanes, dw) in lanes
            .iter()
            .zip(&mut self.job.dw[filter][column..column + NC])
        {
            let mut all = [T::default(); LANES];
            T::vectors_mut::<S>(&mut all).copy_from_slice(lanes);
            let sum = fold(all);
            *dw = if self.first { sum } else { dw.plus(sum) };
        }
    }
}
