//! What follows a run: its reports, its dumps, a smaller case for its failure.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::choices::{CriterionName, WireChoice};
use super::loading::LoadingArgs;
use super::time::{Timeouts, parse_duration, parse_timeouts};

/// Arguments of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Folder of a run, or its journal
    #[arg(value_name = "DIR", default_value = "dnn-assay-out")]
    pub dir: PathBuf,
    /// Write JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write one static HTML page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Append a summary in Markdown to this file, and name failures as annotations
    #[arg(long, value_name = "FILE")]
    pub step_summary: Option<PathBuf>,
}

/// Arguments of `replay`.
#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// A dump of `run --dump-on-fail`, or the folder of several
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Arguments of `shrink`.
#[derive(Args, Debug)]
pub struct ShrinkArgs {
    /// The case's id
    #[arg(value_name = "CASE")]
    pub case: String,
    /// Plugin file [default: as for run]
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// The built-in CPU plugin, whatever the environment says
    #[arg(long, conflicts_with = "plugin")]
    pub builtin: bool,
    /// Engine by name, glob, 0x-hex or decimal id [default: the first on which the case fails]
    #[arg(long, value_name = "ENGINE", allow_hyphen_values = true)]
    pub engine: Option<String>,
    /// Write the smallest case as a suite to this file
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Cases tried at most
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub tries: usize,
    /// Time spent at most: 90s, 5m, 1h30m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub budget: Option<Duration>,
    /// Rule of judgement
    #[arg(long, value_enum, default_value_t = CriterionName::Bound)]
    pub criterion: CriterionName,
    /// Traits that the engine is taken to declare; may be repeated
    #[arg(long = "trait", value_name = "TRAIT")]
    pub traits: Vec<String>,
    /// Generation of the graph's wire format
    #[arg(long, value_enum, default_value_t = WireChoice::Auto)]
    pub wire: WireChoice,
    /// Setting of a knob in every plan; may be repeated
    #[arg(long, value_name = "KNOB=VALUE", value_parser = crate::conform::knob::parse)]
    pub knob: Vec<dnn_assay_graph::wire::KnobSetting>,
    /// Seed of the input data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Time limits of a worker's phases
    #[arg(long, value_name = "PHASE=TIME,...", value_parser = parse_timeouts, default_value = "load=60s,plan=120s,execute=30s")]
    pub timeout: Timeouts,
    /// Execute each case that passed this many times more; the bits must be the same
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub repeat: u32,
    /// How to load the plugin.
    #[command(flatten)]
    pub loading: LoadingArgs,
}
