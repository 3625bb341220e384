//! How large integers become on their way through a graph.

use super::Reason;
use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::semantics::Parameters;
use dnn_assay_graph::{Attributes, DataType, Graph, Node, PointwiseMode, Tensor};
use std::collections::BTreeMap;

/// The size of a tensor's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Magnitude {
    /// No value is larger.
    pub(crate) peak: f64,
    /// Root mean square, for independent values of random sign.
    pub(crate) rms: f64,
    /// Standard deviation of the values before a ReLU took half of them away: tails go by it.
    pub(crate) spread: f64,
}

impl Magnitude {
    fn times(self, other: Self) -> Self {
        Self {
            peak: self.peak * other.peak,
            rms: self.rms * other.rms,
            spread: self.spread * other.spread,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            peak: self.peak + other.peak,
            rms: self.rms.hypot(other.rms),
            spread: self.spread.hypot(other.spread),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            peak: self.peak.max(other.peak),
            rms: self.rms.max(other.rms),
            spread: self.spread.max(other.spread),
        }
    }

    /// A sum of this many products.
    fn summed(self, terms: f64) -> Self {
        Self {
            peak: self.peak * terms,
            rms: self.rms * terms.sqrt(),
            spread: self.spread * terms.sqrt(),
        }
    }

    const ONE: Self = Self {
        peak: 1.0,
        rms: 1.0,
        spread: 1.0,
    };
}

/// Adds the magnitude of each tensor that a node writes.
///
/// # Errors
/// [`Reason`] where an operation is not exact on integers or a sum of magnitudes may leave the
/// exact range of the accumulator.
pub(crate) fn propagate(
    graph: &Graph,
    magnitudes: &mut BTreeMap<i64, Magnitude>,
) -> Result<(), Reason> {
    for (index, node) in graph.nodes.iter().enumerate() {
        let of = |uid: i64| magnitudes.get(&uid).copied().ok_or(Reason::Missing { uid });
        let shape = |uid: i64| graph.tensor(uid).ok_or(Reason::Missing { uid });
        let (uid, magnitude) = match &node.attributes {
            Attributes::ConvolutionFwd(conv) => {
                let terms = product(&shape(conv.w_tensor_uid)?.dims[1..]);
                let product = of(conv.x_tensor_uid)?.times(of(conv.w_tensor_uid)?);
                (conv.y_tensor_uid, product.summed(terms))
            }
            Attributes::ConvolutionBwd(conv) => {
                let (w, dx) = (shape(conv.w_tensor_uid)?, shape(conv.dx_tensor_uid)?);
                let product = of(conv.dy_tensor_uid)?.times(of(conv.w_tensor_uid)?);
                (conv.dx_tensor_uid, product.summed(dgrad_terms(w, dx)))
            }
            Attributes::ConvolutionWrw(conv) => {
                let dy = shape(conv.dy_tensor_uid)?;
                let terms = dy.dims[0] as f64 * product(&dy.dims[2..]);
                let product = of(conv.x_tensor_uid)?.times(of(conv.dy_tensor_uid)?);
                (conv.dw_tensor_uid, product.summed(terms))
            }
            Attributes::Matmul(matmul) => {
                let terms = shape(matmul.a_tensor_uid)?
                    .dims
                    .last()
                    .copied()
                    .unwrap_or(1);
                let product = of(matmul.a_tensor_uid)?.times(of(matmul.b_tensor_uid)?);
                (matmul.c_tensor_uid, product.summed(terms as f64))
            }
            Attributes::Pointwise(table) => (table.out_0_tensor_uid, pointwise(index, table, &of)?),
            other => {
                return Err(Reason::Operation {
                    node: index,
                    what: other.kind().to_owned(),
                });
            }
        };
        let limit = exact_limit(graph, node);
        if magnitude.peak > limit {
            return Err(Reason::Sum {
                node: index,
                terms: magnitude.peak,
                limit,
            });
        }
        magnitudes.insert(uid, magnitude);
    }
    Ok(())
}

fn product(dims: &[i64]) -> f64 {
    dims.iter().map(|&dim| dim as f64).product()
}

/// K/g·ΠR with g = C/(C/g).
fn dgrad_terms(w: &Tensor, dx: &Tensor) -> f64 {
    let groups = dx.dims[1] as f64 / w.dims[1].max(1) as f64;
    w.dims[0] as f64 / groups.max(1.0) * product(&w.dims[2..])
}

/// The largest integer up to which every integer is exact in the arithmetic of a node: 2²⁴, less
/// for a narrower compute type.
fn exact_limit(graph: &Graph, node: &Node) -> f64 {
    let declared = [node.compute_type, graph.compute_type];
    let compute = declared
        .into_iter()
        .find(|&data_type| data_type != DataType::Unset);
    let precision = match compute {
        Some(data_type) if data_type.is_float() => crate::dtype::precision(data_type),
        _ => 24,
    };
    f64::from(precision.min(24)).exp2()
}

fn pointwise(
    index: usize,
    table: &PointwiseAttributes,
    of: &dyn Fn(i64) -> Result<Magnitude, Reason>,
) -> Result<Magnitude, Reason> {
    use PointwiseMode::*;
    let inexact = |what: String| Reason::Operation { node: index, what };
    let first = || of(table.in_0_tensor_uid);
    let second = || {
        of(table
            .in_1_tensor_uid
            .ok_or_else(|| inexact("a missing operand".into()))?)
    };
    let parameters = Parameters::of(table);
    Ok(match table.operation {
        Add | Sub => first()?.plus(second()?),
        Mul => first()?.times(second()?),
        MaxOp | MinOp | BinarySelect => first()?.or(second()?),
        Neg | Abs | Identity => first()?,
        ReluFwd => relu(&parameters, first()?).ok_or_else(|| inexact("a ReLU's clip".into()))?,
        ReluBwd => relu(&parameters, first()?).ok_or_else(|| inexact("a ReLU's slope".into()))?,
        CmpEq | CmpGe | CmpGt | CmpLe | CmpLt | CmpNeq => Magnitude::ONE,
        mode => return Err(inexact(mode.name().to_lowercase())),
    })
}

/// `None` where a clip or the slope is no integer.
fn relu(parameters: &Parameters, x: Magnitude) -> Option<Magnitude> {
    let Parameters {
        relu_lower,
        relu_upper,
        relu_slope,
        ..
    } = *parameters;
    let whole = |value: f64| value.is_infinite() || value.fract() == 0.0;
    let below = relu_slope.abs() * (x.peak + relu_lower.abs()) + relu_lower.abs();
    // A ReLU without slope leaves half of the values.
    let kept = if relu_slope == 0.0 { 0.5f64 } else { 1.0 };
    let exact = whole(relu_lower) && whole(relu_upper) && whole(relu_slope);
    exact.then(|| Magnitude {
        peak: x.peak.max(below),
        rms: x.rms * kept.sqrt(),
        spread: x.spread,
    })
}
