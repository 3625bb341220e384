//! Whether two elements of a tensor share a place.

/// The first axis, from the fastest on, whose stride is not beyond everything that the faster axes
/// reach; `None` if no two elements can share a place. Axes of extent 1 or less do not count.
///
/// This is sufficient for distinct places, and necessary for all layouts in use: axes in some
/// order, each with room for a gap.
pub fn overlap(dims: &[i64], strides: &[i64]) -> Option<usize> {
    let mut axes: Vec<usize> = (0..dims.len().min(strides.len()))
        .filter(|&axis| dims[axis] > 1)
        .collect();
    axes.sort_by_key(|&axis| strides[axis]);
    let mut reach = 0i128;
    for axis in axes {
        let stride = i128::from(strides[axis]);
        if stride <= reach {
            return Some(axis);
        }
        reach = reach.saturating_add(stride.saturating_mul(i128::from(dims[axis]) - 1));
    }
    None
}
