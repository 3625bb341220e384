//! Where the elements of a strided tensor lie.

use dnn_assay_graph::Tensor;
use std::ops::Range;

/// Extents and strides of a tensor whose span fits, with axes of one step merged.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Extent and stride per axis, slowest first in logical order; axes of extent 1 are left out,
    /// and neighbours that one stride can walk are merged.
    axes: Vec<(usize, usize)>,
    len: usize,
    span: usize,
}

/// A stretch of logically consecutive elements that lie one stride apart.
pub(crate) struct Run {
    /// The logical indices.
    pub(crate) logical: Range<usize>,
    /// Where the first lies, in elements.
    pub(crate) start: usize,
    /// From one to the next, in elements.
    pub(crate) stride: usize,
}

impl View {
    /// `None` where the rank of the strides differs or the span does not fit.
    pub(crate) fn of(tensor: &Tensor) -> Option<Self> {
        if tensor.dims.len() != tensor.strides.len() {
            return None;
        }
        let (len, span) = (tensor.element_count()?, tensor.span()?);
        let mut axes: Vec<(usize, usize)> = Vec::with_capacity(tensor.dims.len());
        for (&dim, &stride) in tensor.dims.iter().zip(&tensor.strides) {
            let (dim, stride) = (usize::try_from(dim).ok()?, usize::try_from(stride).ok()?);
            match axes.last_mut() {
                _ if dim == 1 => {}
                Some(slower) if Some(slower.1) == stride.checked_mul(dim) => {
                    *slower = (slower.0 * dim, stride);
                }
                _ => axes.push((dim, stride)),
            }
        }
        Some(Self { axes, len, span })
    }

    /// Elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Elements from the first to one past the last in memory.
    pub(crate) fn span(&self) -> usize {
        self.span
    }

    /// Extent and stride of the merged axes.
    pub(crate) fn axes(&self) -> &[(usize, usize)] {
        &self.axes
    }

    /// Calls `visit` with the runs that cover `range`, in logical order.
    pub(crate) fn runs(&self, range: Range<usize>, mut visit: impl FnMut(Run)) {
        let Some((&(inner, stride), outer)) = self.axes.split_last() else {
            if !range.is_empty() {
                visit(Run {
                    logical: range,
                    start: 0,
                    stride: 1,
                });
            }
            return;
        };
        let mut at = range.start;
        while at < range.end {
            let within = at % inner;
            let end = range.end.min(at - within + inner);
            let start = offset(outer, at / inner) + within * stride;
            visit(Run {
                logical: at..end,
                start,
                stride,
            });
            at = end;
        }
    }
}

/// Where the row-major `index` over `axes` lies, in elements.
fn offset(axes: &[(usize, usize)], mut index: usize) -> usize {
    let mut offset = 0;
    for &(dim, stride) in axes.iter().rev() {
        offset += (index % dim) * stride;
        index /= dim;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_graph::DataType;

    fn offsets(dims: &[i64], strides: &[i64], range: Range<usize>) -> Vec<usize> {
        let view = View::of(&Tensor {
            strides: strides.to_vec(),
            ..Tensor::packed(1, "x", DataType::Float, dims)
        })
        .unwrap();
        let mut all = Vec::new();
        view.runs(range, |run| {
            all.extend((0..run.logical.len()).map(|i| run.start + i * run.stride));
        });
        all
    }

    #[test]
    fn runs_cover_a_range_in_logical_order() {
        assert_eq!(offsets(&[2, 3], &[3, 1], 0..6), [0, 1, 2, 3, 4, 5]);
        assert_eq!(offsets(&[2, 3], &[1, 2], 0..6), [0, 2, 4, 1, 3, 5]);
        assert_eq!(offsets(&[2, 1, 3], &[10, 7, 2], 1..5), [2, 4, 10, 12]);
        assert_eq!(offsets(&[], &[], 0..1), [0]);
        assert_eq!(offsets(&[1, 1], &[5, 5], 0..1), [0]);
        assert_eq!(offsets(&[2, 2], &[0, 1], 0..4), [0, 1, 0, 1]);
    }

    #[test]
    fn axes_merge_where_one_stride_walks_them() {
        let view = |dims: &[i64], strides: &[i64]| {
            View::of(&Tensor {
                strides: strides.to_vec(),
                ..Tensor::packed(1, "x", DataType::Float, dims)
            })
        };
        assert_eq!(view(&[2, 3, 4], &[12, 4, 1]).unwrap().axes(), [(24, 1)]);
        let channels_last = view(&[2, 3, 4, 5], &[60, 1, 15, 3]).unwrap();
        assert_eq!(channels_last.axes(), [(2, 60), (3, 1), (20, 3)]);
        assert!(view(&[2, 3], &[3]).is_none());
        assert!(view(&[2, 3], &[-3, 1]).is_none());
    }
}
