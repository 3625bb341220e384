//! One graph executed once on one engine, outside any run: for measurements.

use dnn_assay_device::Run;
use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::{EngineConfig, write_engine_config};
use dnn_assay_reference::{Values, dtype};

use super::execution::load_arena;
use super::prepared::{self, Prepared};
use super::slot::SlotError;
use super::subject::Subject;
use crate::worker::{CaseRequest, CaseResult, Reply, Until, Worker};

/// What an engine made of a graph.
#[derive(Clone, Debug)]
pub enum Single {
    /// Values of the outputs, by uid, in logical order.
    Outputs(Values),
    /// It does not take the graph.
    Declined,
    /// It takes the graph and does not compute it; what happened.
    Failed(String),
}

/// Executes `graph` on `inputs` once, in a worker of its own.
///
/// # Errors
/// [`SlotError`] for a failure of the machine.
pub fn execute_once(
    subject: &Subject,
    engine_id: i64,
    graph: &Graph,
    inputs: &Values,
) -> Result<Single, SlotError> {
    let generation = subject.generation;
    let Ok(bytes) = prepared::graph_bytes(graph, generation) else {
        return Ok(Single::Declined);
    };
    let prepared = Prepared::new(graph.clone(), bytes, inputs.clone());
    let mut worker = Worker::spawn(&subject.config)?;
    if let Err(failure) = worker.load() {
        return Ok(Single::Failed(failure.to_string()));
    }
    match worker.applicable(&prepared.bytes) {
        Reply::Ok(ids) if ids.contains(&engine_id) => {}
        Reply::Ok(_) => return Ok(Single::Declined),
        _ => {
            return Ok(Single::Failed(
                "the plugin cannot say whether it takes the graph".to_owned(),
            ));
        }
    }
    let placement = prepared::placement("", subject.config.memory);
    let specs = prepared.buffers(placement)?;
    load_arena(&mut worker, &prepared, &specs, Run::First)?;
    let config = EngineConfig {
        engine_id,
        knobs: Vec::new(),
    };
    let Ok(config) = write_engine_config(&config, generation) else {
        return Ok(Single::Declined);
    };
    worker.begin(CaseRequest::new(engine_id, prepared.bytes.clone(), config));
    let outcome = worker.finish();
    if !matches!(outcome.result, CaseResult::Ok) || outcome.depth != Some(Until::Executed) {
        let finding = crate::judge::judge_calls(&outcome.result);
        let text = finding.map_or_else(|| "it was not executed".to_owned(), |f| f.reason);
        return Ok(Single::Failed(text));
    }
    let snapshot = worker.snapshot(&outcome, dnn_assay_device::WORKSPACE_ALIGNMENT)?;
    let outputs = prepared.graph.outputs().filter_map(|tensor| {
        let check = snapshot.buffer(tensor.uid)?;
        Some((tensor.uid, dtype::decode(tensor, &check.bytes).ok()?))
    });
    Ok(Single::Outputs(outputs.collect()))
}
