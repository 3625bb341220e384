//! Coordinates of elements, and which of them lie at an edge.

use dnn_assay_graph::Tensor;

/// Sizes of tiles that kernels are cut into.
const TILES: [i64; 6] = [8, 16, 32, 64, 128, 256];

/// Calls `f(index, coordinates)` for every element in logical row-major order.
pub(super) fn each_element(tensor: &Tensor, mut f: impl FnMut(usize, &[i64])) {
    let mut at = vec![0i64; tensor.dims.len()];
    for index in 0..tensor.element_count().unwrap_or(0) {
        f(index, &at);
        for axis in (0..at.len()).rev() {
            at[axis] += 1;
            if at[axis] < tensor.dims[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
}

/// Whether a coordinate is the last of its axis, or beside the border of a tile.
pub(super) fn is_edge(at: i64, extent: i64) -> bool {
    at == extent - 1 || TILES.iter().any(|&tile| at == tile || at == tile - 1)
}

/// The channel of an element of `[N, C, …]`.
pub(super) fn channel(tensor: &Tensor, index: usize) -> usize {
    let extent = |axis: usize| tensor.dims.get(axis).map_or(1, |&dim| dim.max(1) as usize);
    let plane: usize = (2..tensor.dims.len()).map(extent).product();
    index / plane % extent(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_graph::DataType;

    #[test]
    fn edges_are_the_last_and_the_tiles_two_sides() {
        let edges = |extent: i64| {
            (0..extent)
                .filter(|&at| is_edge(at, extent))
                .collect::<Vec<_>>()
        };
        assert_eq!(edges(5), [4]);
        assert_eq!(edges(20), [7, 8, 15, 16, 19]);
    }

    #[test]
    fn elements_come_in_row_major_order() {
        let tensor = Tensor::packed(1, "x", DataType::Float, &[2, 3, 2]);
        let mut seen = Vec::new();
        each_element(&tensor, |index, at| seen.push((index, at.to_vec())));
        assert_eq!(seen.len(), 12);
        assert_eq!(seen[7], (7, vec![1, 0, 1]));
        assert_eq!(channel(&tensor, 9), 1);
    }
}
