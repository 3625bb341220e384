//! What a plugin's author implements: engines, plans, and the description of the library.

use crate::execution::Execution;
use dnn_assay_abi::{PluginStatus, engine_id};
use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::{Knob, KnobSetting};
use std::ffi::CStr;
use std::fmt;

/// A plugin library: what [`export_plugin!`](crate::export_plugin) exports.
pub struct Plugin {
    /// Name of the library, for people.
    pub name: &'static CStr,
    /// Version of the library, for people; [`c_str!`](crate::c_str) turns
    /// `env!("CARGO_PKG_VERSION")` into one.
    pub version: &'static CStr,
    /// The engines, at least one, with distinct names.
    pub engines: &'static [&'static dyn Engine],
}

impl Plugin {
    /// The engine with this id.
    pub(crate) fn engine(&self, id: i64) -> Option<&'static dyn Engine> {
        self.engines
            .iter()
            .copied()
            .find(|engine| engine_id_of(*engine) == id)
    }
}

/// FNV-1a 64 of the engine's name, as the host demands.
pub(crate) fn engine_id_of(engine: &dyn Engine) -> i64 {
    engine_id(&engine.name().to_string_lossy())
}

/// One engine: which graphs it takes, and how it plans them.
///
/// Graphs given to these methods have been verified and validated. Methods may be called from
/// several threads at once, on behalf of different handles.
pub trait Engine: Sync {
    /// Unique, UTF-8; the engine's id is FNV-1a 64 of it.
    fn name(&self) -> &'static CStr;

    /// Whether this engine takes `graph`, and if not, why not. Every graph taken must be planned.
    fn supports(&self, graph: &Graph) -> Result<(), String>;

    /// The plan for a graph that [`Self::supports`], under the knobs that the host has chosen.
    /// It owns what it needs: graph and knobs live for this call only.
    fn plan(&self, graph: &Graph, knobs: &[KnobSetting]) -> Result<Box<dyn Plan>, Error>;

    /// Knobs offered for this graph. None by default.
    fn knobs(&self, _graph: &Graph) -> Vec<Knob> {
        Vec::new()
    }

    /// `hipdnnBackendBehaviorNote_t` values of this engine. None by default.
    fn behavior_notes(&self) -> Vec<i32> {
        Vec::new()
    }
}

/// A planned graph, executed any number of times.
pub trait Plan: Send + Sync {
    /// Bytes of workspace that [`Self::execute`] needs.
    fn workspace_size(&self) -> usize {
        0
    }

    /// Computes every non-virtual output of the graph.
    fn execute(&self, execution: &Execution<'_>) -> Result<(), Error>;
}

/// Why a call failed: a status for the host and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What the C function returns; never `SUCCESS`.
    pub status: PluginStatus,
    /// What `hipdnnPluginGetLastErrorString` says.
    pub message: String,
}

impl Error {
    /// An argument is null or malformed.
    pub fn bad_param(message: impl Into<String>) -> Self {
        Self::new(PluginStatus::BAD_PARAM, message)
    }

    /// An argument is well formed but out of range.
    pub fn invalid_value(message: impl Into<String>) -> Self {
        Self::new(PluginStatus::INVALID_VALUE, message)
    }

    /// The plugin failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(PluginStatus::INTERNAL_ERROR, message)
    }

    /// The engine does not take this graph.
    pub fn not_applicable(message: impl Into<String>) -> Self {
        Self::new(PluginStatus::NOT_APPLICABLE, message)
    }

    fn new(status: PluginStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.message)
    }
}

impl std::error::Error for Error {}
