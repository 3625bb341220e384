//! Telling the hypotheses that explain a failure apart, by cases of other extents.

use std::time::Instant;

use dnn_assay_device::Run;

use super::prepared;
use super::slot::{Slot, SlotError};
use super::unit::Unit;
use crate::journal::{CaseEnd, Times};
use crate::judge::{judge_values, separating_cases};
use crate::worker::Reply;

impl Slot<'_> {
    /// Several hypotheses explain a failure: cases of other extents tell them apart. A hypothesis
    /// stays if it explains those that fail as well. Nothing else of the failure changes.
    pub(super) fn separate(&mut self, unit: &Unit<'_>, end: &mut CaseEnd) -> Result<(), SlotError> {
        let all = end.diagnosis.clone();
        for case in separating_cases(&unit.case.case) {
            if end.diagnosis.len() == 1 {
                break;
            }
            let named = self.names_of(unit, &case.to_string())?;
            let both = |id: &&String| named.contains(*id);
            let left: Vec<String> = end.diagnosis.iter().filter(both).cloned().collect();
            if !left.is_empty() {
                end.diagnosis = left;
            }
        }
        if end.diagnosis.len() < all.len() {
            let note = format!(
                "{} too, until cases of other extents said no",
                all.join(", ")
            );
            end.notes.push(note);
        }
        Ok(())
    }

    /// What a case is named after on the same engine; nothing where it does not fail by its values.
    fn names_of(&mut self, unit: &Unit<'_>, id: &str) -> Result<Vec<String>, SlotError> {
        let nothing = Vec::new();
        let Some(case) = crate::suite::of_ids(&[id])
            .ok()
            .and_then(|mut suite| suite.cases.pop())
        else {
            return Ok(nothing);
        };
        let Ok(graph) = case.case.graph() else {
            return Ok(nothing);
        };
        let Ok(bytes) = prepared::graph_bytes(&graph, self.subject.generation) else {
            return Ok(nothing);
        };
        let takes = match self.worker()? {
            Ok(worker) => worker.applicable(&bytes),
            Err(_) => return Ok(nothing),
        };
        if !matches!(takes, Reply::Ok(ids) if ids.contains(&unit.engine.id)) {
            return Ok(nothing);
        }
        let Ok(mut prepared) = self.prepare(&case, &graph, &bytes) else {
            return Ok(nothing);
        };
        // They are small, and every element counts.
        prepared.make_whole();
        let other = Unit {
            case: &case,
            engine: unit.engine,
            knobs: unit.knobs.clone(),
            rules: unit.rules.clone(),
            started: Instant::now(),
        };
        let (mut evaluation, run) = (None, (Run::First, 1));
        let executed = self.execute(
            &other,
            &prepared,
            run,
            &mut evaluation,
            &mut Times::default(),
        )?;
        let (Ok(execution), Some(evaluation)) = (executed, evaluation) else {
            return Ok(nothing);
        };
        let Some(snapshot) = &execution.snapshot else {
            return Ok(nothing);
        };
        let fill = case.case.fill();
        let judged = judge_values(
            &prepared.graph,
            &prepared.values,
            &evaluation,
            snapshot,
            fill,
            &other.rules,
        );
        Ok(judged.map_or(nothing, |values| values.diagnosis().to_vec()))
    }
}
