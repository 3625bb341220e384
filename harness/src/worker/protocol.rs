//! The messages between parent and worker.

use std::path::PathBuf;

use dnn_assay_device::{BufferSpec, DeviceCheck, Fill, MemoryKind};
use serde::{Deserialize, Serialize};

use super::config::{CaseRequest, LoadMode, Until};
use super::outcome::{
    CaseResult, CaseTimes, DeviceAfter, LoadFailure, LogLine, Phase, PluginInfo, Reply,
};

/// The variable that makes a process a worker: `<descriptor>:<nonce in hex>`.
pub(super) const CONTROL_VARIABLE: &str = "DNN_ASSAY_WORKER";
/// The first argument of a worker.
pub(super) const COMMAND: &str = "worker";

/// The first message: what the worker is for. The arena's descriptor follows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub backend: MemoryKind,
    pub library: Option<PathBuf>,
    pub device: u32,
    pub plugin: PathBuf,
    /// Variables the process was given beyond the inherited ones, for the record.
    pub environment: Vec<(String, String)>,
    pub load_mode: LoadMode,
    pub workspace_cap: u64,
    /// Report fault addresses; off where another tool owns the signal handlers.
    pub report_faults: bool,
}

/// From the parent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Request {
    Setup(Setup),
    Load,
    Applicable {
        graph: Vec<u8>,
    },
    Case {
        case: CaseRequest,
        buffers: Vec<BufferSpec>,
        /// What they hold, in the same order.
        fills: Vec<Fill>,
    },
    Script(super::script::Script),
    Quit,
}

/// From the worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// The process is up.
    Hello,
    /// A step begins.
    Phase {
        phase: Phase,
        /// CLOCK_MONOTONIC, in nanoseconds.
        at: u64,
        /// The deepest level of the current case that has succeeded.
        depth: Option<Until>,
    },
    /// Load sequence done, handle not yet created.
    Loaded(PluginInfo),
    /// Handle created.
    Ready,
    LoadFailed(LoadFailure),
    Applicable(Reply<Vec<i64>>),
    /// Details as they came, before anything else is asked.
    Details(Vec<u8>),
    ConfigWorkspace(u64),
    /// The arena is mapped and the first execution is next.
    Mapped {
        workspace: u64,
        /// Address of the arena's first byte.
        base: u64,
    },
    /// A fault at this address; the process is about to die.
    Fault(u64),
    Log(LogLine),
    /// One step of a script.
    Step(super::script::StepResult),
    CaseEnd(CaseEnd),
    Bye {
        destroy_failed: Option<(i32, String)>,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CaseEnd {
    pub depth: Option<Until>,
    pub result: CaseResult,
    pub notes: Vec<String>,
    pub log_dropped: u64,
    pub times: CaseTimes,
    pub device: DeviceAfter,
    /// What the device saw of the buffers.
    pub checks: Vec<DeviceCheck>,
}

/// CLOCK_MONOTONIC in nanoseconds; the same clock in parent and worker.
pub(super) fn monotonic_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
