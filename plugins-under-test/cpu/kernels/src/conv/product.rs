//! The matrix product: a packed left matrix times panels of a right one, a tile at a time.

use crate::program::Num;
use std::ops::Range;

/// Columns of a panel.
pub(super) const WIDTH: usize = 16;

/// Rows of a tile.
const HEIGHT: usize = 4;

/// A left matrix, packed in strips of [`HEIGHT`] rows: for each strip, the columns one after
/// another. Missing rows of the last strip are zero.
pub(super) struct LeftMatrix<T> {
    rows: usize,
    depth: usize,
    strips: Vec<[T; HEIGHT]>,
}

impl<T: Num> LeftMatrix<T> {
    /// Packs `rows` × `depth` elements.
    pub(super) fn pack(rows: usize, depth: usize, element: impl Fn(usize, usize) -> T) -> Self {
        let mut strips = vec![[T::default(); HEIGHT]; rows.div_ceil(HEIGHT) * depth];
        for row in 0..rows {
            let strip = &mut strips[row / HEIGHT * depth..][..depth];
            for (k, column) in strip.iter_mut().enumerate() {
                column[row % HEIGHT] = element(row, k);
            }
        }
        Self {
            rows,
            depth,
            strips,
        }
    }
}

/// Calls `visit` for each panel of a right matrix of `columns` columns and `depth` rows, with the
/// columns it stands for and room for it. What `visit` leaves beyond those columns is computed
/// with, and the sums thrown away.
pub(super) fn for_each_panel<T: Num>(
    columns: usize,
    depth: usize,
    mut visit: impl FnMut(Range<usize>, &mut [[T; WIDTH]]),
) {
    let mut panel = vec![[T::default(); WIDTH]; depth];
    for start in (0..columns).step_by(WIDTH) {
        visit(start..columns.min(start + WIDTH), &mut panel);
    }
}

/// Multiplies, and calls `emit(row, sums)` for each row of the left matrix.
pub(super) fn tile_rows<T: Num>(
    left: &LeftMatrix<T>,
    panel: &[[T; WIDTH]],
    mut emit: impl FnMut(usize, &[T; WIDTH]),
) {
    if left.depth == 0 {
        return;
    }
    for (i, strip) in left.strips.chunks_exact(left.depth).enumerate() {
        let sums = tile(strip, panel);
        for (row, sums) in (i * HEIGHT..left.rows).zip(&sums) {
            emit(row, sums);
        }
    }
}

/// One tile, with the widest vectors that the processor has. The order of additions, and with it
/// every bit, is the same on all of them.
fn tile<T: Num>(strip: &[[T; HEIGHT]], panel: &[[T; WIDTH]]) -> [[T; WIDTH]; HEIGHT] {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { tile_avx2(strip, panel) };
    }
    tile_body(strip, panel)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn tile_avx2<T: Num>(strip: &[[T; HEIGHT]], panel: &[[T; WIDTH]]) -> [[T; WIDTH]; HEIGHT] {
    tile_body(strip, panel)
}

#[inline(always)]
fn tile_body<T: Num>(strip: &[[T; HEIGHT]], panel: &[[T; WIDTH]]) -> [[T; WIDTH]; HEIGHT] {
    let mut sums = [[T::default(); WIDTH]; HEIGHT];
    for (column, row) in strip.iter().zip(panel) {
        for (sums, &a) in sums.iter_mut().zip(column) {
            for (sum, &b) in sums.iter_mut().zip(row) {
                *sum += a * b;
            }
        }
    }
    sums
}
