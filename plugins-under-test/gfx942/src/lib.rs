//! The baseline GPU engine: convolutions, batch normalisation and pointwise operations on device
//! memory, alone or chained, with kernels of its own.
//!
//! One source of kernels (`kernels/`) is built for gfx942 and for sm_90; the driver is the HIP or
//! CUDA library that the process has open already, else HIP. `DNN_ASSAY_GFX942_RUNTIME` (`hip`,
//! `cuda`, or a library's path) overrides that. Each node is one to three launches on the
//! handle's stream; without built-in kernels they are compiled at run time by hipRTC or NVRTC.
//! Intermediates lie in the workspace in f32, or in f64 where a graph has wide
//! elements. Nothing waits for the device.

mod cache;
mod driver;
mod image;
mod lower;
mod parameters;
mod plan;
mod rtc;
mod trace;

use std::ffi::CStr;

use dnn_assay_abi::BehaviorNote;
use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::KnobSetting;
use dnn_assay_plugin_sdk::{Engine, Error, Plan, Plugin, c_str, export_plugin};

struct Gfx942Engine;

impl Engine for Gfx942Engine {
    fn name(&self) -> &'static CStr {
        c"DNN_ASSAY_GFX942_ENGINE"
    }

    fn supports(&self, graph: &Graph) -> Result<(), String> {
        if !image::is_built_in() {
            driver::can_compile()?;
        }
        lower::check(graph)
    }

    fn plan(&self, graph: &Graph, _knobs: &[KnobSetting]) -> Result<Box<dyn Plan>, Error> {
        Ok(Box::new(plan::GpuPlan::new(graph)?))
    }

    fn behavior_notes(&self) -> Vec<i32> {
        let compiles = !image::is_built_in();
        let always = BehaviorNote::SUPPORTS_EXECUTION_PLAN_SERIALIZATION;
        let sometimes = compiles.then_some(BehaviorNote::RUNTIME_COMPILATION);
        sometimes
            .into_iter()
            .chain([always])
            .map(|note| note.0)
            .collect()
    }
}

export_plugin! {
    plugin: Plugin {
        name: c"DNN Assay baseline gfx942 plugin",
        version: c_str!(env!("CARGO_PKG_VERSION")),
        engines: &[&Gfx942Engine],
    },
    memory: "hip,cuda",
    with: [overrides, serialization],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_says_whether_it_compiles_at_run_time() {
        let notes = Gfx942Engine.behavior_notes();
        let has = |note: BehaviorNote| notes.contains(&note.0);
        assert!(has(BehaviorNote::SUPPORTS_EXECUTION_PLAN_SERIALIZATION));
        let compiles = has(BehaviorNote::RUNTIME_COMPILATION);
        assert_eq!(compiles, !image::is_built_in());
    }
}
