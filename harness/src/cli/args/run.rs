//! Commands that run cases on plugins, and the groups of their flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::choices::{CriterionName, FailOn, Until, WireChoice};
use super::loading::LoadingArgs;
use super::selection::Selection;
use super::time::{Timeouts, parse_duration, parse_timeouts};

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Plugin files, or folders whose .so files are all plugins
    #[arg(value_name = "PLUGIN")]
    pub plugins: Vec<PathBuf>,
    /// Test the built-in CPU plugin, whatever the environment says
    #[arg(long, conflicts_with = "plugins")]
    pub builtin: bool,
    /// Which cases to run.
    #[command(flatten)]
    pub selection: Selection,
    /// Engine by name, glob, 0x-hex or decimal id; may be repeated [default: all]
    #[arg(long, value_name = "ENGINE", allow_hyphen_values = true)]
    pub engine: Vec<String>,
    /// Rule of judgement
    #[arg(long, value_enum, default_value_t = CriterionName::Bound)]
    pub criterion: CriterionName,
    /// Judge cases whose outputs have more than N elements by samples: N elements at random, those
    /// at corners, edges and tile borders, and sums over channels; how likely which fault is missed
    /// is told
    #[arg(long, value_name = "N")]
    pub sample: Option<std::num::NonZeroU32>,
    /// Input that is uniform between two numbers of its own, with the fill `uni`; may be repeated
    #[arg(long, value_name = "TENSOR=LOW..HIGH", value_parser = parse_range)]
    pub range: Vec<(String, [f64; 2])>,
    /// Traits that every engine under test is taken to declare, such as rn or f16; may be repeated
    #[arg(long = "trait", value_name = "TRAIT")]
    pub traits: Vec<String>,
    /// What the configuration declares, engine by engine.
    #[arg(skip)]
    pub declared: Option<crate::judge::Declared>,
    /// Generation of the graph's wire format
    #[arg(long, value_enum, default_value_t = WireChoice::Auto)]
    pub wire: WireChoice,
    /// Setting of a knob in every plan; may be repeated
    #[arg(long, value_name = "KNOB=VALUE", value_parser = crate::conform::knob::parse)]
    pub knob: Vec<dnn_assay_graph::wire::KnobSetting>,
    /// Judge each case that passes at the least, greatest and neighbouring values of every knob
    /// that its engine declares, too
    #[arg(long)]
    pub knob_sweep: bool,
    /// Seed of the input data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Stop each case at this depth
    #[arg(long, value_enum, value_name = "DEPTH")]
    pub until: Option<Until>,
    /// What to hold it to.
    #[command(flatten)]
    pub gate: GateArgs,
    /// Limits of how to run.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// How to load the plugin.
    #[command(flatten)]
    pub loading: LoadingArgs,
    /// What to write.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What a run is held to beside its bounds.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Expectations")]
pub struct GateArgs {
    /// Configuration [default: dnn-assay.yaml of this folder or the nearest above that has one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Waivers in YAML, or hipDNN's engine configuration in TOML; may be repeated
    #[arg(long, value_name = "FILE")]
    pub expect: Vec<PathBuf>,
    /// Claims: a claimed case that its engine declines is a failure; may be repeated
    #[arg(long = "claims", value_name = "FILE")]
    pub claims: Vec<PathBuf>,
    /// Hold expired waivers void, and report them with exit code 6
    #[arg(long)]
    pub nightly: bool,
}

/// Time, number and what counts as red.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Worker processes at the same time [default: half the cores, at least 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Time limits of a worker's phases
    #[arg(long, value_name = "PHASE=TIME,...", value_parser = parse_timeouts, default_value = "load=60s,plan=120s,execute=30s")]
    pub timeout: Timeouts,
    /// Execute each case that passed this many times more, in a plan of its own and over its own
    /// outputs; the bits must be the same
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub repeat: u32,
    /// Start no further case after this time: 90s, 5m, 1h30m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub budget: Option<Duration>,
    /// Start no further case after this many failures
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_fails: Option<u32>,
    /// Fail with exit code 4 when fewer cases were verified [default: 1]
    #[arg(long, value_name = "N")]
    pub min_verified: Option<u64>,
    /// Treat these verdicts as failures too
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub fail_on: Vec<FailOn>,
    /// Do not treat flaky cases as failures
    #[arg(long)]
    pub allow_flaky: bool,
}

/// What a run writes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Folder of the journal and the reports
    #[arg(long, value_name = "DIR", default_value = "dnn-assay-out")]
    pub out: PathBuf,
    /// Write JUnit XML to this file too
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write one static HTML page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Append a summary in Markdown to this file, and name failures as annotations
    #[arg(
        long,
        value_name = "FILE",
        env = "GITHUB_STEP_SUMMARY",
        hide_env_values = true
    )]
    pub step_summary: Option<PathBuf>,
    /// Keep graph, inputs, expected, bound and outputs of failing cases below this folder, for
    /// `dnn-assay replay` and for Python
    #[arg(long, value_name = "DIR")]
    pub dump_on_fail: Option<PathBuf>,
    /// Plain lines instead of a progress bar
    #[arg(long)]
    pub plain: bool,
}

/// Arguments of `claims`.
#[derive(Args, Debug)]
pub struct ClaimsArgs {
    /// The run that is recorded.
    #[command(flatten)]
    pub run: RunArgs,
    /// Where to write the claims
    #[arg(long, value_name = "FILE")]
    pub write: PathBuf,
}

/// Arguments of `matrix`.
#[derive(Args, Debug)]
pub struct MatrixArgs {
    /// The run that is shown.
    #[command(flatten)]
    pub run: RunArgs,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = MatrixFormat::Table)]
    pub format: MatrixFormat,
}

/// Forms of `matrix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MatrixFormat {
    /// For a terminal
    Table,
    /// For a page
    Markdown,
    /// One JSON document
    Json,
}

/// `x=-2..2`.
fn parse_range(text: &str) -> Result<(String, [f64; 2]), String> {
    let wrong = || format!("`{text}` is no TENSOR=LOW..HIGH, as in x=-2..2");
    let (name, range) = text.split_once('=').ok_or_else(wrong)?;
    let (low, high) = range.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong());
    let range = [number(low)?, number(high)?];
    if name.is_empty() || range[0] > range[1] || !(range[1] - range[0]).is_finite() {
        return Err(wrong());
    }
    Ok((name.to_owned(), range))
}
