//! One execution of a case on a slot's worker, while this process computes the reference.

use dnn_assay_device::{BufferSpec, Run, Snapshot, WORKSPACE_ALIGNMENT};
use dnn_assay_graph::wire::{EngineConfig, write_engine_config};
use dnn_assay_reference::Evaluation;

use super::finding::{lost, skipped};
use super::prepared::{self, Prepared};
use super::slot::{Slot, SlotError};
use super::unit::Unit;
use crate::journal::Times;
use crate::judge::Finding;
use crate::verdict::{Depth, SkipReason};
use crate::worker::{CaseOutcome, CaseRequest, Until, Worker};

/// One execution: how it ended, and the memory afterwards.
pub(super) struct Execution {
    pub(super) outcome: CaseOutcome,
    pub(super) snapshot: Option<Snapshot>,
}

impl Slot<'_> {
    /// Gives the case to the worker and computes the reference meanwhile. The inner error is a
    /// finding for the unit.
    pub(super) fn execute(
        &mut self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        (run, executions): (Run, u32),
        evaluation: &mut Option<Evaluation>,
        times: &mut Times,
    ) -> Result<Result<Execution, Finding>, SlotError> {
        let context = self.context;
        let placement = prepared::placement(&unit.case.id, self.subject.config.memory);
        let specs = match prepared.buffers(placement) {
            Ok(specs) => specs,
            Err(why) => return Ok(Err(skipped(why.skip_reason(), &why.to_string()))),
        };
        let generation = self.subject.generation;
        let worker = match self.worker()? {
            Ok(worker) => worker,
            Err(failure) => return Ok(Err(lost(&failure))),
        };
        match load_arena(worker, prepared, &specs, run) {
            Err(SlotError::Arena(error)) if error.is_of_the_case() => {
                return Ok(Err(skipped(SkipReason::Memory, &error.to_string())));
            }
            loaded => loaded?,
        }
        let config = EngineConfig {
            engine_id: unit.engine.id,
            knobs: unit.knobs.clone(),
        };
        let config = match write_engine_config(&config, generation) {
            Ok(config) => config,
            Err(error) => return Ok(Err(skipped(SkipReason::Wire, &error.to_string()))),
        };
        let mut request = CaseRequest::new(unit.engine.id, prepared.bytes.clone(), config);
        request.executions = executions;
        if context.options.until == Depth::Planned {
            request.until = Until::Planned;
        }
        worker.begin(request);
        let mut trouble = None;
        if evaluation.is_none() && context.options.until > Depth::Executed {
            match prepared.evaluate(&unit.rules) {
                Ok((value, time)) => {
                    times.reference_ms = Some(time.as_secs_f64() * 1e3);
                    *evaluation = Some(value);
                }
                Err(why) => trouble = Some(skipped(why.skip_reason(), &why.to_string())),
            }
        }
        let outcome = worker.finish();
        let snapshot = (outcome.depth == Some(Until::Executed))
            .then(|| worker.snapshot(&outcome, WORKSPACE_ALIGNMENT));
        if outcome.result.needs_new_worker() || outcome.device.broken {
            self.worker = None;
        }
        self.check_device(&outcome)?;
        if let Some(finding) = trouble {
            return Ok(Err(finding));
        }
        Ok(Ok(Execution {
            outcome,
            snapshot: snapshot.transpose()?,
        }))
    }
}

/// Lays a case out in a worker's memory: inputs written, outputs poisoned.
pub(super) fn load_arena(
    worker: &mut Worker,
    prepared: &Prepared,
    specs: &[BufferSpec],
    run: Run,
) -> Result<(), SlotError> {
    let arena = worker.arena_mut();
    arena.prepare(specs)?;
    for tensor in prepared.graph.inputs() {
        let bytes = prepared.input_bytes(tensor)?;
        match prepared.sparse.get(&tensor.uid) {
            Some(view) => arena.write_elements(tensor.uid, view.clone(), bytes)?,
            None => arena.write(tensor.uid, bytes)?,
        }
    }
    for tensor in prepared.graph.outputs() {
        arena.poison(tensor.uid, prepared.view(tensor), run)?;
    }
    Ok(())
}
