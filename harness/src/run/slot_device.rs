//! What a slot does about its device: asks after it, confirms what it lost, asks another one.

use std::mem;

use dnn_assay_device::Run;
use dnn_assay_reference::Evaluation;

use super::device::name_of;
use super::execution::Execution;
use super::prepared::Prepared;
use super::slot::{Slot, SlotError};
use super::unit::Unit;
use crate::journal::{CaseEnd, InfraKind, Times};
use crate::judge::Finding;
use crate::verdict::{FailKind, Verdict};
use crate::worker::{CaseOutcome, CaseResult, Worker};

/// How often a case must cost device memory before that is a leak: a first use may keep some.
const LEAKS: usize = 3;

impl Slot<'_> {
    /// After a hang, or where the device answers with errors only, a fresh child asks it; one that
    /// does not do as it is told then is lost. Nothing is reset.
    pub(super) fn check_device(&self, outcome: &CaseOutcome) -> Result<(), SlotError> {
        match &outcome.result {
            CaseResult::Timeout {
                abandoned: true, ..
            } if self.config.only_device.is_some() => {
                let text = "a worker cannot be killed, so its device is taken as lost";
                self.context.stop.lose_device();
                Ok(self.context.infra(InfraKind::Abandoned, text.to_owned())?)
            }
            CaseResult::Timeout { .. } => self.ask_device("a worker hung and was killed"),
            CaseResult::Device(text) => self.ask_device(text),
            _ if outcome.device.broken => self.ask_device("every call failed"),
            _ => Ok(()),
        }
    }

    /// Asks the device of this slot in a fresh child; `why` is what came before.
    pub(super) fn ask_device(&self, why: &str) -> Result<(), SlotError> {
        let Some(device) = self.config.only_device else {
            return Ok(());
        };
        let name = name_of(self.subject, device as usize);
        match Worker::check_device(&self.config) {
            Ok(()) => {
                let text = format!("{why}; {name} is well, the run goes on with a new worker");
                self.context.infra(InfraKind::Worker, text)?;
            }
            Err(problem) => {
                self.context.stop.lose_device();
                let text = format!("{why}; {name} does not do as it is told: {problem}");
                self.context.infra(InfraKind::DeviceLost, text)?;
            }
        }
        Ok(())
    }

    /// Whether nobody else of this run uses the device.
    fn has_device_alone(&self) -> bool {
        let devices = self.subject.devices.len();
        devices > 0 && self.context.options.jobs(devices) <= devices
    }

    /// A passing case that leaves less device memory than it found is done again: if it does so
    /// every time, it leaks.
    pub(super) fn confirm_leak(
        &mut self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        first: &Execution,
        end: &mut CaseEnd,
    ) -> Result<(), SlotError> {
        let passed = matches!(end.verdict, Verdict::Pass | Verdict::Weak);
        if first.outcome.device.growth <= 0 || !passed || !self.has_device_alone() {
            return Ok(());
        }
        let mut growth = vec![first.outcome.device.growth];
        while growth.len() < LEAKS {
            // The reference is not asked for again.
            let mut known = Some(Evaluation::default());
            let mut times = Times::default();
            match self.execute(unit, prepared, (Run::Second, 1), &mut known, &mut times)? {
                Ok(again) if again.outcome.device.growth > 0 => {
                    growth.push(again.outcome.device.growth);
                }
                _ => return Ok(()),
            }
        }
        let finding = Finding {
            verdict: Verdict::Fail(FailKind::Leak),
            reason: format!(
                "device memory in use grew with each of {LEAKS} rounds of plan, execution and \
                 destruction, by {growth:?} bytes"
            ),
            phase: None,
        };
        unit.turn_red(finding, end);
        Ok(())
    }

    /// A failure is tried once more on another device. Passing there does not excuse it, but the
    /// device becomes suspect.
    pub(super) fn ask_another_device(
        &mut self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        evaluation: &mut Option<Evaluation>,
        end: &mut CaseEnd,
    ) -> Result<(), SlotError> {
        let devices = self.subject.devices.len();
        if devices < 2 || !matches!(end.verdict, Verdict::Fail(_)) {
            return Ok(());
        }
        let here = self.number % devices;
        let there = (here + 1) % devices;
        let config = mem::replace(&mut self.config, self.subject.config_on(there));
        let worker = self.worker.take();
        let mut times = Times::default();
        let again = self.execute(unit, prepared, (Run::First, 1), evaluation, &mut times);
        let verdict = again.and_then(|again| match again {
            Ok(first) => {
                let end = self.judge(unit, prepared, evaluation, &first, times)?;
                Ok(Some(end.verdict))
            }
            Err(_) => Ok(None),
        });
        self.worker = worker;
        self.config = config;
        if verdict? == Some(Verdict::Pass) {
            let (here, there) = (name_of(self.subject, here), name_of(self.subject, there));
            end.notes.push(format!(
                "device-suspect: the case fails on {here} and passes on {there}"
            ));
        }
        Ok(())
    }
}
