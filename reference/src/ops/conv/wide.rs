//! fprop and dgrad of many filters: filters in the lanes of the tiles, positions in the columns.

use super::jobs::{Piece, pieces};
use super::lane::Lane;
use super::operands::Product;
use super::pack::{Rows, gather_mapped, runs};
use super::scratch::{Common, Scratch, sized};
use super::slab::Slabs;
use super::tile::{Block, Chain, Lanes, Strip, blocks};
use crate::parallel;
use rayon::prelude::*;
use std::ops::Range;

/// Bytes of the padded source that the columns of one job see at a time: half of a second-level
/// cache.
const SOURCE: usize = 512 << 10;
/// Bytes of the packed filters of a strip: what stays in a second-level cache beside the source.
const STRIP: usize = 512 << 10;
/// Steps of a strip at least, so that taking up a chain costs little.
const STEPS: usize = 256;
/// Bytes of packed filters at a time.
const PACKED: usize = 16 << 20;
/// Bytes of padded sources that several runs of filters share.
const SHARED: usize = 8 << 20;
/// Bytes of the padded source of one job.
const OWN: usize = 4 << 20;
/// Bytes of sums of one job.
const RESULT: usize = 1 << 20;
/// Positions that a job has at least, so that the filters are worth reading.
const POSITIONS: usize = 192;

/// The kernel for this product.
pub(crate) struct Wide<'a>(pub Product<'a>);

/// How one run of packed filters is worked off.
struct Plan<'a, T> {
    slabs: &'a Slabs,
    machine: Lanes,
    /// The filters of a group that are packed.
    wanted: Range<usize>,
    blocks: Vec<Block>,
    parts: Vec<Part<'a, T>>,
    /// The padded sources of all images and groups, slab by slab: `[slab, image, channel, pitch]`.
    shared: Option<&'a [T]>,
    /// Little work: on this thread alone.
    small: bool,
}

/// How the work is divided.
struct Division {
    /// Images of one job.
    together: usize,
    /// Filters of one job.
    step: usize,
    /// One job sees all images.
    alone: bool,
}

/// The steps of one part.
struct Part<'a, T> {
    /// Packed filters, `[group, block, step, lane]`; `None` where a job packs its own, because no
    /// other job needs them.
    filters: Option<&'a [T]>,
    /// Where a step's weight lies, from the filter's start on.
    places: Vec<usize>,
    /// What a step sees from a position on.
    offsets: Vec<usize>,
    reach: usize,
}

impl Wide<'_> {
    /// The result, `[N, G·K, plane]`.
    pub fn run<T: Lane>(&self, out: &mut [T]) {
        let Product { sums, lattice, .. } = &self.0;
        let taps: usize = lattice.parts.iter().map(|part| part.taps.len()).sum();
        let steps = sums.channels * taps;
        if out.is_empty() || steps == 0 {
            out.fill(T::default());
            return;
        }
        let small = !parallel::worthwhile(out.len() * steps / lattice.parts.len() / 8);
        let slabs = Slabs::new(lattice, self.slab_steps(small));
        let machine = Lanes::of::<T>();
        let widest = machine.lanes * machine.vectors;
        let per_filter = (sums.groups * steps * size_of::<T>()).max(1);
        let at_once = (PACKED / per_filter).max(1).next_multiple_of(widest);
        T::with_common(|common| {
            for first in (0..sums.filters).step_by(at_once) {
                let wanted = first..(first + at_once).min(sums.filters);
                self.filters((&slabs, machine, small), wanted, common, out);
            }
        });
    }

    /// Lattice steps per slab.
    fn slab_steps(&self, small: bool) -> usize {
        let Product { sums, lattice, .. } = &self.0;
        let (row, halo) = Slabs::cost(lattice);
        let extent = Slabs::extent(lattice);
        let bytes = (row * sums.channels * size_of::<f64>()).max(1);
        let fits = (SOURCE / bytes).saturating_sub(halo).max(1);
        if small || extent <= fits {
            return extent;
        }
        // Positions enough, and slabs of about the same size.
        let row = sums.plane.div_ceil(extent).max(1);
        let steps = fits.max(POSITIONS.div_ceil(row)).min(extent);
        extent.div_ceil(extent.div_ceil(steps))
    }

    fn filters<T: Lane>(
        &self,
        (slabs, machine, small): (&Slabs, Lanes, bool),
        wanted: Range<usize>,
        common: &mut Common<T>,
        out: &mut [T],
    ) {
        let sums = &self.0.sums;
        let Division {
            together,
            step,
            alone,
        } = self.division::<T>(slabs, machine, wanted.len(), small);
        let blocks = blocks(wanted.len(), machine);
        let mut parts: Vec<Part<'_, T>> = (0..slabs.windows.len())
            .map(|part| self.part(slabs, part))
            .collect();
        if !alone {
            self.pack(
                &blocks,
                wanted.start,
                small,
                &mut parts,
                &mut common.filters,
            );
        }
        let mut pieces = pieces(
            out,
            (sums.filters, sums.plane),
            sums.groups,
            wanted.clone(),
            step,
            &slabs.slabs,
        );
        let all_sources = slabs.slabs.len() * sums.batch * sums.groups * self.image(slabs);
        let several = wanted.len() > step && all_sources * size_of::<T>() <= SHARED;
        let shared = several.then(|| {
            let sources = sized(&mut common.source, all_sources);
            self.share(slabs, small, sources);
            &*sources
        });
        let plan = Plan {
            slabs,
            machine,
            wanted,
            blocks,
            parts,
            shared,
            small,
        };
        let mut jobs: Vec<&mut [Piece<'_, T>]> = Vec::new();
        for alike in
            pieces.chunk_by_mut(|a, b| a.goes_with(b, sums.groups) && std::ptr::eq(a.slab, b.slab))
        {
            jobs.extend(alike.chunks_mut(together));
        }
        let job = |pieces: &mut [Piece<'_, T>]| {
            T::with(|scratch| self.job(&plan, scratch, pieces));
        };
        if plan.small {
            jobs.into_iter().for_each(job);
        } else {
            jobs.into_par_iter().for_each(job);
        }
    }

    fn division<T: Lane>(
        &self,
        slabs: &Slabs,
        machine: Lanes,
        filters: usize,
        small: bool,
    ) -> Division {
        let sums = &self.0.sums;
        let widest = machine.lanes * machine.vectors;
        let positions = slabs.slabs.iter().map(|slab| slab.result.len()).max();
        let positions = positions.unwrap_or(1).max(1);
        let together = if slabs.slabs.len() > 1 {
            1
        } else {
            let bytes = self.image(slabs) * size_of::<T>();
            let most = (2 * POSITIONS).div_ceil(positions);
            (OWN / bytes.max(1)).min(most).clamp(1, sums.batch)
        };
        let jobs = sums.batch.div_ceil(together) * sums.groups * slabs.slabs.len();
        let wanted = if small {
            1
        } else {
            (4 * rayon::current_num_threads()).div_ceil(jobs)
        };
        let bytes = filters * positions * together * size_of::<T>();
        let runs = wanted.max(bytes.div_ceil(RESULT));
        Division {
            together,
            step: filters.div_ceil(runs).next_multiple_of(widest),
            alone: jobs == sums.groups,
        }
    }

    /// Elements of the padded source of one image and group.
    fn image(&self, slabs: &Slabs) -> usize {
        self.0.sums.channels * slabs.pitch
    }

    fn part<T>(&self, slabs: &Slabs, part: usize) -> Part<'static, T> {
        let Product { sums, weights, .. } = &self.0;
        let offsets = slabs.offsets(part, sums.channels);
        let places = (0..sums.channels).flat_map(|channel| {
            let first = channel * weights.channel;
            slabs.windows[part].iter().map(move |window| first + window)
        });
        Part {
            filters: None,
            places: places.collect(),
            reach: offsets.iter().max().map_or(0, |most| most + 1),
            offsets,
        }
    }

    /// Where the lanes of a group find their weights.
    fn rows(&self, group: usize, from: usize) -> Rows {
        let weights = &self.0.weights;
        Rows {
            start: group * weights.group + from * weights.filter,
            stride: weights.filter,
        }
    }

    fn pack<'c, T: Lane>(
        &self,
        blocks: &[Block],
        from: usize,
        small: bool,
        parts: &mut [Part<'c, T>],
        buffer: &'c mut Vec<T>,
    ) {
        let Product { sums, weights, .. } = &self.0;
        let width = blocks.last().map_or(0, |block| block.start + block.width);
        let steps: usize = parts.iter().map(|part| part.places.len()).sum();
        let mut rest = sized(buffer, sums.groups * width * steps);
        for part in parts {
            let steps = part.places.len();
            let (own, others) = rest.split_at_mut(sums.groups * width * steps);
            rest = others;
            let runs = runs(part.places.iter().copied());
            let mut targets = Vec::new();
            let mut left = &mut own[..];
            for group in 0..sums.groups {
                for block in blocks {
                    let (own, others) = left.split_at_mut(block.width * steps);
                    targets.push((group, block, own));
                    left = others;
                }
            }
            let fill = |(group, block, target): (usize, &Block, &mut [T])| {
                gather_mapped(block, weights.side, self.rows(group, from), &runs, target);
            };
            if small || !parallel::worthwhile(width * steps) {
                targets.into_iter().for_each(fill);
            } else {
                targets.into_par_iter().for_each(fill);
            }
            part.filters = Some(own);
        }
    }

    /// Pads the sources of all images and groups, slab by slab.
    fn share<T: Lane>(&self, slabs: &Slabs, small: bool, sources: &mut [T]) {
        let sums = &self.0.sums;
        let images = sums.batch * sums.groups;
        let pad = |(index, target): (usize, &mut [T])| {
            self.pad(slabs, (index / images, index % images), target);
        };
        let targets = sources.chunks_exact_mut(self.image(slabs).max(1));
        if small {
            targets.enumerate().for_each(pad);
        } else {
            let targets: Vec<&mut [T]> = targets.collect();
            targets.into_par_iter().enumerate().for_each(pad);
        }
    }

    /// The padded source of an image and group on a slab, `[channel, pitch]`.
    fn pad<T: Lane>(&self, slabs: &Slabs, (slab, image): (usize, usize), target: &mut [T]) {
        let Product {
            lattice,
            source,
            sums,
            ..
        } = &self.0;
        let plane: usize = lattice.source.extents.iter().product();
        let values = sums.channels * plane;
        let values = &source.values[image * values..][..values];
        slabs.slabs[slab].fill_all(values, plane, source.map, target);
    }

    fn job<T: Lane>(
        &self,
        plan: &Plan<'_, T>,
        scratch: &mut Scratch<T>,
        pieces: &mut [Piece<'_, T>],
    ) {
        let Product { sums, lattice, .. } = &self.0;
        let slabs = plan.slabs;
        let image = self.image(slabs);
        let Some(first) = pieces.first() else {
            return;
        };
        let (group, slab) = (first.image % sums.groups, first.index);
        let filters = first.first - plan.wanted.start;
        let filters = filters..filters + first.planes.len();
        // Where each piece's source starts.
        let (source, starts): (&[T], Vec<usize>) = match plan.shared {
            Some(shared) => {
                let start =
                    |piece: &Piece<'_, T>| (slab * sums.batch * sums.groups + piece.image) * image;
                (shared, pieces.iter().map(start).collect())
            }
            None => {
                let source = sized(&mut scratch.source, pieces.len() * image);
                for (piece, target) in pieces.iter().zip(source.chunks_exact_mut(image)) {
                    self.pad(slabs, (slab, piece.image), target);
                }
                (
                    source,
                    (0..pieces.len()).map(|index| index * image).collect(),
                )
            }
        };
        let own = |block: &&Block| filters.contains(&block.first);
        let blocks: Vec<&Block> = plan.blocks.iter().filter(own).collect();
        let width: usize = blocks.iter().map(|block| block.width).sum();
        for (part, packed) in plan.parts.iter().enumerate() {
            scratch.bases.clear();
            for (piece, start) in pieces.iter().zip(&starts) {
                for row in &piece.slab.rows[part] {
                    scratch
                        .bases
                        .extend(start + row.at..start + row.at + row.len);
                }
            }
            let columns = scratch.bases.len();
            if packed.offsets.is_empty() {
                clear((part, lattice.parts[part].out_step), pieces);
            }
            if columns == 0 || packed.offsets.is_empty() {
                continue;
            }
            let all_sums = sized(&mut scratch.sums, width * columns);
            let at_once = self.steps_at_once::<T>(plan, (part, pieces.len()));
            self.strips(
                plan,
                (packed, group, at_once),
                (source, &scratch.bases),
                (&blocks, &mut scratch.packed),
                all_sums,
            );
            let step = lattice.parts[part].out_step;
            let mut rest = &all_sums[..];
            for block in &blocks {
                let (own, others) = rest.split_at(block.width * columns);
                rest = others;
                scatter(
                    block,
                    block.first - filters.start,
                    own,
                    (part, step),
                    pieces,
                );
            }
        }
    }

    /// Steps whose filters and sources stay in a second-level cache, in runs of about the same
    /// length.
    fn steps_at_once<T: Lane>(&self, plan: &Plan<'_, T>, (part, images): (usize, usize)) -> usize {
        let steps = plan.parts[part].offsets.len();
        let widest = plan.machine.lanes * plan.machine.vectors;
        let strip = STRIP / (widest * size_of::<T>());
        let channel = images * plan.slabs.pitch * size_of::<T>();
        let seen = SOURCE * plan.slabs.windows[part].len() / channel.max(1);
        let most = strip.min(seen).max(STEPS);
        steps.div_ceil(steps.div_ceil(most))
    }

    /// The sums of one part, `[block, column, lane]`, some steps at a time.
    fn strips<T: Lane>(
        &self,
        plan: &Plan<'_, T>,
        (part, group, at_once): (&Part<'_, T>, usize, usize),
        (source, bases): (&[T], &[usize]),
        (blocks, buffer): (&[&Block], &mut Vec<T>),
        sums: &mut [T],
    ) {
        let steps = part.offsets.len();
        let width = plan
            .blocks
            .last()
            .map_or(0, |block| block.start + block.width);
        let filters = part
            .filters
            .map(|filters| &filters[group * width * steps..][..width * steps]);
        for from in (0..steps).step_by(at_once) {
            let run = from..(from + at_once).min(steps);
            let places = runs(part.places[run.clone()].iter().copied());
            let mut rest = &mut *sums;
            for block in blocks {
                let (own, others) = rest.split_at_mut(block.width * bases.len());
                rest = others;
                let packed = match filters {
                    Some(filters) => {
                        let strip = &filters[block.start * steps..][..block.width * steps];
                        &strip[run.start * block.width..run.end * block.width]
                    }
                    None => {
                        let rows = self.rows(group, plan.wanted.start);
                        let target = sized(buffer, block.width * run.len());
                        gather_mapped(block, self.0.weights.side, rows, &places, target);
                        &*target
                    }
                };
                Strip {
                    packed,
                    vectors: block.vectors,
                    offsets: &part.offsets[run.clone()],
                    reach: part.reach,
                    source,
                    bases,
                    out: own,
                    pitch: block.width,
                    chain: if from == 0 {
                        Chain::Fresh
                    } else {
                        Chain::Continued
                    },
                    fused: self.0.fused,
                }
                .run();
            }
        }
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

/// Zeros where no tap reaches.
fn clear<T: Lane>((part, step): (usize, usize), pieces: &mut [Piece<'_, T>]) {
    for piece in pieces {
        for row in &piece.slab.rows[part] {
            for plane in &mut piece.planes {
                let out = plane[row.out..].iter_mut().step_by(step).take(row.len);
                out.for_each(|out| *out = T::default());
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
