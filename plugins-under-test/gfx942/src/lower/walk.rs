//! Elementwise loops: the fewest axes, in the order of the output's memory.

use dnn_assay_plugin_sdk::Error;

use crate::parameters::{MAX_RANK, Steps, VECTOR, Walk, element};

/// Whether axes may be reordered and merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// By the first operand's strides, neighbours merged.
    Memory,
    /// As given.
    Kept,
}

/// The loop over `dims` for operands with these strides, of which the first is the output.
pub(super) fn walk<const N: usize>(
    dims: &[i64],
    strides: &[Vec<i64>; N],
    order: Order,
) -> Result<(Walk, [Steps; N]), Error> {
    let mut axes: Vec<(i64, [i64; N])> = dims
        .iter()
        .enumerate()
        .map(|(axis, &dim)| (dim, std::array::from_fn(|o| strides[o][axis])))
        .collect();
    if order == Order::Memory {
        axes.retain(|(dim, _)| *dim != 1);
        axes.sort_by_key(|(_, strides)| std::cmp::Reverse(strides[0]));
        axes = merged(&axes);
    }
    if axes.len() > MAX_RANK {
        return Err(Error::not_applicable(
            "more than six axes that cannot be merged",
        ));
    }
    let mut walk = Walk {
        total: dims.iter().product::<i64>() as u32,
        rank: axes.len() as u32,
        dims: [1; MAX_RANK],
    };
    let mut steps = [[0; MAX_RANK]; N];
    let first = MAX_RANK - axes.len();
    for (axis, (dim, strides)) in axes.iter().enumerate() {
        walk.dims[first + axis] = *dim as u32;
        for (steps, stride) in steps.iter_mut().zip(strides) {
            steps[first + axis] = *stride;
        }
    }
    Ok((walk, steps))
}

/// An operand of a vector kernel: address, element type, steps.
pub(super) type Row = (u64, u32, Steps);

/// Whether [`VECTOR`] neighbours of the walk are neighbours in the first operand, the output, and
/// neighbours or one element in the others, and whole vectors of them aligned.
pub(super) fn goes_in_vectors(walk: &Walk, operands: &[Row]) -> bool {
    let inner = MAX_RANK - 1;
    let several = walk.rank > 1;
    let fits = |&(address, kind, steps): &Row| {
        let Some(size) = element::vectored(kind) else {
            return true;
        };
        let whole = VECTOR as i64;
        steps[inner] == 0
            || address % (size * VECTOR as u64) == 0
                && (!several || steps[..inner].iter().all(|step| step % whole == 0))
    };
    walk.rank > 0
        && operands.first().is_some_and(|out| out.2[inner] == 1)
        && operands.iter().all(|row| matches!(row.2[inner], 0 | 1))
        && (!several || (walk.dims[inner] as usize).is_multiple_of(VECTOR))
        && operands.iter().all(fits)
}

/// An axis merges into the one before it where every operand steps over both as over one.
fn merged<const N: usize>(axes: &[(i64, [i64; N])]) -> Vec<(i64, [i64; N])> {
    let mut out: Vec<(i64, [i64; N])> = Vec::new();
    for &(dim, strides) in axes {
        if let Some((outer, outer_strides)) = out.last_mut()
            && (0..N).all(|o| outer_strides[o] == strides[o] * dim)
        {
            *outer *= dim;
            *outer_strides = strides;
            continue;
        }
        out.push((dim, strides));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_operands_become_one_axis_in_any_layout() {
        let nhwc = vec![60, 1, 12, 3];
        let strides = [nhwc.clone(), nhwc];
        let (walk, steps) = walk(&[2, 3, 5, 4], &strides, Order::Memory).unwrap();
        assert_eq!((walk.total, walk.rank, walk.dims[5]), (120, 1, 120));
        assert_eq!(steps[0][5], 1);
    }

    #[test]
    fn a_broadcast_axis_stays_apart() {
        let strides = [vec![12, 4, 1], vec![0, 1, 0]];
        let (walk, steps) = walk(&[2, 3, 4], &strides, Order::Memory).unwrap();
        assert_eq!((walk.rank, &walk.dims[3..]), (3, &[2, 3, 4][..]));
        assert_eq!(&steps[1][3..], [0, 1, 0]);
    }

    #[test]
    fn seven_axes_that_cannot_be_merged_are_declined() {
        let gaps: Vec<i64> = (0..7).rev().map(|axis| 3i64.pow(axis)).collect();
        assert!(walk(&[2; 7], &[gaps], Order::Memory).is_err());
    }

    #[test]
    fn vectors_need_neighbours_whole_rows_and_alignment() {
        let of =
            |dims: &[i64], strides: [Vec<i64>; 2]| walk(dims, &strides, Order::Memory).unwrap();
        let rows = |steps: [Steps; 2], address| steps.map(|steps| (address, element::F32, steps));
        let (flat, steps) = of(&[3, 5], [vec![5, 1], vec![5, 1]]);
        assert!(goes_in_vectors(&flat, &rows(steps, 16)));
        assert!(!goes_in_vectors(&flat, &rows(steps, 8)), "half a vector");
        let (bias, steps) = of(&[2, 3, 8], [vec![24, 8, 1], vec![0, 1, 0]]);
        assert!(goes_in_vectors(&bias, &rows(steps, 16)));
        let (odd, steps) = of(&[2, 3, 7], [vec![21, 7, 1], vec![0, 1, 0]]);
        assert!(!goes_in_vectors(&odd, &rows(steps, 16)), "rows of seven");
        let (gaps, steps) = of(&[4, 8], [vec![9, 1], vec![8, 1]]);
        assert!(!goes_in_vectors(&gaps, &rows(steps, 16)), "rows nine apart");
        let (turned, steps) = of(&[4, 8], [vec![8, 1], vec![1, 4]]);
        assert!(
            !goes_in_vectors(&turned, &rows(steps, 16)),
            "a transposed operand"
        );
    }
}
