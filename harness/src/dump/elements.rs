//! Bytes of strided buffers to and from packed ones, bit for bit: a NaN keeps its payload.

use dnn_assay_graph::Tensor;

/// The elements of `bytes`, the buffer of a strided tensor, packed in logical order. `None` where
/// the layout does not fit the buffer.
pub fn pack(tensor: &Tensor, bytes: &[u8]) -> Option<Vec<u8>> {
    let size = tensor.data_type.size()?;
    if tensor.byte_size()? > bytes.len() {
        return None;
    }
    let mut packed = Vec::with_capacity(tensor.element_count()?.checked_mul(size)?);
    for_each_offset(tensor, |at| {
        packed.extend_from_slice(&bytes[at * size..(at + 1) * size]);
    });
    Some(packed)
}

/// A buffer of the tensor's layout with these packed elements; zeros in its gaps. `None` where
/// their number is another.
pub fn unpack(tensor: &Tensor, packed: &[u8]) -> Option<Vec<u8>> {
    let size = tensor.data_type.size()?;
    if tensor.element_count()?.checked_mul(size)? != packed.len() {
        return None;
    }
    let mut bytes = vec![0; tensor.byte_size()?];
    let mut elements = packed.chunks_exact(size);
    for_each_offset(tensor, |at| {
        if let Some(element) = elements.next() {
            bytes[at * size..(at + 1) * size].copy_from_slice(element);
        }
    });
    Some(bytes)
}

/// Calls `visit` with each element's place in the buffer, in elements and in logical order. The
/// tensor has a span, so that extents and strides are known not to be negative.
fn for_each_offset(tensor: &Tensor, mut visit: impl FnMut(usize)) {
    if tensor.dims.contains(&0) {
        return;
    }
    let mut index = vec![0i64; tensor.dims.len()];
    let mut at = 0i64;
    loop {
        visit(usize::try_from(at).expect("a tensor with a span has no negative offset"));
        let mut axis = tensor.dims.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            at += tensor.strides[axis];
            if index[axis] < tensor.dims[axis] {
                break;
            }
            at -= tensor.strides[axis] * tensor.dims[axis];
            index[axis] = 0;
        }
    }
}
