//! What comes back from a worker.

use std::fmt;
use std::time::Duration;

use dnn_assay_abi::{ApiVersion, PluginStatus, engine_id};
use serde::{Deserialize, Serialize};

use super::Until;

/// The step a worker is in. Announced before each step, so that a hang or a crash has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// The process starts.
    Start,
    /// The library is opened, its symbols resolved, its names and engines asked.
    Load,
    /// `Create`, and `SetStream` where the device has a stream.
    Create,
    /// `GetApplicableEngineIds`.
    Applicable,
    /// `GetEngineDetails`.
    Details,
    /// `GetWorkspaceSize`.
    Workspace,
    /// `CreateExecutionContext` and `GetWorkspaceSizeFromExecutionContext`.
    Plan,
    /// `ExecuteOpGraph`.
    Execute,
    /// `DestroyExecutionContext` and `DestroyEngineDetails`.
    Destroy,
    /// Between cases.
    Idle,
    /// `Destroy`, then the process's normal exit.
    Exit,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Load => "load",
            Self::Create => "create",
            Self::Applicable => "applicable",
            Self::Details => "details",
            Self::Workspace => "workspace",
            Self::Plan => "plan",
            Self::Execute => "execute",
            Self::Destroy => "destroy",
            Self::Idle => "idle",
            Self::Exit => "exit",
        })
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Exit {
    /// By a signal.
    Signal(i32),
    /// By `exit`, with this code. 0 is as wrong as any other: nobody asked it to end.
    Code(i32),
    /// It is gone and nobody can say how.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "signal {number} ({name})"),
                None => write!(f, "signal {number}"),
            },
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Unknown => f.write_str("an unknown end"),
        }
    }
}

/// The name of a Linux signal that ends processes.
fn signal_name(number: i32) -> Option<&'static str> {
    const NAMES: &[(i32, &str)] = &[
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
        (31, "SIGSYS"),
    ];
    let found = NAMES.iter().find(|(value, _)| *value == number);
    found.map(|(_, name)| *name)
}

/// A worker that ended while it was at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// How it ended.
    pub exit: Exit,
    /// What it was doing.
    pub phase: Phase,
    /// The last lines of its standard error, lossy UTF-8, control characters as they came.
    pub stderr: String,
    /// The guard that was hit, where the fault's address lies in one.
    pub guard: Option<GuardHit>,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in phase {}", self.exit, self.phase)?;
        match &self.guard {
            Some(hit) => write!(f, ", {hit}"),
            None => Ok(()),
        }
    }
}

/// An access to inaccessible memory beside a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardHit {
    /// The nearest buffer; [`dnn_assay_device::WORKSPACE_UID`] for the workspace.
    pub uid: i64,
    /// The address accessed, in bytes from the buffer's first: negative before it, at least its
    /// size behind it.
    pub offset: i64,
    /// The buffer's size in bytes.
    pub size: u64,
}

impl GuardHit {
    /// The access lies before the buffer.
    pub fn is_before(&self) -> bool {
        self.offset < 0
    }
}

impl fmt::Display for GuardHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, side) = match u64::try_from(self.offset) {
            Ok(offset) => (offset.saturating_sub(self.size), "past the end"),
            Err(_) => (self.offset.unsigned_abs(), "before the start"),
        };
        match self.uid {
            dnn_assay_device::WORKSPACE_UID => write!(f, "{bytes} bytes {side} of the workspace"),
            uid => write!(f, "{bytes} bytes {side} of buffer {uid}"),
        }
    }
}

/// Why a worker is no more. A new one must be spawned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Stopped {
    /// It ended by itself.
    #[error("the worker ended: {0}")]
    Crash(Crash),
    /// A phase took longer than its limit; the worker was killed.
    #[error("timeout in phase {phase}{}", if *abandoned { ", and the worker cannot be killed" } else { "" })]
    Timeout {
        /// The phase.
        phase: Phase,
        /// The worker could not be reaped within 10 s; its device must be taken as lost.
        abandoned: bool,
    },
    /// It wrote more to standard output and error than it may; it was killed.
    #[error("more than {limit} bytes on standard output and error in phase {phase}")]
    Flood {
        /// The phase.
        phase: Phase,
        /// The cap in bytes.
        limit: u64,
    },
    /// It broke the protocol: something scribbled over the worker or its socket. Killed.
    #[error("the worker broke the protocol: {0}")]
    Broken(String),
}

/// Whether and how an engine is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EngineName {
    /// `GetEngineName` is not exported.
    NotExported,
    /// The plugin has no name for it (status NOT_APPLICABLE).
    Declined,
    /// The name it gave.
    Named(String),
    /// SUCCESS, but NULL or an empty text.
    Null,
    /// Another status.
    Failed {
        /// The status.
        status: i32,
        /// The last-error text.
        text: String,
    },
}

/// One engine of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineInfo {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: EngineName,
}

impl EngineInfo {
    /// The name to show: what the plugin says, else what hipDNN's registry says, else the id.
    pub fn display_name(&self) -> String {
        match &self.name {
            EngineName::Named(name) => name.clone(),
            _ => engine_id::registered_name(self.id)
                .map_or_else(|| engine_id::format_engine_id(self.id), str::to_owned),
        }
    }

    /// Why today's host drops this engine at admission, if it does.
    pub fn dropped_by_host(&self) -> Option<String> {
        match &self.name {
            EngineName::Named(name) if engine_id(name) != self.id => Some(format!(
                "its name {name:?} hashes to {}, its id is {}",
                engine_id::format_engine_id(engine_id(name)),
                engine_id::format_engine_id(self.id),
            )),
            EngineName::Null => Some("GetEngineName succeeds without a name".to_owned()),
            EngineName::Failed { status, text } => Some(format!(
                "Failed to get engine name. Status: {}, Error: {text}",
                PluginStatus(*status)
            )),
            _ => None,
        }
    }
}

/// A loaded plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginInfo {
    /// `GetName`.
    pub name: String,
    /// `GetVersion`, informational.
    pub version: String,
    /// `GetApiVersion` as it came, `None` where that is not exported (the host assumes 1.0.0).
    pub api_version_text: Option<String>,
    /// The API version as `(major, minor, patch)`; see [`PluginInfo::api_version`].
    pub api: (u32, u32, u32),
    /// Its engines, in its order.
    pub engines: Vec<EngineInfo>,
    /// The optional symbols that it exports.
    pub optional_symbols: Vec<String>,
    /// From before `dlopen` to after admission.
    pub load_time: Duration,
}

impl PluginInfo {
    /// The API version, assumed where the plugin gives none.
    pub fn api_version(&self) -> ApiVersion {
        let (major, minor, patch) = self.api;
        ApiVersion::new(major, minor, patch)
    }

    /// The host accepts this plugin only by its transitional shim for major version 0.
    pub fn needs_major_zero_shim(&self) -> bool {
        self.api.0 == 0
    }

    /// Whether an optional symbol is exported.
    pub fn exports(&self, symbol: &str) -> bool {
        self.optional_symbols.iter().any(|name| name == symbol)
    }
}

/// Why a plugin is not usable. `Display` gives the host's own text where the host has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum LoadFailure {
    /// No such file.
    #[error("plugin file does not exist: {path}")]
    FileMissing {
        /// The path.
        path: String,
    },
    /// The dynamic loader refused it.
    #[error("Failed to load library: {path} (Error: {text})")]
    Open {
        /// The path.
        path: String,
        /// The loader's text.
        text: String,
    },
    /// Mandatory symbols are missing.
    #[error(
        "Failed to get symbol: {first} (Error: {text}); {count} of 16 mandatory symbols missing"
    )]
    MissingSymbols {
        /// The first one in the host's order.
        first: String,
        /// How many of the 16 are missing.
        count: usize,
        /// The loader's text for the first.
        text: String,
    },
    /// Not an engine plugin.
    #[error("Wrong plugin type: {}{}", dnn_assay_abi::PluginType(*kind), if *heuristic { " (a heuristic plugin executes nothing)" } else { "" })]
    WrongType {
        /// `hipdnnPluginType_t`.
        kind: i32,
        /// It is, or exports the functions of, a heuristic plugin.
        heuristic: bool,
    },
    /// A call of the load sequence failed.
    #[error("Failed to {what}. Status: {}, Error: {text}", PluginStatus(*status))]
    Call {
        /// The host's words for the call, `get plugin name` for one.
        what: String,
        /// The status.
        status: i32,
        /// The last-error text.
        text: String,
    },
    /// A call succeeded and gave NULL where a text or handle must be.
    #[error("{call} succeeded and gave NULL")]
    Null {
        /// The function.
        call: String,
    },
    /// The API version is not `MAJOR.MINOR.PATCH`.
    #[error(
        "Plugin {name} reports an unparseable API version ('{version}'); rejecting at load time"
    )]
    ApiVersionUnparsable {
        /// The plugin's name.
        name: String,
        /// What it reported.
        version: String,
    },
    /// The API major version is not the host's.
    #[error(
        "ENGINE PLUGIN ABI VALIDATION FAILED: plugin {name} has API version {version}, expected major 1"
    )]
    ApiMajor {
        /// The plugin's name.
        name: String,
        /// What it reported.
        version: String,
    },
    /// No engines.
    #[error("No engines found in the plugin")]
    NoEngines,
    /// The two calls of `GetAllEngineIds` disagree.
    #[error(
        "Number of engines returned does not match the number reported by the plugin ({second} after {first})"
    )]
    CountsDiffer {
        /// Count of the first call.
        first: u32,
        /// Count of the second.
        second: u32,
    },
    /// `GetAllEngineIds` wrote more ids than there was room for.
    #[error("GetAllEngineIds wrote behind a buffer of {max} ids")]
    IdsOverflow {
        /// Room that was given.
        max: u32,
    },
    /// More engines than anybody can have.
    #[error("{count} engines reported, more than {limit}")]
    TooManyEngines {
        /// Count of the first call.
        count: u32,
        /// What is accepted.
        limit: u32,
    },
    /// An id twice.
    #[error("Duplicate engine IDs found: {id}")]
    DuplicateIds {
        /// The id.
        id: i64,
    },
    /// `Create` failed. The plugin's engines are known ([`super::Worker::info`]); without a
    /// device this is no defect.
    #[error("Failed to create engine plugin handle. Status: {}, Error: {text}", PluginStatus(*status))]
    CreateFailed {
        /// The status.
        status: i32,
        /// The last-error text.
        text: String,
    },
    /// `Create` succeeded with a NULL handle. The plugin's engines are known.
    #[error("Plugin returned null handle")]
    NullHandle,
    /// The device, or the device library given by path, cannot be had. Not the plugin's fault.
    #[error("device: {0}")]
    Device(String),
    /// The worker is no more.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl LoadFailure {
    /// Whether the plugin's engines are known all the same: it loaded, its handle did not.
    pub fn is_after_load(&self) -> bool {
        matches!(
            self,
            Self::CreateFailed { .. } | Self::NullHandle | Self::Device(_)
        )
    }
}

/// The answer to a single question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply<T> {
    /// The plugin's answer.
    Ok(T),
    /// A status other than SUCCESS.
    CallFailed {
        /// The function, without its prefix.
        call: String,
        /// The status.
        status: i32,
        /// The last-error text.
        text: String,
    },
    /// An answer that the host refuses.
    Violation {
        /// The function, without its prefix.
        call: String,
        /// What is wrong with it.
        what: String,
    },
    /// The worker is no more.
    Stopped(Stopped),
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CaseResult {
    /// Everything that was asked for succeeded. For an executed case the outputs are in the arena.
    Ok,
    /// The engine is not among the applicable ones.
    Declined,
    /// A status other than SUCCESS.
    CallFailed {
        /// The function, without its prefix, `ExecuteOpGraph` for one.
        call: String,
        /// The status.
        status: i32,
        /// The last-error text: at most 2047 bytes, lossy UTF-8, control characters as they came.
        text: String,
    },
    /// An answer that the host refuses, or that breaks the ABI's contract.
    Violation {
        /// The function, without its prefix.
        call: String,
        /// What is wrong with it.
        what: String,
    },
    /// The case or its workspace does not fit. Not the plugin's fault.
    NoMemory {
        /// Bytes wanted.
        bytes: u64,
        /// What for, and what there is.
        text: String,
    },
    /// `ExecuteOpGraph` succeeded, and then the device had an error.
    Execution(String),
    /// The device failed before the plugin was called.
    Device(String),
    /// The worker ended by itself.
    Crash(Crash),
    /// A phase took longer than its limit.
    Timeout {
        /// The phase.
        phase: Phase,
        /// The worker could not be reaped; its device must be taken as lost.
        abandoned: bool,
    },
    /// Endless output.
    Flood {
        /// The phase.
        phase: Phase,
        /// The cap in bytes.
        limit: u64,
    },
    /// The worker broke the protocol.
    Broken(String),
}

impl CaseResult {
    /// Whether the worker is no more, so that the next case needs a new one.
    pub fn needs_new_worker(&self) -> bool {
        matches!(
            self,
            Self::Crash(_) | Self::Timeout { .. } | Self::Flood { .. } | Self::Broken(_)
        )
    }
}

impl From<Stopped> for CaseResult {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Crash(crash) => Self::Crash(crash),
            Stopped::Timeout { phase, abandoned } => Self::Timeout { phase, abandoned },
            Stopped::Flood { phase, limit } => Self::Flood { phase, limit },
            Stopped::Broken(what) => Self::Broken(what),
        }
    }
}

/// What a case left on its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceAfter {
    /// After a failure: every call fails now.
    pub broken: bool,
    /// Bytes of device memory more in use than before, ours excepted; negative for less.
    pub growth: i64,
}

/// A line that the plugin logged through the callback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// `hipdnnSeverity_t`.
    pub severity: i32,
    /// The message, lossy UTF-8, cut at 2047 bytes.
    pub text: String,
}

/// Time spent inside the plugin's calls of one case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseTimes {
    /// `GetApplicableEngineIds`.
    pub applicable: Duration,
    /// Details, workspace size, context.
    pub plan: Duration,
    /// Each execution, until the device was idle. The first one is the cold one.
    pub executions: Vec<Duration>,
    /// `DestroyExecutionContext` and `DestroyEngineDetails`.
    pub destroy: Duration,
    /// From the request's arrival to the answer, everything included.
    pub total: Duration,
}

/// A case, as far as it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseOutcome {
    /// The deepest level that was reached successfully; `None`: not even applicable.
    pub depth: Option<Until>,
    /// How it ended.
    pub result: CaseResult,
    /// Serialized engine details, where the plugin gave some.
    pub details: Option<Vec<u8>>,
    /// `GetWorkspaceSize` for the configuration, in bytes.
    pub config_workspace: Option<u64>,
    /// `GetWorkspaceSizeFromExecutionContext`, in bytes: what was provided.
    pub workspace_size: Option<u64>,
    /// Non-fatal oddities: a failing `Destroy…`, for one.
    pub notes: Vec<String>,
    /// What the plugin logged during the case, capped.
    pub log: Vec<LogLine>,
    /// Log lines beyond the cap.
    pub log_dropped: u64,
    /// The last lines of standard error of this case, whatever the result.
    pub stderr: String,
    /// Times inside the plugin.
    pub times: CaseTimes,
    /// The device afterwards.
    pub device: DeviceAfter,
    /// What the device saw of the buffers; nothing where whole regions were copied back.
    pub checks: Vec<dnn_assay_device::DeviceCheck>,
}

/// How a worker that was asked to end ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// By normal exit.
    Clean,
    /// `Destroy` failed; then normal exit.
    DestroyFailed {
        /// The status.
        status: i32,
        /// The last-error text.
        text: String,
    },
    /// Something went wrong in `Destroy`, in a destructor or in an exit handler.
    Stopped(Stopped),
}
