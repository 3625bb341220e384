//! Pointwise nodes: arity, types, broadcasting, parameters.

use super::node::NodeCheck;
use super::problem::list;
use crate::enums::PointwiseMode;
use crate::model::Tensor;
use crate::schema::PointwiseAttributes;
use crate::semantics::{DtypeClass, Parameters, PointwiseSemantics, pointwise};

pub(super) fn check(check: &mut NodeCheck<'_, '_>, node: &PointwiseAttributes) -> Option<()> {
    if node.operation == PointwiseMode::Unset {
        check.problem("operation", "a pointwise mode", "UNSET", "set it");
        return Some(());
    }
    let facts = pointwise(node.operation);
    let operands = [
        ("in_0_tensor_uid", Some(node.in_0_tensor_uid)),
        ("in_1_tensor_uid", node.in_1_tensor_uid),
        ("in_2_tensor_uid", node.in_2_tensor_uid),
    ];
    let out = check.tensor(node.out_0_tensor_uid)?;
    expect_type(check, "out_0_tensor_uid", facts, out, facts.output);
    for (index, (field, uid)) in operands.into_iter().enumerate() {
        match (uid, index < facts.arity()) {
            (Some(uid), true) => {
                let operand = check.tensor(uid)?;
                expect_type(check, field, facts, operand, facts.operand_dtypes(index));
                expect_broadcast(check, field, &operand.dims, &out.dims);
            }
            (None, true) => {
                let expected = format!("the operand `{}` of {}", facts.operands[index], facts.name);
                check.problem(field, expected, "none", "name the tensor");
            }
            (Some(uid), false) => {
                let expected = format!("none, since {} takes {}", facts.name, facts.arity());
                check.problem(field, expected, uid.to_string(), "leave it out");
            }
            (None, false) => {}
        }
    }
    parameters(check, node, out);
    Some(())
}

fn expect_type(
    check: &mut NodeCheck<'_, '_>,
    field: &'static str,
    facts: &PointwiseSemantics,
    tensor: &Tensor,
    class: DtypeClass,
) {
    if !class.allows(tensor.data_type) {
        let expected = format!("{} for {}", class.description(), facts.name);
        check.problem(
            field,
            expected,
            tensor.data_type.name(),
            "change the tensor's type",
        );
    }
}

/// Aligned at the last axis, each extent of the operand is that of the output, or 1.
fn expect_broadcast(check: &mut NodeCheck<'_, '_>, field: &'static str, own: &[i64], out: &[i64]) {
    let mut pairs = own.iter().rev().zip(out.iter().rev());
    if own.len() > out.len() || !pairs.all(|(own, out)| own == out || *own == 1) {
        let expected = format!("extents that broadcast to {}", list(out));
        let advice = "aligned at the last axis, each extent must be equal or 1";
        check.problem(field, expected, list(own), advice);
    }
}

fn parameters(check: &mut NodeCheck<'_, '_>, node: &PointwiseAttributes, out: &Tensor) {
    let values = Parameters::of(node);
    if node.operation == PointwiseMode::GenIndex {
        let inside = |axis: i64| usize::try_from(axis).is_ok_and(|axis| axis < out.dims.len());
        if !values.axis.is_some_and(inside) {
            let expected = format!("the index of one of {} axes", out.dims.len());
            let seen = values
                .axis
                .map_or("none".to_owned(), |axis| axis.to_string());
            check.problem(
                "axis_tensor_uid",
                expected,
                seen,
                "it is an axis, not a uid",
            );
        }
    }
    let relu = matches!(
        node.operation,
        PointwiseMode::ReluFwd | PointwiseMode::ReluBwd
    );
    if relu
        && values
            .relu_lower
            .partial_cmp(&values.relu_upper)
            .is_none_or(|order| order.is_gt())
    {
        let expected = format!("at least the lower clip, {}", values.relu_lower);
        let seen = values.relu_upper.to_string();
        check.problem("relu_upper_clip", expected, seen, "swap the clips");
    }
    let beta = node.softplus_beta.is_some() && values.softplus_beta == 0.0;
    if node.operation == PointwiseMode::SoftplusFwd && beta {
        check.problem(
            "softplus_beta",
            "other than 0, it divides",
            "0",
            "leave it out for 1",
        );
    }
}
