//! wgrad with wide tiles: filters in the lanes and (channel, tap) in the columns, or, where the
//! filter has one tap, channels in the lanes and filters in the columns.
//!
//! The order is a fixed tree: the terms of a chunk (see [`Chunks`]) in one chain over (image,
//! position) ascending; the sums of the chunks in ascending order.

use super::chunks::Chunks;
use super::lane::Lane;
use super::operands::{Gradient, Sums};
use super::pack::{Rows, gather, gather_mapped, runs};
use super::scratch::{Scratch, sized};
use super::slab::Slab;
use super::tile::{Block, Chain, Lanes, Strip, blocks};
use crate::parallel::{self, vectorised};
use rayon::prelude::*;
use std::ops::Range;

/// Positions of a chunk.
const CHUNK: usize = 768;
/// Fewer lanes than this are left to [`super::lanes`].
const LEAST: usize = 8;
/// Bytes of packed channels that all jobs share.
const SHARED: usize = 8 << 20;
/// Bytes of sums of one job.
const RESULT: usize = 1 << 20;

/// The kernel for this gradient.
pub(crate) struct Wgrad<'a>(pub Gradient<'a>);

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
    dw: Target<'a, T>,
}

/// The elements of dw that a job computes.
enum Target<'a, T> {
    /// Per filter, `[channel, tap]` of some channels.
    Rows(Vec<&'a mut [T]>),
    /// `[filter, channel]` of all channels, in whole vectors: tiles write them themselves.
    Whole(&'a mut [T]),
}

/// How the work is divided.
#[derive(Clone, Copy, Debug)]
struct Division {
    in_lanes: InLanes,
    machine: Lanes,
    /// Filters and channels of one job.
    filters: usize,
    channels: usize,
    /// Tiles can write whole vectors of channels.
    whole: bool,
}

/// The operands of one chunk as its tiles read them, but for the packed lanes.
struct Columns {
    /// What each step sees from a column's start on.
    offsets: Vec<usize>,
    /// Where each column starts.
    bases: Vec<usize>,
}

impl Wgrad<'_> {
    /// Whether the shape suits these tiles.
    pub fn suits(sums: &Sums, taps: usize) -> bool {
        sums.filters >= LEAST || taps == 1 && sums.channels >= LEAST
    }

    /// dw `[G·K, C, R…]`.
    pub fn run<T: Lane>(&self, dw: &mut [T]) {
        let Gradient { sums, lattice, .. } = &self.0;
        let taps = lattice.parts[0].taps.len();
        if dw.is_empty() || taps == 0 || sums.plane == 0 {
            dw.fill(T::default());
            return;
        }
        let chunks = Chunks::new(lattice, sums.batch, sums.plane, CHUNK);
        let small = !parallel::worthwhile(dw.len() * sums.batch * sums.plane / 8);
        let division = self.division::<T>(taps, small);
        let jobs = self.jobs(dw, taps, division);
        T::with_common(|common| {
            let several = division.whole && division.filters < sums.filters;
            let shared = several.then(|| self.share(&chunks, division, small, &mut common.source));
            let shared = shared.flatten();
            let run = |job: Job<'_, T>| {
                T::with(|scratch| self.job((&chunks, shared), division, scratch, job));
            };
            if small {
                jobs.into_iter().for_each(run);
            } else {
                jobs.into_par_iter().for_each(run);
            }
        });
    }

    /// The channels of every chunk and group as the lanes of tiles, `[chunk, group, block, step, lane]`,
    /// for all jobs; `None` where that is too much.
    fn share<'c, T: Lane>(
        &self,
        chunks: &Chunks,
        division: Division,
        small: bool,
        buffer: &'c mut Vec<T>,
    ) -> Option<&'c [T]> {
        let sums = &self.0.sums;
        let blocks = blocks(sums.channels, division.machine);
        // All channels fill whole vectors.
        let steps: usize = chunks
            .iter()
            .map(|(images, slab)| chunk_len(&images, slab))
            .sum();
        let len = sums.groups * sums.channels * steps;
        if len * size_of::<T>() > SHARED {
            return None;
        }
        let buffer = sized(buffer, len);
        let mut targets = Vec::new();
        let mut rest = &mut *buffer;
        for (images, slab) in chunks.iter() {
            for group in 0..sums.groups {
                for block in &blocks {
                    let len = block.width * chunk_len(&images, slab);
                    let (own, others) = rest.split_at_mut(len);
                    targets.push((images.clone(), slab, group, *block, own));
                    rest = others;
                }
            }
        }
        let fill = |(images, slab, group, block, target): (_, _, _, _, &mut [T])| {
            self.pack_block((chunks, &images, slab), (group, block), target);
        };
        if small {
            targets.into_iter().for_each(fill);
        } else {
            targets.into_par_iter().for_each(fill);
        }
        Some(buffer)
    }

    /// One block of a group's channels in one chunk, `[step, lane]`.
    fn pack_block<T: Lane>(
        &self,
        at: (&Chunks, &Range<usize>, &Slab),
        (group, block): (usize, Block),
        target: &mut [T],
    ) {
        let (chunks, images, slab) = at;
        let channels = block.first..block.first + block.len;
        let alone = Block {
            first: 0,
            start: 0,
            ..block
        };
        T::with(|scratch| {
            let source = &mut scratch.source;
            self.pad(chunks, images, slab, (group, &channels), source);
            self.pack_channels(at, &[alone], source, target);
        });
    }

    /// Enough jobs for every thread; each lays out its own filters and channels anew, so not more.
    fn division<T: Lane>(&self, taps: usize, small: bool) -> Division {
        let sums = &self.0.sums;
        let machine = Lanes::of::<T>();
        let widest = machine.lanes * machine.vectors;
        let threads = if small {
            1
        } else {
            rayon::current_num_threads()
        };
        let wanted = if small { 1 } else { 2 * threads }.div_ceil(sums.groups);
        if taps == 1 && sums.channels >= LEAST {
            // Channels are packed anew by every job, but filters only copied: many of these.
            let filters = sums.filters.div_ceil(wanted).max(widest).min(sums.filters);
            let runs = wanted.div_ceil(sums.filters.div_ceil(filters));
            let whole = runs == 1 && sums.channels.is_multiple_of(machine.lanes);
            let bytes = filters * sums.channels * size_of::<T>();
            let runs = if whole {
                1
            } else {
                runs.max(bytes.div_ceil(RESULT))
            };
            return Division {
                in_lanes: InLanes::Channels,
                machine,
                filters,
                channels: sums.channels.div_ceil(runs).next_multiple_of(widest),
                whole,
            };
        }
        let bytes = sums.filters * sums.channels * taps * size_of::<T>();
        let wanted = wanted.max(bytes.div_ceil(RESULT));
        let runs = sums.filters.div_ceil(widest).min(wanted);
        let filters = sums.filters.div_ceil(runs).next_multiple_of(widest);
        let runs = wanted
            .div_ceil(sums.filters.div_ceil(filters))
            .min(sums.channels);
        Division {
            in_lanes: InLanes::Filters,
            machine,
            filters,
            channels: sums.channels.div_ceil(runs),
            whole: false,
        }
    }

    fn jobs<'b, T>(&self, dw: &'b mut [T], taps: usize, division: Division) -> Vec<Job<'b, T>> {
        let sums = &self.0.sums;
        let row = sums.channels * taps;
        let mut jobs: Vec<Job<'b, T>> = Vec::new();
        for (group, dw) in dw.chunks_exact_mut(sums.filters * row).enumerate() {
            for (run, dw) in dw.chunks_mut(division.filters * row).enumerate() {
                let from = run * division.filters;
                let filters = from..from + dw.len() / row;
                if division.whole {
                    jobs.push(Job {
                        group,
                        filters,
                        channels: 0..sums.channels,
                        dw: Target::Whole(dw),
                    });
                    continue;
                }
                let starts = (0..sums.channels).step_by(division.channels);
                let mut rows: Vec<Vec<&mut [T]>> = starts.clone().map(|_| Vec::new()).collect();
                for row in dw.chunks_exact_mut(row) {
                    let runs = row.chunks_mut(division.channels * taps);
                    rows.iter_mut()
                        .zip(runs)
                        .for_each(|(rows, own)| rows.push(own));
                }
                jobs.extend(starts.zip(rows).map(|(from, rows)| Job {
                    group,
                    filters: filters.clone(),
                    channels: from..(from + division.channels).min(sums.channels),
                    dw: Target::Rows(rows),
                }));
            }
        }
        jobs
    }

    fn job<T: Lane>(
        &self,
        (chunks, mut shared): (&Chunks, Option<&[T]>),
        division: Division,
        scratch: &mut Scratch<T>,
        mut job: Job<'_, T>,
    ) {
        let taps = chunks.slabs.shifts[0].len();
        let (lanes, columns) = match division.in_lanes {
            InLanes::Filters => (job.filters.len(), job.channels.len() * taps),
            InLanes::Channels => (job.channels.len(), job.filters.len()),
        };
        let blocks = blocks(lanes, division.machine);
        let width: usize = blocks.iter().map(|block| block.width).sum();
        let mut sums = std::mem::take(&mut scratch.sums);
        for (index, (images, slab)) in chunks.iter().enumerate() {
            let steps = chunk_len(&images, slab);
            let own = shared.map(|packed| {
                let (own, others) = packed.split_at(self.0.sums.groups * width * steps);
                shared = Some(others);
                &own[job.group * width * steps..][..width * steps]
            });
            if own.is_none() {
                let of = (job.group, &job.channels);
                self.pad(chunks, &images, slab, of, &mut scratch.source);
                sized(&mut scratch.packed, width * steps);
            }
            let at = (chunks, &images, slab);
            let columns_of = match division.in_lanes {
                InLanes::Filters => self.filters_in_lanes(at, &blocks, &job, &mut scratch.packed),
                InLanes::Channels => {
                    if own.is_none() {
                        self.pack_channels(at, &blocks, &scratch.source, &mut scratch.packed);
                    }
                    self.filters_in_columns((&images, slab), &job, &mut scratch.other)
                }
            };
            let source = match division.in_lanes {
                InLanes::Filters => &scratch.source,
                InLanes::Channels => &scratch.other,
            };
            let (out, layout): (&mut [T], _) = match &mut job.dw {
                Target::Whole(dw) => (dw, Some(width)),
                Target::Rows(_) => (sized(&mut sums, width * columns), None),
            };
            let chain = if index == 0 {
                Chain::Fresh
            } else {
                Chain::Added
            };
            self.strips(
                &blocks,
                (own.unwrap_or(&scratch.packed), source),
                &columns_of,
                (out, layout),
                chain,
            );
        }
        if let Target::Rows(dw) = job.dw {
            write(&blocks, &sums, columns, division.in_lanes, dw);
        }
        scratch.sums = sums;
    }

    /// The sums of one chunk. `layout`: elements from one column to the next, if all blocks lie side
    /// by side; else `[block, column, lane]`.
    fn strips<T: Lane>(
        &self,
        blocks: &[Block],
        (packed, source): (&[T], &[T]),
        columns: &Columns,
        (out, layout): (&mut [T], Option<usize>),
        chain: Chain,
    ) {
        let steps = columns.offsets.len();
        for block in blocks {
            // A tile writes as many columns as its slice has room for.
            let count = columns.bases.len();
            let (own, pitch) = match layout {
                Some(pitch) => (&mut out[block.start..], pitch),
                None => {
                    let own = &mut out[block.start * count..][..block.width * count];
                    (own, block.width)
                }
            };
            Strip {
                packed: &packed[block.start * steps..][..block.width * steps],
                vectors: block.vectors,
                offsets: &columns.offsets,
                reach: columns.offsets.last().map_or(0, |last| last + 1),
                source,
                bases: &columns.bases,
                out: own,
                pitch,
                chain,
                fused: self.0.fused,
            }
            .run();
        }
    }

    /// x of some channels of a group, `[image, channel, pitch]`.
    fn pad<T: Lane>(
        &self,
        chunks: &Chunks,
        images: &Range<usize>,
        slab: &Slab,
        (group, channels): (usize, &Range<usize>),
        target: &mut Vec<T>,
    ) {
        let Gradient {
            sums, lattice, x, ..
        } = &self.0;
        let plane: usize = lattice.source.extents.iter().product();
        let pitch = chunks.slabs.pitch;
        let count = channels.len();
        let target = sized(target, images.len() * count * pitch);
        for (image, target) in images
            .clone()
            .zip(target.chunks_exact_mut((count * pitch).max(1)))
        {
            let first = (image * sums.groups + group) * sums.channels;
            let values = &x.values[(first + channels.start) * plane..][..count * plane];
            slab.fill_all(values, plane, x.map, target);
        }
    }

    /// Packs dy.
    fn filters_in_lanes<T: Lane>(
        &self,
        (chunks, images, slab): (&Chunks, &Range<usize>, &Slab),
        blocks: &[Block],
        job: &Job<'_, T>,
        packed: &mut [T],
    ) -> Columns {
        let Gradient { sums, dy, .. } = &self.0;
        let seen = steps_of(chunks, images, slab, job.channels.len());
        let image = sums.groups * sums.filters * sums.plane;
        let runs: Vec<Range<usize>> = images
            .clone()
            .map(|i| i * image + slab.result.start..i * image + slab.result.end)
            .collect();
        let rows = Rows {
            start: (job.group * sums.filters + job.filters.start) * sums.plane,
            stride: sums.plane,
        };
        for block in blocks {
            let target = &mut packed[block.start * seen.len()..][..block.width * seen.len()];
            gather_mapped(block, *dy, rows, &runs, target);
        }
        let shifts = &chunks.slabs.shifts[0];
        let channel = |c: usize| {
            let start = c * chunks.slabs.pitch;
            shifts.iter().map(move |shift| start + shift)
        };
        Columns {
            offsets: seen,
            bases: (0..job.channels.len()).flat_map(channel).collect(),
        }
    }

    /// Packs the channels of `[image, channel, pitch]`, all of which are in the blocks.
    fn pack_channels<T: Lane>(
        &self,
        (chunks, images, slab): (&Chunks, &Range<usize>, &Slab),
        blocks: &[Block],
        source: &[T],
        packed: &mut [T],
    ) {
        let rows = Rows {
            start: chunks.slabs.shifts[0][0],
            stride: chunks.slabs.pitch,
        };
        let channels = blocks.iter().map(|block| block.len).sum();
        let seen = steps_of(chunks, images, slab, channels);
        let runs = runs(seen.iter().copied());
        for block in blocks {
            let target = &mut packed[block.start * seen.len()..][..block.width * seen.len()];
            vectorised(|| gather(block, source, |value| value, rows, &runs, target));
        }
    }

    /// Lays out dy of the job's filters.
    fn filters_in_columns<T: Lane>(
        &self,
        (images, slab): (&Range<usize>, &Slab),
        job: &Job<'_, T>,
        target: &mut Vec<T>,
    ) -> Columns {
        let Gradient { sums, dy, .. } = &self.0;
        let steps = chunk_len(images, slab);
        let positions = slab.result.len();
        let targets = sized(target, job.filters.len() * steps);
        let places = job.filters.clone().flat_map(|filter| {
            let row = move |image: usize| (image * sums.groups + job.group) * sums.filters + filter;
            images.clone().map(row)
        });
        vectorised(|| {
            for (row, target) in places.zip(targets.chunks_exact_mut(positions)) {
                let values = &dy.values[row * sums.plane..][slab.result.clone()];
                dy.map.copy(values, 1, target);
            }
        });
        Columns {
            offsets: (0..steps).collect(),
            bases: (0..job.filters.len()).map(|f| f * steps).collect(),
        }
    }
}

/// Steps of a chunk.
fn chunk_len(images: &Range<usize>, slab: &Slab) -> usize {
    let rows = slab.rows[0].iter().map(|row| row.len);
    images.len() * rows.sum::<usize>()
}

/// Where each step of a chunk finds x in `[image, channel, pitch]`.
fn steps_of(chunks: &Chunks, images: &Range<usize>, slab: &Slab, channels: usize) -> Vec<usize> {
    let image = channels * chunks.slabs.pitch;
    (0..images.len())
        .flat_map(|i| {
            let rows = slab.rows[0].iter();
            rows.flat_map(move |row| (0..row.len).map(move |j| i * image + row.at + j))
        })
        .collect()
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
