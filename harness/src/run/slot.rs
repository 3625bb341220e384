//! One worker slot: takes cases from the plan, runs them on its worker, judges them, and starts a
//! new worker where a plugin has ended the old one.

use std::time::Instant;

use dnn_assay_device::{ArenaError, MemoryKind, Run, Snapshot};
use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::{EngineConfig, KnobSetting, write_engine_config};
use dnn_assay_reference::{Arithmetic, Evaluation};

use super::context::Context;
use super::prepared::{self, Prepared, Samples, Unprepared};
use super::subject::Subject;
use crate::dump;
use crate::journal::{CaseEnd, CaseStart, Infra, InfraKind, Times, UnitKey};
use crate::judge::{
    self, Finding, Rules, Sampling, judge_calls, judge_memory, judge_repeats, judge_samples,
    judge_values, overflow_named, separating_cases,
};
use crate::plan::Engine;
use crate::suite::SuiteCase;
use crate::verdict::{Depth, FailKind, NotRunReason, Phase, SkipReason, Verdict};
use crate::worker::{
    CaseOutcome, CaseRequest, LoadFailure, Reply, SpawnError, Until, Worker, WorkerConfig,
};

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

/// What is known of a case when it is handed to an engine.
pub(super) struct Unit<'a> {
    pub case: &'a SuiteCase,
    pub engine: &'a Engine,
    /// The rules of the run, with the traits of this unit.
    pub rules: Rules,
    pub started: Instant,
    /// The knobs that are set.
    pub knobs: Vec<KnobSetting>,
}

/// A case's data, and the reference under the arithmetic of the engine that it was computed for.
type Data = (Prepared, Option<(Evaluation, Arithmetic)>);

/// The note of wrong values that come again.
const STEADY: &str = "executed again, it gives the same bits";

/// One execution: how it ended, and the memory afterwards.
pub(super) struct Execution {
    pub(super) outcome: CaseOutcome,
    snapshot: Option<Snapshot>,
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

    /// The end of a unit that was taken and not executed.
    pub(super) fn unfinished(&self, unit: &Unit<'_>, finding: Finding) -> CaseEnd {
        unit.end(finding, Depth::Applicable)
    }

    fn prepare(
        &self,
        case: &SuiteCase,
        graph: &Graph,
        bytes: &[u8],
    ) -> Result<Prepared, Unprepared> {
        let context = self.context;
        let graph = graph.clone();
        prepared::fill_inputs(case, graph, bytes.to_vec(), &context.options)
    }

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
            .then(|| worker.snapshot(&outcome, dnn_assay_device::WORKSPACE_ALIGNMENT));
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
        let ended_well = first.outcome.result == crate::worker::CaseResult::Ok;
        let again = match ended_well && crate::judge::is_suspicious(snapshot) {
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

    /// Several hypotheses explain a failure: cases of other extents tell them apart. A hypothesis
    /// stays if it explains those that fail as well. Nothing else of the failure changes.
    fn separate(&mut self, unit: &Unit<'_>, end: &mut CaseEnd) -> Result<(), SlotError> {
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
        let Ok(prepared) = self.prepare(&case, &graph, &bytes) else {
            return Ok(nothing);
        };
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

    /// Plans and executes a case again, as often as asked for over its own outputs; what differs
    /// then takes the place of a pass.
    fn repeat(
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

    /// Executes a case once more, over outputs that are poisoned otherwise: for elements that look
    /// unwritten, and for wrong values. One execution serves both.
    fn execute_again(
        &mut self,
        unit: &Unit<'_>,
        prepared: &Prepared,
        evaluation: &mut Option<Evaluation>,
    ) -> Result<Result<Execution, Finding>, SlotError> {
        let run = (Run::Second, 1);
        self.execute(unit, prepared, run, evaluation, &mut Times::default())
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
        let judged = judge_samples(&Sampling {
            graph: &prepared.graph,
            source: &samples.inputs,
            snapshot,
            rules: &unit.rules,
            random: samples.random.get(),
            seed: self.context.options.seed,
        });
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

    /// The slot's worker, started and loaded if need be. The inner error is the plugin's.
    fn worker(&mut self) -> Result<Result<&mut Worker, LoadFailure>, SlotError> {
        if self.worker.is_none() {
            let mut worker = Worker::spawn(&self.config)?;
            if let Err(failure) = worker.load() {
                return Ok(Err(failure));
            }
            self.worker = Some(worker);
        }
        Ok(Ok(self.worker.as_mut().expect("it was set above")))
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

    fn start<'c>(
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

    fn end(&mut self, end: CaseEnd) -> Result<(), SlotError> {
        self.end_with(end, |_| ())
    }

    /// As [`Slot::end`]; `red` sees a case that makes the run red before it is written.
    fn end_with(
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

impl Unit<'_> {
    /// A finding takes the place of a pass.
    pub(super) fn turn_red(&self, finding: Finding, end: &mut CaseEnd) {
        let red = self.end(finding, end.depth);
        end.verdict = red.verdict;
        end.reason = red.reason;
        end.phase = red.phase;
        (end.file, end.line) = (red.file, red.line);
    }

    fn end(&self, finding: Finding, depth: Depth) -> CaseEnd {
        let key = UnitKey {
            plugin: 0,
            engine_id: self.engine.id,
            case: self.case.id.clone(),
        };
        let mut end = CaseEnd::new(key, 1, finding.verdict);
        end.engine = self.engine.name.clone();
        end.attempts = Some(1);
        let knobs = self.knobs.iter();
        end.knobs = knobs
            .map(|knob| {
                (
                    knob.knob_id.clone(),
                    crate::conform::knob::show(&knob.value),
                )
            })
            .collect();
        end.reason = Some(finding.reason).filter(|reason| !reason.is_empty());
        end.phase = finding.phase;
        end.depth = depth;
        end.traits = self.rules.traits.iter().map(|t| t.to_string()).collect();
        end.tier = Some(self.case.tier.to_string());
        end.tags = self.case.tags.to_vec();
        end.ranges = (*self.case.ranges).clone();
        end.times.total_ms = Some(self.started.elapsed().as_secs_f64() * 1e3);
        if end.verdict.is_red() {
            end.file = Some(self.case.origin.file().to_owned());
            end.line = self.case.origin.line();
        }
        end
    }
}

/// Keeps all that is known of a failing case, where the run asks for it. A dump that cannot be
/// written is said and changes nothing.
fn dump(
    context: &Context,
    unit: &Unit<'_>,
    prepared: &Prepared,
    evaluation: Option<&Evaluation>,
    first: &Execution,
    end: &mut CaseEnd,
) {
    let Some(dumper) = &context.dumper else {
        return;
    };
    if prepared.drawn.is_some() {
        end.notes
            .push("not dumped: the case was judged by samples".to_owned());
        return;
    }
    let (fill, rules) = (unit.case.case.fill(), &unit.rules);
    let exactness = evaluation.and_then(|evaluation| {
        rules.exactness(&prepared.graph, fill, &prepared.values, evaluation)
    });
    let failed = dump::Failed {
        graph: &prepared.graph,
        fill: fill.name(),
        inputs: &prepared.values,
        evaluation,
        criterion: &|tensor| {
            let criterion = rules.criterion(&prepared.graph, tensor, exactness.as_ref());
            criterion.unwrap_or_default()
        },
        overridden: &|tensor| rules.overridden(&prepared.graph, tensor),
        snapshot: first.snapshot.as_ref(),
    };
    if let Err(error) = dumper.dump(&failed, end) {
        end.dump = None;
        end.notes.push(format!("not dumped: {error}"));
    }
}

/// Notes whether wrong values are the same ones when the case is executed again: a race looks
/// otherwise than a wrong formula.
fn tell_steadiness(
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

fn skipped(reason: SkipReason, text: &str) -> Finding {
    Finding {
        verdict: Verdict::Skipped(reason),
        reason: text.to_owned(),
        phase: None,
    }
}

/// A plugin that loaded before and does not load again.
fn lost(failure: &LoadFailure) -> Finding {
    let stopped = match failure {
        LoadFailure::Stopped(stopped) => judge_calls(&stopped.clone().into()),
        _ => None,
    };
    stopped.unwrap_or_else(|| Finding {
        verdict: Verdict::Fail(crate::verdict::FailKind::Abi),
        reason: format!("the plugin loaded before and does not load again: {failure}"),
        phase: Some(Phase::Load),
    })
}

fn judge_reply(reply: Reply<Vec<i64>>) -> Finding {
    let result = match reply {
        Reply::Ok(_) => crate::worker::CaseResult::Ok,
        Reply::CallFailed { call, status, text } => {
            crate::worker::CaseResult::CallFailed { call, status, text }
        }
        Reply::Violation { call, what } => crate::worker::CaseResult::Violation { call, what },
        Reply::Stopped(stopped) => stopped.into(),
    };
    judge_calls(&result).unwrap_or_else(|| skipped(SkipReason::Until, "--until applicable"))
}

/// Lays a case out in a worker's memory: inputs written, outputs poisoned.
pub(super) fn load_arena(
    worker: &mut Worker,
    prepared: &Prepared,
    specs: &[dnn_assay_device::BufferSpec],
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

fn depth_of(outcome: &CaseOutcome) -> Depth {
    match outcome.depth {
        None => Depth::Loaded,
        Some(Until::Applicable) => Depth::Applicable,
        Some(Until::Planned) => Depth::Planned,
        Some(Until::Executed) => Depth::Executed,
    }
}

fn record_times(outcome: &CaseOutcome, times: &mut Times) {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
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
    super::subject::hex(&hash.finalize())
}

impl Context {
    /// Writes an infrastructure record.
    ///
    /// # Errors
    /// What the journal's file says.
    pub fn infra(&self, kind: InfraKind, message: String) -> Result<(), std::io::Error> {
        self.journal.infra(&Infra::now(kind, message))
    }
}
