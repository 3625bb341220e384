//! Where the elements of a buffer lie, and how much of it they take.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::poison::Element;

/// Bytes around each stretch of elements of a sparse buffer that are watched as gaps are.
const MARGIN: u64 = 4096;
/// The unit in which memory is had, bytes.
const PAGE: u64 = 4096;
/// A buffer whose gaps would take this many bytes more than its elements is sparse.
const SPARSE_GAP: u64 = 256 << 20;

/// Where the elements of a buffer lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElementView {
    /// Element type.
    pub element: Element,
    /// Extents, outermost first.
    pub dims: Vec<i64>,
    /// Strides in elements, one per extent.
    pub strides: Vec<i64>,
}

impl ElementView {
    /// A packed row of `count` elements.
    pub fn packed(element: Element, count: i64) -> Self {
        Self {
            element,
            dims: vec![count],
            strides: vec![1],
        }
    }

    /// Bytes from the first element to the end of the last; `None` where that does not fit, or an
    /// extent or stride is negative.
    pub fn byte_size(&self) -> Option<u64> {
        let mut reach = 0u64;
        for (&dim, &stride) in self.dims.iter().zip(&self.strides) {
            if dim == 0 {
                return Some(0);
            }
            let steps = u64::try_from(dim.checked_sub(1)?).ok()?;
            reach = reach.checked_add(steps.checked_mul(u64::try_from(stride).ok()?)?)?;
        }
        reach
            .checked_add(1)?
            .checked_mul(u64::from(self.element.size()))
    }

    /// Whether all elements lie inside a buffer of `size` bytes.
    pub fn fits(&self, size: u64) -> bool {
        if self.dims.len() != self.strides.len() {
            return false;
        }
        let mut last: i128 = 0;
        for (&dim, &stride) in self.dims.iter().zip(&self.strides) {
            if dim < 0 || stride < 0 {
                return false;
            }
            if dim == 0 {
                return true;
            }
            last += i128::from(dim - 1) * i128::from(stride);
        }
        (last + 1) * i128::from(self.element.size()) <= i128::from(size)
    }

    /// Whether the elements fill `size` bytes without a gap.
    pub(crate) fn is_dense(&self, size: u64) -> bool {
        let count: i128 = self.dims.iter().map(|&dim| i128::from(dim)).product();
        count * i128::from(self.element.size()) == i128::from(size)
            && self
                .strides
                .iter()
                .zip(&self.dims)
                .all(|(&stride, &dim)| stride > 0 || dim <= 1)
    }

    /// How many elements there are.
    pub(crate) fn count(&self) -> u64 {
        self.dims.iter().map(|&dim| dim.max(0) as u64).product()
    }

    /// Whether packed elements would lie in the order of their indices.
    pub(crate) fn is_row_major(&self) -> bool {
        let mut expected = 1;
        let axes = self.dims.iter().zip(&self.strides).rev();
        axes.into_iter().all(|(&dim, &stride)| {
            let matches = dim == 1 || stride == expected;
            expected *= dim;
            matches
        })
    }

    /// Calls `visit` with each element's byte offset, in logical row-major order.
    pub fn for_each_offset(&self, mut visit: impl FnMut(u64)) {
        if self.dims.contains(&0) {
            return;
        }
        let size = u64::from(self.element.size());
        let mut index = vec![0i64; self.dims.len()];
        let mut at = 0i64;
        loop {
            visit(at as u64 * size);
            let mut axis = self.dims.len();
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.dims[axis] {
                    break;
                }
                at -= self.strides[axis] * self.dims[axis];
                index[axis] = 0;
            }
        }
    }

    /// Calls `visit` with each element's byte offset and logical row-major index, in the order of
    /// memory wherever no two elements share a place. A giant tensor with the channels last is passed
    /// over many times faster so than in logical order, where each step is a miss of every cache.
    pub fn for_each_in_memory(&self, mut visit: impl FnMut(u64, u64)) {
        if self.dims.contains(&0) {
            return;
        }
        let size = i64::from(self.element.size());
        let mut steps = vec![1i64; self.dims.len()];
        for axis in (1..self.dims.len()).rev() {
            steps[axis - 1] = steps[axis] * self.dims[axis];
        }
        // Extent, bytes and indices per step; the largest stride first.
        let mut axes: Vec<(i64, i64, i64)> = self
            .dims
            .iter()
            .zip(self.strides.iter().zip(steps))
            .map(|(&dim, (&stride, step))| (dim, stride * size, step))
            .filter(|(dim, ..)| *dim > 1)
            .collect();
        axes.sort_by_key(|&(_, stride, _)| std::cmp::Reverse(stride));
        let (row, stride, step) = axes.pop().unwrap_or((1, 0, 0));
        let mut place = vec![0i64; axes.len()];
        let (mut at, mut index) = (0i64, 0i64);
        loop {
            for i in 0..row {
                visit((at + i * stride) as u64, (index + i * step) as u64);
            }
            let next = (0..axes.len()).rev().find(|&axis| {
                let (dim, stride, step) = axes[axis];
                place[axis] += 1;
                (at, index) = (at + stride, index + step);
                let goes_on = place[axis] < dim;
                if !goes_on {
                    place[axis] = 0;
                    (at, index) = (at - dim * stride, index - dim * step);
                }
                goes_on
            });
            if next.is_none() {
                return;
            }
        }
    }

    /// Whether no two elements share a place.
    pub(crate) fn has_places_of_its_own(&self) -> bool {
        self.blocks_within(0).is_some()
    }

    /// The same elements in the same order of memory, without gaps between them.
    pub fn without_gaps(&self) -> Self {
        let mut dense = self.clone();
        let mut axes: Vec<usize> = (0..self.dims.len().min(self.strides.len())).collect();
        // Axes of one element may have any stride: they come first, where they change nothing.
        axes.sort_by_key(|&axis| (self.dims[axis] > 1, self.strides[axis]));
        let mut next = 1;
        for axis in axes {
            dense.strides[axis] = next;
            next *= self.dims[axis].max(1);
        }
        dense
    }

    /// Whether a buffer of `size` bytes is mostly gap, so that only its elements and what lies
    /// around them are to be had as memory. Never where two elements may share a place.
    pub fn is_sparse(&self, size: u64) -> bool {
        size.saturating_sub(self.resident_bytes(size)) > SPARSE_GAP
    }

    /// Bytes of memory that a buffer of `size` bytes takes: all of them where the gaps are small,
    /// or elements share places; else the pages of the elements and of what is watched around
    /// them.
    pub fn resident_bytes(&self, size: u64) -> u64 {
        let Some(blocks) = self.blocks() else {
            return size;
        };
        let one = u128::from(blocks.len) + u128::from(2 * (MARGIN + PAGE));
        let all = blocks
            .outer
            .iter()
            .try_fold(one, |all, &(dim, _)| all.checked_mul(u128::from(dim)));
        let all = all.and_then(|all| u64::try_from(all).ok()).unwrap_or(size);
        if size.saturating_sub(all) > SPARSE_GAP {
            all
        } else {
            size
        }
    }

    /// Stretches of elements without a gap, as ranges of bytes in ascending order; nothing where
    /// elements may share places.
    pub(crate) fn stretches(&self) -> Vec<Range<u64>> {
        self.ranges(0)
    }

    /// Stretches of elements with what is watched around them, in ascending order and apart from
    /// each other, inside a buffer of `size` bytes.
    pub(crate) fn watched(&self, size: u64) -> Vec<Range<u64>> {
        let mut watched: Vec<Range<u64>> = Vec::new();
        for block in self.ranges(2 * MARGIN) {
            let range = block.start.saturating_sub(MARGIN)..(block.end + MARGIN).min(size);
            match watched.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => watched.push(range),
            }
        }
        watched
    }

    /// Blocks of elements that are no farther than `gap` bytes from each other.
    fn ranges(&self, gap: u64) -> Vec<Range<u64>> {
        let Some(blocks) = self.blocks_within(gap) else {
            return Vec::new();
        };
        let mut starts = vec![0u64];
        for &(dim, stride) in &blocks.outer {
            let inner = starts;
            starts = (0..dim)
                .flat_map(|i| inner.iter().map(move |start| start + i * stride))
                .collect();
        }
        starts
            .into_iter()
            .map(|start| start..start + blocks.len)
            .collect()
    }

    fn blocks(&self) -> Option<Blocks> {
        self.blocks_within(2 * MARGIN)
    }

    /// The innermost axes, as far as they leave no gap of more than `gap` bytes, and the others,
    /// fastest first. `None` for views without elements, or whose elements may share a place.
    fn blocks_within(&self, gap: u64) -> Option<Blocks> {
        if self.dims.contains(&0) {
            return None;
        }
        let size = u64::from(self.element.size());
        let mut axes = Vec::new();
        for (&dim, &stride) in self
            .dims
            .iter()
            .zip(&self.strides)
            .filter(|(dim, _)| **dim > 1)
        {
            let stride = u64::try_from(stride).ok()?.checked_mul(size)?;
            axes.push((u64::try_from(dim).ok()?, stride));
        }
        axes.sort_by_key(|&(_, stride)| stride);
        let mut blocks = Blocks {
            len: size,
            outer: Vec::new(),
        };
        // One past the last byte that the axes so far reach.
        let mut reach = size;
        for (dim, stride) in axes {
            if stride < reach {
                return None;
            }
            reach = (dim - 1).checked_mul(stride)?.checked_add(reach)?;
            if blocks.outer.is_empty() && stride - blocks.len <= gap {
                blocks.len = reach;
            } else {
                blocks.outer.push((dim, stride));
            }
        }
        Some(blocks)
    }
}

/// Equal blocks of bytes, and how they repeat.
struct Blocks {
    len: u64,
    /// Extent and stride in bytes, fastest first.
    outer: Vec<(u64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn view(element: Element, dims: &[i64], strides: &[i64]) -> ElementView {
        ElementView {
            element,
            dims: dims.to_vec(),
            strides: strides.to_vec(),
        }
    }

    #[test]
    fn a_batch_stride_beyond_two_to_the_31_is_sparse_and_a_row_of_gaps_is_not() {
        let far = view(Element::F16, &[2, 3, 5], &[1 << 31, 5, 1]);
        let size = ((1u64 << 31) + 15) * 2;
        assert!(far.fits(size) && far.is_sparse(size));
        assert_eq!(far.resident_bytes(size), 2 * (30 + 4 * 4096));
        assert_eq!(far.stretches(), [0..30, 1 << 32..(1 << 32) + 30]);
        assert_eq!(far.watched(size), [0..30 + 4096, (1 << 32) - 4096..size]);
        // The gaps are as large, and every page holds an element.
        let rows = view(Element::F16, &[1 << 20, 1], &[1 << 11, 1]);
        let size = ((1u64 << 31) - (1 << 11) + 1) * 2;
        assert!(rows.fits(size) && !rows.is_sparse(size));
        assert_eq!(rows.resident_bytes(size), size);
    }

    #[test]
    fn shared_places_and_empty_views_are_not_sparse() {
        let size = 1 << 40;
        for (dims, strides) in [(vec![2, 4], vec![3, 1]), (vec![2, 2], vec![0, 1 << 35])] {
            let view = view(Element::F32, &dims, &strides);
            assert!(!view.is_sparse(size), "{dims:?} {strides:?}");
            assert_eq!(view.stretches(), []);
        }
        assert!(!view(Element::F32, &[0, 2], &[1 << 35, 1]).is_sparse(size));
        assert!(!view(Element::F32, &[2], &[-1]).is_sparse(size));
    }

    #[test]
    fn blocks_that_nearly_touch_are_watched_as_one() {
        // The second image of the outer axis begins 100 bytes behind the last of the inner one.
        let near = view(
            Element::Sentinel(1),
            &[2, 2, 10],
            &[(1 << 30) + 110, 1 << 30, 1],
        );
        let size = (1u64 << 31) + 120;
        let watched = near.watched(size);
        assert_eq!(watched.len(), 3);
        assert_eq!(watched[1], (1 << 30) - 4096..(1 << 30) + 120 + 4096);
        assert_eq!(near.stretches().len(), 4);
    }

    #[test]
    fn without_gaps_the_order_of_memory_stays() {
        let nhwc = view(Element::F32, &[2, 3, 4, 5], &[1 << 33, 1, 20, 4]);
        assert_eq!(nhwc.without_gaps().strides, [60, 1, 15, 3]);
        let one = view(Element::F32, &[1, 3, 1, 5], &[7, 10, 1 << 40, 1]);
        assert_eq!(one.without_gaps().strides, [1, 5, 1, 1]);
    }

    proptest! {
        /// The order of memory visits the elements of the logical order, each with its index, at
        /// ascending places unless some are shared.
        #[test]
        fn the_order_of_memory_visits_every_element(
            dims in prop::collection::vec(0i64..4, 0..5),
            strides in prop::collection::vec(0i64..20, 5),
            packed: bool,
        ) {
            let strides = strides[..dims.len()].to_vec();
            let mut view = ElementView { element: Element::F32, dims, strides };
            if packed {
                view = view.without_gaps();
            }
            let mut expected = Vec::new();
            view.for_each_offset(|at| expected.push((at, expected.len() as u64)));
            let mut found = Vec::new();
            view.for_each_in_memory(|at, index| found.push((at, index)));
            if view.has_places_of_its_own() {
                prop_assert!(found.is_sorted_by_key(|(at, _)| *at));
            }
            found.sort_by_key(|&(_, index)| index);
            prop_assert_eq!(found, expected);
        }

        /// Stretches are exactly the elements, whatever the gaps and the order of axes.
        #[test]
        fn stretches_are_the_elements(
            dims in prop::collection::vec(1i64..4, 0..5),
            order in Just((0..5usize).collect::<Vec<_>>()).prop_shuffle(),
            gap in 0i64..3,
        ) {
            let mut strides = vec![0; dims.len()];
            let mut stride = 1 + gap;
            for &axis in order.iter().filter(|&&axis| axis < dims.len()) {
                strides[axis] = stride;
                stride = stride * dims[axis] + gap;
            }
            let view = view(Element::F16, &dims, &strides);
            let mut expected = Vec::new();
            view.for_each_offset(|at| expected.extend([at, at + 1]));
            expected.sort_unstable();
            let found: Vec<u64> = view.stretches().into_iter().flatten().collect();
            prop_assert_eq!(found, expected);
        }
    }
}
