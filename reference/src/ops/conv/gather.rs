//! fprop and dgrad on a [`Lattice`]: register tiles of filters × positions, one chain per element
//! over (channel, tap) ascending.

use super::lane::Lane;
use super::lattice::{Lattice, Part, Row, Source};
use crate::parallel;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Widest tile in elements: three vectors of 16 lanes, or eight of them for one filter.
const TILE: usize = 8 * 48;

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

/// The padded source, `[N, G·C, channel]` and some slack for whole vectors at the end.
pub(crate) fn pad<T: Lane>(
    source: &Source,
    sums: &Sums,
    values: &[f64],
    convert: impl Fn(f64) -> T + Sync,
) -> Vec<T> {
    let planes = sums.batch * sums.groups * sums.channels;
    let mut padded = vec![T::default(); planes * source.channel + TILE];
    let plane: usize = source.extents.iter().product();
    let fill = |(target, values): (&mut [T], &[f64])| {
        for (phase, bases) in source.phases.iter().enumerate() {
            let lattice: usize = source.dims.iter().product();
            let target = &mut target[phase * lattice..(phase + 1) * lattice];
            pad_axis(source, bases, 0, target, values, &convert);
        }
    };
    let work = planes * source.channel;
    let targets = padded[..work].chunks_exact_mut(source.channel);
    if parallel::worthwhile(work) {
        let targets = padded[..work].par_chunks_exact_mut(source.channel);
        targets.zip(values.par_chunks_exact(plane)).for_each(fill);
    } else {
        targets.zip(values.chunks_exact(plane)).for_each(fill);
    }
    padded
}

fn pad_axis<T: Lane>(
    source: &Source,
    bases: &[i64],
    axis: usize,
    target: &mut [T],
    values: &[f64],
    convert: &impl Fn(f64) -> T,
) {
    let (base, step, extent) = (bases[axis], source.step[axis], source.extents[axis] as i64);
    let inner = target.len() / source.dims[axis].max(1);
    let below = values.len() / source.extents[axis].max(1);
    // Lattice points g with 0 ≤ base + g·step < extent.
    let first = ((-base).max(0) as usize).div_ceil(step);
    let last = axis + 1 == source.dims.len();
    if last && step == 1 && first < target.len() {
        let seen = (base + first as i64) as usize;
        let values = values.get(seen..).unwrap_or_default();
        for (target, &value) in target[first..].iter_mut().zip(values) {
            *target = convert(value);
        }
        return;
    }
    for point in first..source.dims[axis] {
        let at = base + (point * step) as i64;
        if at >= extent {
            break;
        }
        let at = at as usize;
        if last {
            target[point] = convert(values[at]);
        } else {
            let target = &mut target[point * inner..(point + 1) * inner];
            let values = &values[at * below..(at + 1) * below];
            pad_axis(source, bases, axis + 1, target, values, convert);
        }
    }
}

/// One product kernel: `weight(group, filter, channel, window)` times the source, summed.
pub(crate) struct Product<'a, T, W> {
    pub lattice: &'a Lattice,
    pub sums: Sums,
    /// From [`pad`].
    pub source: &'a [T],
    pub weight: W,
    /// Products are exact in f64, so that a fused step gives the same bits as two.
    pub fused: bool,
}

impl<T: Lane, W: Fn(usize, usize, usize, usize) -> T + Sync> Product<'_, T, W> {
    /// The result, `[N, G·K, plane]`.
    pub fn run(&self, out: &mut [T]) {
        let arch = Arch::new();
        let widest = arch.dispatch(FiltersPerTile);
        for part in &self.lattice.parts {
            self.run_part(arch, widest, part, out);
        }
    }

    fn run_part(&self, arch: Arch, widest: usize, part: &Part, out: &mut [T]) {
        let sums = &self.sums;
        let steps = sums.channels * part.taps.len();
        if part.rows.is_empty() || steps == 0 {
            return;
        }
        let offsets: Vec<usize> = (0..sums.channels)
            .flat_map(|c| part.taps.iter().map(move |tap| (c, tap.shift)))
            .map(|(c, shift)| c * self.lattice.source.channel + shift)
            .collect();
        let work =
            sums.batch * sums.groups * sums.filters * sums.plane * steps / self.lattice.parts.len();
        let small = !parallel::worthwhile(work / 8);
        let split = self.split(widest, part, small);
        let weights = self.pack(part, split.block);
        let rows: Vec<&[Row]> = part.rows.chunks(split.rows).collect();
        let jobs = self.jobs(&rows, split.filters, out);
        let run = |job: Job<'_, T>| {
            arch.dispatch(Work {
                job,
                offsets: &offsets,
                weights: &weights,
                source: self.source,
                block: split.block,
                group_filters: sums.filters,
                out_step: part.out_step,
                plane: sums.plane,
                fused: self.fused,
            });
        };
        if small {
            jobs.into_iter().for_each(run);
        } else {
            jobs.into_par_iter().for_each(run);
        }
    }

    /// Enough jobs to keep every thread busy, and as much reuse of the source as that leaves.
    fn split(&self, widest: usize, part: &Part, small: bool) -> Split {
        let sums = &self.sums;
        let block = match sums.filters {
            0..=2 => 1,
            3..=4 => 4,
            _ => widest,
        };
        let rows = part.rows.len();
        let images = sums.batch * sums.groups;
        let mut filters = sums.filters.min(16).next_multiple_of(block);
        if small {
            return Split {
                block,
                filters,
                rows,
            };
        }
        let wanted = 4 * rayon::current_num_threads();
        while filters > block && images * sums.filters.div_ceil(filters) < wanted {
            filters = (filters / 2).next_multiple_of(block);
        }
        // Only a part that owns whole rows of the result can be cut between rows.
        if images * sums.filters.div_ceil(filters) < wanted / 2
            && self.lattice.parts.len() == 1
            && rows > 1
        {
            let pieces = (wanted / (images * sums.filters)).max(1);
            let rows = rows.div_ceil(pieces).max(1);
            return Split {
                block: 1,
                filters: 1,
                rows,
            };
        }
        Split {
            block,
            filters,
            rows,
        }
    }

    /// Weights as `[G, block, step, filter in block]`, the last block of a group filled with
    /// zeros.
    fn pack(&self, part: &Part, block: usize) -> Vec<T> {
        let sums = &self.sums;
        let blocks = sums.filters.div_ceil(block);
        let steps = sums.channels * part.taps.len();
        let mut packed = vec![T::default(); sums.groups * blocks * steps * block];
        let fill = |(index, target): (usize, &mut [T])| {
            let (group, first) = (index / blocks, index % blocks * block);
            for (step, target) in target.chunks_exact_mut(block).enumerate() {
                let (channel, tap) = (step / part.taps.len(), step % part.taps.len());
                for (filter, target) in (first..sums.filters).zip(target) {
                    *target = (self.weight)(group, filter, channel, part.taps[tap].window);
                }
            }
        };
        if parallel::worthwhile(packed.len()) {
            packed
                .par_chunks_exact_mut(steps * block)
                .enumerate()
                .for_each(fill);
        } else {
            packed
                .chunks_exact_mut(steps * block)
                .enumerate()
                .for_each(fill);
        }
        packed
    }

    /// Cuts the result into one exclusive piece per job. More than one run of `rows` goes with one
    /// filter per job.
    fn jobs<'b>(
        &self,
        rows: &[&'b [Row]],
        filters_per_job: usize,
        mut out: &'b mut [T],
    ) -> Vec<Job<'b, T>> {
        let sums = &self.sums;
        let image = sums.channels * self.lattice.source.channel;
        let mut jobs = Vec::new();
        for index in 0..sums.batch * sums.groups {
            for first in (0..sums.filters).step_by(filters_per_job) {
                let filters = filters_per_job.min(sums.filters - first);
                let (mut piece, rest) = out.split_at_mut(filters * sums.plane);
                out = rest;
                let mut out_from = 0;
                for (run, &run_rows) in rows.iter().enumerate() {
                    let end = match run_rows.last() {
                        Some(row) if run + 1 < rows.len() => row.out + row.len,
                        _ => filters * sums.plane,
                    };
                    let (own, rest) = piece.split_at_mut(end - out_from);
                    piece = rest;
                    jobs.push(Job {
                        group: index % sums.groups,
                        first,
                        filters,
                        base: index * image,
                        rows: run_rows,
                        out: own,
                        out_from,
                    });
                    out_from = end;
                }
            }
        }
        jobs
    }
}

/// How a part is cut into jobs.
struct Split {
    /// Filters per tile.
    block: usize,
    /// Filters per job.
    filters: usize,
    /// Rows per job.
    rows: usize,
}

/// Some filters of one group and image on some rows.
struct Job<'a, T> {
    group: usize,
    first: usize,
    filters: usize,
    /// Start of the image and group in the source.
    base: usize,
    rows: &'a [Row],
    /// Planes of the filters, or the rows' part of one plane.
    out: &'a mut [T],
    /// Index in the plane of `out[0]`.
    out_from: usize,
}

struct FiltersPerTile;

impl WithSimd for FiltersPerTile {
    type Output = usize;
    /// 32 registers hold 8 × 3 vectors and their operands, 16 hold 4 × 3.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        if S::F64_LANES == 8 { 8 } else { 4 }
    }
}

struct Work<'a, T> {
    job: Job<'a, T>,
    offsets: &'a [usize],
    weights: &'a [T],
    source: &'a [T],
    block: usize,
    group_filters: usize,
    out_step: usize,
    plane: usize,
    fused: bool,
}

impl<T: Lane> WithSimd for Work<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Conditions that are constant per instance come first: they keep the kernels that an
        // instance cannot need out of the binary.
        if T::ALWAYS_FUSED || self.fused {
            self.with_step::<S, true>(simd);
        } else {
            self.with_step::<S, false>(simd);
        }
    }
}

impl<T: Lane> Work<'_, T> {
    #[inline(always)]
    fn with_step<S: Simd, const FUSED: bool>(self, simd: S) {
        if S::F64_LANES == 8 && self.block == 8 {
            return self.blocks::<S, 8, 3, FUSED>(simd);
        }
        match self.block {
            4 => self.blocks::<S, 4, 3, FUSED>(simd),
            _ => self.blocks::<S, 1, 6, FUSED>(simd),
        }
    }
}

/// Positions per round: their window of the source stays in the second-level cache while every
/// block of filters passes over it.
const ROUND: usize = 16;

impl<T: Lane> Work<'_, T> {
    #[inline(always)]
    fn blocks<S: Simd, const MR: usize, const NV: usize, const FUSED: bool>(mut self, simd: S) {
        let width = NV * T::lanes::<S>();
        let mut tile = [T::default(); TILE];
        let mut panels = [(0usize, 0usize, 0usize); ROUND];
        let mut cursor = Cursor { row: 0, column: 0 };
        loop {
            let mut count = 0;
            while count < ROUND {
                match cursor.next(self.job.rows, width, T::lanes::<S>()) {
                    Some(panel) => panels[count] = panel,
                    None => break,
                }
                count += 1;
            }
            if count == 0 {
                break;
            }
            let mut filter = 0;
            while filter < self.job.filters {
                for &(at, row, vectors) in &panels[..count] {
                    self.tile::<S, MR, NV, FUSED>(simd, filter, (at, row, vectors), &mut tile);
                }
                filter += MR;
            }
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const MR: usize, const NV: usize, const FUSED: bool>(
        &mut self,
        simd: S,
        filter: usize,
        (at, row, vectors): (usize, usize, usize),
        tile: &mut [T; TILE],
    ) {
        let blocks = self.group_filters.div_ceil(MR);
        let block = self.job.group * blocks + (self.job.first + filter) / MR;
        let steps = self.offsets.len() * MR;
        let weights = &self.weights[block * steps..(block + 1) * steps];
        let source = &self.source[self.job.base + at..];
        match vectors {
            1 => chain::<T, S, MR, 1, FUSED>(simd, weights, self.offsets, source, tile),
            2 => chain::<T, S, MR, 2, FUSED>(simd, weights, self.offsets, source, tile),
            _ => chain::<T, S, MR, NV, FUSED>(simd, weights, self.offsets, source, tile),
        }
        let filled = if vectors > 2 { NV } else { vectors } * T::lanes::<S>();
        let filters = MR.min(self.job.filters - filter);
        self.store(filter, filters, (at, row, filled), tile);
    }

    /// Copies the positions of a tile that lie on rows.
    #[inline(always)]
    fn store(
        &mut self,
        filter: usize,
        filters: usize,
        (at, first_row, width): (usize, usize, usize),
        tile: &[T],
    ) {
        for row in &self.job.rows[first_row..] {
            if row.at >= at + width {
                break;
            }
            let from = row.at.max(at);
            let len = (row.at + row.len).min(at + width) - from;
            let out = row.out - self.job.out_from + (from - row.at) * self.out_step;
            for m in 0..filters {
                let tile = &tile[m * width + from - at..][..len];
                let out = &mut self.job.out[(filter + m) * self.plane + out..];
                if self.out_step == 1 {
                    out[..len].copy_from_slice(tile);
                } else {
                    for (out, value) in out.iter_mut().step_by(self.out_step).zip(tile) {
                        *out = *value;
                    }
                }
            }
        }
    }
}

/// Walks over the positions, panel by panel.
struct Cursor {
    row: usize,
    column: usize,
}

impl Cursor {
    /// First position, its row, and the vectors that the panel needs (at most the full width).
    #[inline(always)]
    fn next(&mut self, rows: &[Row], width: usize, lanes: usize) -> Option<(usize, usize, usize)> {
        let row = rows.get(self.row)?;
        let (at, first) = (row.at + self.column, self.row);
        let end = at + width;
        let mut covered = at;
        while let Some(row) = rows.get(self.row) {
            if row.at >= end {
                break;
            }
            covered = (row.at + row.len).min(end);
            if row.at + row.len > end {
                self.column = end - row.at;
                return Some((at, first, (covered - at).div_ceil(lanes)));
            }
            self.row += 1;
            self.column = 0;
        }
        Some((at, first, (covered - at).div_ceil(lanes)))
    }
}

/// The chains of `MR` filters × `NV` vectors of positions, written to `tile` filter by filter.
#[inline(always)]
fn chain<T: Lane, S: Simd, const MR: usize, const NV: usize, const FUSED: bool>(
    simd: S,
    weights: &[T],
    offsets: &[usize],
    source: &[T],
    tile: &mut [T; TILE],
) {
    let width = NV * T::lanes::<S>();
    let mut sums = [[T::splat(simd, T::default()); NV]; MR];
    for (weights, &offset) in weights.chunks_exact(MR).zip(offsets) {
        let seen = T::vectors::<S>(&source[offset..offset + width]);
        let seen: [T::Vector<S>; NV] = std::array::from_fn(|v| seen[v]);
        for (sums, &weight) in sums.iter_mut().zip(weights) {
            let weight = T::splat(simd, weight);
            for (sum, &seen) in sums.iter_mut().zip(&seen) {
                *sum = if FUSED {
                    T::fused(simd, weight, seen, *sum)
                } else {
                    T::separate(simd, weight, seen, *sum)
                };
            }
        }
    }
    for (tile, sums) in tile.chunks_exact_mut(width).zip(&sums) {
        let tile = T::vectors_mut::<S>(tile);
        for (tile, &sum) in tile.iter_mut().zip(sums) {
            *tile = sum;
        }
    }
}
