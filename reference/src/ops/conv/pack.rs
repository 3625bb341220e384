//! Operands in the order in which tiles read them.

use super::lane::Lane;
use super::map::{Map, Side};
use super::tile::Block;
use crate::parallel::vectorised;
use std::ops::Range;

/// Steps that are gathered lane by lane before the next ones: cache lines enough for the machine to
/// read ahead, and few enough for what is written to stay in a first-level cache.
const STEPS: usize = 64;

/// Where the values of the lanes lie: the first lane's, and the distance from each to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub start: usize,
    pub stride: usize,
}

/// Steps whose values lie side by side, from the lane's own start on: the runs of a list of places.
pub(crate) fn runs(places: impl IntoIterator<Item = usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for place in places {
        match runs.last_mut() {
            Some(run) if run.end == place => run.end += 1,
            _ => runs.push(place..place + 1),
        }
    }
    runs
}

/// [`gather`] from an operand of a pass.
pub(crate) fn gather_mapped<T: Lane>(
    block: &Block,
    side: Side<'_>,
    rows: Rows,
    runs: &[Range<usize>],
    target: &mut [T],
) {
    let values = side.values;
    vectorised(|| match side.map {
        Map::Same => gather(block, values, |x| T::of(Map::Same, x), rows, runs, target),
        Map::Abs => gather(block, values, |x| T::of(Map::Abs, x), rows, runs, target),
        Map::Square(scale) => {
            let square = |x| T::of(Map::Square(scale), x);
            gather(block, values, square, rows, runs, target);
        }
    });
}

/// `target[step·width + lane] = map(values[rows of the lane + place of the step])` for the lanes of a
/// block; lanes that only fill vectors are 0.
#[inline(always)]
pub(crate) fn gather<V: Copy, T: Lane>(
    block: &Block,
    values: &[V],
    map: impl Fn(V) -> T,
    rows: Rows,
    runs: &[Range<usize>],
    target: &mut [T],
) {
    let (width, len) = (block.width, block.len);
    if len < width {
        target.fill(T::default());
    }
    let values = &values[rows.start + block.first * rows.stride..];
    let mut rest = target;
    for run in runs {
        let (own, others) = rest.split_at_mut(run.len() * width);
        rest = others;
        if rows.stride == 1 {
            for (target, step) in own.chunks_exact_mut(width).zip(run.clone()) {
                for (target, &value) in target[..len].iter_mut().zip(&values[step..step + len]) {
                    *target = map(value);
                }
            }
            continue;
        }
        for (group, at) in own
            .chunks_mut(STEPS * width)
            .zip(run.clone().step_by(STEPS))
        {
            let steps = group.len() / width;
            let lane = |lane: usize| &values[lane * rows.stride + at..][..steps];
            turn(group, (width, len), lane, &map);
        }
    }
}

/// Transposes some steps of each lane, four lanes at a time: as many reads are on their way.
#[inline(always)]
fn turn<'v, V: Copy + 'v, T: Lane>(
    target: &mut [T],
    (width, len): (usize, usize),
    lane: impl Fn(usize) -> &'v [V],
    map: &impl Fn(V) -> T,
) {
    let mut first = 0;
    while first + 4 <= len {
        let [a, b, c, d] = [
            lane(first),
            lane(first + 1),
            lane(first + 2),
            lane(first + 3),
        ];
        let steps = target.chunks_exact_mut(width);
        for ((((step, &a), &b), &c), &d) in steps.zip(a).zip(b).zip(c).zip(d) {
            if let Some(step) = step[first..].first_chunk_mut() {
                *step = [map(a), map(b), map(c), map(d)];
            }
        }
        first += 4;
    }
    for l in first..len {
        for (step, &value) in target.chunks_exact_mut(width).zip(lane(l)) {
            step[l] = map(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_side_by_side_are_one_run() {
        assert_eq!(runs([3, 4, 5, 9, 2, 3]), [3..6, 9..10, 2..4]);
        assert_eq!(runs([]), []);
    }

    #[test]
    fn every_lane_and_step_is_where_a_tile_reads_it() {
        let values: Vec<f64> = (0..4000).map(f64::from).collect();
        for stride in [1, 37, 64] {
            for len in [1, 5, 8, 16] {
                let block = Block {
                    first: 3,
                    len,
                    vectors: 2,
                    start: 3,
                    width: 16,
                };
                let places: Vec<usize> = (2..31).chain(40..43).chain([50]).collect();
                let mut target = vec![-1.0f64; 16 * places.len()];
                let rows = Rows { start: 7, stride };
                let runs = runs(places.iter().copied());
                gather(&block, &values, |x| x, rows, &runs, &mut target);
                for (step, place) in places.iter().enumerate() {
                    for lane in 0..16 {
                        let there = values[7 + (3 + lane) * stride + place];
                        let expected = if lane < len { there } else { 0.0 };
                        assert_eq!(target[step * 16 + lane], expected, "{stride} {len} {step}");
                    }
                }
            }
        }
    }
}
