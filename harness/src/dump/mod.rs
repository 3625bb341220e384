//! Dumps of failing cases: graph, inputs, expected, bound and got in one folder, which
//! `dnn-assay replay` judges again without plugin or device, and which any reader of safetensors
//! opens.

mod elements;
mod file;
mod read;
mod replay;
mod sampled;
mod write;

pub use file::{
    DUMP_FILE, GRAPH_FILE, Manifest, Overridden, OverriddenRule, Part, SCHEMA, TENSORS_FILE,
    TensorEntry,
};
pub use read::{Dump, ReadError, find, read};
pub use replay::{ReplayError, exit_of, replay};
pub use sampled::{Draws, SampledCase, Samples};
pub use write::{Dumper, Failed, MOST_DUMPS, WriteError};

#[cfg(test)]
mod tests;
