//! Workers: processes that load a plugin, and the parent's handle on them.
//!
//! The parent never loads a plugin. It spawns its own executable again ([`Worker::spawn`]), which
//! must call [`worker_entry`] first thing in `main`, and speaks to it over a socket of their own;
//! tensors travel through an arena ([`dnn_assay_device::Arena`]). Everything a plugin can do to
//! its process ends as a value here: [`LoadFailure`] or [`CaseResult`].
//!
//! ```no_run
//! # use dnn_assay::worker::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! worker_entry();
//! let mut worker = Worker::spawn(&WorkerConfig::new("plugin.so", "/tmp/scratch"))?;
//! let info = worker.load()?;
//! println!("{} has {} engines", info.name, info.engines.len());
//! # Ok(()) }
//! ```

mod channel;
mod client;
mod config;
mod entry;
mod load;
mod loader;
mod outcome;
mod output;
mod probe;
mod process;
mod protocol;
pub mod script;
mod serve;
mod visible;

pub use client::Worker;
pub use config::{CaseRequest, Limits, LoadMode, SpawnError, Until, WorkerConfig};
pub use entry::worker_entry;
pub use outcome::{
    CaseOutcome, CaseResult, CaseTimes, Crash, DeviceAfter, EngineInfo, EngineName, Exit, GuardHit,
    LoadFailure, LogLine, Phase, PluginInfo, Reply, Shutdown, Stopped,
};
pub use probe::{Asker, probe_devices};
