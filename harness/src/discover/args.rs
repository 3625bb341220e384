//! The arguments of `dnn-assay discover`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::paths::Mode;
use crate::cli::args::LoadModeChoice;

/// Arguments of `discover`.
#[derive(Args, Debug)]
pub struct DiscoverArgs {
    /// Paths as an application would give them to hipdnnSetEnginePluginPaths_ext: folders or files
    #[arg(value_name = "DIR")]
    pub paths: Vec<PathBuf>,
    /// How they combine with the default path and HIPDNN_PLUGIN_DIR
    #[arg(long, value_enum, default_value_t = Mode::Additive)]
    pub mode: Mode,
    /// libhipdnn_backend.so, whose folder relative paths start from [default: $ROCM_PATH/lib or
    /// /opt/rocm/lib, where it is there]
    #[arg(long, value_name = "FILE")]
    pub backend: Option<PathBuf>,
    /// How libraries are opened; deepbind reproduces the host of November 2025
    #[arg(long, value_enum, default_value_t = LoadModeChoice::Local)]
    pub load_mode: LoadModeChoice,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = DiscoverFormat::Text)]
    pub format: DiscoverFormat,
}

/// Forms of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiscoverFormat {
    /// Lines for people
    Text,
    /// One JSON document
    Json,
}
