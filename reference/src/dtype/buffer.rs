//! Packed f64 values to and from strided byte buffers.

use super::element::{Element, with_element};
use super::view::View;
use crate::array::Array;
use crate::parallel;
use dnn_assay_graph::{DataType, Tensor};
use rayon::prelude::*;

/// Elements per parallel task; a smaller buffer is converted on the calling thread.
const CHUNK: usize = 1 << 15;

/// Why a buffer cannot be read or written as a tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The reference does not compute with this element type.
    #[error("tensor {uid}: no reference for element type {data_type}")]
    DataType {
        /// The tensor.
        uid: i64,
        /// Its type.
        data_type: DataType,
    },
    /// Negative extents or strides, strides of another rank, or a span beyond the address space.
    #[error("tensor {uid}: dims {dims:?} with strides {strides:?} have no layout in memory")]
    Shape {
        /// The tensor.
        uid: i64,
        /// Its extents.
        dims: Vec<i64>,
        /// Its strides.
        strides: Vec<i64>,
    },
    /// The buffer is shorter than the tensor's span.
    #[error("tensor {uid}: buffer of {seen} bytes, {expected} needed")]
    Buffer {
        /// The tensor.
        uid: i64,
        /// Bytes needed.
        expected: usize,
        /// Bytes given.
        seen: usize,
    },
    /// Another number of values than the tensor has elements.
    #[error("tensor {uid}: {seen} values for {expected} elements")]
    Values {
        /// The tensor.
        uid: i64,
        /// Elements of the tensor.
        expected: usize,
        /// Values given.
        seen: usize,
    },
}

/// Rounds `values` (packed, in logical order) once each to the tensor's type and writes them
/// where its strides say; bytes in the gaps stay as they are. Where elements overlap (stride 0)
/// the logically last one stays.
///
/// # Errors
/// If the type has no reference, the layout does not fit, or a length is wrong.
pub fn encode(tensor: &Tensor, values: &[f64], bytes: &mut [u8]) -> Result<(), LayoutError> {
    let view = checked_view(tensor, bytes.len())?;
    if values.len() != view.len() {
        return Err(LayoutError::Values {
            uid: tensor.uid,
            expected: view.len(),
            seen: values.len(),
        });
    }
    with_element!(tensor.data_type, E => store::<E>(&view, values, bytes))
        .ok_or_else(|| unsupported(tensor))
}

/// The values of a strided buffer, packed and in logical order.
///
/// # Errors
/// If the type has no reference, the layout does not fit, or the buffer is too short.
pub fn decode(tensor: &Tensor, bytes: &[u8]) -> Result<Array<f64>, LayoutError> {
    let view = checked_view(tensor, bytes.len())?;
    with_element!(tensor.data_type, E => load::<E>(&view, bytes)).ok_or_else(|| unsupported(tensor))
}

/// The tensor's view, if a buffer of `bytes` bytes can hold it.
pub(crate) fn checked_view(tensor: &Tensor, bytes: usize) -> Result<View, LayoutError> {
    let view = View::of(tensor).ok_or_else(|| LayoutError::Shape {
        uid: tensor.uid,
        dims: tensor.dims.clone(),
        strides: tensor.strides.clone(),
    })?;
    let size = tensor.data_type.size().ok_or_else(|| unsupported(tensor))?;
    let expected = view.span().saturating_mul(size);
    if bytes < expected {
        return Err(LayoutError::Buffer {
            uid: tensor.uid,
            expected,
            seen: bytes,
        });
    }
    Ok(view)
}

fn unsupported(tensor: &Tensor) -> LayoutError {
    LayoutError::DataType {
        uid: tensor.uid,
        data_type: tensor.data_type,
    }
}

fn load<E: Element>(view: &View, bytes: &[u8]) -> Array<f64> {
    let mut values = Array::unset(view.len());
    values
        .par_chunks_mut(CHUNK)
        .enumerate()
        .for_each(|(chunk, values)| {
            let first = chunk * CHUNK;
            view.runs(first..first + values.len(), |run| {
                let out = &mut values[run.logical.start - first..run.logical.end - first];
                load_run::<E>(&bytes[run.start * E::SIZE..], run.stride, out);
            });
        });
    values
}

/// Values that lie `stride` elements apart from the first byte on.
pub(crate) fn load_run<E: Element>(bytes: &[u8], stride: usize, values: &mut [f64]) {
    if stride == 1 {
        parallel::vectorised(
            #[inline(always)]
            || {
                for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(E::SIZE)) {
                    *value = E::load(bytes);
                }
            },
        );
    } else {
        for (i, value) in values.iter_mut().enumerate() {
            *value = E::load(&bytes[i * stride * E::SIZE..]);
        }
    }
}

fn store<E: Element>(view: &View, values: &[f64], bytes: &mut [u8]) {
    let slabs = (view.len() > CHUNK).then(|| slabs(view)).flatten();
    match slabs {
        Some(slabs) => store_slabs::<E>(&slabs, values, bytes),
        None => view.runs(0..view.len(), |run| {
            let bytes = &mut bytes[run.start * E::SIZE..];
            store_run::<E>(&values[run.logical], 1, bytes, run.stride);
        }),
    }
}

/// Every `step`-th value, `stride` elements apart.
fn store_run<E: Element>(values: &[f64], step: usize, bytes: &mut [u8], stride: usize) {
    if step == 1 && stride == 1 {
        parallel::vectorised(
            #[inline(always)]
            || {
                for (&value, bytes) in values.iter().zip(bytes.chunks_exact_mut(E::SIZE)) {
                    E::store(value, bytes);
                }
            },
        );
        return;
    }
    for (i, &value) in values.iter().step_by(step).enumerate() {
        E::store(value, &mut bytes[i * stride * E::SIZE..]);
    }
}

/// Axes in memory order, slowest first: extent, stride in memory, stride among packed values.
struct Slabs {
    axes: Vec<(usize, usize, usize)>,
}

/// The axes sorted by stride; `None` where elements could overlap.
fn slabs(view: &View) -> Option<Slabs> {
    let mut packed = 1;
    let mut axes: Vec<_> = view
        .axes()
        .iter()
        .rev()
        .map(|&(dim, stride)| {
            let axis = (dim, stride, packed);
            packed *= dim;
            axis
        })
        .collect();
    axes.sort_by_key(|&(_, stride, _)| std::cmp::Reverse(stride));
    let mut span = 1;
    for &(dim, stride, _) in axes.iter().rev() {
        if stride < span {
            return None;
        }
        span += (dim - 1) * stride;
    }
    Some(Slabs { axes })
}

/// Writes in memory order, so that the buffer can be split between threads.
fn store_slabs<E: Element>(slabs: &Slabs, values: &[f64], bytes: &mut [u8]) {
    let (&(dim, stride, step), rest) = slabs.axes.split_first().expect("more than one element");
    if rest.is_empty() {
        // One axis: pieces of it.
        bytes
            .par_chunks_mut(CHUNK * stride * E::SIZE)
            .enumerate()
            .for_each(|(piece, bytes)| {
                let first = piece * CHUNK;
                let last = dim.min(first + CHUNK) - 1;
                store_run::<E>(&values[first * step..=last * step], step, bytes, stride);
            });
        return;
    }
    bytes
        .par_chunks_mut(stride * E::SIZE)
        .take(dim)
        .enumerate()
        .for_each(|(i, bytes)| {
            store_axes::<E>(rest, &values[i * step..], bytes);
        });
}

fn store_axes<E: Element>(axes: &[(usize, usize, usize)], values: &[f64], bytes: &mut [u8]) {
    match axes {
        [] => {}
        [(dim, stride, step)] => {
            store_run::<E>(&values[..=(dim - 1) * step], *step, bytes, *stride);
        }
        [(dim, stride, step), rest @ ..] => {
            for i in 0..*dim {
                store_axes::<E>(
                    rest,
                    &values[i * step..],
                    &mut bytes[i * stride * E::SIZE..],
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tensor(data_type: DataType, dims: &[i64], strides: &[i64]) -> Tensor {
        Tensor {
            strides: strides.to_vec(),
            ..Tensor::packed(1, "x", data_type, dims)
        }
    }

    #[test]
    fn gaps_stay_and_elements_land() {
        let x = tensor(DataType::Half, &[2, 2], &[1, 3]);
        let mut bytes = [0xee; 10];
        encode(&x, &[1.0, 2.0, 3.0, 4.0], &mut bytes).unwrap();
        assert_eq!(bytes, [0, 0x3c, 0, 0x42, 0xee, 0xee, 0, 0x40, 0, 0x44]);
        assert_eq!(decode(&x, &bytes).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn wrong_buffers_are_errors() {
        let x = tensor(DataType::Float, &[2, 2], &[2, 1]);
        let message = decode(&x, &[0; 15]).unwrap_err().to_string();
        assert_eq!(message, "tensor 1: buffer of 15 bytes, 16 needed");
        let message = encode(&x, &[0.0; 3], &mut [0; 16]).unwrap_err().to_string();
        assert_eq!(message, "tensor 1: 3 values for 4 elements");
        let negative = tensor(DataType::Float, &[2, 2], &[-2, 1]);
        let message = decode(&negative, &[0; 16]).unwrap_err().to_string();
        assert_eq!(
            message,
            "tensor 1: dims [2, 2] with strides [-2, 1] have no layout in memory"
        );
        let message = decode(&tensor(DataType::Fp8E4m3, &[1], &[1]), &[0])
            .unwrap_err()
            .to_string();
        assert_eq!(message, "tensor 1: no reference for element type FP8_E4M3");
        assert_eq!(
            decode(&tensor(DataType::Float, &[0, 2], &[2, 1]), &[]).unwrap(),
            [0.0; 0]
        );
    }

    /// Big enough for the parallel paths: packed, channels last, gaps, one strided axis.
    #[test]
    fn big_buffers_round_trip() {
        for (dims, strides) in [
            (vec![3i64, 130, 131], vec![130 * 131, 131, 1]),
            (vec![3, 40, 50, 60], vec![120000, 1, 2400, 40]),
            (vec![3, 40, 50, 60], vec![1, 21601, 3, 360]),
            (vec![90000], vec![3]),
            (vec![2, 40000], vec![0, 1]),
        ] {
            let x = tensor(DataType::Bfloat16, &dims, &strides);
            let count = x.element_count().unwrap();
            let period = if strides[0] == 0 { 40000 } else { 251 };
            let values: Vec<f64> = (0..count)
                .map(|i| (i % period % 256) as f64 - 100.0)
                .collect();
            let mut bytes = vec![0; x.byte_size().unwrap()];
            encode(&x, &values, &mut bytes).unwrap();
            assert!(
                decode(&x, &bytes).unwrap() == values,
                "{dims:?} {strides:?}"
            );
        }
    }

    proptest! {
        /// Any permuted and stretched layout gives back what was rounded.
        #[test]
        fn decode_inverts_encode(
            dims in prop::collection::vec(1i64..5, 0..5),
            order in Just((0..5usize).collect::<Vec<_>>()).prop_shuffle(),
            gap in 1i64..3,
            seed in any::<u64>(),
            type_index in 0usize..8,
        ) {
            use DataType::*;
            let data_type = [Float, Half, Bfloat16, Double, Uint8, Int8, Int32, Int64][type_index];
            let mut strides = vec![0; dims.len()];
            let mut stride = gap;
            for &axis in order.iter().filter(|&&axis| axis < dims.len()) {
                strides[axis] = stride;
                stride *= dims[axis] + gap - 1;
            }
            let x = tensor(data_type, &dims, &strides);
            let values: Vec<f64> = (0..x.element_count().unwrap() as u64)
                .map(|i| (seed.wrapping_mul(i + 1) % 1000) as f64 / 7.0 - 50.0)
                .collect();
            let mut bytes = vec![0xee; x.byte_size().unwrap()];
            encode(&x, &values, &mut bytes).unwrap();
            let rounded: Vec<f64> =
                values.iter().map(|&v| super::super::round(data_type, v)).collect();
            prop_assert_eq!(decode(&x, &bytes).unwrap(), rounded);
        }
    }
}
