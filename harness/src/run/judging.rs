//! From the executions of a case to its end in the journal.

use std::time::{Duration, Instant};

use dnn_assay_device::Snapshot;
use dnn_assay_reference::Evaluation;

use super::again::tell_steadiness;
use super::execution::Execution;
use super::finding::skipped;
use super::prepared::{Prepared, Samples};
use super::slot::{Slot, SlotError};
use super::subject::hex;
use super::unit::Unit;
use crate::journal::{CaseEnd, Times};
use crate::judge::{
    SampledValues, Sampling, is_suspicious, judge_calls, judge_memory, judge_samples, judge_values,
    look, overflow_named,
};
use crate::verdict::{Depth, FailKind, SkipReason, Verdict};
use crate::worker::{CaseOutcome, CaseResult, Until};

impl Slot<'_> {
    /// Judges a first execution, and executes again where that tells more.
    pub(super) fn judge(
        &mut self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        evaluation: &mut Option<Evaluation>,
        first: &Execution,
        mut times: Times,
    ) -> Result<CaseEnd, SlotError> {
        record_times(&first.outcome, &mut times);
        let depth = depth_of(&first.outcome);
        let Some(snapshot) = first.snapshot.as_ref() else {
            let finding = judge_calls(&first.outcome.result)
                .unwrap_or_else(|| skipped(SkipReason::Until, "--until"));
            let mut end = unit.end(finding, depth);
            record_outcome(&first.outcome, times, &mut end);
            return Ok(end);
        };
        let ended_well = first.outcome.result == CaseResult::Ok;
        let again = match ended_well && is_suspicious(snapshot) {
            true => Some(self.execute_again(unit, prepared, evaluation)?),
            false => None,
        };
        let second = again.as_ref().and_then(|again| again.as_ref().ok());
        let second = second.and_then(|execution| execution.snapshot.as_ref());
        let finding = judge_calls(&first.outcome.result)
            .or_else(|| judge_memory(&prepared.graph, snapshot, second));
        let mut end = match (finding, evaluation.as_ref()) {
            (Some(finding), _) => unit.end(finding, depth),
            (None, None) => {
                let finding = skipped(SkipReason::Until, "--until executed");
                unit.end(finding, depth)
            }
            (None, Some(evaluation)) => {
                self.judge_outputs(unit, prepared, evaluation, snapshot, &mut times)
            }
        };
        record_outcome(&first.outcome, times, &mut end);
        end.notes.extend(snapshot.notes.iter().cloned());
        if end.verdict == Verdict::Fail(FailKind::GuardAfter) {
            let named = overflow_named(&prepared.sparse, snapshot);
            end.diagnosis.extend(named.map(str::to_owned));
        }
        if end.diagnosis.len() > 1 && !self.context.options.one_case_per_worker() {
            self.separate(unit, &mut end)?;
        }
        if matches!(end.verdict, Verdict::Fail(kind) if kind.is_of_values())
            && unit.rules.names_faults()
            && prepared.drawn.is_none()
        {
            let again = match again {
                Some(again) => again,
                None => self.execute_again(unit, prepared, evaluation)?,
            };
            tell_steadiness(&prepared.graph, snapshot, &again, &mut end);
        }
        if self.context.options.repeat > 0 && matches!(end.verdict, Verdict::Pass | Verdict::Weak) {
            self.repeat(unit, prepared, snapshot, &mut end)?;
        }
        Ok(end)
    }

    fn judge_outputs(
        &self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        evaluation: &Evaluation,
        snapshot: &Snapshot,
        times: &mut Times,
    ) -> CaseEnd {
        let start = Instant::now();
        if let Some(samples) = &prepared.drawn {
            return self.judge_samples(unit, prepared, samples, snapshot, times);
        }
        let judged = judge_values(
            &prepared.graph,
            &prepared.values,
            evaluation,
            snapshot,
            unit.case.case.fill(),
            &unit.rules,
        );
        let mut end = match judged {
            Err(finding) => unit.end(finding, Depth::Executed),
            Ok(values) => {
                let mut end = unit.end(values.finding.clone(), Depth::Judged);
                values.record(&mut end);
                if end.verdict == Verdict::Weak {
                    end.notes.extend(unit.rules.weak_allowance(&end.case));
                }
                end
            }
        };
        if let Some(why) = &prepared.whole {
            let note = format!("judged as a whole, not by samples: {why}");
            end.notes.push(note);
        }
        let undecided = evaluation.uncertain_steps;
        if undecided > 0 {
            let note = format!("{undecided} elements undecided at a kink or step: both sides pass");
            end.notes.push(note);
        }
        end.determinism_hash = Some(output_hash(snapshot));
        times.comparison_ms = Some(start.elapsed().as_secs_f64() * 1e3);
        end
    }

    fn judge_samples(
        &self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        samples: &Samples,
        snapshot: &Snapshot,
        times: &mut Times,
    ) -> CaseEnd {
        let start = Instant::now();
        let (graph, rules) = (&prepared.graph, &unit.rules);
        let draws = (samples.random.get(), self.context.options.seed);
        let judged = match look(graph, snapshot, &rules.arithmetic, draws) {
            Err(finding) => SampledValues::skipped(finding, start.elapsed()),
            Ok(looked) => judge_samples(&Sampling {
                graph,
                source: &samples.inputs,
                looked: &looked,
                rules,
            }),
        };
        let depth = match judged.finding.verdict {
            Verdict::Skipped(_) => Depth::Executed,
            _ => Depth::Judged,
        };
        let mut end = unit.end(judged.finding.clone(), depth);
        times.reference_ms = Some(judged.reference.as_secs_f64() * 1e3);
        judged.record(&mut end);
        end.determinism_hash = Some(output_hash(snapshot));
        let all = start.elapsed().as_secs_f64() * 1e3;
        times.comparison_ms = Some((all - times.reference_ms.unwrap_or(0.0)).max(0.0));
        end
    }
}

fn depth_of(outcome: &CaseOutcome) -> Depth {
    match outcome.depth {
        None => Depth::Loaded,
        Some(Until::Applicable) => Depth::Applicable,
        Some(Until::Planned) => Depth::Planned,
        Some(Until::Executed) => Depth::Executed,
    }
}

fn record_times(outcome: &CaseOutcome, times: &mut Times) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    times.plan_ms = Some(ms(outcome.times.applicable + outcome.times.plan));
    let mut executions = outcome.times.executions.iter().copied();
    times.first_ms = executions.next().map(ms);
    times.later_ms = executions.map(ms).collect();
}

fn record_outcome(outcome: &CaseOutcome, times: Times, end: &mut CaseEnd) {
    let total_ms = end.times.total_ms;
    end.times = Times { total_ms, ..times };
    end.workspace = outcome.workspace_size;
    end.notes.extend(outcome.notes.iter().cloned());
    if end.verdict.is_red() {
        let log = outcome.log.iter().map(|line| line.text.clone());
        let stderr = outcome.stderr.lines().map(str::to_owned);
        end.log_tail = log.chain(stderr).collect();
    }
}

fn output_hash(snapshot: &Snapshot) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    for check in &snapshot.buffers {
        hash.update(&check.bytes);
    }
    hex(&hash.finalize())
}
