//! One case on every engine of a plugin: which of them take it, and each one's execution, judgement and
//! what follows from it.

use dnn_assay_device::Run;
use dnn_assay_graph::Graph;
use dnn_assay_reference::{Arithmetic, Evaluation};

use super::dumping::dump;
use super::finding::{judge_reply, lost, skipped};
use super::prepared::{self, Prepared, Unprepared};
use super::slot::{Slot, SlotError};
use super::unit::Unit;
use crate::journal::{CaseEnd, Times};
use crate::judge::Finding;
use crate::plan::Engine;
use crate::suite::SuiteCase;
use crate::verdict::{Depth, NotRunReason, SkipReason, Verdict};
use crate::worker::Reply;

/// A case's data, and the reference under the arithmetic of the engine that it was computed for.
type Data = (Prepared, Option<(Evaluation, Arithmetic)>);

impl<'a> Slot<'a> {
    /// Runs one case on every engine of the subject.
    ///
    /// # Errors
    /// [`SlotError`] for a failure of the machine.
    pub fn run(&mut self, case: &SuiteCase) -> Result<(), SlotError> {
        let graph = match case.case.graph() {
            Ok(graph) => graph,
            Err(error) => return self.skip_all(case, SkipReason::NoReference, &error.to_string()),
        };
        let bytes = match prepared::graph_bytes(&graph, self.subject.generation) {
            Ok(bytes) => bytes,
            Err(why) => return self.skip_all(case, why.skip_reason(), &why.to_string()),
        };
        if let Some(needs) = super::floor::unmet(&graph, &self.subject.info) {
            return self.skip_all(case, SkipReason::ApiVersion, &needs);
        }
        let takers = self.takers(case, &bytes)?;
        let mut data = None;
        for engine in takers {
            self.run_unit(case, engine, &graph, &bytes, &mut data)?;
            if self.context.options.one_case_per_worker() {
                self.worker = None;
            }
        }
        Ok(())
    }

    /// A case that the run does not reach.
    ///
    /// # Errors
    /// [`SlotError::Journal`].
    pub fn not_run(
        &mut self,
        case: &SuiteCase,
        reason: NotRunReason,
        text: &str,
    ) -> Result<(), SlotError> {
        let finding = Finding {
            verdict: Verdict::NotRun(reason),
            reason: text.to_owned(),
            phase: None,
        };
        self.fail_all(case, &finding)
    }

    /// Asks which engines take the graph; those that do not get their verdict here.
    fn takers(&mut self, case: &SuiteCase, bytes: &[u8]) -> Result<Vec<&'a Engine>, SlotError> {
        let subject = self.subject;
        if let Some(why) = &subject.no_device {
            for engine in &subject.engines {
                let unit = self.start(case, engine)?;
                let finding = skipped(SkipReason::NoDevice, why);
                self.end(unit.end(finding, Depth::Loaded))?;
            }
            return Ok(Vec::new());
        }
        if self.context.options.until <= Depth::Loaded {
            self.skip_all(case, SkipReason::Until, "--until loaded")?;
            return Ok(Vec::new());
        }
        let worker = match self.worker()? {
            Ok(worker) => worker,
            Err(failure) => {
                self.fail_all(case, &lost(&failure))?;
                return Ok(Vec::new());
            }
        };
        match worker.applicable(bytes) {
            Reply::Ok(ids) => self.split(case, &ids),
            reply => {
                let finding = judge_reply(reply);
                self.drop_worker_if_gone(&finding);
                if matches!(finding.verdict, Verdict::Timeout(_)) {
                    self.ask_device("a question was not answered")?;
                }
                self.fail_all(case, &finding)?;
                Ok(Vec::new())
            }
        }
    }

    fn split(&mut self, case: &SuiteCase, ids: &[i64]) -> Result<Vec<&'a Engine>, SlotError> {
        let subject = self.subject;
        let (takers, others): (Vec<_>, Vec<_>) =
            subject.engines.iter().partition(|e| ids.contains(&e.id));
        for engine in others {
            let unit = self.start(case, engine)?;
            let finding = Finding {
                verdict: Verdict::Unsupported,
                reason: "the engine declines the graph".to_owned(),
                phase: None,
            };
            self.end(unit.end(finding, Depth::Loaded))?;
        }
        if self.context.options.until <= Depth::Applicable {
            for engine in &takers {
                let unit = self.start(case, engine)?;
                let finding = skipped(SkipReason::Until, "--until applicable");
                self.end(unit.end(finding, Depth::Applicable))?;
            }
            return Ok(Vec::new());
        }
        Ok(takers)
    }

    fn run_unit(
        &mut self,
        case: &SuiteCase,
        engine: &Engine,
        graph: &Graph,
        bytes: &[u8],
        data: &mut Option<Data>,
    ) -> Result<(), SlotError> {
        let unit = self.start(case, engine)?;
        if data.is_none() {
            match self.prepare(case, graph, bytes) {
                Ok(prepared) => *data = Some((prepared, None)),
                Err(why) => {
                    let finding = skipped(why.skip_reason(), &why.to_string());
                    return self.end(unit.end(finding, Depth::Applicable));
                }
            }
        }
        let (prepared, known) = data.as_mut().expect("it was filled above");
        let under = unit.rules.arithmetic.clone();
        let fill = case.case.fill();
        let by_samples = prepared.drawn.is_some();
        prepared.settle(fill, &under);
        if by_samples != prepared.drawn.is_some() {
            *known = None;
        }
        let mut evaluation = known
            .take()
            .filter(|(_, arithmetic)| *arithmetic == under)
            .map(|(evaluation, _)| evaluation);
        let mut times = Times::default();
        let run = (Run::First, 1);
        let first = match self.execute(&unit, prepared, run, &mut evaluation, &mut times)? {
            Ok(first) => first,
            Err(finding) => return self.end(self.unfinished(&unit, finding)),
        };
        if let Some(details) = &first.outcome.details
            && !self.context.options.knobs.is_empty()
        {
            self.context.knobs.note(details);
        }
        let mut end = self.judge(&unit, prepared, &mut evaluation, &first, times)?;
        self.confirm_leak(&unit, prepared, &first, &mut end)?;
        self.ask_another_device(&unit, prepared, &mut evaluation, &mut end)?;
        let mut shown = first;
        if self.context.options.knob_sweep
            && matches!(end.verdict, Verdict::Pass | Verdict::Weak)
            && let Some(details) = shown.outcome.details.clone()
            && let Some((red, execution)) =
                self.sweep(&unit, prepared, &mut evaluation, &details, &mut end)?
        {
            end = red;
            shown = execution.unwrap_or(shown);
        }
        let (context, subject, number) = (self.context, self.subject, self.number);
        self.end_with(end, |end| {
            if let Some(shrinker) = &context.shrinker {
                shrinker.shrink(context, subject, number, case, end);
            }
            dump(context, &unit, prepared, evaluation.as_ref(), &shown, end);
        })?;
        *known = evaluation.map(|evaluation| (evaluation, under));
        Ok(())
    }

    pub(super) fn prepare(
        &self,
        case: &SuiteCase,
        graph: &Graph,
        bytes: &[u8],
    ) -> Result<Prepared, Unprepared> {
        let context = self.context;
        let graph = graph.clone();
        prepared::fill_inputs(case, graph, bytes.to_vec(), &context.options)
    }

    /// The end of a unit that was taken and not executed.
    pub(super) fn unfinished(&self, unit: &Unit<'_>, finding: Finding) -> CaseEnd {
        unit.end(finding, Depth::Applicable)
    }

    fn drop_worker_if_gone(&mut self, finding: &Finding) {
        let gone = matches!(finding.verdict, Verdict::Crash(_) | Verdict::Timeout(_))
            || finding.phase.is_some();
        if gone {
            self.worker = None;
        }
    }

    fn skip_all(
        &mut self,
        case: &SuiteCase,
        reason: SkipReason,
        text: &str,
    ) -> Result<(), SlotError> {
        self.fail_all(case, &skipped(reason, text))
    }

    /// The same finding for every engine.
    fn fail_all(&mut self, case: &SuiteCase, finding: &Finding) -> Result<(), SlotError> {
        let subject = self.subject;
        for engine in &subject.engines {
            let unit = self.start(case, engine)?;
            self.end(unit.end(finding.clone(), Depth::Loaded))?;
        }
        Ok(())
    }
}
