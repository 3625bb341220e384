//! Small graphs that an engine takes, with data, so that checks have something to plan and run.

use dnn_assay_graph::case::{Case, Fill};
use dnn_assay_graph::wire::{
    EngineConfig, Generation, KnobSetting, write_engine_config, write_graph,
};
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::{Criterion, Values, compare, dtype, evaluate, fill};

use super::check::Stop;
use super::lab::Judge;

/// Graphs that plugins are asked about, simplest first.
pub(super) const GRAPHS: &[&str] = &[
    "pointwise.add/f32/nchw/n2-c3-i4x4/uni",
    "conv.fprop/f32/nchw/n2-c4-k3-i6x5-f3x3/uni",
    "batchnorm.inference/f32/nchw/n2-c4-i4x4/uni",
    "pointwise.relu_fwd/f32/nchw/n2-c3-i4x4/uni",
    "conv.fprop/f16/nhwc/n2-c8-k8-i6x5-f1x1/uni",
    "conv.dgrad/f32/nchw/n2-c4-k3-i6x5-f3x3/uni",
    "conv.wgrad/f32/nchw/n2-c4-k3-i6x5-f3x3/uni",
    "batchnorm.training/f32/nchw/n2-c4-i4x4/uni",
    "batchnorm.backward/f32/nchw/n2-c4-i4x4/uni",
    "pointwise.mul/f16/nhwc/n2-c3-i4x4/uni",
    "pointwise.sigmoid_fwd/bf16/nchw/n2-c3-i4x4/uni",
];

/// A graph with data, for one engine.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// The case's id.
    pub id: String,
    pub engine: i64,
    pub graph: Graph,
    pub values: Values,
    /// Serialized graph.
    pub bytes: Vec<u8>,
    /// Serialized configuration.
    pub config: Vec<u8>,
    /// Uid and contents.
    pub inputs: Vec<(i64, Vec<u8>)>,
    /// Uid and size in bytes.
    pub outputs: Vec<(i64, usize)>,
}

/// The graph of a case id.
pub(super) fn graph_of(id: &str) -> Option<Graph> {
    Case::parse_short(id).ok()?.graph().ok()
}

impl Sample {
    /// A sample with uniform data; `None` where the graph cannot be expressed or filled.
    pub fn new(
        id: &str,
        graph: Graph,
        engine: i64,
        generation: Generation,
        knobs: &[KnobSetting],
    ) -> Option<Self> {
        let values = fill::generate(&graph, Fill::Uniform, 1).ok()?;
        Self::with_values(id, graph, values, engine, generation, knobs)
    }

    /// A sample with given data.
    pub fn with_values(
        id: &str,
        graph: Graph,
        values: Values,
        engine: i64,
        generation: Generation,
        knobs: &[KnobSetting],
    ) -> Option<Self> {
        let bytes = write_graph(&graph, generation).ok()?;
        let config = EngineConfig {
            engine_id: engine,
            knobs: knobs.to_vec(),
        };
        let config = write_engine_config(&config, generation).ok()?;
        let inputs = graph
            .inputs()
            .map(|tensor| Some((tensor.uid, encoded(tensor, &values)?)))
            .collect::<Option<_>>()?;
        let outputs = graph
            .outputs()
            .map(|tensor| Some((tensor.uid, tensor.byte_size()?)))
            .collect::<Option<_>>()?;
        Some(Self {
            id: id.to_owned(),
            engine,
            values,
            bytes,
            config,
            inputs,
            outputs,
            graph,
        })
    }

    /// Whether a tensor is handed over in host memory, whatever the plugin's memory is.
    pub fn is_host_scalar(&self, uid: i64) -> bool {
        self.graph
            .tensor(uid)
            .is_some_and(|tensor| tensor.runtime_pass_by_value)
    }

    /// The same with other settings of knobs.
    pub fn with_knobs(&self, generation: Generation, knobs: &[KnobSetting]) -> Option<Self> {
        let config = EngineConfig {
            engine_id: self.engine,
            knobs: knobs.to_vec(),
        };
        Some(Self {
            config: write_engine_config(&config, generation).ok()?,
            ..self.clone()
        })
    }

    /// Whether outputs lie within the bound of the reference.
    ///
    /// # Errors
    /// A finding with the worst element, or that there is no reference.
    pub fn judge(&self, judge: &Judge, outputs: &[Vec<u8>]) -> Result<(), Stop> {
        let evaluation = evaluate(&self.graph, &self.values, &judge.arithmetic)
            .map_err(|error| Stop::NotApplicable(error.to_string()))?;
        for (tensor, got) in self.graph.outputs().zip(outputs) {
            let Some(estimate) = evaluation.tensors.get(&tensor.uid) else {
                continue;
            };
            let comparison = compare(tensor, estimate, got, &Criterion::Bound)
                .map_err(|error| Stop::Infrastructure(error.to_string()))?;
            if !comparison.passed {
                let worst = comparison.worst.map(|w| w.to_string()).unwrap_or_default();
                return Err(Stop::Finding(format!(
                    "{}: {} of {} elements of {} are beyond the bound; worst {worst}",
                    self.id, comparison.mismatched, comparison.compared, tensor.name
                )));
            }
        }
        Ok(())
    }
}

fn encoded(tensor: &Tensor, values: &Values) -> Option<Vec<u8>> {
    let mut bytes = vec![0; tensor.byte_size()?];
    dtype::encode(tensor, values.get(&tensor.uid)?, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_graph_can_be_made() {
        for id in GRAPHS {
            let graph = graph_of(id).unwrap_or_else(|| panic!("{id}"));
            Sample::new(id, graph, 1, Generation::Current, &[]).unwrap_or_else(|| panic!("{id}"));
        }
    }
}
