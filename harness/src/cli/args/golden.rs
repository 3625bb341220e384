//! Golden data of others.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What cases can be made of.
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Write a suite of the bundles of hipDNN's form below a folder, and claims of their sidecars
    Bundle(ImportArgs),
}

/// Arguments of `import bundle`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// A folder of bundles and sweeps
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Where to write the suite
    #[arg(long, value_name = "FILE")]
    pub write: PathBuf,
    /// Where to write the claims
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
}

/// What can be done with the reference.
#[derive(Debug, Subcommand)]
pub enum ReferenceCommand {
    /// Judge the reference by the golden tensors of every bundle of hipDNN's form below a folder
    Check(ReferenceArgs),
}

/// Arguments of `reference check`.
#[derive(Args, Debug)]
pub struct ReferenceArgs {
    /// A folder of bundles: NAME.json with NAME.meta.json and NAME.tensorUID.bin, and sweeps
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Traits of the program that made the golden tensors; may be repeated
    #[arg(long = "trait", value_name = "TRAIT")]
    pub traits: Vec<String>,
}
