//! wgrad on the lattice of fprop: dot products of dy, laid on the lattice with zeros between its
//! rows, and the source shifted by each tap.
//!
//! The order is a fixed tree: lattice point `q` of an image goes to lane `q mod 8`; the lanes run
//! on through the images of a chunk ([`images_per_chunk`]); a chunk's lanes are added pairwise
//! ([`fold`]), and the chunks in ascending order.

use super::gather::Sums;
use super::lane::Lane;
use super::lattice::Lattice;
use crate::parallel;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

/// Lanes of the tree, whatever the machine's vectors.
pub(crate) const LANES: usize = 8;

/// Lattice points that one lane chain covers at least, over all lanes, before chunks are added.
const CHUNK: usize = 4096;

/// Images whose lanes run on before they are added up, for images of `points` lattice points.
pub(crate) fn images_per_chunk(points: usize) -> usize {
    (CHUNK / points.max(1)).max(1)
}

/// The sum of the lanes: ((0+4)+(2+6)) + ((1+5)+(3+7)).
#[inline(always)]
pub(crate) fn fold<T: Lane>(lanes: [T; LANES]) -> T {
    let [a, b, c, d, e, f, g, h] = lanes;
    let even = a.plus(e).plus(c.plus(g));
    let odd = b.plus(f).plus(d.plus(h));
    even.plus(odd)
}

/// Lattice points from the first position to the last, rounded up to whole lanes.
pub(crate) fn points(lattice: &Lattice) -> usize {
    let rows = &lattice.parts[0].rows;
    let end = rows.last().map_or(0, |row| row.at + row.len);
    end.next_multiple_of(LANES)
}

/// dy on the lattice, `[N, G·K, points]`, zeros between the rows.
pub(crate) fn spread<T: Lane>(
    lattice: &Lattice,
    sums: &Sums,
    dy: &[f64],
    convert: impl Fn(f64) -> T + Sync,
) -> Vec<T> {
    let points = points(lattice);
    let mut spread = vec![T::default(); sums.batch * sums.groups * sums.filters * points];
    let fill = |(target, dy): (&mut [T], &[f64])| {
        for row in &lattice.parts[0].rows {
            let target = &mut target[row.at..row.at + row.len];
            for (target, &dy) in target.iter_mut().zip(&dy[row.out..]) {
                *target = convert(dy);
            }
        }
    };
    if parallel::worthwhile(spread.len()) {
        let targets = spread.par_chunks_exact_mut(points);
        targets.zip(dy.par_chunks_exact(sums.plane)).for_each(fill);
    } else {
        let targets = spread.chunks_exact_mut(points);
        targets.zip(dy.chunks_exact(sums.plane)).for_each(fill);
    }
    spread
}

/// dw = dy · x over batch and positions.
pub(crate) struct Correlation<'a, T> {
    pub lattice: &'a Lattice,
    pub sums: Sums,
    /// x from [`super::gather::pad`].
    pub source: &'a [T],
    /// dy from [`spread`].
    pub dy: &'a [T],
    /// Products are exact in f64.
    pub fused: bool,
}

impl<T: Lane> Correlation<'_, T> {
    /// dw `[G·K, C, R…]`.
    pub fn run(&self, dw: &mut [T]) {
        let taps = self.lattice.parts[0].taps.len();
        let columns = self.sums.channels * taps;
        let offsets: Vec<usize> = (0..self.sums.channels)
            .flat_map(|c| {
                let channel = c * self.lattice.source.channel;
                self.lattice.parts[0]
                    .taps
                    .iter()
                    .map(move |tap| channel + tap.shift)
            })
            .collect();
        let work = dw.len() * self.sums.batch * points(self.lattice);
        let small = !parallel::worthwhile(work / 8);
        let jobs = self.jobs(columns, small, dw);
        let run = |job: Job<'_, T>| {
            dispatch(Work {
                correlation: self,
                offsets: &offsets,
                points: points(self.lattice),
                job,
            });
        };
        if small {
            jobs.into_iter().for_each(run);
        } else {
            jobs.into_par_iter().for_each(run);
        }
    }

    /// Whole filters, four at a time; one filter's columns in pieces where that leaves threads
    /// without work.
    fn jobs<'b>(&self, columns: usize, small: bool, dw: &'b mut [T]) -> Vec<Job<'b, T>> {
        let sums = &self.sums;
        let wanted = if small {
            1
        } else {
            4 * rayon::current_num_threads()
        };
        let filters = sums.groups * sums.filters;
        let block = if sums.filters.is_multiple_of(FILTERS) || filters / FILTERS >= wanted {
            FILTERS
        } else {
            1
        };
        let mut jobs = Vec::new();
        let mut rest = dw;
        for group in 0..sums.groups {
            for first in (0..sums.filters).step_by(block) {
                let block = block.min(sums.filters - first);
                let (mut own, others) = rest.split_at_mut(block * columns);
                rest = others;
                let pieces = if block == 1 {
                    wanted.div_ceil(filters).min(columns)
                } else {
                    1
                };
                let step = columns.div_ceil(pieces);
                let mut from = 0;
                while from < columns {
                    let to = (from + step).min(columns);
                    let (piece, others) = own.split_at_mut(block * (to - from));
                    own = others;
                    jobs.push(Job {
                        group,
                        first,
                        filters: block,
                        columns: from..to,
                        dw: piece,
                    });
                    from = to;
                }
            }
        }
        jobs
    }
}

/// Runs on vectors of at most eight lanes of any element type.
fn dispatch<T: Lane>(work: Work<'_, T>) {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return Simd::vectorize(simd, work);
    }
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return Simd::vectorize(pulp::Scalar::new(), work);
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    pulp::Arch::new().dispatch(work);
}

/// Filters per job.
const FILTERS: usize = 4;

struct Job<'a, T> {
    group: usize,
    first: usize,
    filters: usize,
    columns: std::ops::Range<usize>,
    /// `[filters, columns]`.
    dw: &'a mut [T],
}

struct Work<'a, T> {
    correlation: &'a Correlation<'a, T>,
    offsets: &'a [usize],
    points: usize,
    job: Job<'a, T>,
}

impl<T: Lane> WithSimd for Work<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Conditions that are constant per instance come first: they keep the kernels that an
        // instance cannot need out of the binary.
        if T::ALWAYS_FUSED || self.correlation.fused {
            self.with_step::<S, true>(simd);
        } else {
            self.with_step::<S, false>(simd);
        }
    }
}

impl<T: Lane> Work<'_, T> {
    /// Vectors per accumulator: the tree has eight lanes whatever the vectors hold.
    #[inline(always)]
    fn with_step<S: Simd, const FUSED: bool>(self, simd: S) {
        if T::lanes::<S>() == 8 {
            self.tiles::<S, 1, 4, 3, FUSED>(simd);
        } else if T::lanes::<S>() == 4 {
            self.tiles::<S, 2, 2, 3, FUSED>(simd);
        } else if T::lanes::<S>() == 2 {
            self.tiles::<S, 4, 1, 2, FUSED>(simd);
        } else {
            self.tiles::<S, 8, 1, 1, FUSED>(simd);
        }
    }
}

impl<T: Lane> Work<'_, T> {
    #[inline(always)]
    fn tiles<S: Simd, const NV: usize, const MR: usize, const NC: usize, const FUSED: bool>(
        mut self,
        simd: S,
    ) {
        let columns = self.job.columns.len();
        let whole = columns - columns % NC;
        for column in (0..whole).step_by(NC) {
            self.strip::<S, NV, MR, NC, FUSED>(simd, column);
        }
        for column in whole..columns {
            self.strip::<S, NV, MR, 1, FUSED>(simd, column);
        }
    }

    #[inline(always)]
    fn strip<S: Simd, const NV: usize, const MR: usize, const NC: usize, const FUSED: bool>(
        &mut self,
        simd: S,
        column: usize,
    ) {
        let filters = self.job.filters;
        let whole = filters - filters % MR;
        for filter in (0..whole).step_by(MR) {
            let sums = self.tile::<S, NV, MR, NC, FUSED>(simd, filter, column);
            self.store(filter, column, &sums);
        }
        for filter in whole..filters {
            let sums = self.tile::<S, NV, 1, NC, FUSED>(simd, filter, column);
            self.store(filter, column, &sums);
        }
    }

    #[inline(always)]
    fn store<const MR: usize, const NC: usize>(
        &mut self,
        filter: usize,
        column: usize,
        sums: &[[T; NC]; MR],
    ) {
        for (m, sums) in sums.iter().enumerate() {
            let at = (filter + m) * self.job.columns.len() + column;
            self.job.dw[at..at + NC].copy_from_slice(sums);
        }
    }

    /// The whole sums of some filters × columns.
    #[inline(always)]
    fn tile<S: Simd, const NV: usize, const MR: usize, const NC: usize, const FUSED: bool>(
        &self,
        simd: S,
        filter: usize,
        column: usize,
    ) -> [[T; NC]; MR] {
        let batch = self.correlation.sums.batch;
        let per_chunk = images_per_chunk(self.points);
        let mut total = [[T::default(); NC]; MR];
        for first in (0..batch).step_by(per_chunk) {
            let images = first..(first + per_chunk).min(batch);
            let lanes = self.chunk::<S, NV, MR, NC, FUSED>(simd, images, filter, column);
            for (total, lanes) in total.iter_mut().zip(&lanes) {
                for (total, lanes) in total.iter_mut().zip(lanes) {
                    *total = total.plus(fold(*lanes));
                }
            }
        }
        total
    }

    #[inline(always)]
    fn chunk<S: Simd, const NV: usize, const MR: usize, const NC: usize, const FUSED: bool>(
        &self,
        simd: S,
        images: std::ops::Range<usize>,
        filter: usize,
        column: usize,
    ) -> [[[T; LANES]; NC]; MR] {
        let mut sums = [[[T::splat(simd, T::default()); NV]; NC]; MR];
        for image in images {
            let dy = self.filters::<MR>(image, filter);
            let seen = self.columns::<NC>(image, column);
            let steps = self.points / LANES;
            let dy: [&[T::Vector<S>]; MR] =
                std::array::from_fn(|m| &T::vectors::<S>(dy[m])[..steps * NV]);
            let seen: [&[T::Vector<S>]; NC] =
                std::array::from_fn(|c| &T::vectors::<S>(seen[c])[..steps * NV]);
            for step in 0..steps {
                for v in 0..NV {
                    let seen: [T::Vector<S>; NC] = std::array::from_fn(|c| seen[c][step * NV + v]);
                    for m in 0..MR {
                        let dy = dy[m][step * NV + v];
                        for c in 0..NC {
                            let sum = &mut sums[m][c][v];
                            *sum = if FUSED {
                                T::fused(simd, dy, seen[c], *sum)
                            } else {
                                T::separate(simd, dy, seen[c], *sum)
                            };
                        }
                    }
                }
            }
        }
        let mut lanes = [[[T::default(); LANES]; NC]; MR];
        for (lanes, sums) in lanes.iter_mut().flatten().zip(sums.iter().flatten()) {
            T::vectors_mut::<S>(lanes).copy_from_slice(sums);
        }
        lanes
    }

    #[inline(always)]
    fn filters<const MR: usize>(&self, image: usize, filter: usize) -> [&[T]; MR] {
        let sums = &self.correlation.sums;
        let first = (image * sums.groups + self.job.group) * sums.filters + self.job.first + filter;
        std::array::from_fn(|m| &self.correlation.dy[(first + m) * self.points..][..self.points])
    }

    #[inline(always)]
    fn columns<const NC: usize>(&self, image: usize, column: usize) -> [&[T]; NC] {
        let sums = &self.correlation.sums;
        let channel = self.correlation.lattice.source.channel;
        let base = (image * sums.groups + self.job.group) * sums.channels * channel;
        std::array::from_fn(|c| {
            let offset = base + self.offsets[self.job.columns.start + column + c];
            &self.correlation.source[offset..offset + self.points]
        })
    }
}
