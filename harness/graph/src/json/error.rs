//! What can be wrong with a graph in JSON.

use thiserror::Error;

/// Why a text is no graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonError {
    /// Not JSON at all.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What the parser said.
        message: String,
    },
    /// A value of the wrong type or range.
    #[error("{path}: expected {expected}, saw {seen}")]
    Value {
        /// Path of the value, such as `nodes[0].inputs.x_tensor_uid`.
        path: String,
        /// What was expected.
        expected: String,
        /// What was there, shortened.
        seen: String,
    },
    /// A key that must be there is not.
    #[error("{path}: expected the key {key:?}, saw none{}", hint(.nearest))]
    MissingKey {
        /// Path of the object.
        path: String,
        /// The key.
        key: String,
        /// A key of the object that looks like it.
        nearest: Option<String>,
    },
    /// A key that means nothing.
    #[error("{path}: unknown key {key:?}{}", hint(.nearest))]
    UnknownKey {
        /// Path of the object.
        path: String,
        /// The key.
        key: String,
        /// The nearest known key.
        nearest: Option<String>,
    },
    /// A name of an enum or of a node type that is not known.
    #[error("{path}: unknown {what} {seen:?}{}", hint(.nearest))]
    UnknownName {
        /// Path of the value.
        path: String,
        /// What it names: `DataType`, `node type`.
        what: String,
        /// What was there.
        seen: String,
        /// The nearest known name.
        nearest: Option<String>,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|name| format!("; did you mean {name:?}?"))
        .unwrap_or_default()
}

/// The candidate that is nearest to a name, if any is near enough to be a slip.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate.to_owned())
}
