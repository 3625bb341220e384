//! `--knob-sweep`: a case that passed is run again at other values of every knob that its engine
//! declares for the graph.

use std::time::Instant;

use dnn_assay_device::Run;
use dnn_assay_graph::wire::{KnobSetting, read_engine_details};
use dnn_assay_reference::Evaluation;

use super::execution::Execution;
use super::prepared::Prepared;
use super::slot::{Slot, SlotError};
use super::unit::Unit;
use crate::conform::knob::{inside, show};
use crate::journal::{CaseEnd, Times};

impl Slot<'_> {
    /// Runs the unit at the least, greatest and neighbouring values of each knob. Gives the first end
    /// that is red, with its execution, if there was one; else notes in `end` how many were tried.
    pub(super) fn sweep(
        &mut self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        evaluation: &mut Option<Evaluation>,
        details: &[u8],
        end: &mut CaseEnd,
    ) -> Result<Option<(CaseEnd, Option<Execution>)>, SlotError> {
        let settings = settings(details);
        let tried = settings.len();
        for setting in settings {
            let KnobSetting { knob_id, value } = &setting;
            let name = format!("{knob_id} = {}", show(value));
            let mut knobs = unit.knobs.clone();
            knobs.retain(|knob| knob.knob_id != *knob_id);
            knobs.push(setting);
            let swept = Unit {
                case: unit.case,
                engine: unit.engine,
                rules: unit.rules.clone(),
                started: Instant::now(),
                knobs,
            };
            let (mut red, execution) = self.at(&swept, prepared, evaluation)?;
            if red.verdict.is_red() {
                let reason = red.reason.unwrap_or_default();
                red.reason = Some(format!("with {name}: {reason}"));
                return Ok(Some((red, execution)));
            }
        }
        end.notes.push(format!("judged at {tried} values of knobs"));
        Ok(None)
    }

    /// The end of a unit with its own knobs.
    fn at(
        &mut self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        evaluation: &mut Option<Evaluation>,
    ) -> Result<(CaseEnd, Option<Execution>), SlotError> {
        let mut times = Times::default();
        match self.execute(unit, prepared, (Run::First, 1), evaluation, &mut times)? {
            Ok(first) => {
                let end = self.judge(unit, prepared, evaluation, &first, times)?;
                Ok((end, Some(first)))
            }
            Err(finding) => Ok((self.unfinished(unit, finding), None)),
        }
    }
}

/// The settings to try: one knob at a time, its default left out.
fn settings(details: &[u8]) -> Vec<KnobSetting> {
    let knobs = read_engine_details(details).map_or_else(|_| Vec::new(), |details| details.knobs);
    let mut settings = Vec::new();
    for knob in knobs {
        let values = inside(&knob).into_iter();
        for value in values.filter(|value| *value != knob.default_value) {
            let knob_id = knob.knob_id.clone();
            let setting = KnobSetting { knob_id, value };
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
    }
    settings
}
