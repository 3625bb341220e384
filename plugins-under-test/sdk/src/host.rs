//! Tensors in host memory: any strides and type to packed `f32` or `f64`, and back.

use dnn_assay_graph::{DataType, Tensor};
use half::{bf16, f16};
use std::ops::Range;

/// The type that a kernel computes in: `f32` or `f64`.
pub trait Real: Copy + Send + Sync + 'static {
    /// The nearest value to `value`.
    fn from_f64(value: f64) -> Self;
    /// The value itself, for `f32` exactly.
    fn to_f64(self) -> f64;
    /// The nearest `f32`.
    fn to_f32(self) -> f32;
    /// A value that rounds to every narrower type as this one does, in a single rounding.
    fn to_narrowable(self) -> f32;
}

impl Real for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    fn to_f32(self) -> f32 {
        self
    }
    fn to_narrowable(self) -> f32 {
        self
    }
}

impl Real for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn to_f32(self) -> f32 {
        self as f32
    }
    /// Rounds to odd: truncates, and sets the last bit if anything was lost. `f32` has more than
    /// two bits more than the half types, so that rounding its result once more is innocuous.
    fn to_narrowable(self) -> f32 {
        let near = self as f32;
        if !near.is_finite() || f64::from(near) == self {
            return near;
        }
        let truncated = if f64::from(near).abs() > self.abs() {
            near.to_bits() - 1
        } else {
            near.to_bits()
        };
        f32::from_bits(truncated | 1)
    }
}

/// An element type in memory.
trait Element: Copy {
    fn to_real<T: Real>(self) -> T;
    fn from_real<T: Real>(value: T) -> Self;
}

macro_rules! elements {
    ($($type:ty: $value:ident => $wide:expr, $real:ident => $narrow:expr;)*) => {
        $(impl Element for $type {
            fn to_real<T: Real>(self) -> T { let $value = self; T::from_f64($wide) }
            fn from_real<T: Real>($real: T) -> Self { $narrow }
        })*
    };
}

elements! {
    f32: v => f64::from(v), r => r.to_f32();
    f64: v => v, r => r.to_f64();
    f16: v => f64::from(v.to_f32()), r => f16::from_f32(r.to_narrowable());
    bf16: v => f64::from(v.to_f32()), r => bf16::from_f32(r.to_narrowable());
    // Integers saturate, and truncate toward zero.
    i32: v => f64::from(v), r => r.to_f64() as i32;
    i64: v => v as f64, r => r.to_f64() as i64;
    i8: v => f64::from(v), r => r.to_f64() as i8;
    u8: v => f64::from(v), r => r.to_f64() as u8;
}

/// Appends elements `range`, in logical order, of a tensor to `values`; `None` for a type or shape that
/// cannot be read.
///
/// # Safety
/// `buffer` must be valid for reads of `tensor.byte_size()` bytes, and `range` lie within the tensor's
/// elements.
pub(crate) unsafe fn load<T: Real>(
    tensor: &Tensor,
    buffer: *const u8,
    range: Range<usize>,
    values: &mut Vec<T>,
) -> Option<()> {
    tensor.byte_size()?;
    // SAFETY: forwarded; the type's size is the one that `byte_size` multiplied the span with.
    unsafe {
        match tensor.data_type {
            DataType::Float => gather::<f32, T>(tensor, buffer.cast(), range, values),
            DataType::Double => gather::<f64, T>(tensor, buffer.cast(), range, values),
            DataType::Half => gather::<f16, T>(tensor, buffer.cast(), range, values),
            DataType::Bfloat16 => gather::<bf16, T>(tensor, buffer.cast(), range, values),
            DataType::Int32 => gather::<i32, T>(tensor, buffer.cast(), range, values),
            DataType::Int64 => gather::<i64, T>(tensor, buffer.cast(), range, values),
            DataType::Int8 => gather::<i8, T>(tensor, buffer.cast(), range, values),
            DataType::Uint8 => gather::<u8, T>(tensor, buffer.cast(), range, values),
            _ => return None,
        }
    }
    Some(())
}

/// Writes the elements of a tensor from `start` on, in logical order; `None`, and nothing written, for a
/// type or shape that cannot be written.
///
/// # Safety
/// `buffer` must be valid for writes of `tensor.byte_size()` bytes, and the tensor must have
/// `values.len()` elements from `start` on.
pub(crate) unsafe fn store<T: Real>(
    tensor: &Tensor,
    buffer: *mut u8,
    start: usize,
    values: &[T],
) -> Option<()> {
    tensor.byte_size()?;
    // SAFETY: forwarded; the type's size is the one that `byte_size` multiplied the span with.
    unsafe {
        match tensor.data_type {
            DataType::Float => scatter::<f32, T>(tensor, buffer.cast(), start, values),
            DataType::Double => scatter::<f64, T>(tensor, buffer.cast(), start, values),
            DataType::Half => scatter::<f16, T>(tensor, buffer.cast(), start, values),
            DataType::Bfloat16 => scatter::<bf16, T>(tensor, buffer.cast(), start, values),
            DataType::Int32 => scatter::<i32, T>(tensor, buffer.cast(), start, values),
            DataType::Int64 => scatter::<i64, T>(tensor, buffer.cast(), start, values),
            DataType::Int8 => scatter::<i8, T>(tensor, buffer.cast(), start, values),
            DataType::Uint8 => scatter::<u8, T>(tensor, buffer.cast(), start, values),
            _ => return None,
        }
    }
    Some(())
}

/// # Safety
/// `base` must be valid for reads of the tensor's span in elements; its span must exist and hold
/// elements `range`.
unsafe fn gather<E: Element, T: Real>(
    tensor: &Tensor,
    base: *const E,
    range: Range<usize>,
    values: &mut Vec<T>,
) {
    values.reserve(range.len());
    for_each_run(tensor, range, |offset, count, stride| {
        let element = |i: usize| {
            // SAFETY: offset + i·stride is an element of the span; buffers need not be aligned.
            unsafe { base.add(offset + i * stride).read_unaligned() }.to_real::<T>()
        };
        values.extend((0..count).map(element));
    });
}

/// # Safety
/// `base` must be valid for writes of the tensor's span in elements; its span must exist and hold
/// `values.len()` elements from `start` on.
unsafe fn scatter<E: Element, T: Real>(tensor: &Tensor, base: *mut E, start: usize, values: &[T]) {
    let mut rest = values;
    for_each_run(
        tensor,
        start..start + values.len(),
        |offset, count, stride| {
            let (run, tail) = rest.split_at(count);
            for (i, &value) in run.iter().enumerate() {
                // SAFETY: offset + i·stride is an element of the span; buffers need not be aligned.
                unsafe {
                    base.add(offset + i * stride)
                        .write_unaligned(E::from_real(value));
                }
            }
            rest = tail;
        },
    );
}

/// Calls `run(offset, count, stride)` for each row, or part of one, of elements `range` of the tensor in
/// logical order, in elements. The last axes are taken as one where their strides allow it.
fn for_each_run(tensor: &Tensor, range: Range<usize>, mut run: impl FnMut(usize, usize, usize)) {
    if range.is_empty() {
        return;
    }
    let (dims, strides) = merged_axes(tensor);
    let Some((&row, outer)) = dims.split_last() else {
        return run(0, 1, 1);
    };
    if dims.contains(&0) {
        return;
    }
    let stride = strides[outer.len()];
    let mut index = vec![0usize; outer.len()];
    let (mut rest, mut first) = (range.start / row, range.start % row);
    let mut offset = 0usize;
    for axis in (0..outer.len()).rev() {
        index[axis] = rest % outer[axis];
        rest /= outer[axis];
        offset += index[axis] * strides[axis];
    }
    let mut left = range.len();
    loop {
        let count = (row - first).min(left);
        run(offset + first * stride, count, stride);
        (left, first) = (left - count, 0);
        if left == 0 {
            return;
        }
        let mut axis = outer.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            offset += strides[axis];
            if index[axis] < outer[axis] {
                break;
            }
            offset -= strides[axis] * outer[axis];
            index[axis] = 0;
        }
    }
}

/// Dims and strides with neighbours merged where the outer stride is the inner axis' extent in
/// memory, and axes of one element left out. The tensor's span exists, so nothing is negative.
fn merged_axes(tensor: &Tensor) -> (Vec<usize>, Vec<usize>) {
    let (mut dims, mut strides) = (Vec::<usize>::new(), Vec::<usize>::new());
    for (&dim, &stride) in tensor.dims.iter().zip(&tensor.strides) {
        let (dim, stride) = (dim as usize, stride as usize);
        if dim == 1 {
            continue;
        }
        match (dims.last_mut(), strides.last_mut()) {
            (Some(outer), Some(step)) if dim != 0 && *outer != 0 && *step == stride * dim => {
                *outer *= dim;
                *step = stride;
            }
            _ => {
                dims.push(dim);
                strides.push(stride);
            }
        }
    }
    (dims, strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(dims: &[i64], strides: &[i64], data_type: DataType) -> Tensor {
        Tensor {
            strides: strides.to_vec(),
            ..Tensor::packed(1, "t", data_type, dims)
        }
    }

    /// # Safety
    /// As [`load`], for all elements.
    unsafe fn all<T: Real>(tensor: &Tensor, buffer: *const u8) -> Option<Vec<T>> {
        let (mut values, count) = (Vec::new(), tensor.element_count()?);
        // SAFETY: forwarded.
        unsafe { load(tensor, buffer, 0..count, &mut values) }.map(|()| values)
    }

    #[test]
    fn parts_are_parts_of_the_whole() {
        let memory: Vec<f32> = (0u8..120).map(f32::from).collect();
        for (dims, strides) in [
            (vec![2, 3, 4, 5], vec![60, 20, 5, 1]),
            (vec![2, 3, 4, 5], vec![60, 1, 15, 3]),
            (vec![1, 4, 1, 5], vec![99, 6, 99, 1]),
            (vec![7], vec![3]),
        ] {
            let tensor = strided(&dims, &strides, DataType::Float);
            // SAFETY: no span is longer than `memory`.
            let whole: Vec<f32> = unsafe { all(&tensor, memory.as_ptr().cast()) }.unwrap();
            for start in 0..=whole.len() {
                for end in start..=whole.len() {
                    let mut part = vec![0.5f32];
                    // SAFETY: as above, and the range is one of the tensor's.
                    unsafe { load(&tensor, memory.as_ptr().cast(), start..end, &mut part) }
                        .unwrap();
                    assert_eq!(part[1..], whole[start..end], "{dims:?} {start}..{end}");
                    let mut written = vec![-1.0f32; 120];
                    // SAFETY: as above.
                    unsafe { store(&tensor, written.as_mut_ptr().cast(), start, &part[1..]) }
                        .unwrap();
                    let kept = written.iter().filter(|value| **value != -1.0).count();
                    assert_eq!(kept, end - start);
                    for (&w, &m) in written.iter().zip(&memory) {
                        assert!(w == -1.0 || w == m, "{dims:?} {start}..{end}");
                    }
                }
            }
        }
    }

    #[test]
    fn loads_are_in_logical_order_whatever_the_strides() {
        let memory: Vec<f32> = (0u8..24).map(f32::from).collect();
        let nhwc = strided(&[1, 2, 3, 4], &[24, 1, 8, 2], DataType::Float);
        // SAFETY: the span is 24 elements, and so is `memory`.
        let values: Vec<f32> = unsafe { all(&nhwc, memory.as_ptr().cast()) }.unwrap();
        assert_eq!(
            values[..12],
            [0., 2., 4., 6., 8., 10., 12., 14., 16., 18., 20., 22.]
        );
        assert_eq!(values[12], 1.0);
    }

    #[test]
    fn stores_leave_gaps_alone() {
        let mut memory = vec![9.0f64; 12];
        let gaps = strided(&[2, 3], &[6, 2], DataType::Double);
        // SAFETY: the span is 6 + 4 + 1 = 11 elements of the 12.
        unsafe {
            store(
                &gaps,
                memory.as_mut_ptr().cast(),
                0,
                &[1.0f32, 2., 3., 4., 5., 6.],
            )
        }
        .unwrap();
        assert_eq!(memory, [1., 9., 2., 9., 3., 9., 4., 9., 5., 9., 6., 9.]);
    }

    #[test]
    fn empty_and_scalar_tensors() {
        let one = [5.0f32];
        let scalar = strided(&[1, 1], &[1, 1], DataType::Float);
        // SAFETY: one element each, or none.
        unsafe {
            assert_eq!(all::<f32>(&scalar, one.as_ptr().cast()).unwrap(), [5.0]);
            let empty = strided(&[2, 0], &[1, 1], DataType::Float);
            assert!(all::<f32>(&empty, one.as_ptr().cast()).unwrap().is_empty());
            let unknown = strided(&[1], &[1], DataType::Fp4E2m1);
            assert!(all::<f32>(&unknown, one.as_ptr().cast()).is_none());
        }
    }

    #[test]
    fn doubles_reach_half_in_one_rounding() {
        // Just above the midpoint of 1 and 1 + 2^-10, by less than f32 can hold: rounding by way
        // of f32 would land on the midpoint and then, to even, on 1.
        let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(f16::from_real(above), f16::from_f32(1.0 + 2f32.powi(-10)));
        assert_eq!(f16::from_real(-above), f16::from_f32(-1.0 - 2f32.powi(-10)));
        assert_eq!(f16::from_real(above as f32), f16::from_f32(1.0));
        assert!(bf16::from_real(f64::NAN).is_nan());
        assert_eq!(bf16::from_real(f64::MAX), bf16::INFINITY);
        assert_eq!(f16::from_real(2f64.powi(-300)), f16::from_f32(0.0));
    }
}
