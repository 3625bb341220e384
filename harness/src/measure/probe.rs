//! A question to an engine, and what its answer says.

use dnn_assay_graph::Graph;
use dnn_assay_reference::{Trait, Values};

/// Values of outputs by uid, in logical order.
pub type Outputs = Values;

/// A graph and inputs whose result tells two kinds of arithmetic apart.
#[derive(Clone, Copy)]
pub struct Probe {
    /// What is asked: `accumulator`, `rounding of sums`.
    pub about: &'static str,
    /// The case whose graph is used; its fill is made, and `inputs` may change it.
    pub id: &'static str,
    /// Edits the inputs that the case's fill gives.
    pub inputs: fn(&Graph, &mut Values),
    /// Reads the outputs of two executions.
    pub read: fn(&Answer<'_>) -> Fact,
}

/// What an engine answered.
pub struct Answer<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// What it was given.
    pub inputs: &'a Values,
    /// What it gave.
    pub outputs: &'a Outputs,
    /// What it gave when asked again in another process.
    pub again: &'a Outputs,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// In words.
    pub text: String,
    /// The trait that it shows.
    pub which: Option<Trait>,
    /// Whether it speaks against `rn`: sums that are not those of f32, rounded to nearest.
    pub against_rn: bool,
}

impl Fact {
    /// As a correct f32 engine without traits does it.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            which: None,
            against_rn: false,
        }
    }

    /// A trait.
    pub fn of(which: Trait, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            which: Some(which),
            against_rn: !matches!(
                which,
                Trait::OnePassVariance | Trait::FlushDenormals | Trait::ApproxDivSqrt
            ),
        }
    }

    /// Something that no trait describes, and that a case would find to be wrong.
    pub fn odd(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            which: None,
            against_rn: true,
        }
    }
}

impl Answer<'_> {
    /// The first output.
    pub fn first(&self) -> &[f64] {
        let uid = self.graph.outputs().next().map(|tensor| tensor.uid);
        uid.and_then(|uid| self.outputs.get(&uid))
            .map_or(&[], |values| &values[..])
    }
}
