//! A plugin for the SDK's own tests: it panics on request, logs, and exports the optional parts.

use dnn_assay_plugin_sdk::abi::Severity;
use dnn_assay_plugin_sdk::graph::wire::KnobSetting;
use dnn_assay_plugin_sdk::graph::{Attributes, Graph};
use dnn_assay_plugin_sdk::{Engine, Error, Execution, Plan, Plugin, export_plugin, log};
use std::ffi::CStr;

/// Copies `in_0` to `out_0`. What it does wrong, the graph's name says.
struct Unruly;

struct Copy {
    x: i64,
    y: i64,
    panics: bool,
    workspace: usize,
}

impl Engine for Unruly {
    fn name(&self) -> &'static CStr {
        c"UNRULY_ENGINE"
    }

    fn supports(&self, graph: &Graph) -> Result<(), String> {
        assert!(
            graph.name != "panic in supports",
            "told to, by the graph's name"
        );
        match graph.nodes.as_slice() {
            [node] if matches!(node.attributes, Attributes::Pointwise(_)) => Ok(()),
            _ => Err("not one pointwise node".to_owned()),
        }
    }

    fn plan(&self, graph: &Graph, _knobs: &[KnobSetting]) -> Result<Box<dyn Plan>, Error> {
        log::line(Severity::WARN, "about to plan");
        let Some(Attributes::Pointwise(a)) = graph.nodes.first().map(|node| &node.attributes)
        else {
            return Err(Error::internal("unsupported graph"));
        };
        if graph.name == "refuse to plan" {
            return Err(Error::internal("no plan today"));
        }
        Ok(Box::new(Copy {
            x: a.in_0_tensor_uid,
            y: a.out_0_tensor_uid,
            panics: graph.name == "panic in execute",
            workspace: if graph.name == "workspace" { 64 } else { 0 },
        }))
    }
}

impl Plan for Copy {
    fn workspace_size(&self) -> usize {
        self.workspace
    }

    fn execute(&self, execution: &Execution<'_>) -> Result<(), Error> {
        assert!(!self.panics, "told to, after {}", 7 * 6);
        execution.store(self.y, &execution.load::<f32>(self.x)?)
    }
}

export_plugin! {
    plugin: Plugin { name: c"unruly", version: c"0", engines: &[&Unruly] },
    memory: "host",
    with: [overrides, serialization],
}
