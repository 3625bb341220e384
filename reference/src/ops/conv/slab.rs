//! A result cut along its first spatial axis. Of each slab is known which rows of the source it
//! sees and where its positions lie in them once they are padded.

use super::lane::Lane;
use super::lattice::{Lattice, Row};
use super::map::Map;
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// All slabs of a plane of the result.
#[derive(Clone, Debug)]
pub(crate) struct Slabs {
    /// In ascending order.
    pub slabs: Vec<Slab>,
    /// Elements from one channel of the padded source to the next, an odd number of cache lines.
    pub pitch: usize,
    /// Per part and tap: the index in the filter's window.
    pub windows: Vec<Vec<usize>>,
    /// Per part and tap: distance from a position to what the tap sees.
    pub shifts: Vec<Vec<usize>>,
}

/// Some steps along the first axis.
#[derive(Clone, Debug)]
pub(crate) struct Slab {
    /// The elements of a plane of the result.
    pub result: Range<usize>,
    /// Per part: the rows of positions. `at` counts from the start of a channel of the padded
    /// source, `out` from the start of `result`.
    pub rows: Vec<Vec<Row>>,
    copies: Vec<Copy>,
    gaps: Vec<Range<usize>>,
    step: usize,
    pitch: usize,
}

/// A run of the source along the last axis.
#[derive(Clone, Copy, Debug)]
struct Copy {
    source: usize,
    target: usize,
    len: usize,
}

impl Slabs {
    /// Lattice points along the first axis that positions lie on.
    pub fn extent(lattice: &Lattice) -> usize {
        lattice
            .result
            .first()
            .map_or(0, |&extent| extent.div_ceil(lattice.outer_step))
    }

    /// Elements of the padded source per step along the first axis, and how many steps a slab sees
    /// besides its own.
    pub fn cost(lattice: &Lattice) -> (usize, usize) {
        let inner: usize = lattice.source.dims[1..].iter().product();
        let halo = lattice.source.dims[0] - Self::extent(lattice);
        (inner * lattice.source.phases.len(), halo)
    }

    /// Slabs of `steps` lattice points along the first axis, the last one shorter.
    pub fn new(lattice: &Lattice, steps: usize) -> Self {
        let extent = Self::extent(lattice);
        let steps = steps.clamp(1, extent.max(1));
        let (_, halo) = Self::cost(lattice);
        let inner: usize = lattice.source.dims[1..].iter().product();
        let plane = (steps + halo) * inner;
        let lines = (plane * lattice.source.phases.len()).div_ceil(8) | 1;
        let list = |f: &dyn Fn(&super::lattice::Tap) -> usize| {
            let parts = lattice.parts.iter();
            parts
                .map(|part| part.taps.iter().map(f).collect())
                .collect()
        };
        Self {
            slabs: (0..extent)
                .step_by(steps)
                .map(|from| {
                    let to = (from + steps).min(extent);
                    Slab::new(lattice, from..to, (plane, lines * 8), halo)
                })
                .collect(),
            pitch: lines * 8,
            windows: list(&|tap| tap.window),
            shifts: list(&|tap| tap.phase * plane + tap.shift),
        }
    }

    /// What each step sees, from the position on: channel by channel, tap by tap.
    pub fn offsets(&self, part: usize, channels: usize) -> Vec<usize> {
        (0..channels)
            .flat_map(|channel| {
                let start = channel * self.pitch;
                self.shifts[part].iter().map(move |shift| start + shift)
            })
            .collect()
    }
}

impl Slab {
    fn new(
        lattice: &Lattice,
        points: Range<usize>,
        (plane, pitch): (usize, usize),
        halo: usize,
    ) -> Self {
        let inner: usize = lattice.source.dims[1..].iter().product();
        let below: usize = lattice.result[1..].iter().product();
        let step = lattice.outer_step;
        let end = (points.end * step).min(lattice.result[0]);
        let result = points.start * step * below..end * below;
        let rows = lattice
            .parts
            .iter()
            .map(|part| {
                rows(
                    lattice,
                    &part.rows,
                    part.out_step,
                    &points,
                    inner,
                    result.start,
                )
            })
            .collect();
        let seen = points.start..points.end + halo;
        let mut copies = Vec::new();
        for (phase, bases) in lattice.source.phases.iter().enumerate() {
            let at = Copy {
                source: 0,
                target: phase * plane,
                len: 0,
            };
            copy(lattice, bases, 0, seen.clone(), at, &mut copies);
        }
        Self {
            gaps: gaps(&copies, pitch),
            step: lattice.source.step.last().copied().unwrap_or(1),
            pitch,
            result,
            rows,
            copies,
        }
    }

    /// Lays out channels: `values` are their planes of the source, `target` a pitch for each.
    pub fn fill_all<T: Lane>(&self, values: &[f64], plane: usize, map: Map, target: &mut [T]) {
        let pitch = self.pitch;
        Arch::new().dispatch(FillAll {
            slab: self,
            values,
            plane,
            map,
            target,
            pitch,
        });
    }

    /// Lays out one channel: `values` is its plane of the source, `target` a pitch long.
    #[inline(always)]
    pub fn fill<T: Lane>(&self, values: &[f64], map: Map, target: &mut [T]) {
        for gap in &self.gaps {
            target[gap.clone()].fill(T::default());
        }
        for copy in &self.copies {
            let target = &mut target[copy.target..copy.target + copy.len];
            map.copy(&values[copy.source..], self.step, target);
        }
    }
}

struct FillAll<'a, T> {
    slab: &'a Slab,
    values: &'a [f64],
    plane: usize,
    map: Map,
    target: &'a mut [T],
    pitch: usize,
}

impl<T: Lane> WithSimd for FillAll<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let targets = self.target.chunks_exact_mut(self.pitch);
        for (values, target) in self.values.chunks_exact(self.plane).zip(targets) {
            self.slab.fill(values, self.map, target);
        }
    }
}

/// The rows of one part within the slab.
fn rows(
    lattice: &Lattice,
    rows: &[Row],
    out_step: usize,
    points: &Range<usize>,
    inner: usize,
    start: usize,
) -> Vec<Row> {
    if lattice.source.dims.len() == 1 {
        // The first axis is the one that rows run along.
        let cut = |row: &Row| {
            let from = points.start.min(row.len);
            let len = points.end.min(row.len) - from;
            (len > 0).then(|| Row {
                at: row.at,
                out: row.out + from * out_step - start,
                len,
            })
        };
        return rows.iter().filter_map(cut).collect();
    }
    rows.iter()
        .filter(|row| points.contains(&(row.at / inner)))
        .map(|row| Row {
            at: row.at - points.start * inner,
            out: row.out - start,
            len: row.len,
        })
        .collect()
}

/// The copies of one phase from `axis` on, for these lattice points along it.
fn copy(
    lattice: &Lattice,
    bases: &[i64],
    axis: usize,
    points: Range<usize>,
    from: Copy,
    copies: &mut Vec<Copy>,
) {
    let source = &lattice.source;
    let (base, step, extent) = (bases[axis], source.step[axis], source.extents[axis] as i64);
    let inner: usize = source.dims[axis + 1..].iter().product();
    let below: usize = source.extents[axis + 1..].iter().product();
    // Lattice points g with 0 ≤ base + g·step < extent.
    let first = ((-base).max(0) as usize).div_ceil(step).max(points.start);
    let end = usize::try_from(extent - base).map_or(0, |room| room.div_ceil(step));
    let end = end.min(points.end);
    let at = |point: usize| (base + (point * step) as i64) as usize;
    if first >= end {
        return;
    }
    if axis + 1 == source.dims.len() {
        copies.push(Copy {
            source: from.source + at(first),
            target: from.target + first - points.start,
            len: end - first,
        });
        return;
    }
    for point in first..end {
        let from = Copy {
            source: from.source + at(point) * below,
            target: from.target + (point - points.start) * inner,
            len: 0,
        };
        copy(
            lattice,
            bases,
            axis + 1,
            0..source.dims[axis + 1],
            from,
            copies,
        );
    }
}

/// What the copies leave out of `0..pitch`; they are ascending and apart.
fn gaps(copies: &[Copy], pitch: usize) -> Vec<Range<usize>> {
    let mut gaps = Vec::new();
    let mut at = 0;
    for copy in copies {
        if at < copy.target {
            gaps.push(at..copy.target);
        }
        at = copy.target + copy.len;
    }
    if at < pitch {
        gaps.push(at..pitch);
    }
    gaps
}
