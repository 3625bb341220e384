//! fprop and dgrad of few filters, depthwise above all: positions in the lanes, read straight from
//! the padded source, so that nothing but the source is laid out anew.

use super::jobs::{Piece, pieces};
use super::lane::Lane;
use super::lattice::Row;
use super::map::Map;
use super::operands::Product;
use super::scratch::{Buffered, sized};
use super::slab::Slabs;
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

/// The kernel for this product.
pub(crate) struct Narrow<'a>(pub Product<'a>);

/// The filters of one part.
struct Packed<T> {
    /// `[group, step, filter]`.
    values: Vec<T>,
    offsets: Vec<usize>,
}

impl Narrow<'_> {
    /// The result, `[N, G·K, plane]`.
    pub fn run<T: Lane>(&self, out: &mut [T]) {
        let Some(small) = self.is_small() else {
            out.fill(T::default());
            return;
        };
        let slabs = Slabs::new(self.0.lattice, self.slab_steps(small));
        let parts = self.parts(&slabs, self.0.weights.side.map);
        let mut pieces = self.pieces(out, &slabs);
        let run = |pieces: &mut [Piece<'_, T>]| {
            T::with(|scratch| {
                Arch::new().dispatch(Work {
                    plan: Plan {
                        product: &self.0,
                        slabs: &slabs,
                        parts: &parts,
                    },
                    source: sized(&mut scratch.source, self.source_size(&slabs)),
                    pieces,
                });
            });
        };
        if small {
            run(&mut pieces);
        } else {
            pieces.par_chunks_mut(together(&slabs)).for_each(run);
        }
    }

    /// The result and, of the same products scaled by `scales`, the sums of the squares, from one
    /// reading of the source.
    pub fn run_with_squares(&self, scales: [f64; 2], out: &mut [f64], squares: &mut [f32]) {
        let Some(small) = self.is_small() else {
            out.fill(0.0);
            squares.fill(0.0);
            return;
        };
        let slabs = Slabs::new(self.0.lattice, self.slab_steps(small));
        let parts: Vec<Packed<f64>> = self.parts(&slabs, Map::Same);
        let squared: Vec<Packed<f32>> = self.parts(&slabs, Map::Square(scales[1]));
        let pieces = self.pieces(out, &slabs).into_iter();
        let mut pieces: Vec<_> = pieces.zip(self.pieces(squares, &slabs)).collect();
        let size = self.source_size(&slabs);
        let run = |pieces: &mut [(Piece<'_, f64>, Piece<'_, f32>)]| {
            f64::with(|scratch| {
                f32::with(|other| {
                    Arch::new().dispatch(Both {
                        plan: Plan {
                            product: &self.0,
                            slabs: &slabs,
                            parts: &parts,
                        },
                        squared: &squared,
                        scale: scales[0],
                        source: sized(&mut scratch.source, size),
                        squares: sized(&mut other.source, size),
                        pieces,
                    });
                });
            });
        };
        if small {
            run(&mut pieces);
        } else {
            pieces.par_chunks_mut(together(&slabs)).for_each(run);
        }
    }

    /// Whether one thread is the fastest; `None` where there is nothing to sum.
    fn is_small(&self) -> Option<bool> {
        let Product { sums, lattice, .. } = &self.0;
        let most = lattice.parts.iter().map(|part| part.taps.len()).max();
        let steps = sums.channels * most.unwrap_or(0);
        let out = sums.batch * sums.groups * sums.filters * sums.plane;
        (out > 0 && steps > 0).then(|| !parallel::worthwhile(out * steps / 8))
    }

    fn pieces<'b, T>(&self, out: &'b mut [T], slabs: &'b Slabs) -> Vec<Piece<'b, T>> {
        let sums = &self.0.sums;
        let (all, size) = (0..sums.filters, (sums.filters, sums.plane));
        pieces(out, size, sums.groups, all, sums.filters, &slabs.slabs)
    }

    /// Elements of the padded source of a piece, with what the last tile reads beyond it.
    fn source_size(&self, slabs: &Slabs) -> usize {
        self.0.sums.channels * slabs.pitch + TILE
    }

    fn parts<T: Lane>(&self, slabs: &Slabs, map: Map) -> Vec<Packed<T>> {
        (0..slabs.windows.len())
            .map(|part| self.pack(slabs, part, map))
            .collect()
    }

    /// Lattice steps per slab.
    fn slab_steps(&self, small: bool) -> usize {
        let (row, halo) = Slabs::cost(self.0.lattice);
        let extent = Slabs::extent(self.0.lattice);
        let bytes = (row * self.0.sums.channels * size_of::<f64>()).max(1);
        let fits = (SOURCE / bytes).saturating_sub(halo).max(1);
        let images = self.0.sums.batch * self.0.sums.groups;
        if small {
            return extent;
        }
        let cuts = (4 * rayon::current_num_threads()).div_ceil(images);
        let cuts = cuts.max(extent.div_ceil(fits)).clamp(1, extent.max(1));
        extent.div_ceil(cuts)
    }

    fn pack<T: Lane>(&self, slabs: &Slabs, part: usize, map: Map) -> Packed<T> {
        let Product { sums, weights, .. } = &self.0;
        let mut values = Vec::new();
        for group in 0..sums.groups {
            for channel in 0..sums.channels {
                for window in &slabs.windows[part] {
                    let at = group * weights.group + channel * weights.channel + window;
                    values.extend((0..sums.filters).map(|filter| {
                        T::of(map, weights.side.values[at + filter * weights.filter])
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

/// Pieces of one job.
fn together(slabs: &Slabs) -> usize {
    let positions = slabs.slabs.iter().map(|slab| slab.result.len()).max();
    POSITIONS.div_ceil(positions.unwrap_or(1).max(1))
}

/// What the pieces of one element type share.
#[derive(Clone, Copy)]
struct Plan<'a, T> {
    product: &'a Product<'a>,
    slabs: &'a Slabs,
    parts: &'a [Packed<T>],
}

struct Work<'a, 'b, T> {
    plan: Plan<'a, T>,
    source: &'a mut [T],
    pieces: &'a mut [Piece<'b, T>],
}

impl<T: Lane> WithSimd for Work<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for piece in self.pieces {
            self.plan.lay_out(piece, self.source);
            if T::ALWAYS_FUSED || self.plan.product.fused {
                self.plan.piece::<S, true>(simd, self.source, piece);
            } else {
                self.plan.piece::<S, false>(simd, self.source, piece);
            }
        }
    }
}

/// Values and squares of some pieces.
struct Both<'a, 'b, 'c> {
    plan: Plan<'a, f64>,
    squared: &'a [Packed<f32>],
    /// Of the source, before it is squared.
    scale: f64,
    source: &'a mut [f64],
    squares: &'a mut [f32],
    pieces: &'a mut [(Piece<'b, f64>, Piece<'c, f32>)],
}

impl WithSimd for Both<'_, '_, '_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Plan { product, slabs, .. } = self.plan;
        let squared = Plan {
            product,
            slabs,
            parts: self.squared,
        };
        let used = product.sums.channels * slabs.pitch;
        for (piece, squares) in self.pieces {
            self.plan.lay_out(piece, self.source);
            if product.fused {
                self.plan.piece::<S, true>(simd, self.source, piece);
            } else {
                self.plan.piece::<S, false>(simd, self.source, piece);
            }
            let source = &self.source[..used];
            Map::Square(self.scale).copy(source, 1, &mut self.squares[..used]);
            squared.piece::<S, true>(simd, self.squares, squares);
        }
    }
}

impl<T: Lane> Plan<'_, T> {
    /// Pads the source of a piece.
    #[inline(always)]
    fn lay_out(&self, piece: &Piece<'_, T>, source: &mut [T]) {
        let Product {
            lattice,
            sums,
            source: side,
            ..
        } = self.product;
        let plane: usize = lattice.source.extents.iter().product();
        let image = sums.channels * plane;
        let values = &side.values[piece.image * image..][..image];
        let targets = source.chunks_exact_mut(self.slabs.pitch);
        for (values, target) in values.chunks_exact(plane).zip(targets) {
            piece.slab.fill(values, side.map, target);
        }
    }

    #[inline(always)]
    fn piece<S: Simd, const FUSED: bool>(&self, simd: S, source: &[T], piece: &mut Piece<'_, T>) {
        let Product { lattice, sums, .. } = self.product;
        for (part, packed) in self.parts.iter().enumerate() {
            let filters = packed.offsets.len() * sums.filters;
            let group = piece.image % sums.groups;
            let lines = Lines {
                weights: &packed.values[group * filters..(group + 1) * filters],
                offsets: &packed.offsets,
                reach: packed.offsets.iter().max().map_or(0, |most| most + 1),
                source,
                rows: &piece.slab.rows[part],
                step: lattice.parts[part].out_step,
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

/// `MR` filters on some rows.
struct Lines<'a, T> {
    /// `[step, filter]`.
    weights: &'a [T],
    offsets: &'a [usize],
    /// All offsets are below this.
    reach: usize,
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
        // One filter is what takes longer to store than to compute.
        if MR == 1 && self.step == 1 {
            let lanes = T::lanes::<S>();
            let len = self.rows.first().map_or(0, |row| row.len);
            // Where vectors that each lie in one row are full enough.
            if 3 * len.next_multiple_of(lanes) <= 4 * len {
                match len.div_ceil(lanes) {
                    1 => self.by_rows::<S, 4, 1, FUSED>(simd, planes[0]),
                    2 => self.by_rows::<S, 2, 2, FUSED>(simd, planes[0]),
                    _ => self.by_rows::<S, 1, 4, FUSED>(simd, planes[0]),
                }
                return;
            }
        }
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

    /// One filter on `ROWS` rows × `NV` vectors at a time, stored where they belong.
    #[inline(always)]
    fn by_rows<S: Simd, const ROWS: usize, const NV: usize, const FUSED: bool>(
        &self,
        simd: S,
        plane: &mut [T],
    ) {
        let lanes = T::lanes::<S>();
        let (width, reach) = (NV * lanes, self.reach);
        for rows in self.rows.chunks(ROWS) {
            let len = rows[0].len;
            for start in (0..len).step_by(width) {
                let mut seen = [&self.source[..0]; ROWS];
                for (r, seen) in seen.iter_mut().enumerate() {
                    // Rows beyond the last repeat it.
                    let at = rows[r.min(rows.len() - 1)].at + start;
                    *seen = &self.source[at..at + reach + width];
                }
                let mut sums = [[T::splat(simd, T::default()); NV]; ROWS];
                for (&weight, &offset) in self.weights.iter().zip(self.offsets) {
                    // One check for all vectors.
                    if offset >= reach {
                        break;
                    }
                    let weight = T::splat(simd, weight);
                    for (sums, seen) in sums.iter_mut().zip(&seen) {
                        let seen = T::vectors::<S>(&seen[offset..offset + width]);
                        for (sum, &seen) in sums.iter_mut().zip(seen) {
                            *sum = if FUSED {
                                T::fused(simd, weight, seen, *sum)
                            } else {
                                T::separate(simd, weight, seen, *sum)
                            };
                        }
                    }
                }
                for (sums, row) in sums.iter().zip(rows) {
                    let out = &mut plane[row.out + start..row.out + len];
                    for (&sum, out) in sums.iter().zip(out.chunks_mut(lanes)) {
                        if out.len() == lanes {
                            T::vectors_mut::<S>(out)[0] = sum;
                        } else {
                            T::store_part(simd, out, sum);
                        }
                    }
                }
            }
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
