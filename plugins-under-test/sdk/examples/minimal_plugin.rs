//! A whole hipDNN engine plugin: the absolute value of a tensor in host memory.
//! `cargo build -p dnn-assay-plugin-sdk --example minimal_plugin`

use dnn_assay_plugin_sdk::graph::wire::KnobSetting;
use dnn_assay_plugin_sdk::graph::{Attributes, Graph, PointwiseMode};
use dnn_assay_plugin_sdk::{Engine, Error, Execution, Plan, Plugin, c_str, export_plugin};
use std::ffi::CStr;

struct Abs;

struct AbsPlan {
    x: i64,
    y: i64,
}

fn plan(graph: &Graph) -> Option<AbsPlan> {
    let [node] = graph.nodes.as_slice() else {
        return None;
    };
    let Attributes::Pointwise(a) = &node.attributes else {
        return None;
    };
    let (x, y) = (
        graph.tensor(a.in_0_tensor_uid)?,
        graph.tensor(a.out_0_tensor_uid)?,
    );
    let alike = x.dims == y.dims
        && [x, y]
            .iter()
            .all(|t| t.data_type.is_float() && !t.is_virtual);
    (a.operation == PointwiseMode::Abs && alike).then_some(AbsPlan { x: x.uid, y: y.uid })
}

impl Engine for Abs {
    fn name(&self) -> &'static CStr {
        c"EXAMPLE_ABS_ENGINE"
    }

    fn supports(&self, graph: &Graph) -> Result<(), String> {
        plan(graph)
            .map(drop)
            .ok_or_else(|| "only one ABS without broadcasting".to_owned())
    }

    fn plan(&self, graph: &Graph, _knobs: &[KnobSetting]) -> Result<Box<dyn Plan>, Error> {
        Ok(Box::new(
            plan(graph).ok_or_else(|| Error::not_applicable("not one ABS"))?,
        ))
    }
}

impl Plan for AbsPlan {
    fn execute(&self, execution: &Execution<'_>) -> Result<(), Error> {
        let x: Vec<f64> = execution.load(self.x)?;
        execution.store(self.y, &x.iter().map(|x| x.abs()).collect::<Vec<_>>())
    }
}

export_plugin! {
    plugin: Plugin { name: c"minimal", version: c_str!(env!("CARGO_PKG_VERSION")), engines: &[&Abs] },
    memory: "host",
}
