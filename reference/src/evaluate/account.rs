//! Where the uncertainty of one element comes from, node by node.

use super::{At, EvalError, Run};
use crate::arithmetic::Arithmetic;
use crate::estimate::Values;
use crate::ops::Wanted;
use crate::ops::account::{Figure, Figures};
use crate::ops::batchnorm::Norm;
use dnn_assay_graph::{Attributes, Graph};

/// The numbers of one element of what a node writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Index of the node.
    pub node: usize,
    /// The tensor that it writes.
    pub uid: i64,
    /// The element, in logical row-major order.
    pub index: usize,
    /// The f64 reference.
    pub value: f64,
    /// Its uncertainty: of an output before the final rounding, of a virtual tensor with it.
    pub error: f64,
    /// What the summands are made of.
    pub figures: Vec<Figure>,
    /// Summands that add up to `error`.
    pub parts: Vec<Figure>,
}

/// Explains the uncertainty of element `index` of tensor `uid`: the node that writes it last, before
/// it the nodes that write its operands, as far back as one element of theirs goes into it.
///
/// # Errors
/// As [`evaluate`](crate::evaluate()).
pub fn account(
    graph: &Graph,
    inputs: &Values,
    arithmetic: &Arithmetic,
    uid: i64,
    index: usize,
) -> Result<Vec<Account>, EvalError> {
    let run = Run::executed(graph, inputs, arithmetic, Wanted::Uncertainty)?;
    let mut accounts = Vec::new();
    run.tell(uid, index, &mut accounts)?;
    Ok(accounts)
}

impl Run<'_> {
    fn tell(&self, uid: i64, index: usize, told: &mut Vec<Account>) -> Result<(), EvalError> {
        let graph = self.graph;
        let mut nodes = graph.nodes.iter().enumerate();
        let writes = |node: &dnn_assay_graph::Node| node.attributes.outputs().contains(&uid);
        let Some((node_index, node)) = nodes.find(|(_, node)| writes(node)) else {
            return Ok(());
        };
        let Some(estimate) = self.evaluation.tensors.get(&uid) else {
            return Ok(());
        };
        let at = At {
            index: node_index,
            node,
        };
        for (operand, element) in self.elements_behind(&at, uid, index)? {
            if !told
                .iter()
                .any(|known| (known.uid, known.index) == (operand, element))
            {
                self.tell(operand, element, told)?;
            }
        }
        let mut figures = self.figures(&at, uid, index)?;
        let (value, error) = (estimate.value[index], f64::from(estimate.error[index]));
        let tensor = self.tensor(&at, uid)?;
        if tensor.is_virtual {
            let own = figures.sum();
            let u = crate::dtype::unit_roundoff(tensor.data_type);
            let half = crate::dtype::smallest_subnormal(tensor.data_type) / 2.0;
            let rounded = crate::dtype::round(tensor.data_type, value);
            if own > 0.0 || rounded != value {
                figures.part(
                    format!("kept as {}, or not", tensor.data_type.short_name()),
                    u * (value.abs() + own) + half,
                );
            }
        }
        // What neither of these is: transforms, overflow, denormals. f32 rounds the sum up.
        let rest = error - figures.sum();
        if rest.is_finite() && rest > 1e-3 * error {
            figures.part("by the rules of a trait, or of overflow", rest);
        }
        told.push(Account {
            node: node_index,
            uid,
            index,
            value,
            error,
            figures: figures.figures,
            parts: figures.parts,
        });
        Ok(())
    }

    /// Elements of intermediates that one element of a node's output is made of.
    fn elements_behind(
        &self,
        at: &At<'_>,
        uid: i64,
        index: usize,
    ) -> Result<Vec<(i64, usize)>, EvalError> {
        let attributes = &at.node.attributes;
        let read = match attributes {
            Attributes::Pointwise(_) => attributes.inputs(),
            Attributes::BatchnormInference(norm) => vec![norm.x_tensor_uid],
            Attributes::BatchnormInferenceVariance(norm) => vec![norm.x_tensor_uid],
            Attributes::Batchnorm(norm) if norm.y_tensor_uid == uid => vec![norm.x_tensor_uid],
            Attributes::BatchnormBackward(norm) if norm.dx_tensor_uid == uid => {
                vec![norm.x_tensor_uid, norm.dy_tensor_uid]
            }
            _ => Vec::new(),
        };
        let out = &self.tensor(at, uid)?.dims;
        let computed = read
            .into_iter()
            .filter(|uid| self.evaluation.tensors.contains_key(uid));
        computed
            .map(|read| {
                let own = &self.tensor(at, read)?.dims;
                Ok((read, crate::fill::broadcast(out, own, index)))
            })
            .collect()
    }

    fn figures(&self, at: &At<'_>, uid: i64, index: usize) -> Result<Figures, EvalError> {
        let invalid = |problem| at.invalid(problem);
        Ok(match &at.node.attributes {
            Attributes::Pointwise(table) => self
                .pointwise_of(at, table)?
                .account(index)
                .map_err(invalid)?,
            Attributes::Matmul(table) => {
                self.matmul_of(at, table)?.account(index).map_err(invalid)?
            }
            Attributes::BatchnormInference(norm) => self.inference_of(at, norm)?.account(index),
            Attributes::BatchnormInferenceVariance(norm) => {
                self.inference_variance_of(at, norm)?.account(index)
            }
            Attributes::Batchnorm(norm) => {
                let result = match uid {
                    _ if uid == norm.y_tensor_uid => Norm::Y,
                    _ if Some(uid) == norm.mean_tensor_uid => Norm::Mean,
                    _ if Some(uid) == norm.inv_variance_tensor_uid => Norm::Inverse,
                    _ if Some(uid) == norm.next_running_mean_tensor_uid => Norm::RunningMean,
                    _ => Norm::RunningVariance,
                };
                self.training_of(at, norm)?.account(result, index)
            }
            Attributes::BatchnormBackward(norm) => {
                let result = match uid {
                    _ if uid == norm.dx_tensor_uid => Norm::Dx,
                    _ if uid == norm.dscale_tensor_uid => Norm::Dscale,
                    _ => Norm::Dbias,
                };
                self.norm_backward_of(at, norm)?.account(result, index)
            }
            attributes => match attributes.convolution() {
                Some(node) => self.convolution_of(at, &node)?.account(index),
                None => Figures::default(),
            },
        })
    }
}
