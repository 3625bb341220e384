//! Where checks are made: a plugin, what it says of itself, graphs that it takes, and workers that
//! do scripts.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use dnn_assay_graph::wire::{Generation, KnobSetting};
use dnn_assay_reference::{Arithmetic, Traits};

use super::check::{Stop, finding, not_applicable};
use super::draft::{At, Draft, HANDLE, Steps, bytes, name_of, room};
use super::sample::{GRAPHS, Sample, graph_of};
use crate::cli::args::CriterionName;
use crate::judge::Rules;
use crate::run::Subject;
use crate::suite::{Allowances, Tolerances};
use crate::worker::script::{Call, Data, RawText, Step, StepResult, Value};
use crate::worker::{LoadMode, Shutdown, Worker};

/// Engines that are looked at; more would say the same again.
const MAX_ENGINES: usize = 4;
/// Fresh processes that must agree before bit-equality is asked for.
pub(super) const REPEATS: usize = 5;
/// What outputs are filled with before an execution.
pub(super) const DIRT: [u8; 2] = [0xA5, 0x5A];

/// The reference's constants.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub arithmetic: Arithmetic,
}

/// A plugin under examination.
pub(super) struct Lab<'a> {
    pub subject: &'a Subject,
    pub judge: Judge,
    pub knobs: Vec<KnobSetting>,
    pub sweep: bool,
    /// One per engine, then one more of another kind per engine.
    samples: Vec<Sample>,
    /// What the plugin said to each graph it was asked about.
    pub answers: Vec<Answer>,
    alone: OnceCell<Result<Vec<Alone>, Stop>>,
    /// By sample: whether fresh processes give the same bits.
    repeating: RefCell<BTreeMap<String, bool>>,
    notes: RefCell<BTreeSet<String>>,
}

/// The answer to a graph.
pub(super) struct Answer {
    pub id: &'static str,
    pub result: Result<Vec<i64>, String>,
}

/// What a sample gives in a process of its own.
#[derive(Clone, Debug)]
pub(super) struct Alone {
    pub outputs: Vec<Vec<u8>>,
    /// The engine left the outputs as they were.
    pub writes_nothing: bool,
    pub details: Vec<u8>,
}

/// A sample and what it gives alone.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub sample: &'a Sample,
    pub alone: &'a Alone,
}

/// What a script saw, all steps done.
#[derive(Debug)]
pub(super) struct Seen {
    pub results: Vec<StepResult>,
}

impl<'a> Lab<'a> {
    /// Asks which graphs the plugin takes.
    ///
    /// # Errors
    /// Infrastructure only: what the plugin does wrong is found by the checks.
    pub fn new(subject: &'a Subject, knobs: Vec<KnobSetting>, sweep: bool) -> Result<Self, Stop> {
        let mut lab = Self {
            subject,
            judge: Judge::new()?,
            knobs,
            sweep,
            samples: Vec::new(),
            answers: Vec::new(),
            alone: OnceCell::new(),
            repeating: RefCell::default(),
            notes: RefCell::default(),
        };
        lab.answers = lab.ask()?;
        lab.samples = lab.choose();
        Ok(lab)
    }

    pub fn generation(&self) -> Generation {
        self.subject.generation
    }

    /// How many engines the plugin has.
    pub fn engine_count(&self) -> u32 {
        self.subject.info.engines.len() as u32
    }

    pub fn exports(&self, symbol: &str) -> bool {
        self.subject.info.exports(symbol)
    }

    /// A script with the library open, as the host has it before any handle exists.
    pub fn loaded(&self) -> Draft {
        self.loaded_as(LoadMode::Local)
    }

    pub fn loaded_as(&self, load_mode: LoadMode) -> Draft {
        let mut draft = Draft::new(&self.subject.config.plugin, load_mode);
        draft.steps.load(0, self.engine_count());
        draft
    }

    /// The same with handle 0.
    pub fn ready(&self) -> Draft {
        let mut draft = self.loaded();
        draft.steps.create(0);
        draft
    }

    /// Does a script in a worker of its own. All its steps were done, and those that must succeed
    /// did.
    pub fn run(&self, draft: Draft) -> Result<Seen, Stop> {
        let seen = self.attempt(draft)?;
        match seen {
            (seen, None) => Ok(seen),
            (_, Some(text)) => finding(text),
        }
    }

    /// The same, but the process's end and failures are given as a text.
    pub fn attempt(&self, draft: Draft) -> Result<(Seen, Option<String>), Stop> {
        let Draft { mut script, steps } = draft;
        if let Some(why) = &self.subject.no_device
            && steps.list.iter().any(creates_a_handle)
        {
            return not_applicable(why.clone());
        }
        script.steps = steps.list.clone();
        let mut worker = Worker::spawn(&self.subject.config)
            .map_err(|error| Stop::Infrastructure(error.to_string()))?;
        let transcript = worker.script(&script);
        let at = transcript.results.len();
        let seen = Seen {
            results: transcript.results,
        };
        if let Some(stopped) = transcript.stopped {
            let step = script.steps.get(at).map_or_else(String::new, name_of);
            return Ok((seen, Some(format!("in step {at}, {step}: {stopped}"))));
        }
        if let Err(text) = expect(&steps, &seen.results) {
            return Ok((seen, Some(text)));
        }
        let end = match worker.shutdown() {
            Shutdown::Stopped(stopped) => Some(format!("at the process's end: {stopped}")),
            _ => None,
        };
        Ok((seen, end))
    }

    /// Samples that the plugin takes and that run; not applicable where there are none.
    pub fn samples(&self) -> Result<Vec<Known<'_>>, Stop> {
        if let Some(why) = &self.subject.no_device {
            return not_applicable(why.clone());
        }
        if self.samples.is_empty() {
            return not_applicable("the plugin takes none of the graphs that it was asked about");
        }
        let alone = self.alone.get_or_init(|| {
            let one = |sample| self.use_alone(sample);
            self.samples.iter().map(one).collect()
        });
        match alone {
            Ok(alone) => {
                let pairs = self.samples.iter().zip(alone);
                Ok(pairs
                    .map(|(sample, alone)| Known { sample, alone })
                    .collect())
            }
            Err(Stop::Finding(_)) => not_applicable("plain use fails already: see use/plain"),
            Err(other) => Err(other.clone()),
        }
    }

    /// The samples that can be planned, whether they run or not.
    pub fn unproven(&self) -> &[Sample] {
        &self.samples
    }

    /// The first one.
    pub fn first(&self) -> Result<Known<'_>, Stop> {
        let samples = self.samples()?;
        samples
            .first()
            .copied()
            .ok_or_else(|| Stop::NotApplicable("no graph is taken".to_owned()))
    }

    /// Those whose outputs mean something.
    pub fn computing(&self) -> Result<Vec<Known<'_>>, Stop> {
        let mut samples = self.samples()?;
        samples.retain(|known| !known.alone.writes_nothing);
        if samples.is_empty() {
            return not_applicable("the engines write no output, so there is nothing to compare");
        }
        Ok(samples)
    }

    /// Whether outputs are what the sample gives alone: bit for bit if five fresh processes give
    /// the same bits, else within the bound, which is then noted.
    pub fn same(&self, known: &Known<'_>, got: &[Vec<u8>], when: &str) -> Result<(), Stop> {
        if known.alone.writes_nothing || known.alone.outputs == got {
            return Ok(());
        }
        // What is beyond the bound is told as that.
        self.within(known, got, when)?;
        if self.repeats(known)? {
            return finding(format!(
                "{when}: other bits than alone for {}, where {REPEATS} processes of its own agree",
                known.sample.id
            ));
        }
        self.notes.borrow_mut().insert(format!(
            "{} differs from process to process: judged by the bound",
            known.sample.id
        ));
        Ok(())
    }

    /// Whether outputs lie within the bound, whatever their bits.
    pub fn within(&self, known: &Known<'_>, got: &[Vec<u8>], when: &str) -> Result<(), Stop> {
        if known.alone.writes_nothing || known.alone.outputs == got {
            return Ok(());
        }
        match known.sample.judge(&self.judge, got) {
            Ok(()) | Err(Stop::NotApplicable(_)) => Ok(()),
            Err(Stop::Finding(text)) => finding(format!("{when}: other results; {text}")),
            Err(other) => Err(other),
        }
    }

    /// Whether a sample gives the same bits in five fresh processes.
    pub fn repeats(&self, known: &Known<'_>) -> Result<bool, Stop> {
        let id = &known.sample.id;
        if let Some(known) = self.repeating.borrow().get(id) {
            return Ok(*known);
        }
        let mut repeats = true;
        for _ in 1..REPEATS {
            repeats &= self.use_alone(known.sample)?.outputs == known.alone.outputs;
        }
        self.repeating.borrow_mut().insert(id.clone(), repeats);
        Ok(repeats)
    }

    /// What was noted since the last time.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.borrow_mut())
            .into_iter()
            .collect()
    }

    /// One full use, as `use/plain` makes it.
    pub fn use_alone(&self, sample: &Sample) -> Result<Alone, Stop> {
        let mut draft = self.ready();
        let bench = draft.lay(sample);
        let steps = &mut draft.steps;
        steps.applicable(HANDLE, bench.graph, self.engine_count());
        let details = steps.details(HANDLE, &bench, 0);
        steps.ok(Call::GetWorkspaceSize {
            handle: HANDLE,
            config: Data::Blob(bench.config),
            graph: Data::Blob(bench.graph),
            out: crate::worker::script::Out::Given,
        });
        steps.plan(HANDLE, &bench, 0);
        let runs = DIRT.map(|dirt| steps.execute(HANDLE, &bench, 0, dirt));
        steps.destroy_plan(HANDLE, 0);
        steps.destroy_details(HANDLE, 0);
        steps.destroy(0);
        let seen = self.run(draft)?;
        let [first, second] = runs.map(|run| bytes(&seen.results, &run));
        let untouched = |run: &[Vec<u8>], dirt: u8| run.iter().flatten().all(|byte| *byte == dirt);
        Ok(Alone {
            writes_nothing: untouched(&first, DIRT[0]) && untouched(&second, DIRT[1]),
            outputs: first,
            details: seen.data(details).unwrap_or_default(),
        })
    }

    fn ask(&self) -> Result<Vec<Answer>, Stop> {
        let mut answers = Vec::new();
        if self.subject.no_device.is_some() {
            return Ok(answers);
        }
        for &id in GRAPHS {
            let sample = graph_of(id).and_then(|g| Sample::new(id, g, 0, self.generation(), &[]));
            let Some(sample) = sample else { continue };
            let mut draft = self.ready();
            let graph = draft.blob(&sample.bytes);
            let at = draft.steps.call(Call::GetApplicableEngineIds {
                handle: HANDLE,
                graph: Data::Blob(graph),
                room: room(self.engine_count()),
            });
            let result = match self.attempt(draft)? {
                (_, Some(text)) => Err(text),
                (seen, None) => seen.ids(at),
            };
            answers.push(Answer { id, result });
        }
        Ok(answers)
    }

    /// For each engine the first two graphs of different operations that it takes.
    fn choose(&self) -> Vec<Sample> {
        let mut samples = Vec::new();
        for engine in self.subject.engines.iter().take(MAX_ENGINES) {
            let mut taken: Vec<&str> = Vec::new();
            for answer in &self.answers {
                let takes = matches!(&answer.result, Ok(ids) if ids.contains(&engine.id));
                let operation = answer.id.split('/').next().unwrap_or_default();
                if !takes || taken.contains(&operation) || taken.len() >= 2 {
                    continue;
                }
                let sample = graph_of(answer.id).and_then(|graph| {
                    let generation = self.generation();
                    Sample::new(answer.id, graph, engine.id, generation, &self.knobs)
                });
                if let Some(sample) = sample {
                    taken.push(operation);
                    samples.push(sample);
                }
            }
        }
        samples
    }
}

impl Judge {
    fn new() -> Result<Self, Stop> {
        let broken =
            |problem: Box<crate::yaml::Problem>| Stop::Infrastructure(problem.render(false));
        let rules = Rules::new(
            CriterionName::Bound,
            &Traits::default(),
            Tolerances::embedded().map_err(broken)?,
            Allowances::embedded().map_err(broken)?,
        );
        Ok(Self {
            arithmetic: rules.arithmetic,
        })
    }
}

impl Seen {
    pub fn status(&self, at: At) -> Option<i32> {
        self.results.get(at)?.status
    }

    pub fn value(&self, at: At) -> &Value {
        const NOTHING: &Value = &Value::Nothing;
        self.results.get(at).map_or(NOTHING, |result| &result.value)
    }

    pub fn number(&self, at: At) -> Option<u64> {
        match self.value(at) {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn text(&self, at: At) -> Option<&RawText> {
        match self.value(at) {
            Value::Text(text) => text.as_ref(),
            _ => None,
        }
    }

    pub fn data(&self, at: At) -> Option<Vec<u8>> {
        match self.value(at) {
            Value::Data { bytes, .. } => Some(bytes.clone()),
            _ => None,
        }
    }

    pub fn pointer(&self, at: At) -> Option<u64> {
        match self.value(at) {
            Value::Pointer(pointer) => Some(*pointer),
            _ => None,
        }
    }

    /// The last-error text after a failure.
    pub fn error(&self, at: At) -> Option<&Option<RawText>> {
        self.results.get(at)?.error.as_ref()
    }

    pub fn outputs(&self, at: &[At]) -> Vec<Vec<u8>> {
        bytes(&self.results, at)
    }

    pub fn thread(&self, at: At, thread: usize) -> &[StepResult] {
        match self.value(at) {
            Value::Threads(threads) => threads.get(thread).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }

    /// Ids as the host takes them.
    pub fn ids(&self, at: At) -> Result<Vec<i64>, String> {
        let Some(result) = self.results.get(at) else {
            return Err("the call was not made".to_owned());
        };
        if let Some(text) = failure(result) {
            return Err(text);
        }
        match &result.value {
            Value::Ids { ids, count, .. } if *count as usize == ids.len() => Ok(ids.clone()),
            Value::Ids { count, .. } => Err(format!("{count} ids into less room")),
            _ => Err("the call gave no ids".to_owned()),
        }
    }
}

fn creates_a_handle(step: &Step) -> bool {
    matches!(
        step,
        Step::Call {
            call: Call::Create { .. },
            ..
        } | Step::Threads(_)
            | Step::Repeat { .. }
    )
}

/// The first step that had to succeed and did not.
pub(super) fn expect(steps: &Steps, results: &[StepResult]) -> Result<(), String> {
    for &at in &steps.expected {
        let Some(result) = results.get(at) else {
            continue;
        };
        if let Some(text) = failure(result) {
            let step = steps.list.get(at).map_or_else(String::new, name_of);
            return Err(format!("{step} (step {at}): {text}"));
        }
        if let Some(Step::Call { call, .. }) = steps.list.get(at) {
            let null = matches!(result.value, Value::Pointer(0));
            if null
                && matches!(
                    call,
                    Call::Create { .. } | Call::CreateExecutionContext { .. }
                )
            {
                return Err(format!("{}: SUCCESS with NULL", call.symbol()));
            }
            if result.wrote_input {
                return Err(format!(
                    "{} writes to a buffer that it is given to read",
                    call.symbol()
                ));
            }
        }
    }
    Ok(())
}

/// Why a step did not succeed.
pub(super) fn failure(result: &StepResult) -> Option<String> {
    match &result.value {
        Value::Failed(text) => return Some(text.clone()),
        Value::Absent => return Some("not exported".to_owned()),
        _ => {}
    }
    let status = result.status.filter(|status| *status != 0)?;
    let text = match &result.error {
        Some(Some(text)) => text.text(),
        _ => String::new(),
    };
    Some(format!(
        "status {}, last error {:?}",
        dnn_assay_abi::PluginStatus(status),
        text.chars().take(200).collect::<String>()
    ))
}
