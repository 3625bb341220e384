//! fprop and dgrad of many filters: filters in the lanes of the tiles, positions in the columns.

use super::jobs::{Piece, pieces};
use super::lane::Lane;
use super::lattice::Lattice;
use super::map::Side;
use super::pack::gather_mapped;
use super::scratch::{Scratch, sized};
use super::slab::Slabs;
use super::tile::{Block, Chain, Lanes, Strip, blocks};
use super::{Sums, Weights};
use crate::parallel;
use rayon::prelude::*;

/// Bytes of the padded source that one job works on: half of a second-level cache.
const SOURCE: usize = 512 << 10;
/// Bytes of the packed filters of a strip: what stays in a second-level cache beside the source.
const STRIP: usize = 512 << 10;
/// Bytes of packed filters at a time.
const PACKED: usize = 16 << 20;
/// Bytes of sums of one job.
const RESULT: usize = 1 << 20;
/// Positions that a job has at least, so that the filters are worth reading.
const POSITIONS: usize = 192;

/// One product: filters times source, summed over (channel, tap).
pub(crate) struct Wide<'a> {
    pub lattice: &'a Lattice,
    pub sums: Sums,
    pub source: Side<'a>,
    pub weights: Weights<'a>,
    /// Products are exact in f64.
    pub fused: bool,
}

/// The filters of one part, packed.
struct Packed<T> {
    /// `[group, block, step, lane]`.
    values: Vec<T>,
    /// What a step sees from a position on.
    offsets: Vec<usize>,
    reach: usize,
}

impl Wide<'_> {
    /// The result, `[N, G·K, plane]`.
    pub fn run<T: Lane>(&self, out: &mut [T]) {
        let sums = &self.sums;
        let steps = sums.channels
            * self
                .lattice
                .parts
                .iter()
                .map(|p| p.taps.len())
                .sum::<usize>();
        if out.is_empty() || steps == 0 {
            return;
        }
        let small = !parallel::worthwhile(out.len() * steps / self.lattice.parts.len() / 8);
        let slabs = Slabs::new(self.lattice, self.slab_steps(small));
        let machine = Lanes::of::<T>();
        let widest = machine.lanes * machine.vectors;
        let per_filter = (sums.groups * steps * size_of::<T>()).max(1);
        let at_once = (PACKED / per_filter).max(1).next_multiple_of(widest);
        for first in (0..sums.filters).step_by(at_once) {
            let wanted = first..(first + at_once).min(sums.filters);
            self.filters(&slabs, machine, wanted, small, out);
        }
    }

    /// Lattice steps per slab.
    fn slab_steps(&self, small: bool) -> usize {
        let (row, halo) = Slabs::cost(self.lattice);
        let extent = Slabs::extent(self.lattice);
        let bytes = (row * self.sums.channels * size_of::<f64>()).max(1);
        let fits = (SOURCE / bytes).saturating_sub(halo).max(1);
        if small || extent <= fits {
            return extent;
        }
        // Positions enough, and slabs of about the same size.
        let row = self.sums.plane.div_ceil(extent).max(1);
        let steps = fits.max(POSITIONS.div_ceil(row)).min(extent);
        extent.div_ceil(extent.div_ceil(steps))
    }

    fn filters<T: Lane>(
        &self,
        slabs: &Slabs,
        machine: Lanes,
        wanted: std::ops::Range<usize>,
        small: bool,
        out: &mut [T],
    ) {
        let sums = &self.sums;
        let blocks = blocks(wanted.len(), machine);
        let widest = machine.lanes * machine.vectors;
        let parts: Vec<Packed<T>> = (0..self.lattice.parts.len())
            .map(|part| self.pack(slabs, part, &blocks, wanted.start))
            .collect();
        let positions = slabs
            .slabs
            .iter()
            .map(|slab| slab.result.len())
            .max()
            .unwrap_or(1);
        // Images per job, then filters per job.
        let together = if slabs.slabs.len() > 1 {
            1
        } else {
            let bytes = sums.channels * slabs.pitch * size_of::<f64>();
            (SOURCE / bytes.max(1))
                .clamp(1, sums.batch)
                .min((2 * POSITIONS).div_ceil(positions))
        };
        let jobs = (sums.batch * sums.groups * slabs.slabs.len()).div_ceil(together);
        let most = (RESULT / (positions * together * size_of::<T>())).max(1);
        let mut step = most.max(widest) / widest * widest;
        let jobs_wanted = 4 * rayon::current_num_threads();
        while !small && step > widest && jobs * wanted.len().div_ceil(step) < jobs_wanted {
            step = (step / 2).next_multiple_of(widest).min(step - widest);
        }
        let mut pieces = pieces(
            out,
            (sums.filters, sums.plane),
            sums.groups,
            wanted.clone(),
            step,
            &slabs.slabs,
        );
        let mut jobs: Vec<&mut [Piece<'_, T>]> = Vec::new();
        for alike in
            pieces.chunk_by_mut(|a, b| a.goes_with(b, sums.groups) && std::ptr::eq(a.slab, b.slab))
        {
            jobs.extend(alike.chunks_mut(together));
        }
        let job = |pieces: &mut [Piece<'_, T>]| {
            T::with(|scratch| self.job(slabs, &parts, (&blocks, wanted.start), scratch, pieces));
        };
        if small {
            jobs.into_iter().for_each(job);
        } else {
            jobs.into_par_iter().for_each(job);
        }
    }

    fn pack<T: Lane>(
        &self,
        slabs: &Slabs,
        part: usize,
        blocks: &[Block],
        from: usize,
    ) -> Packed<T> {
        let sums = &self.sums;
        let (weights, windows) = (&self.weights, &slabs.windows[part]);
        let offsets = slabs.offsets(part, sums.channels);
        let columns: Vec<usize> = (0..sums.channels)
            .flat_map(|c| {
                windows
                    .iter()
                    .map(move |window| c * weights.channel + window)
            })
            .collect();
        let steps = columns.len();
        let width = blocks.last().map_or(0, |block| block.start + block.width);
        let mut values = vec![T::default(); sums.groups * width * steps];
        // One run per group and block.
        let mut runs = Vec::new();
        let mut rest = &mut values[..];
        for group in 0..sums.groups {
            for block in blocks {
                let (own, others) = rest.split_at_mut(block.width * steps);
                runs.push((group, block, own));
                rest = others;
            }
        }
        let fill = |(group, block, target): (usize, &Block, &mut [T])| {
            let base = |lane: usize| group * weights.group + (from + lane) * weights.filter;
            let side = &weights.side;
            gather_mapped(block, *side, base, &columns, target);
        };
        if parallel::worthwhile(width * steps) {
            runs.into_par_iter().for_each(fill);
        } else {
            runs.into_iter().for_each(fill);
        }
        Packed {
            reach: offsets.iter().max().map_or(0, |most| most + 1),
            values,
            offsets,
        }
    }

    fn job<T: Lane>(
        &self,
        slabs: &Slabs,
        parts: &[Packed<T>],
        (blocks, from): (&[Block], usize),
        scratch: &mut Scratch<T>,
        pieces: &mut [Piece<'_, T>],
    ) {
        let sums = &self.sums;
        let image = sums.channels * slabs.pitch;
        let source = sized(&mut scratch.source, pieces.len() * image);
        for (piece, target) in pieces.iter().zip(source.chunks_exact_mut(image)) {
            self.pad(piece, target);
        }
        let (Some(first), Some(count)) = (
            pieces.first().map(|piece| piece.first - from),
            pieces.first().map(|piece| piece.planes.len()),
        ) else {
            return;
        };
        let all = blocks.last().map_or(0, |block| block.start + block.width);
        let own = |block: &&Block| (first..first + count).contains(&block.first);
        let blocks: Vec<&Block> = blocks.iter().filter(own).collect();
        let width: usize = blocks.iter().map(|block| block.width).sum();
        for (part, packed) in parts.iter().enumerate() {
            scratch.bases.clear();
            for (index, piece) in pieces.iter().enumerate() {
                for row in &piece.slab.rows[part] {
                    let at = index * image + row.at;
                    scratch.bases.extend(at..at + row.len);
                }
            }
            let columns = scratch.bases.len();
            let steps = packed.offsets.len();
            if columns == 0 || steps == 0 {
                continue;
            }
            let all_sums = sized(&mut scratch.sums, width * columns);
            let group = pieces[0].image % sums.groups;
            let group = &packed.values[group * all * steps..(group + 1) * all * steps];
            let widest = blocks.iter().map(|block| block.width).max().unwrap_or(1);
            let at_once = (STRIP / (widest * size_of::<T>())).max(1);
            let at_once = steps.div_ceil(steps.div_ceil(at_once));
            for from in (0..steps).step_by(at_once) {
                let run = from..(from + at_once).min(steps);
                let mut rest = &mut all_sums[..];
                for block in &blocks {
                    let (own, others) = rest.split_at_mut(block.width * columns);
                    rest = others;
                    let strip = &group[block.start * steps..][..block.width * steps];
                    Strip {
                        packed: &strip[run.start * block.width..run.end * block.width],
                        vectors: block.vectors,
                        offsets: &packed.offsets[run.clone()],
                        reach: packed.reach,
                        source,
                        bases: &scratch.bases,
                        out: own,
                        chain: if from == 0 {
                            Chain::Fresh
                        } else {
                            Chain::Continued
                        },
                        fused: self.fused,
                    }
                    .run();
                }
            }
            let step = self.lattice.parts[part].out_step;
            let mut rest = &all_sums[..];
            for block in &blocks {
                let (own, others) = rest.split_at(block.width * columns);
                rest = others;
                scatter(block, block.first - first, own, (part, step), pieces);
            }
        }
    }

    /// The padded source of a piece, `[channel, pitch]`.
    fn pad<T: Lane>(&self, piece: &Piece<'_, T>, target: &mut [T]) {
        let plane: usize = self.lattice.source.extents.iter().product();
        let image = self.sums.channels * plane;
        let values = &self.source.values[piece.image * image..][..image];
        piece.slab.fill_all(values, plane, self.source.map, target);
    }
}

/// From `[column, lane]` to the planes of the filters.
fn scatter<T: Lane>(
    block: &Block,
    first: usize,
    sums: &[T],
    (part, step): (usize, usize),
    pieces: &mut [Piece<'_, T>],
) {
    let mut column = 0;
    for piece in pieces {
        for row in &piece.slab.rows[part] {
            let sums = &sums[column * block.width..][..row.len * block.width];
            column += row.len;
            // A cache line of every plane at a time.
            for (run, sums) in sums.chunks(LINE * block.width).enumerate() {
                let out = row.out + run * LINE * step;
                for (lane, plane) in piece.planes[first..first + block.len]
                    .iter_mut()
                    .enumerate()
                {
                    line(&mut plane[out..], step, sums, lane, block.width);
                }
            }
        }
    }
}

/// Columns of sums that are written at a time.
const LINE: usize = 8;

/// One lane of up to [`LINE`] columns.
#[inline(always)]
fn line<T: Lane>(out: &mut [T], step: usize, sums: &[T], lane: usize, width: usize) {
    if step == 1
        && let Some(out) = out.first_chunk_mut::<LINE>()
        && sums.len() == LINE * width
    {
        *out = std::array::from_fn(|column| sums[column * width + lane]);
        return;
    }
    for (out, sums) in out.iter_mut().step_by(step).zip(sums.chunks_exact(width)) {
        *out = sums[lane];
    }
}
