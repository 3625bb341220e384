//! Executing a case again: where elements look unwritten, where values are wrong, and as often as a run
//! asks for.

use dnn_assay_device::{Run, Snapshot};
use dnn_assay_graph::Graph;
use dnn_assay_reference::Evaluation;

use super::execution::Execution;
use super::prepared::Prepared;
use super::slot::{Slot, SlotError};
use super::unit::Unit;
use crate::journal::{CaseEnd, Times};
use crate::judge::{Finding, judge_calls, judge_memory, judge_repeats};

/// The note of wrong values that come again.
const STEADY: &str = "executed again, it gives the same bits";

impl Slot<'_> {
    /// Executes a case once more, over outputs that are poisoned otherwise: for elements that look
    /// unwritten, and for wrong values. One execution serves both.
    pub(super) fn execute_again(
        &mut self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        evaluation: &mut Option<Evaluation>,
    ) -> Result<Result<Execution, Finding>, SlotError> {
        let run = (Run::Second, 1);
        self.execute(unit, prepared, run, evaluation, &mut Times::default())
    }

    /// Plans and executes a case again, as often as asked for over its own outputs; what differs
    /// then takes the place of a pass.
    pub(super) fn repeat(
        &mut self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        first: &Snapshot,
        end: &mut CaseEnd,
    ) -> Result<(), SlotError> {
        let executions = (Run::Second, self.context.options.repeat);
        // The reference is not asked for again.
        let mut known = Some(Evaluation::default());
        let again = self.execute(
            unit,
            prepared,
            executions,
            &mut known,
            &mut Times::default(),
        )?;
        let finding = match again {
            Err(finding) => Some(finding),
            Ok(Execution { outcome, snapshot }) => {
                let later = outcome.times.executions.iter();
                end.times
                    .later_ms
                    .extend(later.map(|t| t.as_secs_f64() * 1e3));
                judge_calls(&outcome.result).or_else(|| {
                    let again = snapshot.as_ref()?;
                    judge_memory(&prepared.graph, again, None)
                        .or_else(|| judge_repeats(&prepared.graph, first, again))
                })
            }
        };
        if let Some(finding) = finding {
            unit.turn_red(finding, end);
        }
        Ok(())
    }
}

/// Notes whether wrong values are the same ones when the case is executed again: a race looks
/// otherwise than a wrong formula.
pub(super) fn tell_steadiness(
    graph: &Graph,
    first: &Snapshot,
    again: &Result<Execution, Finding>,
    end: &mut CaseEnd,
) {
    let differs = match again {
        Err(finding) => Some(finding.reason.clone()),
        Ok(Execution { outcome, snapshot }) => judge_calls(&outcome.result)
            .or_else(|| judge_repeats(graph, first, snapshot.as_ref()?))
            .map(|finding| finding.reason),
    };
    end.notes.push(differs.unwrap_or_else(|| STEADY.to_owned()));
}
