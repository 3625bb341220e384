//! The baseline CPU engine: convolutions, batch normalisation and pointwise operations on host
//! memory, alone or chained, with kernels of its own.
//!
//! What it computes is in `dnn-assay-cpu-kernels`; here is the plugin around it.

use std::ffi::CStr;

use dnn_assay_cpu_kernels::{Program, check};
use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::KnobSetting;
use dnn_assay_plugin_sdk::{Engine, Error, Plan, Plugin, c_str, export_plugin};

struct CpuEngine;

impl Engine for CpuEngine {
    fn name(&self) -> &'static CStr {
        c"DNN_ASSAY_CPU_ENGINE"
    }

    fn supports(&self, graph: &Graph) -> Result<(), String> {
        check(graph)
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
