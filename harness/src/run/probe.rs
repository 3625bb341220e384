//! Single cases on one engine, beside the run's journal.

use super::context::Context;
use super::slot::{Slot, SlotError};
use super::subject::Subject;
use crate::journal::CaseEnd;
use crate::judge::Rules;
use crate::suite::SuiteCase;
use crate::worker::Worker;

/// Runs cases one by one on one engine, in a worker of its own. Nothing is written, dumped or
/// waived.
pub struct Prober<'a> {
    context: &'a Context,
    subject: Subject,
    number: usize,
    rules: &'a Rules,
    worker: Option<Worker>,
}

impl<'a> Prober<'a> {
    /// For the engine with this id of `subject`, judged by `rules`; on the device of slot `number`.
    pub fn new(
        context: &'a Context,
        subject: &Subject,
        number: usize,
        engine_id: i64,
        rules: &'a Rules,
    ) -> Self {
        let mut subject = subject.clone();
        subject.engines.retain(|engine| engine.id == engine_id);
        Self {
            context,
            subject,
            number,
            rules,
            worker: None,
        }
    }

    /// Runs a case; `None` where the subject lacks the engine.
    ///
    /// # Errors
    /// [`SlotError`] for a failure of the machine.
    pub fn probe(&mut self, case: &SuiteCase) -> Result<Option<CaseEnd>, SlotError> {
        let worker = self.worker.take();
        let mut slot = Slot::probing(self.context, &self.subject, self.number, self.rules, worker);
        slot.run(case)?;
        let (worker, mut ends) = slot.into_parts();
        self.worker = worker;
        Ok(ends.pop())
    }
}
