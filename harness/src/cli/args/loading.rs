//! How a plugin is loaded, and the devices that there are for it.

use std::path::PathBuf;

use clap::Args;

use super::choices::{DeviceChoice, LoadModeChoice};

/// How workers load the plugin.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Loading the plugin")]
pub struct LoadingArgs {
    /// Memory that the plugin works on [default: found out from the file]
    #[arg(long, value_enum)]
    pub device: Option<DeviceChoice>,
    /// How the library is opened; deepbind reproduces the host of November 2025
    #[arg(long, value_enum, default_value_t = LoadModeChoice::Local)]
    pub load_mode: LoadModeChoice,
    /// Folder that the loader searches for dependencies; may be repeated
    #[arg(long, value_name = "DIR")]
    pub lib_path: Vec<PathBuf>,
    /// Variable for the worker; may be repeated
    #[arg(long, value_name = "K=V", value_parser = parse_variable)]
    pub env: Vec<(String, String)>,
    /// Give the worker no variable but those of --env
    #[arg(long)]
    pub clean_env: bool,
    /// Library to preload into the worker; may be repeated
    #[arg(long, value_name = "FILE")]
    pub preload: Vec<PathBuf>,
    /// Folder of ROCm [default: $ROCM_PATH, then /opt/rocm]
    #[arg(long, value_name = "DIR")]
    pub rocm: Option<PathBuf>,
    /// Keep the plugin's caches in this folder
    #[arg(long, value_name = "DIR")]
    pub plugin_cache: Option<PathBuf>,
    /// Run the worker under this command, without limits, one case per process: 'rocgdb --args'
    #[arg(long, value_name = "CMD")]
    pub wrap: Option<String>,
}

/// Arguments of `init`.
#[derive(Args, Debug)]
pub struct InitArgs {
    /// The plugin file
    #[arg(value_name = "PLUGIN")]
    pub plugin: PathBuf,
    /// Where to write
    #[arg(long, value_name = "FILE", default_value = crate::config::FILE_NAME)]
    pub output: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
    /// How to load the plugin.
    #[command(flatten)]
    pub loading: LoadingArgs,
}

/// Arguments of `device`.
#[derive(Args, Debug)]
pub struct DeviceArgs {
    /// Ask this kind only
    #[arg(long, value_enum)]
    pub device: Option<DeviceChoice>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("expected K=V, got '{text}'")),
    }
}
