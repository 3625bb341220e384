//! fprop and dgrad of few filters, depthwise above all: positions in the lanes, read straight from
//! the padded source, so that nothing but the source is laid out anew.

use super::jobs::{Piece, pieces};
use super::lane::Lane;
use super::lattice::{Lattice, Row};
use super::map::Side;
use super::scratch::sized;
use super::slab::Slabs;
use super::{Sums, Weights};
use crate::parallel;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Filters up to which this is the faster way.
pub(crate) const FILTERS: usize = 4;
/// Widest tile in elements: three vectors of 16 lanes for four filters.
const TILE: usize = 4 * 48;
/// Bytes of the padded source that one piece works on.
const SOURCE: usize = 256 << 10;
/// Positions of one job at least.
const POSITIONS: usize = 1 << 14;

/// One product: filters times source, summed over (channel, tap).
pub(crate) struct Narrow<'a> {
    pub lattice: &'a Lattice,
    pub sums: Sums,
    pub source: Side<'a>,
    pub weights: Weights<'a>,
    /// Products are exact in f64.
    pub fused: bool,
}

/// The filters of one part.
struct Packed<T> {
    /// `[group, step, filter]`.
    values: Vec<T>,
    offsets: Vec<usize>,
}

impl Narrow<'_> {
    /// The result, `[N, G·K, plane]`.
    pub fn run<T: Lane>(&self, out: &mut [T]) {
        let sums = &self.sums;
        let most = self.lattice.parts.iter().map(|part| part.taps.len()).max();
        let steps = sums.channels * most.unwrap_or(0);
        if out.is_empty() || steps == 0 {
            return;
        }
        let small = !parallel::worthwhile(out.len() * steps / 8);
        let slabs = Slabs::new(self.lattice, self.slab_steps(small));
        let parts: Vec<Packed<T>> = (0..self.lattice.parts.len())
            .map(|part| self.pack(&slabs, part))
            .collect();
        let mut pieces = pieces(
            out,
            (sums.filters, sums.plane),
            sums.groups,
            0..sums.filters,
            sums.filters,
            &slabs.slabs,
        );
        let run = |pieces: &mut [Piece<'_, T>]| {
            T::with(|scratch| {
                Arch::new().dispatch(Work {
                    narrow: self,
                    slabs: &slabs,
                    parts: &parts,
                    source: sized(&mut scratch.source, sums.channels * slabs.pitch + TILE),
                    pieces,
                });
            });
        };
        if small {
            run(&mut pieces);
        } else {
            let positions = slabs.slabs.iter().map(|slab| slab.result.len()).max();
            let together = POSITIONS.div_ceil(positions.unwrap_or(1));
            pieces.par_chunks_mut(together).for_each(run);
        }
    }

    /// Lattice steps per slab.
    fn slab_steps(&self, small: bool) -> usize {
        let (row, halo) = Slabs::cost(self.lattice);
        let extent = Slabs::extent(self.lattice);
        let bytes = (row * self.sums.channels * size_of::<f64>()).max(1);
        let fits = (SOURCE / bytes).saturating_sub(halo).max(1);
        let images = self.sums.batch * self.sums.groups;
        if small {
            return extent;
        }
        let cuts = (4 * rayon::current_num_threads()).div_ceil(images);
        let cuts = cuts.max(extent.div_ceil(fits)).clamp(1, extent.max(1));
        extent.div_ceil(cuts)
    }

    fn pack<T: Lane>(&self, slabs: &Slabs, part: usize) -> Packed<T> {
        let (sums, weights) = (&self.sums, &self.weights);
        let mut values = Vec::new();
        for group in 0..sums.groups {
            for channel in 0..sums.channels {
                for window in &slabs.windows[part] {
                    let at = group * weights.group + channel * weights.channel + window;
                    values.extend((0..sums.filters).map(|filter| {
                        T::of(
                            weights.side.map,
                            weights.side.values[at + filter * weights.filter],
                        )
                    }));
                }
            }
        }
        Packed {
            values,
            offsets: slabs.offsets(part, sums.channels),
        }
    }
}

struct Work<'a, 'b, T> {
    narrow: &'a Narrow<'a>,
    slabs: &'a Slabs,
    parts: &'a [Packed<T>],
    source: &'a mut [T],
    pieces: &'a mut [Piece<'b, T>],
}

impl<T: Lane> WithSimd for Work<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if T::ALWAYS_FUSED || self.narrow.fused {
            self.all::<S, true>(simd);
        } else {
            self.all::<S, false>(simd);
        }
    }
}

impl<T: Lane> Work<'_, '_, T> {
    #[inline(always)]
    fn all<S: Simd, const FUSED: bool>(self, simd: S) {
        let Work {
            narrow,
            slabs,
            parts,
            source,
            pieces,
        } = self;
        let sums = &narrow.sums;
        let plane: usize = narrow.lattice.source.extents.iter().product();
        for piece in pieces {
            let image = sums.channels * plane;
            let values = &narrow.source.values[piece.image * image..][..image];
            for (values, target) in values
                .chunks_exact(plane)
                .zip(source.chunks_exact_mut(slabs.pitch))
            {
                piece.slab.fill(values, narrow.source.map, target);
            }
            for (part, packed) in parts.iter().enumerate() {
                let filters = packed.offsets.len() * sums.filters;
                let group = piece.image % sums.groups;
                let lines = Lines {
                    weights: &packed.values[group * filters..(group + 1) * filters],
                    offsets: &packed.offsets,
                    source,
                    rows: &piece.slab.rows[part],
                    step: narrow.lattice.parts[part].out_step,
                };
                match sums.filters {
                    1 => lines.run::<S, 1, 4, FUSED>(simd, &mut piece.planes),
                    2 => lines.run::<S, 2, 3, FUSED>(simd, &mut piece.planes),
                    3 => lines.run::<S, 3, 3, FUSED>(simd, &mut piece.planes),
                    _ => lines.run::<S, 4, 3, FUSED>(simd, &mut piece.planes),
                }
            }
        }
    }
}

/// `MR` filters on some rows.
struct Lines<'a, T> {
    /// `[step, filter]`.
    weights: &'a [T],
    offsets: &'a [usize],
    source: &'a [T],
    rows: &'a [Row],
    step: usize,
}

impl<T: Lane> Lines<'_, T> {
    #[inline(always)]
    fn run<S: Simd, const MR: usize, const NV: usize, const FUSED: bool>(
        &self,
        simd: S,
        planes: &mut [&mut [T]],
    ) {
        let mut cursor = Cursor { row: 0, column: 0 };
        let mut tile = [T::default(); TILE];
        let lanes = T::lanes::<S>();
        while let Some((at, row, vectors)) = cursor.next(self.rows, NV * lanes, lanes) {
            let vectors = if vectors == 1 { 1 } else { NV };
            if vectors == 1 {
                self.chain::<S, MR, 1, FUSED>(simd, at, &mut tile);
            } else {
                self.chain::<S, MR, NV, FUSED>(simd, at, &mut tile);
            }
            self.store::<MR>((at, row, vectors * lanes), &tile, planes);
        }
    }

    /// The chains of `MR` filters × `NV` vectors of positions, written to `tile` filter by filter.
    #[inline(always)]
    fn chain<S: Simd, const MR: usize, const NV: usize, const FUSED: bool>(
        &self,
        simd: S,
        at: usize,
        tile: &mut [T; TILE],
    ) {
        let width = NV * T::lanes::<S>();
        let source = &self.source[at..];
        let mut sums = [[T::splat(simd, T::default()); NV]; MR];
        for (weights, &offset) in self.weights.chunks_exact(MR).zip(self.offsets) {
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

    /// Copies the positions of a tile that lie on rows.
    #[inline(always)]
    fn store<const MR: usize>(
        &self,
        (at, first_row, width): (usize, usize, usize),
        tile: &[T],
        planes: &mut [&mut [T]],
    ) {
        for row in &self.rows[first_row..] {
            if row.at >= at + width {
                break;
            }
            let from = row.at.max(at);
            let len = (row.at + row.len).min(at + width) - from;
            let out = row.out + (from - row.at) * self.step;
            for (m, plane) in planes.iter_mut().enumerate().take(MR) {
                let tile = &tile[m * width + from - at..][..len];
                let out = &mut plane[out..];
                if self.step == 1 {
                    out[..len].copy_from_slice(tile);
                } else {
                    for (out, value) in out.iter_mut().step_by(self.step).zip(tile) {
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
