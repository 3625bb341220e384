//! Reading.
use super::JsonError;
use crate::model::Graph;

/// Reads a graph.
///
/// # Errors
/// A [`JsonError`] that names the place.
pub fn from_str(_text: &str) -> Result<Graph, JsonError> {
    Ok(Graph::default())
}
