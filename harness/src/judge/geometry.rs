//! Where wrong elements lie, in words.

use dnn_assay_reference::Element;

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

/// The first wrong elements and the box that holds them.
pub fn describe(dims: &[i64], first: &[Element], wrong: usize, total: usize) -> MismatchGeometry {
    let mut low = dims.to_vec();
    let mut high = vec![0; dims.len()];
    for element in first {
        for (axis, &at) in element.coordinates.iter().enumerate() {
            low[axis] = low[axis].min(at);
            high[axis] = high[axis].max(at);
        }
    }
    let share = 100.0 * wrong as f64 / total.max(1) as f64;
    let shown = first.len();
    let text = if wrong == total {
        format!("all {total} elements are wrong")
    } else if shown == wrong {
        format!(
            "{wrong} of {total} elements ({share:.2} %) are wrong, all within {low:?} to {high:?}"
        )
    } else {
        format!(
            "{wrong} of {total} elements ({share:.2} %) are wrong; the first {shown} lie within {low:?} to {high:?}"
        )
    };
    MismatchGeometry {
        text,
        first: first.iter().map(|element| element.index as u64).collect(),
        low,
        high,
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
