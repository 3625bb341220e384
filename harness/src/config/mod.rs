//! `dnn-assay.yaml`: what a project writes down once, so that its pipeline needs one word.

mod file;
mod find;
mod write;

#[cfg(test)]
mod tests;

pub use file::{ConfigFile, Floors};
pub use find::{Config, ConfigError, find, load};
pub use write::{Plan, commented};

/// The file's name.
pub const FILE_NAME: &str = "dnn-assay.yaml";
