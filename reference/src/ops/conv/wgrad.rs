//! wgrad with wide tiles: filters in the lanes and (channel, tap) in the columns, or, where the
//! filter has one tap, channels in the lanes and filters in the columns.
//!
//! The order is a fixed tree: the terms of a chunk (see [`Chunks`]) in one chain over (image,
//! position) ascending; the sums of the chunks in ascending order.

use super::Sums;
use super::chunks::Chunks;
use super::lane::Lane;
use super::lattice::Lattice;
use super::map::Side;
use super::pack::{gather, gather_mapped};
use super::scratch::{Scratch, sized};
use super::slab::Slab;
use super::tile::{Block, Chain, Lanes, Strip, blocks};
use crate::parallel;
use rayon::prelude::*;
use std::ops::Range;

/// Positions of a chunk.
const CHUNK: usize = 768;
/// Fewer lanes than this are left to [`super::lanes`].
const LEAST: usize = 8;
/// Bytes of sums of one job.
const RESULT: usize = 1 << 20;

/// dw = dy · x over batch and positions.
pub(crate) struct Wgrad<'a> {
    /// That of fprop.
    pub lattice: &'a Lattice,
    pub sums: Sums,
    pub dy: Side<'a>,
    pub x: Side<'a>,
    /// Products are exact in f64.
    pub fused: bool,
}

/// What stands in the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InLanes {
    Filters,
    Channels,
}

/// Some filters × channels of one group.
struct Job<'a, T> {
    group: usize,
    filters: Range<usize>,
    channels: Range<usize>,
    /// Per filter, `[channel, tap]`.
    dw: Vec<&'a mut [T]>,
}

impl Wgrad<'_> {
    /// Whether the shape suits these tiles.
    pub fn suits(sums: &Sums, taps: usize) -> bool {
        sums.filters >= LEAST || taps == 1 && sums.channels >= LEAST
    }

    /// dw `[G·K, C, R…]`.
    pub fn run<T: Lane>(&self, dw: &mut [T]) {
        let sums = &self.sums;
        let taps = self.lattice.parts[0].taps.len();
        if dw.is_empty() || taps == 0 || sums.plane == 0 {
            return;
        }
        let chunks = Chunks::new(self.lattice, sums.batch, sums.plane, CHUNK);
        let in_lanes = if taps == 1 && sums.channels >= LEAST {
            InLanes::Channels
        } else {
            InLanes::Filters
        };
        let machine = Lanes::of::<T>();
        let small = !parallel::worthwhile(dw.len() * sums.batch * sums.plane / 8);
        let jobs = self.jobs(dw, taps, machine.lanes * machine.vectors, in_lanes, small);
        let run = |job: Job<'_, T>| {
            T::with(|scratch| self.job(&chunks, machine, in_lanes, scratch, job));
        };
        if small {
            jobs.into_iter().for_each(run);
        } else {
            jobs.into_par_iter().for_each(run);
        }
    }

    /// Enough jobs for every thread; each lays out its own filters and channels anew, so not more.
    fn jobs<'b, T>(
        &self,
        dw: &'b mut [T],
        taps: usize,
        widest: usize,
        in_lanes: InLanes,
        small: bool,
    ) -> Vec<Job<'b, T>> {
        let sums = &self.sums;
        let bytes = sums.filters * sums.channels * taps * size_of::<T>();
        let threads = if small {
            1
        } else {
            rayon::current_num_threads()
        };
        let wanted = (2 * threads)
            .div_ceil(sums.groups)
            .max(bytes.div_ceil(RESULT));
        let wanted = if small {
            bytes.div_ceil(RESULT)
        } else {
            wanted
        };
        let (lanes, others) = match in_lanes {
            InLanes::Filters => (sums.filters, sums.channels),
            InLanes::Channels => (sums.channels, sums.filters),
        };
        let lane_runs = lanes.div_ceil(widest).min(wanted);
        let lane_step = lanes.div_ceil(lane_runs).next_multiple_of(widest);
        let other_runs = wanted.div_ceil(lanes.div_ceil(lane_step)).min(others);
        let other_step = others.div_ceil(other_runs);
        let (filter_step, channel_step) = match in_lanes {
            InLanes::Filters => (lane_step, other_step),
            InLanes::Channels => (other_step, lane_step),
        };
        let mut jobs: Vec<Job<'b, T>> = Vec::new();
        for (group, dw) in dw
            .chunks_exact_mut(sums.filters * sums.channels * taps)
            .enumerate()
        {
            for (run, dw) in dw
                .chunks_mut(filter_step * sums.channels * taps)
                .enumerate()
            {
                let first = jobs.len();
                let from = run * filter_step;
                let filters = from..(from + filter_step).min(sums.filters);
                jobs.extend((0..sums.channels).step_by(channel_step).map(|from| Job {
                    group,
                    filters: filters.clone(),
                    channels: from..(from + channel_step).min(sums.channels),
                    dw: Vec::with_capacity(filters.len()),
                }));
                for row in dw.chunks_exact_mut(sums.channels * taps) {
                    let runs = row.chunks_mut(channel_step * taps);
                    jobs[first..]
                        .iter_mut()
                        .zip(runs)
                        .for_each(|(job, own)| job.dw.push(own));
                }
            }
        }
        jobs
    }

    fn job<T: Lane>(
        &self,
        chunks: &Chunks,
        machine: Lanes,
        in_lanes: InLanes,
        scratch: &mut Scratch<T>,
        job: Job<'_, T>,
    ) {
        let shifts = &chunks.slabs.shifts[0];
        let lanes = match in_lanes {
            InLanes::Filters => job.filters.len(),
            InLanes::Channels => job.channels.len(),
        };
        let blocks = blocks(lanes, machine);
        let width: usize = blocks.iter().map(|block| block.width).sum();
        let columns = match in_lanes {
            InLanes::Filters => job.channels.len() * shifts.len(),
            InLanes::Channels => job.filters.len(),
        };
        let mut sums = std::mem::take(&mut scratch.sums);
        let all_sums = sized(&mut sums, width * columns);
        for (index, (images, slab)) in chunks.iter().enumerate() {
            self.pad(chunks, &images, slab, &job, &mut scratch.source);
            let image = job.channels.len() * chunks.slabs.pitch;
            // Where each step of the chunk finds x.
            let seen: Vec<usize> = (0..images.len())
                .flat_map(|i| {
                    let rows = slab.rows[0].iter();
                    rows.flat_map(move |row| (0..row.len).map(move |j| i * image + row.at + j))
                })
                .collect();
            sized(&mut scratch.packed, width * seen.len());
            let (offsets, bases): (Vec<usize>, Vec<usize>) = match in_lanes {
                InLanes::Filters => {
                    self.filters(&images, slab, &blocks, &job, &mut scratch.packed);
                    let channel = |c: usize| {
                        shifts
                            .iter()
                            .map(move |shift| c * chunks.slabs.pitch + shift)
                    };
                    (seen, (0..job.channels.len()).flat_map(channel).collect())
                }
                InLanes::Channels => {
                    let steps = seen.len();
                    let x = (&seen[..], shifts[0], chunks.slabs.pitch);
                    self.channels(&images, slab, &blocks, &job, x, scratch);
                    (
                        (0..steps).collect(),
                        (0..columns).map(|f| f * steps).collect(),
                    )
                }
            };
            let steps = offsets.len();
            let mut rest = &mut all_sums[..];
            for block in &blocks {
                let (own, others) = rest.split_at_mut(block.width * columns);
                rest = others;
                Strip {
                    packed: &scratch.packed[block.start * steps..][..block.width * steps],
                    vectors: block.vectors,
                    offsets: &offsets,
                    reach: offsets.last().map_or(0, |last| last + 1),
                    source: match in_lanes {
                        InLanes::Filters => &scratch.source,
                        InLanes::Channels => &scratch.other,
                    },
                    bases: &bases,
                    out: own,
                    chain: if index == 0 {
                        Chain::Fresh
                    } else {
                        Chain::Added
                    },
                    fused: self.fused,
                }
                .run();
            }
        }
        write(&blocks, all_sums, columns, in_lanes, job.dw);
        scratch.sums = sums;
    }

    /// x of the job's channels, `[image, channel, pitch]`.
    fn pad<T: Lane>(
        &self,
        chunks: &Chunks,
        images: &Range<usize>,
        slab: &Slab,
        job: &Job<'_, T>,
        target: &mut Vec<T>,
    ) {
        let plane: usize = self.lattice.source.extents.iter().product();
        let pitch = chunks.slabs.pitch;
        let target = sized(target, images.len() * job.channels.len() * pitch);
        let count = job.channels.len();
        for (image, target) in images
            .clone()
            .zip(target.chunks_exact_mut((count * pitch).max(1)))
        {
            let first = (image * self.sums.groups + job.group) * self.sums.channels;
            let values = &self.x.values[(first + job.channels.start) * plane..][..count * plane];
            slab.fill_all(values, plane, self.x.map, target);
        }
    }

    /// Packs dy for filters in the lanes.
    fn filters<T: Lane>(
        &self,
        images: &Range<usize>,
        slab: &Slab,
        blocks: &[Block],
        job: &Job<'_, T>,
        packed: &mut [T],
    ) {
        let sums = &self.sums;
        let image = sums.groups * sums.filters * sums.plane;
        let columns: Vec<usize> = images
            .clone()
            .flat_map(|i| {
                slab.result
                    .clone()
                    .map(move |position| i * image + position)
            })
            .collect();
        let first = job.group * sums.filters + job.filters.start;
        for block in blocks {
            let target = &mut packed[block.start * columns.len()..][..block.width * columns.len()];
            let base = |lane: usize| (first + lane) * sums.plane;
            gather_mapped(block, self.dy, base, &columns, target);
        }
    }

    /// Packs x for channels in the lanes, and lays out dy of the job's filters.
    fn channels<T: Lane>(
        &self,
        images: &Range<usize>,
        slab: &Slab,
        blocks: &[Block],
        job: &Job<'_, T>,
        (seen, shift, pitch): (&[usize], usize, usize),
        scratch: &mut Scratch<T>,
    ) {
        for block in blocks {
            let target =
                &mut scratch.packed[block.start * seen.len()..][..block.width * seen.len()];
            let base = |lane: usize| lane * pitch + shift;
            gather(block, &scratch.source, |value| value, base, seen, target);
        }
        let sums = &self.sums;
        let dy = sized(&mut scratch.other, job.filters.len() * seen.len());
        let runs = dy.chunks_exact_mut(slab.result.len());
        let rows = job.filters.clone().flat_map(|filter| {
            let row = move |image: usize| (image * sums.groups + job.group) * sums.filters + filter;
            images.clone().map(row)
        });
        for (row, target) in rows.zip(runs) {
            let values = &self.dy.values[row * sums.plane..][slab.result.clone()];
            self.dy.map.copy(values, 1, target);
        }
    }
}

/// From `[block, column, lane]` to dw.
fn write<T: Lane>(
    blocks: &[Block],
    sums: &[T],
    columns: usize,
    in_lanes: InLanes,
    mut dw: Vec<&mut [T]>,
) {
    for block in blocks {
        let sums = &sums[block.start * columns..][..block.width * columns];
        let sums = sums.chunks_exact(block.width);
        let lanes = block.first..block.first + block.len;
        match in_lanes {
            InLanes::Filters => {
                for (lane, dw) in dw[lanes].iter_mut().enumerate() {
                    for (dw, sums) in dw.iter_mut().zip(sums.clone()) {
                        *dw = sums[lane];
                    }
                }
            }
            InLanes::Channels => {
                for (dw, sums) in dw.iter_mut().zip(sums) {
                    dw[lanes.clone()].copy_from_slice(&sums[..block.len]);
                }
            }
        }
    }
}
