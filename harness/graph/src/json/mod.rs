//! The JSON of bundles: a graph as hipDNN's own tools write it (`{Name}.json`, and the graphs of
//! `HIPDNN_LOG_GRAPH_DIR`).
//!
//! # Form
//!
//! An object with `name`, `compute_data_type`, `intermediate_data_type`, `io_data_type`,
//! `tensors`, `nodes` and optionally `preferred_engine_id`, `is_override_shape_enabled`,
//! `min_required_engine_api_version`, `id`.
//! Keys are the field names of the schema; a node names its table in `type`, its uids in
//! `inputs` and `outputs`, and its parameters wherever the kind's own serializer puts them:
//! `parameters`, `attributes`, `inputs` or the node itself. `style.rs` keeps the table.
//!
//! # Reading is wider than writing
//!
//! The reader takes a field from any of those places, enum names in any case or as numbers, and
//! `null` for absent. Keys that it does not know are passed over, as upstream passes over them,
//! except where that would change the graph unseen: one that names a tensor, and one that is a
//! slip of the pen away from a known key, are errors. The writer keeps to each kind's spelling.
//!
//! # What JSON cannot hold
//!
//! Infinities and NaN are written as the strings `"inf"`, `"-inf"` and `"nan"`, which only this
//! reader understands. A NaN's payload is lost.

mod cursor;
mod error;
mod node;
mod read;
mod style;
mod write;

pub use error::JsonError;
pub use read::from_str;
pub use write::to_string;
