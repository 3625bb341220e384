//! Operands in the order in which tiles read them.

use super::lane::Lane;
use super::map::{Map, Side};
use super::tile::Block;

/// Steps that are gathered lane by lane before the next ones: a cache line of them.
const STEPS: usize = 8;

/// [`gather`] from an operand of a pass.
pub(crate) fn gather_mapped<T: Lane>(
    block: &Block,
    side: Side<'_>,
    base: impl Fn(usize) -> usize,
    columns: &[usize],
    target: &mut [T],
) {
    let values = side.values;
    match side.map {
        Map::Same => gather(
            block,
            values,
            |x| T::of(Map::Same, x),
            base,
            columns,
            target,
        ),
        Map::Abs => gather(block, values, |x| T::of(Map::Abs, x), base, columns, target),
        Map::Square(scale) => {
            gather(
                block,
                values,
                |x| T::of(Map::Square(scale), x),
                base,
                columns,
                target,
            );
        }
    }
}

/// `target[step·width + lane] = map(values[base(lane) + columns[step]])` for the lanes of a block;
/// lanes that only fill vectors are 0.
#[inline(always)]
pub(crate) fn gather<V: Copy, T: Lane>(
    block: &Block,
    values: &[V],
    map: impl Fn(V) -> T,
    base: impl Fn(usize) -> usize,
    columns: &[usize],
    target: &mut [T],
) {
    let width = block.width;
    for (columns, target) in columns.chunks(STEPS).zip(target.chunks_mut(STEPS * width)) {
        for lane in 0..width {
            if lane >= block.len {
                for step in 0..columns.len() {
                    target[step * width + lane] = T::default();
                }
                continue;
            }
            let values = &values[base(block.first + lane)..];
            for (step, &column) in columns.iter().enumerate() {
                target[step * width + lane] = map(values[column]);
            }
        }
    }
}
