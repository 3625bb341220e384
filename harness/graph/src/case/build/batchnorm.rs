//! Batchnorms, alone and with activations.

use super::Builder;
use crate::case::attribute::AttributeKey as Key;
use crate::case::error::{Fault, Part};
use crate::case::op::{BatchnormPhase, Op};
use crate::case::strided::StridedTensor;
use crate::enums::PointwiseMode;
use crate::model::Graph;
use crate::schema::{
    BatchnormAttributes, BatchnormBackwardAttributes, BatchnormInferenceAttributes,
    BatchnormInferenceAttributesVarianceExt, PointwiseAttributes,
};

pub(super) fn build(mut builder: Builder<'_>) -> Result<Graph, Fault> {
    builder.check_float_types()?;
    let epsilon = builder.case.attributes.float(Key::Epsilon);
    if epsilon.is_some_and(|epsilon| epsilon < 0.0) {
        return Err(Fault::new(Part::Attributes, "`eps` must not be negative"));
    }
    match builder.case.op {
        Op::BatchnormActivation(phase, mode) => {
            let hidden = forward(&mut builder, phase, true)?;
            let y = builder.image("y")?;
            let attributes = PointwiseAttributes {
                in_0_tensor_uid: hidden,
                out_0_tensor_uid: y,
                ..builder.pointwise_attributes(mode)
            };
            builder.node("activation", builder.compute_type(), attributes);
        }
        Op::BatchnormActivationBackward(mode) => activation_backward(&mut builder, mode)?,
        Op::Batchnorm(BatchnormPhase::Backward) => {
            let dy = builder.image("dy")?;
            let x = builder.image("x")?;
            let scale = builder.parameter("scale")?;
            let saved = match builder.case.attributes.has(Key::Stats) {
                true => Some((
                    builder.parameter("mean")?,
                    builder.parameter("inv_variance")?,
                )),
                false => None,
            };
            backward(&mut builder, dy, x, scale, saved)?;
        }
        Op::Batchnorm(phase) => {
            forward(&mut builder, phase, false)?;
        }
        op => unreachable!("{op} is no batchnorm"),
    }
    Ok(builder.graph)
}

impl Builder<'_> {
    /// A tensor of full shape and the first type.
    fn image(&mut self, name: &str) -> Result<i64, Fault> {
        let dims = self.case.shape.x_dims();
        self.strided(name, self.first_type(), &dims, StridedTensor::X)
    }

    /// A tensor of one value per channel, [1, C, 1…], of the last type.
    fn parameter(&mut self, name: &str) -> Result<i64, Fault> {
        let mut dims = vec![1; self.case.layout.rank()];
        dims[1] = self.case.shape.c;
        self.tensor(name, self.last_type(), &dims)
    }

    fn hidden(&mut self, name: &str) -> Result<i64, Fault> {
        let dims = self.case.shape.x_dims();
        self.virtual_tensor(name, &dims, StridedTensor::X)
    }

    fn output(&mut self, hidden: bool) -> Result<i64, Fault> {
        if hidden {
            self.hidden("bn_y")
        } else {
            self.image("y")
        }
    }
}

/// One of the forward phases; gives the uid of its y, virtual if `hidden`.
fn forward(builder: &mut Builder<'_>, phase: BatchnormPhase, hidden: bool) -> Result<i64, Fault> {
    let x = builder.image("x")?;
    let scale = builder.parameter("scale")?;
    let bias = builder.parameter("bias")?;
    let y = match phase {
        BatchnormPhase::Training => return training(builder, x, scale, bias, hidden),
        BatchnormPhase::InferenceVariance => {
            let mean = builder.parameter("mean")?;
            let variance = builder.parameter("variance")?;
            let epsilon = scalar(builder, "epsilon", Key::Epsilon);
            let y = builder.output(hidden)?;
            let attributes = BatchnormInferenceAttributesVarianceExt {
                x_tensor_uid: x,
                mean_tensor_uid: mean,
                variance_tensor_uid: variance,
                scale_tensor_uid: scale,
                bias_tensor_uid: bias,
                y_tensor_uid: y,
                epsilon_tensor_uid: epsilon,
            };
            builder.node("batchnorm", builder.compute_type(), attributes);
            y
        }
        BatchnormPhase::Inference | BatchnormPhase::Backward => {
            let mean = builder.parameter("mean")?;
            let inv_variance = builder.parameter("inv_variance")?;
            let y = builder.output(hidden)?;
            let attributes = BatchnormInferenceAttributes {
                x_tensor_uid: x,
                mean_tensor_uid: mean,
                inv_variance_tensor_uid: inv_variance,
                scale_tensor_uid: scale,
                bias_tensor_uid: bias,
                y_tensor_uid: y,
            };
            builder.node("batchnorm", builder.compute_type(), attributes);
            y
        }
    };
    Ok(y)
}

fn training(
    builder: &mut Builder<'_>,
    x: i64,
    scale: i64,
    bias: i64,
    hidden: bool,
) -> Result<i64, Fault> {
    let running = builder.case.attributes.has(Key::Running);
    let saved = builder.case.attributes.has(Key::Stats);
    let optional = |builder: &mut Builder<'_>, wanted: bool, name: &str| {
        wanted.then(|| builder.parameter(name)).transpose()
    };
    let epsilon = scalar(builder, "epsilon", Key::Epsilon);
    let prev_mean = optional(builder, running, "prev_running_mean")?;
    let prev_variance = optional(builder, running, "prev_running_variance")?;
    let momentum = running.then(|| scalar(builder, "momentum", Key::Momentum));
    let y = builder.output(hidden)?;
    let attributes = BatchnormAttributes {
        x_tensor_uid: x,
        scale_tensor_uid: scale,
        bias_tensor_uid: bias,
        epsilon_tensor_uid: epsilon,
        peer_stats_tensor_uid: Vec::new(),
        prev_running_mean_tensor_uid: prev_mean,
        prev_running_variance_tensor_uid: prev_variance,
        momentum_tensor_uid: momentum,
        y_tensor_uid: y,
        mean_tensor_uid: optional(builder, saved, "mean")?,
        inv_variance_tensor_uid: optional(builder, saved, "inv_variance")?,
        next_running_mean_tensor_uid: optional(builder, running, "next_running_mean")?,
        next_running_variance_tensor_uid: optional(builder, running, "next_running_variance")?,
    };
    builder.node("batchnorm", builder.compute_type(), attributes);
    Ok(y)
}

fn backward(
    builder: &mut Builder<'_>,
    dy: i64,
    x: i64,
    scale: i64,
    saved: Option<(i64, i64)>,
) -> Result<(), Fault> {
    let attributes = BatchnormBackwardAttributes {
        dy_tensor_uid: dy,
        x_tensor_uid: x,
        mean_tensor_uid: saved.map(|(mean, _)| mean),
        inv_variance_tensor_uid: saved.map(|(_, inv_variance)| inv_variance),
        scale_tensor_uid: scale,
        peer_stats_tensor_uid: Vec::new(),
        dx_tensor_uid: builder.image("dx")?,
        dscale_tensor_uid: builder.parameter("dscale")?,
        dbias_tensor_uid: builder.parameter("dbias")?,
    };
    builder.node("batchnorm_backward", builder.compute_type(), attributes);
    Ok(())
}

/// Upstream's fused chain: inference recomputes the activation's input, the activation's backward
/// half takes dy to it, batchnorm backward goes on with the saved statistics.
fn activation_backward(builder: &mut Builder<'_>, mode: PointwiseMode) -> Result<(), Fault> {
    let hidden = forward(builder, BatchnormPhase::Inference, true)?;
    let dy = builder.image("dy")?;
    let gradient = builder.hidden("activation_dx")?;
    let attributes = PointwiseAttributes {
        in_0_tensor_uid: dy,
        in_1_tensor_uid: Some(hidden),
        out_0_tensor_uid: gradient,
        ..builder.pointwise_attributes(mode)
    };
    builder.node("activation_backward", builder.compute_type(), attributes);
    let [x, scale, mean, inv_variance] = ["x", "scale", "mean", "inv_variance"].map(super::uid);
    backward(builder, gradient, x, scale, Some((mean, inv_variance)))
}

fn scalar(builder: &mut Builder<'_>, name: &str, key: Key) -> i64 {
    let value = builder.case.attributes.float(key);
    builder.scalar(name, value.expect("parsing fills in every scalar"))
}
