//! What a worker is started with, and what it is asked.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use dnn_assay_device::{MemoryKind, WORKSPACE_ALIGNMENT};
use serde::{Deserialize, Serialize};

/// How the plugin is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LoadMode {
    /// `RTLD_NOW | RTLD_LOCAL`, as today's host.
    #[default]
    Local,
    /// `RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND`, as the host of November 2025.
    Deepbind,
}

/// How long each phase may take; a limit holds for every phase of its kind on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Starting the worker, loading the plugin, creating and destroying its handle.
    pub load: Duration,
    /// Each of: applicability, details, workspace size, plan, destruction of the plan.
    pub plan: Duration,
    /// Each execution.
    pub execute: Duration,
}

impl Default for Limits {
    /// 60 s, 120 s and 30 s.
    fn default() -> Self {
        Self {
            load: Duration::from_secs(60),
            plan: Duration::from_secs(120),
            execute: Duration::from_secs(30),
        }
    }
}

/// Everything a worker is started with.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The plugin file.
    pub plugin: PathBuf,
    /// How it is opened.
    pub load_mode: LoadMode,
    /// Where its tensors lie.
    pub memory: MemoryKind,
    /// The device's number inside the worker.
    pub device: u32,
    /// Which of the devices that this process would see is the worker's only one; all where
    /// `None`.
    pub only_device: Option<u32>,
    /// A device runtime to open by path before the plugin, in place of the system's.
    pub device_library: Option<PathBuf>,
    /// Variables added to, or replacing, the environment. They win over everything else here.
    pub env: Vec<(String, String)>,
    /// Start from an empty environment (`PATH` stays) instead of ours.
    pub clean_env: bool,
    /// Folders put in front of `LD_LIBRARY_PATH`.
    pub lib_path: Vec<PathBuf>,
    /// Libraries put in front of `LD_PRELOAD`.
    pub preload: Vec<PathBuf>,
    /// A shell command line in front of the worker's, such as `gdb --args`. No limits then.
    pub wrap: Option<String>,
    /// Limits per phase.
    pub limits: Limits,
    /// A folder for the plugin's caches and for HOME-like variables; created if missing.
    pub scratch: PathBuf,
    /// How many bytes of standard output and error together one case may write.
    pub output_cap: u64,
    /// The largest workspace that is provided, in bytes.
    pub workspace_cap: u64,
}

impl WorkerConfig {
    /// A worker for `plugin` on host memory with the default limits: 8 MiB of output per case,
    /// a workspace of up to half of the memory that is available now.
    pub fn new(plugin: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        Self {
            plugin: plugin.into(),
            load_mode: LoadMode::default(),
            memory: MemoryKind::Host,
            device: 0,
            only_device: None,
            device_library: None,
            env: Vec::new(),
            clean_env: false,
            lib_path: Vec::new(),
            preload: Vec::new(),
            wrap: None,
            limits: Limits::default(),
            scratch: scratch.into(),
            output_cap: 8 << 20,
            workspace_cap: available_memory() / 2,
        }
    }
}

/// `MemAvailable` of `/proc/meminfo` in bytes; 4 GiB where that cannot be read.
fn available_memory() -> u64 {
    std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?;
            let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
            Some(kib << 10)
        })
        .unwrap_or(4 << 30)
}

/// How deep a case goes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Until {
    /// Ask for applicability only.
    Applicable,
    /// Details, workspace size and plan too.
    Planned,
    /// All of it.
    #[default]
    Executed,
}

/// One case for one engine. Its buffers are those that the worker's arena was prepared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseRequest {
    /// The engine that shall run it.
    pub engine_id: i64,
    /// The serialized graph.
    pub graph: Vec<u8>,
    /// The serialized engine configuration.
    pub config: Vec<u8>,
    /// Alignment of the workspace in bytes.
    pub workspace_align: u64,
    /// How deep to go.
    pub until: Until,
    /// How often to execute, at least once.
    pub executions: u32,
}

impl CaseRequest {
    /// A case that is executed once.
    pub fn new(engine_id: i64, graph: Vec<u8>, config: Vec<u8>) -> Self {
        Self {
            engine_id,
            graph,
            config,
            workspace_align: WORKSPACE_ALIGNMENT,
            until: Until::Executed,
            executions: 1,
        }
    }
}

/// Why no worker could be started. Nothing here is the plugin's fault.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The scratch folder cannot be made.
    #[error("cannot create the scratch folder {path}: {source}")]
    Scratch {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The process cannot be started, or its pipes cannot be had.
    #[error("cannot start a worker: {0}")]
    Io(#[from] io::Error),
    /// The process ended or fell silent before its first word. A preloaded library, a wrapper
    /// or a loader path may be the reason.
    #[error("the worker did not come up: {0}")]
    Silent(String),
}
