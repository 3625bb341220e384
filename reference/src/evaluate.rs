//! Executes a graph: every node in order, a value and an uncertainty for every tensor.

mod account;
mod naive;
mod nodes;

pub use account::{Account, account};
pub use naive::naive_f32;

use crate::arithmetic::{Arithmetic, Precision};
use crate::array::Array;
use crate::dtype;
use crate::estimate::{Alternative, Estimate, Values, round_up};
use crate::ops::Wanted;
use crate::ops::batchnorm::Bounds;
use crate::ops::operand::Operand;
use crate::ops::sums::SumBound;
use dnn_assay_graph::{Attributes, DataType, Graph, Node, Tensor};
use std::collections::BTreeMap;

/// What the execution of a graph gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Every tensor that some node writes, virtual ones included. An output's `error` excludes
    /// the final rounding to its own type; a virtual tensor's includes it, because an engine may
    /// round there or not.
    pub tensors: BTreeMap<i64, Estimate>,
    /// Elements at a kink or step that the uncertainty of their input does not decide.
    pub uncertain_steps: usize,
    /// Elements of sums with one sign, whose bound grows as `K·u·S`.
    pub linear_growth: usize,
}

/// Why a graph cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// No reference for this node kind or mode.
    #[error("node {node} ({name:?}): the reference does not implement {what}")]
    Unsupported {
        /// Index of the node.
        node: usize,
        /// Its name.
        name: String,
        /// The node kind, mode or parameter.
        what: String,
    },
    /// Shapes, tensors or parameters that do not fit together.
    #[error("node {node} ({name:?}): {problem}")]
    Invalid {
        /// Index of the node.
        node: usize,
        /// Its name.
        name: String,
        /// What does not fit, with the numbers.
        problem: String,
    },
    /// An input has no values, or not as many as the tensor has elements.
    #[error("tensor {uid}: {problem}")]
    Input {
        /// The tensor.
        uid: i64,
        /// What is missing.
        problem: String,
    },
}

/// Executes `graph` on `inputs` in f64, with the uncertainty that a correct engine of this
/// `arithmetic` may show.
///
/// The result does not depend on the number of threads nor on the instruction set.
///
/// # Errors
/// [`EvalError`] where the graph holds a node that the reference does not implement, where shapes
/// do not fit, or where an input is missing. Never panics on a validated graph.
pub fn evaluate(
    graph: &Graph,
    inputs: &Values,
    arithmetic: &Arithmetic,
) -> Result<Evaluation, EvalError> {
    Run::of(graph, inputs, arithmetic, Wanted::Uncertainty)
}

/// Executes `graph` on `inputs` in f64 without any uncertainty: the values of [`evaluate`], bit for
/// bit, for those who only ask for them. Convolutions and matrix products take about half the time,
/// batchnorm writes a third less.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_values(graph: &Graph, inputs: &Values) -> Result<Values, EvalError> {
    let evaluation = Run::of(graph, inputs, &Arithmetic::default(), Wanted::Values)?;
    let tensors = evaluation.tensors.into_iter();
    Ok(tensors
        .map(|(uid, estimate)| (uid, estimate.value))
        .collect())
}

/// A node and its place, for messages.
struct At<'a> {
    index: usize,
    node: &'a Node,
}

impl At<'_> {
    fn unsupported(&self, what: impl Into<String>) -> EvalError {
        EvalError::Unsupported {
            node: self.index,
            name: self.node.name.clone(),
            what: what.into(),
        }
    }

    fn invalid(&self, problem: impl Into<String>) -> EvalError {
        EvalError::Invalid {
            node: self.index,
            name: self.node.name.clone(),
            problem: problem.into(),
        }
    }
}

/// An execution under way.
struct Run<'a> {
    graph: &'a Graph,
    inputs: &'a Values,
    arithmetic: &'a Arithmetic,
    wanted: Wanted,
    /// Scalars that travel in the graph.
    constants: Values,
    /// Errors of inputs whose denormals may be read as zero.
    denormals: BTreeMap<i64, Array<f32>>,
    /// Outputs that later nodes read, as those may find them: rounded or not.
    read_later: BTreeMap<i64, Estimate>,
    evaluation: Evaluation,
}

type Written = Vec<(i64, Estimate)>;

impl<'a> Run<'a> {
    fn of(
        graph: &'a Graph,
        inputs: &'a Values,
        arithmetic: &'a Arithmetic,
        wanted: Wanted,
    ) -> Result<Evaluation, EvalError> {
        Ok(Self::executed(graph, inputs, arithmetic, wanted)?.evaluation)
    }

    fn executed(
        graph: &'a Graph,
        inputs: &'a Values,
        arithmetic: &'a Arithmetic,
        wanted: Wanted,
    ) -> Result<Self, EvalError> {
        let mut run = Self {
            graph,
            inputs,
            arithmetic,
            wanted,
            constants: BTreeMap::new(),
            denormals: BTreeMap::new(),
            read_later: BTreeMap::new(),
            evaluation: Evaluation::default(),
        };
        run.read_constants()?;
        if arithmetic.flushes_denormals && wanted == Wanted::Uncertainty {
            run.doubt_denormals();
        }
        for (index, node) in graph.nodes.iter().enumerate() {
            let at = At { index, node };
            for (uid, estimate) in run.node(&at)? {
                run.store(&at, uid, estimate)?;
            }
        }
        Ok(run)
    }

    fn read_constants(&mut self) -> Result<(), EvalError> {
        for tensor in &self.graph.tensors {
            let Some(value) = tensor.value else { continue };
            let problem = |problem: &str| EvalError::Input {
                uid: tensor.uid,
                problem: problem.to_owned(),
            };
            let value = value.as_f64().ok_or_else(|| {
                problem("an 8-bit float, which the reference does not compute with")
            })?;
            let count = tensor.element_count().ok_or_else(|| problem("no size"))?;
            if count > MOST_CONSTANTS {
                return Err(problem("a scalar with more than 2²⁰ elements"));
            }
            self.constants.insert(tensor.uid, vec![value; count].into());
        }
        Ok(())
    }

    /// Denormal inputs may count as zero.
    fn doubt_denormals(&mut self) {
        for (&uid, values) in self.inputs {
            let Some(tensor) = self.graph.tensor(uid) else {
                continue;
            };
            let least = dtype::smallest_normal(tensor.data_type);
            if values.iter().any(|x| is_below(*x, least)) {
                let lost = |x: &f64| if is_below(*x, least) { x.abs() } else { 0.0 };
                let errors = values.iter().map(lost).map(round_up).collect();
                self.denormals.insert(uid, errors);
            }
        }
    }

    fn tensor(&self, at: &At<'_>, uid: i64) -> Result<&'a Tensor, EvalError> {
        let tensor = self
            .graph
            .tensor(uid)
            .ok_or_else(|| at.invalid(format!("there is no tensor {uid}")))?;
        if !dtype::supported(tensor.data_type) {
            return Err(at.unsupported(format!("tensor {uid} of type {}", tensor.data_type)));
        }
        Ok(tensor)
    }

    fn operand(&self, at: &At<'_>, uid: i64) -> Result<Operand<'_>, EvalError> {
        let tensor = self.tensor(at, uid)?;
        let written = self
            .read_later
            .get(&uid)
            .or_else(|| self.evaluation.tensors.get(&uid));
        if let Some(estimate) = written {
            return Ok(Operand {
                value: &estimate.value,
                error: &estimate.error,
                also: &estimate.also,
                dims: &tensor.dims,
                data_type: tensor.data_type,
                is_virtual: true,
            });
        }
        let given = self.constants.get(&uid).or_else(|| self.inputs.get(&uid));
        let problem = |problem: String| EvalError::Input { uid, problem };
        let value = given.ok_or_else(|| problem("no values were given".to_owned()))?;
        if tensor.element_count() != Some(value.len()) {
            return Err(problem(format!(
                "{} values for {:?}",
                value.len(),
                tensor.dims
            )));
        }
        Ok(Operand {
            value,
            error: self.denormals.get(&uid).map_or(&[], |errors| &errors[..]),
            also: &[],
            dims: &tensor.dims,
            data_type: tensor.data_type,
            is_virtual: false,
        })
    }

    fn scalar(&self, at: &At<'_>, uid: i64) -> Result<f64, EvalError> {
        let operand = self.operand(at, uid)?;
        let first = operand.value.first();
        first
            .copied()
            .ok_or_else(|| at.invalid(format!("scalar {uid} is empty")))
    }

    /// The arithmetic of a node.
    fn precision(&self, at: &At<'_>) -> Result<Precision, EvalError> {
        let declared = match at.node.compute_type {
            DataType::Unset => self.graph.compute_type,
            declared => declared,
        };
        let attributes = &at.node.attributes;
        let mut uids = attributes.inputs();
        uids.extend(attributes.outputs());
        let types: Vec<DataType> = uids
            .iter()
            .filter_map(|&uid| self.graph.tensor(uid).map(|tensor| tensor.data_type))
            .collect();
        Precision::of(self.arithmetic, declared, &types)
            .ok_or_else(|| at.unsupported(format!("compute type {declared}")))
    }

    fn bound(&self, precision: &Precision) -> SumBound {
        SumBound::new(self.arithmetic, precision)
    }

    fn norm_bounds(&self, precision: &Precision) -> Bounds<'_> {
        Bounds {
            sum: self.bound(precision),
            functions: &self.arithmetic.functions,
            wanted: self.wanted,
        }
    }

    fn bound_of_products(&self, precision: &Precision, operands: &[Operand<'_>]) -> SumBound {
        let wide = operands.iter().any(Operand::is_wide);
        SumBound::of_products(self.arithmetic, precision, wide)
    }

    fn node(&mut self, at: &At<'_>) -> Result<Written, EvalError> {
        if let Some(conv) = at.node.attributes.convolution() {
            return self.convolution(at, &conv);
        }
        match &at.node.attributes {
            Attributes::Matmul(matmul) => self.matmul(at, matmul),
            Attributes::Pointwise(pointwise) => self.pointwise(at, pointwise),
            Attributes::BatchnormInference(norm) => self.inference(at, norm),
            Attributes::BatchnormInferenceVariance(norm) => self.inference_variance(at, norm),
            Attributes::Batchnorm(norm) => self.training(at, norm),
            Attributes::BatchnormBackward(norm) => self.norm_backward(at, norm),
            other => Err(at.unsupported(format!("node kind {}", other.kind()))),
        }
    }

    /// Keeps a node's output: of a virtual tensor with the rounding to its type included.
    fn store(&mut self, at: &At<'_>, uid: i64, mut estimate: Estimate) -> Result<(), EvalError> {
        let tensor = self.tensor(at, uid)?;
        if self.arithmetic.flushes_denormals {
            flush(dtype::smallest_normal(tensor.data_type), &mut estimate);
        }
        if tensor.element_count() != Some(estimate.value.len()) {
            return Err(at.invalid(format!(
                "output {uid} is {:?}, the operation gives {} elements",
                tensor.dims,
                estimate.value.len()
            )));
        }
        if self.wanted == Wanted::Values {
            self.evaluation.tensors.insert(uid, estimate);
            return Ok(());
        }
        if tensor.is_virtual {
            let stored = stored(tensor.data_type, estimate);
            self.evaluation.tensors.insert(uid, stored);
            return Ok(());
        }
        let later = &self.graph.nodes[at.index + 1..];
        if later
            .iter()
            .any(|node| node.attributes.inputs().contains(&uid))
        {
            let stored = stored(tensor.data_type, estimate.clone());
            self.read_later.insert(uid, stored);
        }
        self.evaluation.tensors.insert(uid, estimate);
        Ok(())
    }
}

/// A number other than 0 below the smallest normal one.
fn is_below(x: f64, least: f64) -> bool {
    x != 0.0 && x.abs() < least
}

/// Zero is right for what may be a denormal.
fn flush(least: f64, estimate: &mut Estimate) {
    for (y, error) in estimate.value.iter().zip(&mut estimate.error) {
        let e = f64::from(*error);
        if *y != 0.0 && y.abs() - e < least {
            *error = round_up(e + y.abs().min(least));
        }
    }
}

/// Elements that a scalar of the graph may be repeated to.
const MOST_CONSTANTS: usize = 1 << 20;

/// A tensor as a later node may find it: in the compute type or rounded to the tensor's own.
fn stored(data_type: DataType, mut estimate: Estimate) -> Estimate {
    let (u, half) = (
        dtype::unit_roundoff(data_type),
        dtype::smallest_subnormal(data_type) / 2.0,
    );
    let overflow = dtype::overflow_threshold(data_type);
    let mut overflowing = Vec::new();
    for (index, (error, &y)) in estimate.error.iter_mut().zip(&estimate.value).enumerate() {
        if *error == 0.0 && dtype::round(data_type, y) == y {
            continue;
        }
        let e = f64::from(*error);
        *error = round_up(e + u * (y.abs() + e) + half);
        if y.is_finite() && y.abs() + e >= overflow {
            overflowing.push(Alternative {
                index,
                value: f64::INFINITY.copysign(y),
            });
        }
    }
    if !overflowing.is_empty() {
        estimate.also.extend(overflowing);
        estimate.also.sort_by_key(|other| other.index);
    }
    estimate
}
