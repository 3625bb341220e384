//! Writing.
use crate::model::Graph;

/// Writes a graph.
pub fn to_string(_graph: &Graph) -> String {
    String::new()
}
