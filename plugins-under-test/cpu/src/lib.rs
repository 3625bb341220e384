//! The baseline CPU engine: convolutions, batch normalisation and pointwise operations on host
//! memory, alone or chained, with kernels of its own.
//!
//! Tensors are read into packed `f32` (or `f64` where a graph has 8-byte or 32-bit integer
//! elements), the nodes are run one after another, intermediates stay wide, and each output is
//! rounded once. Everything happens on the calling thread: a library with threads of its own
//! cannot be unloaded safely.

mod batchnorm;
mod conv;
mod pointwise;
mod program;
mod support;

use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::KnobSetting;
use dnn_assay_plugin_sdk::{Engine, Error, Plan, Plugin, c_str, export_plugin};
use program::Program;
use std::ffi::CStr;

struct CpuEngine;

impl Engine for CpuEngine {
    fn name(&self) -> &'static CStr {
        c"DNN_ASSAY_CPU_ENGINE"
    }

    fn supports(&self, graph: &Graph) -> Result<(), String> {
        support::check(graph)
    }

    fn plan(&self, graph: &Graph, _knobs: &[KnobSetting]) -> Result<Box<dyn Plan>, Error> {
        Ok(Box::new(Program::new(graph)))
    }
}

export_plugin! {
    plugin: Plugin {
        name: c"DNN Assay baseline CPU plugin",
        version: c_str!(env!("CARGO_PKG_VERSION")),
        engines: &[&CpuEngine],
    },
    memory: "host",
    with: [overrides, serialization],
}
