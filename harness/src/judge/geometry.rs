//! Where wrong elements lie, in words.

use dnn_assay_graph::Tensor;
use dnn_assay_reference::diagnose::geometry;
use dnn_assay_reference::{Comparison, Estimate};

use crate::journal::MismatchGeometry;

/// Coordinates of a logical row-major index.
pub fn coordinates(dims: &[i64], index: u64) -> Vec<i64> {
    let mut rest = index;
    let mut at = vec![0; dims.len()];
    for axis in (0..dims.len()).rev() {
        let extent = u64::try_from(dims[axis]).unwrap_or(1).max(1);
        at[axis] = (rest % extent) as i64;
        rest /= extent;
    }
    at
}

/// The first wrong elements, the box that holds them all, and what they have in common.
pub fn describe(
    tensor: &Tensor,
    estimate: &Estimate,
    got: &[u8],
    comparison: &Comparison,
) -> MismatchGeometry {
    // What could be compared can be looked at again.
    let found = geometry(tensor, estimate, got, &comparison.criterion).unwrap_or_default();
    let first = comparison.first.iter();
    MismatchGeometry {
        text: found.text,
        first: first.map(|element| element.index as u64).collect(),
        low: found.low,
        high: found.high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_become_coordinates() {
        assert_eq!(coordinates(&[2, 3, 5], 0), [0, 0, 0]);
        assert_eq!(coordinates(&[2, 3, 5], 29), [1, 2, 4]);
        assert_eq!(coordinates(&[2, 3, 5], 7), [0, 1, 2]);
    }
}
