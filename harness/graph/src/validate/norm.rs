//! Norms. Batchnorm parameters are [1, C, 1…], of the rank of x.

use super::node::NodeCheck;
use crate::schema::{
    BatchnormAttributes, BatchnormBackwardAttributes, BatchnormInferenceAttributes,
    BatchnormInferenceAttributesVarianceExt, LayernormAttributes, RMSNormAttributes,
};

/// The extents of x and of the parameters; `None` where x is absent or has no channels.
fn shapes<'g>(check: &mut NodeCheck<'g, '_>, x: i64) -> Option<(&'g [i64], Vec<i64>)> {
    let dims = check.dims(x)?;
    if !check.expect_rank("x_tensor_uid", dims, 2) {
        return None;
    }
    let mut parameter = vec![1; dims.len()];
    parameter[1] = dims[1];
    Some((dims, parameter))
}

pub(super) fn inference(
    check: &mut NodeCheck<'_, '_>,
    node: &BatchnormInferenceAttributes,
) -> Option<()> {
    let (x, parameter) = shapes(check, node.x_tensor_uid)?;
    check.expect_dims("y_tensor_uid", node.y_tensor_uid, x)?;
    check.expect_dims("mean_tensor_uid", node.mean_tensor_uid, &parameter)?;
    check.expect_dims(
        "inv_variance_tensor_uid",
        node.inv_variance_tensor_uid,
        &parameter,
    )?;
    check.expect_dims("scale_tensor_uid", node.scale_tensor_uid, &parameter)?;
    check.expect_dims("bias_tensor_uid", node.bias_tensor_uid, &parameter)
}

pub(super) fn inference_variance(
    check: &mut NodeCheck<'_, '_>,
    node: &BatchnormInferenceAttributesVarianceExt,
) -> Option<()> {
    let (x, parameter) = shapes(check, node.x_tensor_uid)?;
    check.expect_dims("y_tensor_uid", node.y_tensor_uid, x)?;
    check.expect_dims("mean_tensor_uid", node.mean_tensor_uid, &parameter)?;
    check.expect_dims("variance_tensor_uid", node.variance_tensor_uid, &parameter)?;
    check.expect_dims("scale_tensor_uid", node.scale_tensor_uid, &parameter)?;
    check.expect_dims("bias_tensor_uid", node.bias_tensor_uid, &parameter)?;
    check.expect_scalar("epsilon_tensor_uid", node.epsilon_tensor_uid)
}

pub(super) fn training(check: &mut NodeCheck<'_, '_>, node: &BatchnormAttributes) -> Option<()> {
    let (x, parameter) = shapes(check, node.x_tensor_uid)?;
    check.expect_dims("y_tensor_uid", node.y_tensor_uid, x)?;
    check.expect_dims("scale_tensor_uid", node.scale_tensor_uid, &parameter)?;
    check.expect_dims("bias_tensor_uid", node.bias_tensor_uid, &parameter)?;
    check.expect_scalar("epsilon_tensor_uid", node.epsilon_tensor_uid)?;
    let saved = [
        ("mean_tensor_uid", node.mean_tensor_uid),
        ("inv_variance_tensor_uid", node.inv_variance_tensor_uid),
    ];
    let running = [
        (
            "prev_running_mean_tensor_uid",
            node.prev_running_mean_tensor_uid,
        ),
        (
            "prev_running_variance_tensor_uid",
            node.prev_running_variance_tensor_uid,
        ),
        (
            "next_running_mean_tensor_uid",
            node.next_running_mean_tensor_uid,
        ),
        (
            "next_running_variance_tensor_uid",
            node.next_running_variance_tensor_uid,
        ),
    ];
    check.expect_together(
        "mean and inv_variance",
        &saved.map(|(_, uid)| uid.is_some()),
    );
    let present = running.map(|(_, uid)| uid.is_some());
    check.expect_together("running mean and variance, prev and next", &present);
    if present.contains(&true) && node.momentum_tensor_uid.is_none() {
        let expected = "a momentum, since there are running statistics";
        check.problem("momentum_tensor_uid", expected, "none", "add the scalar");
    }
    if let Some(momentum) = node.momentum_tensor_uid {
        check.expect_scalar("momentum_tensor_uid", momentum)?;
    }
    for (field, uid) in saved.into_iter().chain(running) {
        check.expect_dims_if(field, uid, &parameter)?;
    }
    Some(())
}

pub(super) fn backward(
    check: &mut NodeCheck<'_, '_>,
    node: &BatchnormBackwardAttributes,
) -> Option<()> {
    let (x, parameter) = shapes(check, node.x_tensor_uid)?;
    check.expect_dims("dy_tensor_uid", node.dy_tensor_uid, x)?;
    check.expect_dims("dx_tensor_uid", node.dx_tensor_uid, x)?;
    check.expect_dims("scale_tensor_uid", node.scale_tensor_uid, &parameter)?;
    check.expect_dims("dscale_tensor_uid", node.dscale_tensor_uid, &parameter)?;
    check.expect_dims("dbias_tensor_uid", node.dbias_tensor_uid, &parameter)?;
    let present = [
        node.mean_tensor_uid.is_some(),
        node.inv_variance_tensor_uid.is_some(),
    ];
    check.expect_together("mean and inv_variance", &present);
    check.expect_dims_if("mean_tensor_uid", node.mean_tensor_uid, &parameter)?;
    check.expect_dims_if(
        "inv_variance_tensor_uid",
        node.inv_variance_tensor_uid,
        &parameter,
    )
}

pub(super) fn rms(check: &mut NodeCheck<'_, '_>, node: &RMSNormAttributes) -> Option<()> {
    let x = check.dims(node.x_tensor_uid)?;
    check.expect_dims("y_tensor_uid", node.y_tensor_uid, x)?;
    check.expect_scalar("epsilon_tensor_uid", node.epsilon_tensor_uid)
}

pub(super) fn layer(check: &mut NodeCheck<'_, '_>, node: &LayernormAttributes) -> Option<()> {
    let x = check.dims(node.x_tensor_uid)?;
    check.expect_dims("y_tensor_uid", node.y_tensor_uid, x)?;
    let count = node.normalized_dim_count;
    if count < 1 || usize::try_from(count).is_ok_and(|count| count > x.len()) {
        let expected = format!("1 to {} axes", x.len());
        check.problem(
            "normalized_dim_count",
            expected,
            count.to_string(),
            "correct it",
        );
    }
    check.expect_scalar("epsilon_tensor_uid", node.epsilon_tensor_uid)
}
