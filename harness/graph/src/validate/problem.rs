//! What is wrong with a graph.

use std::fmt;

/// One thing wrong with a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Index of the node, if it is a node's.
    pub node: Option<usize>,
    /// Uid of the tensor, if it is a tensor's.
    pub tensor: Option<i64>,
    /// The field, as the schema names it: `x_tensor_uid`, `strides`.
    pub field: &'static str,
    /// What was expected.
    pub expected: String,
    /// What was seen.
    pub seen: String,
    /// What to do about it.
    pub advice: &'static str,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.node, self.tensor) {
            (Some(node), _) => write!(f, "node {node}, ")?,
            (None, Some(uid)) => write!(f, "tensor {uid}, ")?,
            (None, None) => f.write_str("graph, ")?,
        }
        let Self {
            field,
            expected,
            seen,
            advice,
            ..
        } = self;
        write!(f, "{field}: expected {expected}, found {seen}; {advice}")
    }
}

impl std::error::Error for Problem {}

/// Numbers for a message; a long list is cut.
pub(super) fn list(numbers: &[i64]) -> String {
    const SHOWN: usize = 8;
    match numbers.get(..SHOWN) {
        Some(head) if numbers.len() > SHOWN => {
            format!("{head:?} and {} more", numbers.len() - SHOWN)
        }
        _ => format!("{numbers:?}"),
    }
}
