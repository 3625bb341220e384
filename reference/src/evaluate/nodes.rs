//! From a node's attributes to its operation.

use super::{At, EvalError, Run, Written};
use crate::arithmetic::Precision;
use crate::dtype;
use crate::estimate::Estimate;
use crate::ops::Wanted;
use crate::ops::batchnorm::{Backward, Inference, Running, Shape, Spread, Training};
use crate::ops::conv::{self, Geometry, Transform};
use crate::ops::matmul::Matmul;
use crate::ops::operand::Operand;
use crate::ops::pointwise::Pointwise;
use dnn_assay_graph::schema::{
    BatchnormAttributes, BatchnormBackwardAttributes, BatchnormInferenceAttributes,
    BatchnormInferenceAttributesVarianceExt, MatmulAttributes, PointwiseAttributes,
};
use dnn_assay_graph::semantics::{Parameters, pointwise};
use dnn_assay_graph::{Convolution, Graph, PointwiseMode};

/// The shapes of a convolution; `None` where they do not fit.
pub(super) fn geometry(node: &Convolution<'_>, graph: &Graph) -> Option<Geometry> {
    let [x, w, y] = [node.x, node.w, node.y].map(|uid| graph.tensor(uid));
    Geometry::new(x?, w?, y?, &node.window).ok()
}

impl Run<'_> {
    pub(super) fn convolution(
        &mut self,
        at: &At<'_>,
        node: &Convolution<'_>,
    ) -> Result<Written, EvalError> {
        let convolution = self.convolution_of(at, node)?;
        let (estimate, linear) = match self.wanted {
            Wanted::Uncertainty => convolution.run(),
            Wanted::Values => convolution.values().map(|value| {
                let without = Estimate::default();
                (Estimate { value, ..without }, 0)
            }),
        }
        .map_err(|problem| at.invalid(problem))?;
        self.evaluation.linear_growth += linear;
        Ok(vec![(node.result(), estimate)])
    }

    pub(super) fn convolution_of(
        &self,
        at: &At<'_>,
        node: &Convolution<'_>,
    ) -> Result<conv::Convolution<'_>, EvalError> {
        let geometry = Geometry::new(
            self.tensor(at, node.x)?,
            self.tensor(at, node.w)?,
            self.tensor(at, node.y)?,
            &node.window,
        )
        .map_err(|problem| at.invalid(problem))?;
        let precision = self.precision(at)?;
        let [first, second] = conv::factors(node);
        let (first, second) = (self.operand(at, first)?, self.operand(at, second)?);
        Ok(conv::Convolution {
            geometry,
            direction: node.direction,
            first,
            second,
            bound: self.bound_of_products(&precision, &[first, second]),
            rounds_inputs: first.rounds_into(&precision) || second.rounds_into(&precision),
            transform: self.transform(&precision, &[first, second]),
        })
    }

    /// How transforms widen a convolution's bound.
    fn transform(&self, precision: &Precision, operands: &[Operand<'_>]) -> Transform {
        let roundoffs = operands
            .iter()
            .map(|operand| dtype::unit_roundoff(operand.data_type));
        Transform {
            amplification: self.arithmetic.transform,
            storage: roundoffs.fold(0.0, f64::max) / precision.roundoff,
        }
    }

    pub(super) fn matmul(
        &mut self,
        at: &At<'_>,
        matmul: &MatmulAttributes,
    ) -> Result<Written, EvalError> {
        let product = self.matmul_of(at, matmul)?;
        let (estimate, linear) = product.run().map_err(|problem| at.invalid(problem))?;
        self.evaluation.linear_growth += linear;
        Ok(vec![(matmul.c_tensor_uid, estimate)])
    }

    pub(super) fn matmul_of(
        &self,
        at: &At<'_>,
        matmul: &MatmulAttributes,
    ) -> Result<Matmul<'_>, EvalError> {
        let precision = self.precision(at)?;
        let a = self.operand(at, matmul.a_tensor_uid)?;
        let b = self.operand(at, matmul.b_tensor_uid)?;
        Ok(Matmul {
            a,
            b,
            c: &self.tensor(at, matmul.c_tensor_uid)?.dims,
            bound: self.bound_of_products(&precision, &[a, b]),
            rounds_inputs: a.rounds_into(&precision) || b.rounds_into(&precision),
        })
    }

    pub(super) fn pointwise(
        &mut self,
        at: &At<'_>,
        node: &PointwiseAttributes,
    ) -> Result<Written, EvalError> {
        let (estimate, undecided) = self
            .pointwise_of(at, node)?
            .run()
            .map_err(|problem| at.invalid(problem))?;
        self.evaluation.uncertain_steps += undecided;
        Ok(vec![(node.out_0_tensor_uid, estimate)])
    }

    pub(super) fn pointwise_of(
        &self,
        at: &At<'_>,
        node: &PointwiseAttributes,
    ) -> Result<Pointwise<'_>, EvalError> {
        let mode = node.operation;
        let arity = pointwise(mode).operands.len();
        if mode == PointwiseMode::Unset {
            return Err(at.unsupported("pointwise mode UNSET"));
        }
        let uids = [
            Some(node.in_0_tensor_uid),
            node.in_1_tensor_uid,
            node.in_2_tensor_uid,
        ];
        let operands = uids
            .iter()
            .take(arity)
            .map(|uid| {
                let uid =
                    uid.ok_or_else(|| at.invalid(format!("{mode} needs {arity} operands")))?;
                self.operand(at, uid)
            })
            .collect::<Result<Vec<Operand<'_>>, _>>()?;
        let output = self.tensor(at, node.out_0_tensor_uid)?;
        Ok(Pointwise {
            mode,
            parameters: Parameters::of(node),
            operands,
            output: &output.dims,
            output_type: output.data_type,
            precision: self.precision(at)?,
            functions: &self.arithmetic.functions,
        })
    }

    pub(super) fn inference(
        &mut self,
        at: &At<'_>,
        norm: &BatchnormInferenceAttributes,
    ) -> Result<Written, EvalError> {
        let inference = self.inference_of(at, norm)?;
        let estimate = inference.run().map_err(|problem| at.invalid(problem))?;
        Ok(vec![(norm.y_tensor_uid, estimate)])
    }

    pub(super) fn inference_of(
        &self,
        at: &At<'_>,
        norm: &BatchnormInferenceAttributes,
    ) -> Result<Inference<'_>, EvalError> {
        let spread = Spread::Inverse(self.operand(at, norm.inv_variance_tensor_uid)?);
        let uids = [
            norm.x_tensor_uid,
            norm.mean_tensor_uid,
            norm.scale_tensor_uid,
            norm.bias_tensor_uid,
        ];
        self.normalised(at, uids, spread)
    }

    pub(super) fn inference_variance(
        &mut self,
        at: &At<'_>,
        norm: &BatchnormInferenceAttributesVarianceExt,
    ) -> Result<Written, EvalError> {
        let inference = self.inference_variance_of(at, norm)?;
        let estimate = inference.run().map_err(|problem| at.invalid(problem))?;
        Ok(vec![(norm.y_tensor_uid, estimate)])
    }

    pub(super) fn inference_variance_of(
        &self,
        at: &At<'_>,
        norm: &BatchnormInferenceAttributesVarianceExt,
    ) -> Result<Inference<'_>, EvalError> {
        let epsilon = self.scalar(at, norm.epsilon_tensor_uid)?;
        let spread = Spread::Variance(self.operand(at, norm.variance_tensor_uid)?, epsilon);
        let uids = [
            norm.x_tensor_uid,
            norm.mean_tensor_uid,
            norm.scale_tensor_uid,
            norm.bias_tensor_uid,
        ];
        self.normalised(at, uids, spread)
    }

    fn normalised<'s>(
        &'s self,
        at: &At<'_>,
        [x, mean, scale, bias]: [i64; 4],
        spread: Spread<'s>,
    ) -> Result<Inference<'s>, EvalError> {
        let precision = self.precision(at)?;
        let x = self.operand(at, x)?;
        Ok(Inference {
            shape: shape(at, &x)?,
            x,
            mean: self.operand(at, mean)?,
            spread,
            scale: self.operand(at, scale)?,
            bias: self.operand(at, bias)?,
            bounds: self.norm_bounds(&precision),
        })
    }

    pub(super) fn training(
        &mut self,
        at: &At<'_>,
        norm: &BatchnormAttributes,
    ) -> Result<Written, EvalError> {
        if !norm.peer_stats_tensor_uid.is_empty() {
            return Err(at.unsupported("peer statistics"));
        }
        let training = self.training_of(at, norm)?;
        let result = training.run().map_err(|problem| at.invalid(problem))?;
        let mut written = vec![(norm.y_tensor_uid, result.y)];
        written.extend(norm.mean_tensor_uid.map(|uid| (uid, result.mean)));
        written.extend(
            norm.inv_variance_tensor_uid
                .map(|uid| (uid, result.inverse)),
        );
        if let Some((mean, variance)) = result.running {
            written.extend(norm.next_running_mean_tensor_uid.map(|uid| (uid, mean)));
            written.extend(
                norm.next_running_variance_tensor_uid
                    .map(|uid| (uid, variance)),
            );
        }
        Ok(written)
    }

    pub(super) fn training_of(
        &self,
        at: &At<'_>,
        norm: &BatchnormAttributes,
    ) -> Result<Training<'_>, EvalError> {
        let precision = self.precision(at)?;
        let x = self.operand(at, norm.x_tensor_uid)?;
        Ok(Training {
            shape: shape(at, &x)?,
            x,
            scale: self.operand(at, norm.scale_tensor_uid)?,
            bias: self.operand(at, norm.bias_tensor_uid)?,
            epsilon: self.scalar(at, norm.epsilon_tensor_uid)?,
            running: self.running(at, norm)?,
            bounds: self.norm_bounds(&precision),
        })
    }

    fn running(
        &self,
        at: &At<'_>,
        norm: &BatchnormAttributes,
    ) -> Result<Option<Running<'_>>, EvalError> {
        let asked = norm.next_running_mean_tensor_uid.is_some()
            || norm.next_running_variance_tensor_uid.is_some();
        if !asked {
            return Ok(None);
        }
        let (Some(mean), Some(variance), Some(momentum)) = (
            norm.prev_running_mean_tensor_uid,
            norm.prev_running_variance_tensor_uid,
            norm.momentum_tensor_uid,
        ) else {
            return Err(at.invalid(
                "running statistics need the previous mean, the previous variance and the momentum",
            ));
        };
        Ok(Some(Running {
            mean: self.operand(at, mean)?,
            variance: self.operand(at, variance)?,
            momentum: self.scalar(at, momentum)?,
        }))
    }

    pub(super) fn norm_backward(
        &mut self,
        at: &At<'_>,
        norm: &BatchnormBackwardAttributes,
    ) -> Result<Written, EvalError> {
        if !norm.peer_stats_tensor_uid.is_empty() {
            return Err(at.unsupported("peer statistics"));
        }
        let backward = self.norm_backward_of(at, norm)?;
        let result = backward.run().map_err(|problem| at.invalid(problem))?;
        Ok(vec![
            (norm.dx_tensor_uid, result.dx),
            (norm.dscale_tensor_uid, result.dscale),
            (norm.dbias_tensor_uid, result.dbias),
        ])
    }

    pub(super) fn norm_backward_of(
        &self,
        at: &At<'_>,
        norm: &BatchnormBackwardAttributes,
    ) -> Result<Backward<'_>, EvalError> {
        let saved = match (norm.mean_tensor_uid, norm.inv_variance_tensor_uid) {
            (Some(mean), Some(inverse)) => {
                Some((self.operand(at, mean)?, self.operand(at, inverse)?))
            }
            (None, None) => None,
            _ => return Err(at.invalid("mean and inv_variance go together")),
        };
        let precision: Precision = self.precision(at)?;
        let x = self.operand(at, norm.x_tensor_uid)?;
        Ok(Backward {
            shape: shape(at, &x)?,
            dy: self.operand(at, norm.dy_tensor_uid)?,
            x,
            scale: self.operand(at, norm.scale_tensor_uid)?,
            saved,
            bounds: self.norm_bounds(&precision),
        })
    }
}

fn shape(at: &At<'_>, x: &Operand<'_>) -> Result<Shape, EvalError> {
    Shape::new(x.dims).map_err(|problem| at.invalid(problem))
}
