//! The ways in which a case can be made simpler.
//!
//! Each takes something away for good: an operation, a stride, an axis, an attribute, a part of an
//! extent. None adds anything, so shrinking comes to an end.

use dnn_assay_graph::case::{
    AttributeKey as Key, AttributeValue as Value, BatchnormPhase, ConvDirection, Fill, Layout, Op,
};
use dnn_assay_graph::{DataType, PointwiseMode};

use crate::suite::Draft;

/// Simpler drafts, the boldest first. Some do not fit together, which their id will tell.
pub fn candidates(draft: &Draft) -> Vec<Draft> {
    let mut list = Vec::new();
    list.extend(all_small(draft));
    list.extend(operations(draft));
    list.extend(changed(draft, |d| d.strides.clear()));
    for at in 0..draft.strides.len() {
        list.extend(changed(draft, |d| drop(d.strides.remove(at))));
    }
    for axis in 0..draft.i.len() {
        list.extend(without_axis(draft, axis));
    }
    list.extend(changed(draft, |d| d.fill = Fill::Uniform));
    list.extend(changed(draft, |d| {
        let first = Layout::for_spatial(d.layout.spatial(), false);
        d.layout = first.unwrap_or(d.layout);
    }));
    list.extend(changed(draft, |d| d.dtypes = vec![DataType::Float]));
    list.extend(changed(draft, |d| d.dtypes.truncate(1)));
    list.extend(attributes(draft));
    list.extend(groups(draft));
    list.extend(extents(draft));
    list
}

/// The draft with a change; nothing where it changes nothing.
fn changed(draft: &Draft, change: impl FnOnce(&mut Draft)) -> Option<Draft> {
    let mut other = draft.clone();
    change(&mut other);
    (other != *draft).then_some(other)
}

/// Every extent 1, one group: what most faults of arithmetic still show on.
fn all_small(draft: &Draft) -> Vec<Draft> {
    let with = |least: i64| {
        changed(draft, |d| {
            d.strides.clear();
            let groups = group_count(d);
            let most = |extent: i64| extent.min(least);
            resize(d, &[most(d.n), d.c.min(groups * least)]);
            d.k = d.k.map(|k| k.min(groups * least));
            for axis in 0..d.i.len() {
                let extent = most(d.i[axis]);
                resize_spatial(d, axis, extent);
            }
            for extent in &mut d.f {
                *extent = most(*extent);
            }
        })
    };
    [1, 2, 4].into_iter().filter_map(with).collect()
}

/// The chain without a node.
fn operations(draft: &Draft) -> Vec<Draft> {
    let simpler: Vec<Op> = match draft.op {
        Op::ConvBiasActivation(mode) => vec![
            Op::Conv(ConvDirection::Fprop),
            Op::ConvBias,
            Op::ConvActivation(mode),
        ],
        Op::ConvBias | Op::ConvActivation(_) => vec![Op::Conv(ConvDirection::Fprop)],
        Op::BatchnormActivation(phase, mode) => {
            vec![Op::Batchnorm(phase), Op::Pointwise(mode)]
        }
        Op::BatchnormActivationBackward(mode) => vec![
            Op::Batchnorm(BatchnormPhase::Backward),
            Op::Batchnorm(BatchnormPhase::Inference),
            Op::Pointwise(mode),
        ],
        _ => Vec::new(),
    };
    let drafts = simpler.into_iter().filter_map(|op| {
        changed(draft, |d| {
            d.op = op;
            d.remove(Key::VirtualIo);
            if !takes_parameters(op) {
                for key in [Key::Lower, Key::Upper, Key::Slope, Key::Beta, Key::Alpha] {
                    d.remove(key);
                }
            }
            if matches!(op, Op::Pointwise(_)) {
                d.dtypes.truncate(1);
                for key in [Key::Epsilon, Key::Momentum, Key::Stats, Key::Running] {
                    d.remove(key);
                }
            }
            if op == Op::Batchnorm(BatchnormPhase::Backward) {
                d.set(Key::Stats, Value::Flag);
            }
        })
    });
    drafts.collect()
}

fn takes_parameters(op: Op) -> bool {
    op.mode().is_some_and(|mode| mode != PointwiseMode::Unset)
}

/// One spatial axis fewer.
fn without_axis(draft: &Draft, axis: usize) -> Option<Draft> {
    let layout = Layout::for_spatial(draft.i.len().checked_sub(1)?, draft.layout.channels_last())?;
    changed(draft, |d| {
        d.layout = layout;
        d.strides.clear();
        d.i.remove(axis);
        if axis < d.f.len() {
            d.f.remove(axis);
        }
        for key in [Key::Pre, Key::Post, Key::Str, Key::Dil] {
            if let Some(dims) = d.dims_mut(key).filter(|dims| dims.len() > axis) {
                dims.remove(axis);
            }
        }
        let rank = draft.layout.rank();
        for key in [Key::In0, Key::In1, Key::In2] {
            // Operands are aligned at the last axis and may lack leading ones.
            let Some(dims) = d.dims_mut(key) else {
                continue;
            };
            let own = (axis + 2).checked_sub(rank - dims.len());
            if let Some(own) = own.filter(|own| *own < dims.len() && dims.len() > 1) {
                dims.remove(own);
            }
        }
        if let Some(&Value::Int(index)) = d.get(Key::Axis)
            && index > axis as i64 + 1
        {
            d.set(Key::Axis, Value::Int(index - 1));
        }
    })
}

/// Attributes taken away or brought nearer to the plainest.
fn attributes(draft: &Draft) -> Vec<Draft> {
    let mut list = Vec::new();
    let plain = |key| match key {
        Key::Pre | Key::Post => Some(0),
        Key::Str | Key::Dil => Some(1),
        _ => None,
    };
    list.extend(changed(draft, |d| {
        for key in [Key::Pre, Key::Post] {
            set_all(d, key, 0);
        }
    }));
    for (key, value) in &draft.attributes {
        match (plain(*key), value) {
            (Some(plain), Value::Dims(dims)) => {
                list.extend(changed(draft, |d| set_all(d, *key, plain)));
                for (axis, dim) in dims.iter().enumerate() {
                    for nearer in [plain, (plain + dim) / 2, (dim - 1).max(plain)] {
                        list.extend(changed(draft, |d| {
                            if let Some(dims) = d.dims_mut(*key) {
                                dims[axis] = nearer;
                            }
                        }));
                    }
                }
            }
            (_, Value::Int(index)) if *key == Key::Axis => {
                let nearer = (0..*index)
                    .map(|index| changed(draft, |d| d.set(Key::Axis, Value::Int(index))));
                list.extend(nearer.flatten());
            }
            _ if *key == Key::Groups => {}
            // A momentum without running statistics says nothing.
            _ if *key == Key::Running => list.extend(changed(draft, |d| {
                d.remove(Key::Running);
                d.remove(Key::Momentum);
            })),
            _ => list.extend(changed(draft, |d| d.remove(*key))),
        }
    }
    list
}

fn set_all(draft: &mut Draft, key: Key, value: i64) {
    if let Some(dims) = draft.dims_mut(key) {
        dims.fill(value);
    }
}

fn group_count(draft: &Draft) -> i64 {
    match draft.get(Key::Groups) {
        Some(Value::Int(groups)) => (*groups).max(1),
        _ => 1,
    }
}

/// Fewer groups of the same size; one group of all channels; fewer channels in each group.
fn groups(draft: &Draft) -> Vec<Draft> {
    let groups = group_count(draft);
    let Some(k) = draft.k.filter(|_| groups > 1) else {
        return Vec::new();
    };
    let (c, k) = (draft.c / groups, k / groups);
    let sized = |groups: i64, c: i64, k: i64| {
        changed(draft, |d| {
            d.strides.clear();
            d.set(Key::Groups, Value::Int(groups));
            (d.c, d.k) = (groups * c, Some(groups * k));
        })
    };
    let fewer = (1..groups).map(|g| sized(g, c, k));
    // The same output channels from fewer groups.
    let total = draft.k.unwrap_or(k);
    let divisors = (1..groups).filter(|g| total % g == 0);
    let wider = divisors.map(|g| sized(g, c, total / g));
    let together = [sized(1, draft.c, draft.k.unwrap_or(k))];
    let narrower = smaller(c).into_iter().map(|c| sized(groups, c, k));
    let thinner = smaller(k).into_iter().map(|k| sized(groups, c, k));
    let all = fewer
        .chain(wider)
        .chain(together)
        .chain(narrower)
        .chain(thinner);
    all.flatten().collect()
}

/// Smaller extents, one at a time; a filter and what it is applied to together as well.
fn extents(draft: &Draft) -> Vec<Draft> {
    let mut list = Vec::new();
    for n in smaller(draft.n) {
        list.extend(changed(draft, |d| resize(d, &[n, d.c])));
    }
    for c in smaller(draft.c) {
        list.extend(changed(draft, |d| resize(d, &[d.n, c])));
    }
    for k in draft.k.map(smaller).unwrap_or_default() {
        list.extend(changed(draft, |d| {
            d.strides.clear();
            d.k = Some(k);
        }));
    }
    for axis in 0..draft.i.len() {
        for extent in smaller(draft.i[axis]) {
            list.extend(changed(draft, |d| resize_spatial(d, axis, extent)));
        }
    }
    for axis in 0..draft.f.len() {
        for extent in smaller(draft.f[axis]) {
            let filter = |d: &mut Draft| {
                d.strides.clear();
                d.f[axis] = extent;
            };
            list.extend(changed(draft, filter));
            // The same output, with less padding or from less input.
            list.extend(changed(draft, |d| {
                filter(d);
                for key in [Key::Pre, Key::Post] {
                    if let Some(dims) = d.dims_mut(key) {
                        dims[axis] = dims[axis].min(extent - 1);
                    }
                }
            }));
            list.extend(changed(draft, |d| {
                filter(d);
                let less = draft.f[axis] - extent;
                resize_spatial(d, axis, (d.i[axis] - less).max(1));
            }));
        }
    }
    list
}

/// 1, the half, one less.
fn smaller(extent: i64) -> Vec<i64> {
    let mut list = vec![1, extent / 2, extent - 1];
    list.retain(|&less| less >= 1 && less < extent);
    list.dedup();
    list
}

/// Another batch and number of channels, of broadcast operands too.
fn resize(draft: &mut Draft, to: &[i64; 2]) {
    draft.strides.clear();
    let rank = draft.layout.rank();
    for (axis, &extent) in to.iter().enumerate() {
        resize_operands(draft, rank - axis, extent);
    }
    (draft.n, draft.c) = (to[0], to[1]);
}

fn resize_spatial(draft: &mut Draft, axis: usize, extent: i64) {
    draft.strides.clear();
    let from_last = draft.i.len() - axis;
    resize_operands(draft, from_last, extent);
    draft.i[axis] = extent;
}

/// Sets the axis so far from the end of every operand that is not 1 there.
fn resize_operands(draft: &mut Draft, from_last: usize, extent: i64) {
    for key in [Key::In0, Key::In1, Key::In2] {
        let Some(dims) = draft.dims_mut(key) else {
            continue;
        };
        let own = dims.len().checked_sub(from_last);
        if let Some(dim) = own
            .and_then(|own| dims.get_mut(own))
            .filter(|dim| **dim > 1)
        {
            *dim = extent;
        }
    }
}
