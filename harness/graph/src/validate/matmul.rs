//! Matmuls and reductions.

use super::node::NodeCheck;
use super::problem::list;
use crate::enums::ReductionMode;
use crate::schema::{MatmulAttributes, ReductionAttributes};

/// a […, M, K], b […, K, N], c […, M, N]; batch extents of a and b divide those of c.
pub(super) fn check(check: &mut NodeCheck<'_, '_>, node: &MatmulAttributes) -> Option<()> {
    let a = check.dims(node.a_tensor_uid)?;
    let b = check.dims(node.b_tensor_uid)?;
    let c = check.dims(node.c_tensor_uid)?;
    if !check.expect_rank("a_tensor_uid", a, 2) {
        return Some(());
    }
    for (field, dims) in [("b_tensor_uid", b), ("c_tensor_uid", c)] {
        if dims.len() != a.len() {
            let expected = format!("{} axes, as a has", a.len());
            check.problem(field, expected, list(dims), "give all three the same rank");
            return Some(());
        }
    }
    let (row, column) = (a.len() - 2, a.len() - 1);
    if a[column] != b[row] {
        let expected = format!("{} as its last extent but one, as a's last", a[column]);
        check.problem(
            "b_tensor_uid",
            expected,
            list(b),
            "make the inner extents agree",
        );
    }
    if (c[row], c[column]) != (a[row], b[column]) {
        let expected = format!("extents […, {}, {}]", a[row], b[column]);
        check.problem(
            "c_tensor_uid",
            expected,
            list(c),
            "take M from a and N from b",
        );
    }
    for (field, dims) in [("a_tensor_uid", a), ("b_tensor_uid", b)] {
        let divides = |(own, out): (&i64, &i64)| *own > 0 && out.checked_rem(*own) == Some(0);
        if !dims[..row].iter().zip(&c[..row]).all(divides) {
            let expected = format!("batch extents that divide {}", list(&c[..row]));
            check.problem(field, expected, list(&dims[..row]), "use the same or 1");
        }
    }
    Some(())
}

/// The output has x's rank and, along each axis, x's extent or 1.
pub(super) fn reduction(check: &mut NodeCheck<'_, '_>, node: &ReductionAttributes) -> Option<()> {
    let input = check.dims(node.in_tensor_uid)?;
    let output = check.dims(node.out_tensor_uid)?;
    if node.mode == ReductionMode::NotSet {
        check.problem("mode", "a reduction mode", "NOT_SET", "set it");
    }
    let mut pairs = input.iter().zip(output);
    if input.len() != output.len() || !pairs.all(|(x, y)| y == x || *y == 1) {
        let expected = format!("the extents {}, or 1 where it reduces", list(input));
        check.problem("out_tensor_uid", expected, list(output), "keep the rank");
    }
    Some(())
}
