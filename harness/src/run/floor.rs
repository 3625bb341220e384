//! The engine API version that a graph asks for; hipDNN does not show a plugin graphs above its
//! own version.

use dnn_assay_abi::version::{self, ApiVersion};
use dnn_assay_graph::Graph;
use dnn_assay_graph::model::DEFAULT_ALIGNMENT;

use crate::worker::PluginInfo;

/// Why hipDNN would not show `graph` to this plugin; `None` where it would.
pub fn unmet(graph: &Graph, plugin: &PluginInfo) -> Option<String> {
    let (floor, feature) = floor(graph)?;
    let has = plugin.api_version();
    if has < floor {
        return Some(format!(
            "{feature} needs engine API {floor}, the plugin has {has}"
        ));
    }
    let symbol = "hipdnnEnginePluginExecuteOpGraphWithOverrides";
    if graph.override_shapes && !plugin.exports(symbol) {
        return Some(format!("overridden shapes need the symbol {symbol}"));
    }
    None
}

/// The highest floor that a feature of the graph sets, with the feature.
fn floor(graph: &Graph) -> Option<(ApiVersion, &'static str)> {
    let any = |f: fn(&dnn_assay_graph::Tensor) -> bool| graph.tensors.iter().any(f);
    let mut floors = Vec::new();
    if graph.override_shapes {
        floors.push((version::OVERRIDES, "a graph with overridden shapes"));
    }
    if any(|t| t.runtime_pass_by_value) {
        floors.push((version::RUNTIME_PASS_BY_VALUE, "a run-time scalar"));
    }
    if any(|t| t.ragged_offset_uid.is_some()) {
        floors.push((version::RAGGED_OR_ALIGNED, "a ragged tensor"));
    }
    if any(|t| t.alignment != DEFAULT_ALIGNMENT) {
        floors.push((version::RAGGED_OR_ALIGNED, "an alignment other than 16"));
    }
    if let Some(asked) = graph.min_engine_api {
        floors.push((asked, "this graph"));
    }
    floors.into_iter().max_by_key(|(version, _)| *version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_graph::Tensor;
    use std::time::Duration;

    fn plugin(minor: u32) -> PluginInfo {
        PluginInfo {
            name: "p".to_owned(),
            version: "1".to_owned(),
            api_version_text: Some(format!("1.{minor}.0")),
            api: (1, minor, 0),
            engines: Vec::new(),
            optional_symbols: Vec::new(),
            load_time: Duration::ZERO,
        }
    }

    #[test]
    fn the_highest_floor_wins() {
        let mut graph = Graph::default();
        assert_eq!(unmet(&graph, &plugin(0)), None);
        graph.tensors.push(Tensor {
            runtime_pass_by_value: true,
            ..Tensor::default()
        });
        assert_eq!(unmet(&graph, &plugin(2)), None);
        assert!(unmet(&graph, &plugin(1)).is_some_and(|w| w.contains("1.2.0")));
        graph.tensors.push(Tensor {
            alignment: 64,
            ..Tensor::default()
        });
        assert!(unmet(&graph, &plugin(2)).is_some_and(|w| w.contains("1.3.0")));
    }

    #[test]
    fn overrides_need_the_symbol_too() {
        let graph = Graph {
            override_shapes: true,
            ..Graph::default()
        };
        let mut plugin = plugin(1);
        assert!(unmet(&graph, &plugin).is_some_and(|w| w.contains("WithOverrides")));
        plugin.optional_symbols = vec!["hipdnnEnginePluginExecuteOpGraphWithOverrides".to_owned()];
        assert_eq!(unmet(&graph, &plugin), None);
    }
}
