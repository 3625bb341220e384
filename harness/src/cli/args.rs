//! The command line as data: help, man page and completions come from these definitions.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::verdict::Depth;

/// Says whether a hipDNN engine plugin computes the right results, and what is wrong if not.
#[derive(Debug, Parser)]
#[command(
    name = "dnn-assay",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    after_long_help = EXIT_CODES,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    as expected
  1    a case failed, crashed, timed out, was flaky, or passed unexpectedly
  2    wrong usage or configuration
  3    a plugin could not be loaded or breaks the required ABI
  4    nothing was verified, or less than --min-verified
  5    device or infrastructure failure, or a required device absent
  6    the baseline is out of date
  7    cases are missing or were not run
  77   no device, and DNN_ASSAY_SKIP_IF_NO_DEVICE=1
  130  interrupted; reports were written

Environment:
  HIPDNN_PLUGIN_DIR              plugins to test when none is named
  DNN_ASSAY_REQUIRE_DEVICE=1     no device is an error (exit 5)
  DNN_ASSAY_SKIP_IF_NO_DEVICE=1  no device is a skip (exit 77)
  NO_COLOR, CLICOLOR_FORCE       colour off, colour on";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Hold plugins to what a project expects of them: the gate of a pipeline
    Check(Box<RunArgs>),
    /// Test plugins: load them, run cases, judge the results, write reports
    Run(Box<RunArgs>),
    /// Show the cases of a suite; needs no plugin and no device
    List(ListArgs),
    /// Show one case: its graph, its tensors, and where each number of its bound comes from
    Explain(ExplainArgs),
    /// Write the reports of a run again from its journal
    Report(ReportArgs),
    /// Look at a plugin once and write a commented dnn-assay.yaml for it
    Init(InitArgs),
    /// Record what plugins were verified to compute, for gates that must not lose it
    Claims(Box<ClaimsArgs>),
    /// Show operation, type and layout by engine, at the depth that each reached
    Matrix(Box<MatrixArgs>),
    /// Print the JSON Schema of dnn-assay.yaml
    Schema,
    /// Show what hipDNN would load from where, in which order, and what it drops
    Discover(crate::discover::args::DiscoverArgs),
    /// Read plugin files without loading them: exports, dependencies, loading, pairs
    Inspect(Box<crate::inspect::args::InspectArgs>),
    /// Check the contracts of the plugin ABI, and plugins beside each other
    Conform(Box<crate::conform::args::ConformArgs>),
    /// Find the smallest case that fails as this one does
    Shrink(Box<ShrinkArgs>),
    /// Judge dumps of failing cases again, without a plugin or a device
    Replay(ReplayArgs),
    /// Measure what a plugin's arithmetic does, and print the traits to declare
    Traits(super::traits::TraitsArgs),
    /// Make cases of data of others
    #[command(subcommand)]
    Import(ImportCommand),
    /// Hold our reference against golden data of others
    #[command(subcommand)]
    Reference(ReferenceCommand),
    /// Show the GPUs that the drivers here offer, or why they offer none
    Device(DeviceArgs),
    /// Tools for those who work on this program
    #[command(subcommand)]
    Dev(DevCommand),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page in roff
    Man,
}

/// Tools for those who work on this program.
#[derive(Debug, Subcommand)]
pub enum DevCommand {
    /// Run plugins with known faults, and show which check notices each: the kill table
    Power(PowerArgs),
    /// Measure how far correct f32 sums stray: the evidence behind the constant of the bound
    Calibrate(super::calibrate::CalibrateArgs),
    /// Show the symbol versions that files ask for, and hold them to a ceiling
    Versions(super::versions::VersionsArgs),
    /// Hold what `list` says of time and memory against what runs took
    Tiers(super::tiers::TiersArgs),
}

/// Arguments of `dev power`.
#[derive(Args, Debug)]
pub struct PowerArgs {
    /// Only mutants whose name matches this glob; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub mutant: Vec<String>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = PowerFormat::Text)]
    pub format: PowerFormat,
    /// Mutants at the same time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Say on standard error which mutant has ended
    #[arg(long)]
    pub progress: bool,
}

/// Forms of the kill table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PowerFormat {
    /// One line per mutant
    Text,
    /// One JSON document
    Json,
    /// A page of the documentation
    Markdown,
}

/// Which cases.
#[derive(Args, Clone, Debug, Default)]
pub struct Selection {
    /// Suite by name (smoke, full, ...) or YAML file; may be repeated [default: smoke]
    #[arg(long, value_name = "NAME|FILE")]
    pub suite: Vec<String>,
    /// Exactly this case, whether a suite has it or not; may be repeated
    #[arg(long, value_name = "ID")]
    pub case: Vec<String>,
    /// This many random cases instead of a suite; the same --seed gives the same. Failures shrink
    /// by themselves
    #[arg(long, value_name = "N", conflicts_with_all = ["suite", "case"], value_parser = parse_count)]
    pub fuzz: Option<usize>,
    /// Terms over the fields of ids, all of which must hold: 'op=conv dtype=f16,bf16 tag!=slow ~k64'
    #[arg(long, value_name = "TERMS", allow_hyphen_values = true)]
    pub filter: Vec<String>,
}

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

/// Arguments of `list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Which cases to show.
    #[command(flatten)]
    pub selection: Selection,
    /// Seed of --fuzz
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = ListFormat::Terse)]
    pub format: ListFormat,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// The case's id
    #[arg(value_name = "CASE")]
    pub case: String,
    /// Seed of the input data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Rule of judgement
    #[arg(long, value_enum, default_value_t = CriterionName::Bound)]
    pub criterion: CriterionName,
    /// Traits the engine is taken to declare
    #[arg(long = "trait", value_name = "TRAIT")]
    pub traits: Vec<String>,
}

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

/// Arguments of `replay`.
#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// A dump of `run --dump-on-fail`, or the folder of several
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
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

/// Rules of judgement by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CriterionName {
    /// Per-element bound from the data (the default)
    Bound,
    /// Bit equality with the correctly rounded reference
    Exact,
    /// hipDNN's fixed table of absolute and relative tolerances
    Table,
    /// MIOpenDriver's root mean square of the whole tensor
    Rms,
    /// Units in the last place, where nothing is summed
    Ulp,
}

/// Depth at which a case stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Until {
    /// The plugin is loaded
    Loaded,
    /// The engine was asked whether it takes the graph
    Applicable,
    /// An execution context exists
    Planned,
    /// The graph was executed
    Executed,
}

impl From<Until> for Depth {
    fn from(until: Until) -> Self {
        match until {
            Until::Loaded => Self::Loaded,
            Until::Applicable => Self::Applicable,
            Until::Planned => Self::Planned,
            Until::Executed => Self::Executed,
        }
    }
}

/// Generation of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WireChoice {
    /// Found out from the plugin
    Auto,
    /// Today's schema
    Current,
    /// The schema of November 2025
    #[value(name = "2025-11")]
    Nov2025,
}

/// Memory kinds that `--device` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceChoice {
    /// Host memory
    Host,
    /// AMD GPU
    Hip,
    /// NVIDIA GPU
    Cuda,
    /// The mock HIP runtime
    MockHip,
}

/// dlopen flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadModeChoice {
    /// RTLD_NOW | RTLD_LOCAL
    Local,
    /// RTLD_NOW | RTLD_DEEPBIND
    Deepbind,
}

/// Verdicts that `--fail-on` makes red.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A case that would accept a decoy
    Weak,
    /// A case that the engine declined
    Unsupported,
}

/// Forms of `list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// One id a line
    Terse,
    /// One tier a line: cases, time of the reference on two cores, memory of the largest case
    Tiers,
    /// One JSON document
    Json,
}

/// Limits of a worker's phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Opening and loading.
    pub load: Duration,
    /// Applicability to context.
    pub plan: Duration,
    /// One execution.
    pub execute: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            load: Duration::from_secs(60),
            plan: Duration::from_secs(120),
            execute: Duration::from_secs(30),
        }
    }
}

fn parse_timeouts(text: &str) -> Result<Timeouts, String> {
    let mut timeouts = Timeouts::default();
    for part in text.split(',') {
        let (phase, time) = part
            .split_once('=')
            .ok_or_else(|| format!("expected PHASE=TIME, got '{part}'"))?;
        let time = parse_duration(time)?;
        match phase {
            "load" => timeouts.load = time,
            "plan" => timeouts.plan = time,
            "execute" => timeouts.execute = time,
            _ => {
                return Err(format!(
                    "no phase is called '{phase}'; there are load, plan, execute"
                ));
            }
        }
    }
    Ok(timeouts)
}

/// Reads `90s`, `5m`, `1h30m`, `500ms`; a bare number is seconds.
fn parse_duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string());
    }
    let span: jiff::SignedDuration = text
        .parse()
        .map_err(|_| format!("'{text}' is no time; write 90s, 5m or 1h30m"))?;
    Duration::try_from(span).map_err(|_| format!("'{text}' is negative"))
}

/// A number of cases: from 1 to ten million.
fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=10_000_000) => Ok(count),
        _ => Err(format!(
            "expected a number of cases from 1 to 10000000, got '{text}'"
        )),
    }
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("expected K=V, got '{text}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_and_timeouts() {
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("2.5"), Ok(Duration::from_millis(2500)));
        assert!(parse_duration("-3s").is_err() && parse_duration("soon").is_err());
        let timeouts = parse_timeouts("execute=2s").expect("one phase is enough");
        assert_eq!(timeouts.execute, Duration::from_secs(2));
        assert_eq!(timeouts.load, Timeouts::default().load);
        assert!(parse_timeouts("exec=2s").is_err() && parse_timeouts("load").is_err());
    }

    #[test]
    fn the_exit_codes_of_the_help_are_those_of_the_module() {
        for exit in crate::exit::Exit::ALL {
            let line = format!("  {:<4} {}", exit.code(), exit.meaning());
            assert!(EXIT_CODES.contains(&line), "{line}");
        }
    }
}
