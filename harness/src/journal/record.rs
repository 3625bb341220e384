//! The records of schema 1. Every field exists from the first version; what is not known is
//! `null`, and readers ignore fields that they do not know.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::forms;
use super::sampled::SampledRecord;
use crate::verdict::{Depth, Phase, Verdict};

/// The schema's number, in `run-start`.
pub const SCHEMA: u32 = 1;

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// The first line.
    RunStart(Box<RunStart>),
    /// A plugin was examined: loaded, or not.
    Plugin(Box<PluginRecord>),
    /// A case is about to be given to a worker.
    CaseStart(CaseStart),
    /// What became of it.
    CaseEnd(Box<CaseEnd>),
    /// Something happened that is no case: a worker lost, a device gone.
    Infra(Infra),
    /// The last line; its absence says that the run was cut.
    RunEnd(RunEnd),
}

/// Names a plan unit and an attempt at it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitKey {
    /// Index of the plugin in the run, from 0.
    pub plugin: u32,
    /// Engine id.
    pub engine_id: i64,
    /// Case id.
    pub case: String,
}

/// What the run is, and where it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunStart {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Time, RFC 3339 in UTC.
    pub time: String,
    /// Version of dnn-assay.
    pub version: String,
    /// The command's arguments, without the program's name.
    pub arguments: Vec<String>,
    /// Suites by name or file.
    pub suites: Vec<String>,
    /// The folder that the run writes to.
    pub out: Option<String>,
    /// The machine.
    pub host: Option<Host>,
    /// The device, where there is one.
    pub device: Option<DeviceIdentity>,
    /// Git revision of the working directory.
    pub git_revision: Option<String>,
    /// SHA-256 over everything that steers results, hexadecimal.
    pub config_hash: Option<String>,
    /// SHA-256 over the ids of the plan's cases in order, hexadecimal.
    pub plan_hash: Option<String>,
    /// Seed of all data.
    pub seed: Option<u64>,
    /// Which part of the plan this run takes.
    pub shard: Option<Shard>,
    /// Cases of the plan, before the plugins' engines are known.
    pub cases: Option<u64>,
    /// The criterion asked for: `bound`, `table`, `rms`.
    pub criterion: Option<String>,
    /// Environment variables that steer results, as the worker sees them.
    pub environment: BTreeMap<String, String>,
}

/// The machine of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Host name.
    pub name: Option<String>,
    /// Kernel and distribution.
    pub os: Option<String>,
    /// Processor model.
    pub cpu: Option<String>,
    /// Processors that the run may use.
    pub cores: Option<u32>,
    /// Main memory, bytes.
    pub memory: Option<u64>,
}

/// The device of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceIdentity {
    /// `hip`, `cuda`, `mock-hip`.
    pub kind: Option<String>,
    /// Architecture with features, as in `gfx942:sramecc+:xnack-`.
    pub arch: Option<String>,
    /// Name for people.
    pub name: Option<String>,
    /// UUID.
    pub uuid: Option<String>,
    /// PCI address, as in `0000:c1:00.0`.
    pub pci: Option<String>,
    /// Compute partition mode.
    pub compute_partition: Option<String>,
    /// Memory partition mode.
    pub memory_partition: Option<String>,
    /// Driver version.
    pub driver: Option<String>,
    /// ROCm version.
    pub rocm: Option<String>,
}

/// One of `count` parts of a plan; `index` counts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 1 to `count`.
    pub index: u32,
    /// Parts.
    pub count: u32,
}

/// A plugin as the run found it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginRecord {
    /// Position in the run, from 0.
    pub plugin: u32,
    /// The file.
    pub path: String,
    /// Why this file: an argument, an environment variable, the built-in.
    pub source: Option<String>,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: Option<String>,
    /// GNU build-id, hexadecimal.
    pub build_id: Option<String>,
    /// Name that the plugin gives itself.
    pub name: Option<String>,
    /// Version that the plugin gives itself.
    pub version: Option<String>,
    /// Engine API version.
    pub api_version: Option<String>,
    /// `host`, `hip`, `cuda`.
    pub memory: Option<String>,
    /// Why it is taken for that.
    pub memory_reason: Option<String>,
    /// `current`, `2025-11`.
    pub wire: Option<String>,
    /// Why it is taken for that.
    pub wire_reason: Option<String>,
    /// Engines, in the plugin's order.
    pub engines: Vec<EngineRecord>,
    /// Plan units of this plugin: cases × engines taken. `null` where it could not be loaded.
    pub planned: Option<u64>,
    /// Milliseconds from the start of the worker to the last of the load sequence.
    pub load_ms: Option<f64>,
    /// Findings that fail no case: duplicate ids, counts that differ.
    pub findings: Vec<String>,
    /// Why it could not be used.
    pub error: Option<PluginError>,
}

/// An engine of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineRecord {
    /// Id.
    #[serde(with = "forms::hex_id")]
    pub id: i64,
    /// Name, where one is known.
    pub name: Option<String>,
    /// Arithmetic traits that it declares.
    pub traits: Vec<String>,
}

/// Why a plugin could not be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginError {
    /// A short name: `not-elf`, `wrong-machine`, `missing-symbols`, `load`, `abi`.
    pub kind: String,
    /// What is wrong and what to do, for people.
    pub message: String,
}

/// A case is about to be given to a worker. Written and handed to the kernel before the launch,
/// so that a crash names its case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaseStart {
    /// Index of the plugin.
    pub plugin: u32,
    /// Engine id.
    #[serde(with = "forms::hex_id")]
    pub engine_id: i64,
    /// Case id.
    pub case: String,
    /// From 1.
    pub attempt: u32,
    /// Time, RFC 3339 in UTC.
    pub time: Option<String>,
    /// Process id of the worker.
    pub worker: Option<u32>,
    /// The worker's device, counted among those that the run can use.
    pub device: Option<u32>,
}

/// What became of an attempt at a plan unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseEnd {
    /// Index of the plugin.
    pub plugin: u32,
    /// Engine id.
    #[serde(with = "forms::hex_id")]
    pub engine_id: i64,
    /// Engine name, where one is known.
    #[serde(default)]
    pub engine: Option<String>,
    /// Case id.
    pub case: String,
    /// From 1.
    pub attempt: u32,
    /// Attempts that the unit is allowed.
    #[serde(default)]
    pub attempts: Option<u32>,
    /// The verdict; fields `verdict` and `kind`.
    #[serde(flatten, with = "forms::verdict_and_kind")]
    pub verdict: Verdict,
    /// One line for people: what was seen, and for declined, skipped and not-run cases why.
    #[serde(default)]
    pub reason: Option<String>,
    /// The phase in which it ended, where it did not end well.
    #[serde(default)]
    pub phase: Option<Phase>,
    /// How far it came.
    #[serde(default)]
    pub depth: Depth,
    /// Knobs that were set.
    #[serde(default)]
    pub knobs: BTreeMap<String, String>,
    /// Inputs by name that were drawn between two numbers of their own, as the suite says.
    #[serde(default)]
    pub ranges: BTreeMap<String, [f64; 2]>,
    /// The criterion that judged: `bound`, `exact`, `table`, `rms`.
    #[serde(default)]
    pub criterion: Option<String>,
    /// Arithmetic traits that widened the bound.
    #[serde(default)]
    pub traits: Vec<String>,
    /// Largest error over bound.
    #[serde(default, with = "forms::optional_float")]
    pub margin: Option<f64>,
    /// Root mean square of error over bound.
    #[serde(default, with = "forms::optional_float")]
    pub rms_margin: Option<f64>,
    /// Signed bias in standard errors.
    #[serde(default, with = "forms::optional_float")]
    pub bias_z: Option<f64>,
    /// Elements compared over all outputs: all that there are, unless `sampled` says otherwise.
    #[serde(default)]
    pub compared: Option<u64>,
    /// Elements outside the bound.
    #[serde(default)]
    pub mismatched: Option<u64>,
    /// Of a judgement by samples: out of how many elements, and what it may have missed. `null`
    /// where all elements were compared.
    #[serde(default)]
    pub sampled: Option<SampledRecord>,
    /// The element nearest to its bound, or farthest beyond it.
    #[serde(default)]
    pub worst: Option<Worst>,
    /// Where the wrong elements lie.
    #[serde(default)]
    pub geometry: Option<MismatchGeometry>,
    /// Elements by distance from the correctly rounded reference: 0, 1, 2–3, 4–7, … units in the
    /// last place; empty bins at the end are left out.
    #[serde(default)]
    pub ulps: Vec<u64>,
    /// Ids of the hypotheses that explain the result.
    #[serde(default)]
    pub diagnosis: Vec<String>,
    /// How many decoys differ from the reference, over all outputs.
    #[serde(default)]
    pub decoys: Option<u64>,
    /// The decoys that the criterion would accept, for `Weak`.
    #[serde(default)]
    pub decoys_accepted: Vec<String>,
    /// Remarks that change no verdict.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The smallest case that fails in the same way, where one was looked for.
    #[serde(default)]
    pub shrunk: Option<String>,
    /// Folder of the dump, where one was written.
    #[serde(default)]
    pub dump: Option<String>,
    /// SHA-256 of the output bytes, hexadecimal.
    #[serde(default)]
    pub determinism_hash: Option<String>,
    /// Workspace that the engine asked for, bytes.
    #[serde(default)]
    pub workspace: Option<u64>,
    /// Times.
    #[serde(default)]
    pub times: Times,
    /// The plugin's last lines of this case: its log, stdout, stderr, last error.
    #[serde(default)]
    pub log_tail: Vec<String>,
    /// Tier of the case in its suite.
    #[serde(default)]
    pub tier: Option<String>,
    /// Tags of the case in its suite.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Suite file of the case.
    #[serde(default)]
    pub file: Option<String>,
    /// Line in that file, from 1.
    #[serde(default)]
    pub line: Option<u32>,
}

/// One element of an output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worst {
    /// Name of the output tensor.
    pub tensor: String,
    /// Uid of the output tensor.
    pub uid: i64,
    /// Shape, logical order.
    pub dims: Vec<i64>,
    /// Element type, short name.
    pub dtype: String,
    /// Logical row-major index.
    pub index: u64,
    /// Coordinates, logical order.
    pub coordinates: Vec<i64>,
    /// What the reference says.
    #[serde(with = "forms::float")]
    pub expected: f64,
    /// What a plain f32 loop gives, for failures.
    #[serde(with = "forms::optional_float")]
    pub naive: Option<f64>,
    /// What the engine gave.
    #[serde(with = "forms::float")]
    pub got: f64,
    /// Greatest error allowed here.
    #[serde(with = "forms::float")]
    pub bound: f64,
    /// Distance in units in the last place of the output type.
    #[serde(with = "forms::optional_float")]
    pub ulps: Option<f64>,
}

/// Where wrong elements lie.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MismatchGeometry {
    /// One line for people: `all 512 wrong elements have w >= 112`.
    pub text: String,
    /// Indices of the first wrong elements, logical row-major, at most ten.
    pub first: Vec<u64>,
    /// Smallest coordinates of the wrong elements, per axis.
    pub low: Vec<i64>,
    /// Largest coordinates of the wrong elements, per axis.
    pub high: Vec<i64>,
}

/// Milliseconds by part of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// Applicability to execution context.
    pub plan_ms: Option<f64>,
    /// The first ExecuteOpGraph.
    pub first_ms: Option<f64>,
    /// Further ones.
    pub later_ms: Vec<f64>,
    /// Our reference.
    pub reference_ms: Option<f64>,
    /// Our comparison.
    pub comparison_ms: Option<f64>,
    /// From case-start to case-end.
    pub total_ms: Option<f64>,
}

/// Something that is no case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Infra {
    /// Time, RFC 3339 in UTC.
    #[serde(default)]
    pub time: Option<String>,
    /// What sort of thing.
    pub kind: InfraKind,
    /// For people.
    pub message: String,
    /// The rule or contract of a finding: `inspect/export/std`, `conform/handle/distinct`.
    #[serde(default)]
    pub rule: Option<String>,
    /// The plugin concerned.
    #[serde(default)]
    pub plugin: Option<u32>,
    /// The case concerned.
    #[serde(default)]
    pub case: Option<String>,
}

/// What sort of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InfraKind {
    /// A worker could not be started, or was lost between cases.
    Worker,
    /// A worker could not be reaped.
    Abandoned,
    /// The device was lost.
    DeviceLost,
    /// Other processes use the device.
    ForeignProcess,
    /// The device counted ECC or RAS errors during the run.
    DeviceErrors,
    /// The run was interrupted.
    Interrupted,
    /// The budget of time or failures is spent.
    Budget,
    /// A remark on configuration: an entry that matched nothing, an expired allowance.
    Configuration,
    /// Something wrong with a plugin that is no case's: of inspection or conformance. Red.
    Finding,
    /// The same, and a waiver expects it.
    WaivedFinding,
    /// Something of a plugin that could not be looked into, because the machine failed.
    Unchecked,
    /// A kind of a later version.
    #[serde(other)]
    Other,
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnd {
    /// Time, RFC 3339 in UTC.
    pub time: Option<String>,
    /// Seconds since run-start.
    pub seconds: Option<f64>,
    /// Units by verdict name.
    pub counts: BTreeMap<String, u64>,
    /// The most main memory that the run's own process held, bytes; the plugin's workers not counted.
    pub peak_memory: Option<u64>,
    /// Exit code.
    pub exit: Option<u8>,
    /// Whether the run was interrupted.
    pub interrupted: bool,
}

impl Infra {
    /// Something that happens now, of no plugin and no case.
    pub fn now(kind: InfraKind, message: impl Into<String>) -> Self {
        Self {
            time: Some(jiff::Timestamp::now().to_string()),
            kind,
            message: message.into(),
            rule: None,
            plugin: None,
            case: None,
        }
    }
}

impl UnitKey {
    /// The key of a `case-start`.
    pub fn of_start(start: &CaseStart) -> Self {
        Self {
            plugin: start.plugin,
            engine_id: start.engine_id,
            case: start.case.clone(),
        }
    }

    /// The key of a `case-end`.
    pub fn of_end(end: &CaseEnd) -> Self {
        Self {
            plugin: end.plugin,
            engine_id: end.engine_id,
            case: end.case.clone(),
        }
    }
}

impl CaseEnd {
    /// A record of this unit with everything else unknown.
    pub fn new(key: UnitKey, attempt: u32, verdict: Verdict) -> Self {
        Self {
            plugin: key.plugin,
            engine_id: key.engine_id,
            engine: None,
            case: key.case,
            attempt,
            attempts: None,
            verdict,
            reason: None,
            phase: None,
            depth: Depth::None,
            knobs: BTreeMap::new(),
            ranges: BTreeMap::new(),
            criterion: None,
            traits: Vec::new(),
            margin: None,
            rms_margin: None,
            bias_z: None,
            compared: None,
            mismatched: None,
            sampled: None,
            worst: None,
            geometry: None,
            ulps: Vec::new(),
            diagnosis: Vec::new(),
            decoys: None,
            decoys_accepted: Vec::new(),
            notes: Vec::new(),
            shrunk: None,
            dump: None,
            determinism_hash: None,
            workspace: None,
            times: Times::default(),
            log_tail: Vec::new(),
            tier: None,
            tags: Vec::new(),
            file: None,
            line: None,
        }
    }
}

impl EngineRecord {
    /// The name, or the id in hexadecimal where there is none.
    pub fn label(&self) -> String {
        self.name
            .clone()
            .unwrap_or_else(|| format!("{:#018x}", self.id))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}
