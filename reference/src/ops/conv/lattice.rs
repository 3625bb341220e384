//! Convolution as dense arithmetic on one padded lattice.
//!
//! Positions of the result and of the source lie on a common lattice with row-major strides, so
//! that what a tap sees from *every* position is the source shifted by one constant. A stride is
//! split into phases: fprop's source has one plane per residue that some tap needs; dgrad's result
//! falls into one [`Part`] per residue, each with the taps that reach it. Lattice points between
//! the ends of rows are padding: what is computed there is never stored.

use super::geometry::{Axis, Geometry};

/// The source's planes: per channel `phases` copies of the lattice.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Extents of the lattice, slowest first.
    pub dims: Vec<usize>,
    /// For each phase and axis: coordinate of lattice point 0 in the unpadded source.
    pub phases: Vec<Vec<i64>>,
    /// Source elements per lattice step, per axis.
    pub step: Vec<usize>,
    /// Extents of the unpadded source.
    pub extents: Vec<usize>,
}

/// A tap as a [`Part`] sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tap {
    /// Index in the filter's window, row-major.
    pub window: usize,
    /// Which copy of the lattice it sees.
    pub phase: usize,
    /// Distance in that copy from the position to what the tap sees.
    pub shift: usize,
}

/// A run of positions along the last axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// First lattice point.
    pub at: usize,
    /// First element in the plane of the result.
    pub out: usize,
    /// Positions.
    pub len: usize,
}

/// Positions that share their taps.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Taps in ascending order.
    pub taps: Vec<Tap>,
    /// Rows, ascending in `at`.
    pub rows: Vec<Row>,
    /// Elements of the result from one position of a row to the next.
    pub out_step: usize,
}

/// A convolution on its lattice.
#[derive(Clone, Debug)]
pub(crate) struct Lattice {
    pub source: Source,
    pub parts: Vec<Part>,
    /// Extents of the result.
    pub result: Vec<usize>,
    /// Elements of the result per lattice step along the first axis.
    pub outer_step: usize,
}

/// A tap of one axis: where it is seen.
#[derive(Clone, Copy)]
struct AxisTap {
    tap: usize,
    phase: usize,
    shift: usize,
}

/// One axis of a part.
struct AxisPart {
    taps: Vec<AxisTap>,
    positions: usize,
    first: usize,
}

/// One axis of the whole lattice.
struct AxisPlan {
    extent: usize,
    bases: Vec<i64>,
    step: usize,
    source: usize,
    parts: Vec<AxisPart>,
    out_step: usize,
}

impl Lattice {
    /// y on the lattice: the source is x.
    pub fn fprop(geometry: &Geometry) -> Option<Self> {
        let axes: Vec<_> = geometry.axes.iter().map(fprop_axis).collect();
        Self::combine(geometry, &axes, |axis| axis.output)
    }

    /// dx on the lattice: the source is dy.
    pub fn dgrad(geometry: &Geometry) -> Option<Self> {
        let axes: Vec<_> = geometry
            .axes
            .iter()
            .map(dgrad_axis)
            .collect::<Option<_>>()?;
        Self::combine(geometry, &axes, |axis| axis.input)
    }

    /// `None` where a size does not fit.
    fn combine(
        geometry: &Geometry,
        axes: &[AxisPlan],
        result: impl Fn(&Axis) -> usize,
    ) -> Option<Self> {
        let dims: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
        let strides = row_major(&dims)?;
        let plane = dims.iter().try_fold(1usize, |p, &d| p.checked_mul(d))?;
        let phases = product(&axes.iter().map(|a| a.bases.clone()).collect::<Vec<_>>());
        plane.checked_mul(phases.len())?;
        let result_dims: Vec<usize> = geometry.axes.iter().map(result).collect();
        let result_strides = row_major(&result_dims)?;
        let window_strides = row_major(&geometry.axes.iter().map(|a| a.taps).collect::<Vec<_>>())?;
        let choices: Vec<Vec<usize>> = axes.iter().map(|a| (0..a.parts.len()).collect()).collect();
        let parts = product(&choices)
            .iter()
            .map(|choice| {
                let chosen: Vec<&AxisPart> =
                    axes.iter().zip(choice).map(|(a, &i)| &a.parts[i]).collect();
                Part {
                    taps: taps(axes, &chosen, &strides, &window_strides),
                    rows: rows(axes, &chosen, &strides, &result_strides),
                    out_step: axes.last().map_or(1, |axis| axis.out_step),
                }
            })
            .collect();
        Some(Self {
            source: Source {
                dims,
                phases,
                step: axes.iter().map(|a| a.step).collect(),
                extents: axes.iter().map(|a| a.source).collect(),
            },
            parts,
            result: result_dims,
            outer_step: axes.first().map_or(1, |axis| axis.out_step),
        })
    }
}

fn fprop_axis(axis: &Axis) -> AxisPlan {
    let mut residues: Vec<usize> = Vec::new();
    let taps = (0..axis.taps)
        .map(|tap| {
            let seen = tap * axis.dilation;
            let residue = seen % axis.stride;
            let phase = residues.iter().position(|&r| r == residue);
            let phase = phase.unwrap_or_else(|| {
                residues.push(residue);
                residues.len() - 1
            });
            AxisTap {
                tap,
                phase,
                shift: seen / axis.stride,
            }
        })
        .collect::<Vec<_>>();
    let reach = taps.iter().map(|tap| tap.shift).max().unwrap_or(0);
    AxisPlan {
        extent: axis.output + reach,
        bases: residues
            .iter()
            .map(|&r| r as i64 - axis.pre as i64)
            .collect(),
        step: axis.stride,
        source: axis.input,
        parts: vec![AxisPart {
            taps,
            positions: axis.output,
            first: 0,
        }],
        out_step: 1,
    }
}

fn dgrad_axis(axis: &Axis) -> Option<AxisPlan> {
    let stride = axis.stride as i64;
    // Position p of residue r is input r + p·stride; tap t sees output p + shift.
    let shift = |residue: usize, tap: usize| {
        let seen = (residue + axis.pre) as i64 - (tap * axis.dilation) as i64;
        (seen % stride == 0).then_some(seen / stride)
    };
    let residues = axis.stride.min(axis.input);
    let shifts = || (0..residues).flat_map(|r| (0..axis.taps).filter_map(move |t| shift(r, t)));
    let low = shifts().min().unwrap_or(0);
    let high = shifts().max().unwrap_or(0);
    let positions = axis.input.div_ceil(axis.stride);
    let parts = (0..residues)
        .map(|residue| AxisPart {
            taps: (0..axis.taps)
                .filter_map(|tap| {
                    Some(AxisTap {
                        tap,
                        phase: 0,
                        shift: (shift(residue, tap)? - low) as usize,
                    })
                })
                .collect(),
            positions: (axis.input - residue).div_ceil(axis.stride),
            first: residue,
        })
        .collect();
    Some(AxisPlan {
        extent: positions.checked_add(usize::try_from(high - low).ok()?)?,
        bases: vec![low],
        step: 1,
        source: axis.output,
        parts,
        out_step: axis.stride,
    })
}

fn taps(
    axes: &[AxisPlan],
    chosen: &[&AxisPart],
    strides: &[usize],
    window_strides: &[usize],
) -> Vec<Tap> {
    let per_axis: Vec<Vec<AxisTap>> = chosen.iter().map(|part| part.taps.clone()).collect();
    product(&per_axis)
        .iter()
        .map(|taps| {
            let mut tap = Tap {
                window: 0,
                phase: 0,
                shift: 0,
            };
            for (axis, one) in taps.iter().enumerate() {
                tap.phase = tap.phase * axes[axis].bases.len() + one.phase;
                tap.window += one.tap * window_strides[axis];
                tap.shift += one.shift * strides[axis];
            }
            tap
        })
        .collect()
}

fn rows(
    axes: &[AxisPlan],
    chosen: &[&AxisPart],
    strides: &[usize],
    result_strides: &[usize],
) -> Vec<Row> {
    let last = chosen.len() - 1;
    let outer: Vec<Vec<usize>> = chosen[..last]
        .iter()
        .map(|part| (0..part.positions).collect())
        .collect();
    if chosen[last].positions == 0 {
        return Vec::new();
    }
    product(&outer)
        .iter()
        .map(|at| {
            let mut row = Row {
                at: 0,
                out: chosen[last].first,
                len: chosen[last].positions,
            };
            for (axis, &position) in at.iter().enumerate() {
                let part = &chosen[axis];
                row.at += position * strides[axis];
                row.out += (part.first + position * axes[axis].out_step) * result_strides[axis];
            }
            row
        })
        .collect()
}

/// Row-major strides, `None` where the product does not fit.
pub(crate) fn row_major(dims: &[usize]) -> Option<Vec<usize>> {
    let mut strides = vec![1usize; dims.len()];
    for axis in (0..dims.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1].checked_mul(dims[axis + 1])?;
    }
    Some(strides)
}

/// Every way to take one item of each list, the last list fastest.
fn product<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    lists.iter().fold(vec![Vec::new()], |heads, list| {
        heads
            .iter()
            .flat_map(|head| {
                list.iter().map(move |item| {
                    let mut whole = head.clone();
                    whole.push(item.clone());
                    whole
                })
            })
            .collect()
    })
}
