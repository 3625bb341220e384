//! The arguments of `dnn-assay inspect`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `inspect`.
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// Plugin files, or folders whose .so files are all plugins; two or more are also held against
    /// each other
    #[arg(value_name = "FILE", required_unless_present = "list")]
    pub files: Vec<PathBuf>,
    /// What the project allows: exports, libraries, severities, exceptions [default: the rules' own]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Write a policy that accepts all that was found, to be reviewed and given as --policy
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub write_baseline: Option<PathBuf>,
    /// Device that the code inside must run on, such as gfx942:sramecc+:xnack-
    #[arg(long, value_name = "TARGET")]
    pub arch: Option<String>,
    /// Folder that the loader searches for dependencies, before LD_LIBRARY_PATH; may be repeated
    #[arg(long, value_name = "DIR")]
    pub lib_path: Vec<PathBuf>,
    /// Show the rules instead of checking them
    #[arg(long, conflicts_with = "files")]
    pub list: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = InspectFormat::Text)]
    pub format: InspectFormat,
    /// Write JUnit XML to this file too: one case per rule
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub junit: Option<PathBuf>,
}

/// Forms of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InspectFormat {
    /// For people: what to do first, then the findings by rule
    Text,
    /// One JSON document
    Json,
    /// A page of the documentation (with --list)
    Markdown,
}
