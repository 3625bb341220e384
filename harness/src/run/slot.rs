//! One worker slot: its worker, started anew where a plugin has ended the old one, and where the ends
//! of its cases go.

use std::time::Instant;

use dnn_assay_device::{ArenaError, MemoryKind};

use super::context::Context;
use super::prepared::Unprepared;
use super::subject::Subject;
use super::unit::Unit;
use crate::journal::{CaseEnd, CaseStart};
use crate::judge::{self, Rules};
use crate::plan::Engine;
use crate::suite::SuiteCase;
use crate::worker::{LoadFailure, SpawnError, Worker, WorkerConfig};

/// A slot's failure: nothing the plugin did.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// No worker could be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Buffers of a case that could be filled cannot be filled.
    #[error(transparent)]
    Unprepared(#[from] Unprepared),
    /// Shared memory could not be had.
    #[error(transparent)]
    Arena(#[from] ArenaError),
    /// The journal could not be written.
    #[error("the journal cannot be written: {0}")]
    Journal(#[from] std::io::Error),
}

/// A slot and its worker.
pub struct Slot<'a> {
    pub(super) context: &'a Context,
    pub(super) subject: &'a Subject,
    /// Which of the run's slots it is.
    pub(super) number: usize,
    /// How its workers are started: on its device, if there are any.
    pub(super) config: WorkerConfig,
    pub(super) worker: Option<Worker>,
    rules: &'a Rules,
    sink: Sink,
}

/// Where the ends of cases go.
enum Sink {
    /// To the run's journal, gate and dumps.
    Run,
    /// To whoever asked for them.
    Kept(Vec<CaseEnd>),
}

impl<'a> Slot<'a> {
    /// A slot without a worker; the first case starts one.
    pub fn new(context: &'a Context, subject: &'a Subject, number: usize) -> Self {
        Self {
            context,
            subject,
            rules: &context.rules,
            number,
            config: subject.config_on(number),
            worker: None,
            sink: Sink::Run,
        }
    }

    /// A slot that keeps the ends of its cases, judged by `rules`, beside the run.
    pub fn probing(
        context: &'a Context,
        subject: &'a Subject,
        number: usize,
        rules: &'a Rules,
        worker: Option<Worker>,
    ) -> Self {
        Self {
            rules,
            worker,
            sink: Sink::Kept(Vec::new()),
            ..Self::new(context, subject, number)
        }
    }

    /// The worker, for another slot, and the ends that were kept.
    pub fn into_parts(self) -> (Option<Worker>, Vec<CaseEnd>) {
        let ends = match self.sink {
            Sink::Run => Vec::new(),
            Sink::Kept(ends) => ends,
        };
        (self.worker, ends)
    }

    /// What all slots share.
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// The slot's worker, started and loaded if need be. The inner error is the plugin's.
    pub(super) fn worker(&mut self) -> Result<Result<&mut Worker, LoadFailure>, SlotError> {
        if self.worker.is_none() {
            let mut worker = Worker::spawn(&self.config)?;
            if let Err(failure) = worker.load() {
                return Ok(Err(failure));
            }
            self.worker = Some(worker);
        }
        Ok(Ok(self.worker.as_mut().expect("it was set above")))
    }

    pub(super) fn start<'c>(
        &mut self,
        case: &'c SuiteCase,
        engine: &'c Engine,
    ) -> Result<Unit<'c>, SlotError> {
        if let Sink::Run = self.sink {
            self.context.journal.case_start(&CaseStart {
                plugin: self.subject.index,
                engine_id: engine.id,
                case: case.id.clone(),
                attempt: 1,
                time: Some(jiff::Timestamp::now().to_string()),
                worker: self.worker.as_ref().map(Worker::process_id),
                device: self.config.only_device,
            })?;
        }
        let of = judge::Unit {
            case,
            engine,
            arch: match self.subject.config.memory {
                MemoryKind::Host => Some("host"),
                _ => self.context.gate.arch(),
            },
        };
        Ok(Unit {
            case,
            engine,
            rules: self.rules.of_unit(of),
            started: Instant::now(),
            knobs: self.context.options.knobs.clone(),
        })
    }

    pub(super) fn end(&mut self, end: CaseEnd) -> Result<(), SlotError> {
        self.end_with(end, |_| ())
    }

    /// As [`Slot::end`]; `red` sees a case that makes the run red before it is written.
    pub(super) fn end_with(
        &mut self,
        mut end: CaseEnd,
        red: impl FnOnce(&mut CaseEnd),
    ) -> Result<(), SlotError> {
        end.plugin = self.subject.index;
        match &mut self.sink {
            Sink::Run => self.context.case_end(end, red)?,
            Sink::Kept(ends) => ends.push(end),
        }
        Ok(())
    }
}
