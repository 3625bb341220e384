//! Coordinates, and rearrangements of packed tensors.

use crate::array::Array;
use crate::estimate::Estimate;

/// Coordinates of a packed tensor in logical order.
pub(super) struct Coordinates<'a> {
    dims: &'a [i64],
    at: Vec<i64>,
}

impl<'a> Coordinates<'a> {
    /// Those of the first element.
    pub(super) fn new(dims: &'a [i64]) -> Self {
        Self {
            dims,
            at: vec![0; dims.len()],
        }
    }

    pub(super) fn get(&self) -> &[i64] {
        &self.at
    }

    /// Those of the next element; after the last comes the first.
    pub(super) fn advance(&mut self) {
        for (at, &dim) in self.at.iter_mut().zip(self.dims).rev() {
            *at += 1;
            if *at < dim {
                return;
            }
            *at = 0;
        }
    }
}

/// Elements of a tensor with these extents.
pub(super) fn count(dims: &[i64]) -> usize {
    dims.iter().map(|&dim| dim.max(0) as usize).product()
}

/// Row-major index; `None` outside.
pub(super) fn index(dims: &[i64], at: &[i64]) -> Option<usize> {
    dims.iter().zip(at).try_fold(0usize, |index, (&dim, &at)| {
        (0..dim)
            .contains(&at)
            .then(|| index * dim as usize + at as usize)
    })
}

/// For each element of a tensor `new`, the index in a tensor `old` that `from` turns its
/// coordinates into; `None` outside.
pub(super) fn sources(
    new: &[i64],
    old: &[i64],
    mut from: impl FnMut(&mut [i64]),
) -> Vec<Option<usize>> {
    let mut at = Coordinates::new(new);
    let mut scratch = vec![0; new.len()];
    (0..count(new))
        .map(|_| {
            scratch.copy_from_slice(at.get());
            at.advance();
            from(&mut scratch);
            index(old, &scratch)
        })
        .collect()
}

/// `values` taken from `sources`, 0 where there is none.
pub(super) fn take(values: &[f64], sources: &[Option<usize>]) -> Array<f64> {
    let at = |source: &Option<usize>| source.and_then(|i| values.get(i).copied()).unwrap_or(0.0);
    sources.iter().map(at).collect()
}

/// The estimate of the rearranged tensor; zeros without a source are exact.
pub(super) fn take_estimate(estimate: &Estimate, sources: &[Option<usize>]) -> Estimate {
    let error = sources.iter().map(|source| {
        source
            .and_then(|i| estimate.error.get(i).copied())
            .unwrap_or(0.0)
    });
    Estimate::new(take(&estimate.value, sources), error.collect())
}

/// Whether every place of the memory of a tensor with these strides holds one element.
pub(super) fn is_dense(dims: &[i64], strides: &[i64]) -> bool {
    let axes = dims.iter().zip(strides).filter(|(dim, _)| **dim > 1);
    let mut axes: Vec<(i64, i64)> = axes.map(|(&dim, &stride)| (stride, dim)).collect();
    axes.sort_unstable();
    let mut next = 1;
    dims.len() == strides.len()
        && axes.iter().all(|&(stride, dim)| {
            let fits = stride == next;
            next *= dim;
            fits
        })
}

/// Whether the elements lie in logical order.
pub(super) fn is_packed(dims: &[i64], strides: &[i64]) -> bool {
    let mut next = 1;
    let axes = dims.iter().zip(strides).rev();
    axes.into_iter().all(|(&dim, &stride)| {
        let fits = dim <= 1 || stride == next;
        next *= dim.max(1);
        fits
    })
}

/// Turns the coordinates of an element that is looked for in a dense memory by the strides `read` into
/// those of the element that lies there by the strides `written`.
pub(super) fn reread(dims: &[i64], read: &[i64], written: &[i64], at: &mut [i64]) {
    let mut place: i64 = at.iter().zip(read).map(|(at, stride)| at * stride).sum();
    let mut axes: Vec<usize> = (0..dims.len()).collect();
    axes.sort_unstable_by_key(|&axis| std::cmp::Reverse((dims[axis] > 1, written[axis])));
    for axis in axes {
        at[axis] = 0;
        if dims[axis] > 1 {
            at[axis] = place / written[axis];
            place %= written[axis];
        }
    }
}

/// The strides of the layout that is taken for a dense tensor's own: channels last for packed ones, packed
/// for the others.
pub(super) fn other_strides(dims: &[i64], strides: &[i64]) -> Vec<i64> {
    if is_packed(dims, strides) {
        strides_in_order(dims, &channels_last(dims.len()))
    } else {
        let order: Vec<usize> = (0..dims.len()).collect();
        strides_in_order(dims, &order)
    }
}

/// Coordinates of the element with this row-major index.
pub(super) fn place_of(dims: &[i64], mut index: usize, at: &mut [i64]) {
    for (at, &dim) in at.iter_mut().zip(dims).rev() {
        let dim = dim.max(1) as usize;
        *at = (index % dim) as i64;
        index /= dim;
    }
}

/// Strides of a dense tensor whose axes lie in memory in this order, slowest first.
pub(super) fn strides_in_order(dims: &[i64], order: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; dims.len()];
    let mut step = 1;
    for &axis in order.iter().rev() {
        strides[axis] = step;
        step *= dims[axis].max(1);
    }
    strides
}

/// The order of a layout with the channels last.
pub(super) fn channels_last(rank: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).filter(|&axis| axis != 1).collect();
    order.extend((rank > 1).then_some(1));
    order
}
