//! The arguments of `dnn-assay conform`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::check::Level;
use crate::cli::args::{LoadingArgs, WireChoice};

/// Arguments of `conform`.
#[derive(Args, Debug)]
pub struct ConformArgs {
    /// Plugin files, or folders whose .so files are all plugins; two or more are also tested beside
    /// each other
    #[arg(value_name = "PLUGIN")]
    pub plugins: Vec<PathBuf>,
    /// Check the built-in CPU plugin, whatever the environment says
    #[arg(long, conflicts_with = "plugins")]
    pub builtin: bool,
    /// The mildest level whose findings fail
    #[arg(long, value_enum, default_value_t = Level::Required)]
    pub level: Level,
    /// Only checks whose id matches this glob; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub check: Vec<String>,
    /// Show the checks instead of making them
    #[arg(long)]
    pub list: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = ConformFormat::Text, requires_if("markdown", "list"))]
    pub format: ConformFormat,
    /// Write JUnit XML to this file too: one case per check
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Engine by name, glob, 0x-hex or decimal id; may be repeated [default: all]
    #[arg(long, value_name = "ENGINE", allow_hyphen_values = true)]
    pub engine: Vec<String>,
    /// Generation of the graph's wire format
    #[arg(long, value_enum, default_value_t = WireChoice::Auto)]
    pub wire: WireChoice,
    /// Setting of a knob in every plan; may be repeated
    #[arg(long, value_name = "KNOB=VALUE", value_parser = super::knob::parse)]
    pub knob: Vec<dnn_assay_graph::wire::KnobSetting>,
    /// Judge the results at the least, greatest and neighbouring values of every knob
    #[arg(long)]
    pub knob_sweep: bool,
    /// How to load the plugin.
    #[command(flatten)]
    pub loading: LoadingArgs,
}

/// Forms of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConformFormat {
    /// A table for people
    Text,
    /// One JSON document
    Json,
    /// A page of the documentation (with --list)
    Markdown,
}
