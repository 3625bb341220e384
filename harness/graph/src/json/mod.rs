//! The JSON of bundles: a graph as hipDNN's own tools write it (`{Name}.json`).

mod error;
mod read;
mod style;
mod write;

pub use error::JsonError;
pub use read::from_str;
pub use write::to_string;
