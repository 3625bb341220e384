//! Writing scripts: the calls of the real host by name, so that a check reads as what it does.

use std::path::Path;

use crate::worker::LoadMode;
use crate::worker::script::{
    Bound, Call, Data, Object, Out, Room, Script, Step, StepResult, Value, Workspace,
};

use super::sample::Sample;

/// The place of a step's result.
pub(super) type At = usize;

/// Handle 0, which most checks use.
pub(super) const HANDLE: Object = Object::Slot(0);

/// A list of steps, and those of them that must succeed.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    pub list: Vec<Step>,
    pub expected: Vec<At>,
}

/// A script being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub script: Script,
    pub steps: Steps,
}

/// Where a sample's parts lie in a draft.
#[derive(Clone, Debug)]
pub(super) struct Bench {
    pub engine: i64,
    /// Blobs.
    pub graph: u8,
    pub config: u8,
    /// Inputs, then outputs.
    pub bound: Vec<Bound>,
    /// Buffers of the outputs.
    pub outputs: Vec<u8>,
}

impl Steps {
    pub fn push(&mut self, step: Step) -> At {
        self.list.push(step);
        self.list.len() - 1
    }

    /// A call of library 0 whose status is free.
    pub fn call(&mut self, call: Call) -> At {
        self.call_on(0, call)
    }

    /// A call whose status is free.
    pub fn call_on(&mut self, library: u8, call: Call) -> At {
        self.push(Step::Call { library, call })
    }

    /// A call of library 0 that must succeed.
    pub fn ok(&mut self, call: Call) -> At {
        self.ok_on(0, call)
    }

    /// A call that must succeed.
    pub fn ok_on(&mut self, library: u8, call: Call) -> At {
        let at = self.call_on(library, call);
        self.expected.push(at);
        at
    }

    /// Opens a library and does what the host does before any handle exists.
    pub fn load(&mut self, library: u8, engines: u32) {
        let at = self.push(Step::Open { library });
        self.expected.push(at);
        self.ok_on(library, Call::GetName(Out::Given));
        self.ok_on(library, Call::GetType(Out::Given));
        self.ok_on(library, Call::GetName(Out::Given));
        self.ok_on(library, Call::GetVersion(Out::Given));
        self.ok_on(library, Call::GetType(Out::Given));
        self.call_on(library, Call::SetLoggingCallback(Some(0)));
        self.call_on(library, Call::SetLogLevel(0));
        self.ok_on(library, Call::GetAllEngineIds(COUNT_ONLY));
        self.ok_on(library, Call::GetAllEngineIds(room(engines)));
    }

    pub fn create(&mut self, slot: u8) -> At {
        self.ok(create(slot))
    }

    pub fn destroy(&mut self, slot: u8) -> At {
        self.ok(Call::Destroy(Object::Slot(slot)))
    }

    pub fn applicable(&mut self, handle: Object, graph: u8, engines: u32) -> At {
        self.ok(Call::GetApplicableEngineIds {
            handle,
            graph: Data::Blob(graph),
            room: room(engines),
        })
    }

    pub fn details(&mut self, handle: Object, bench: &Bench, slot: u8) -> At {
        self.ok(details(handle, bench, slot))
    }

    pub fn destroy_details(&mut self, handle: Object, slot: u8) -> At {
        self.ok(Call::DestroyEngineDetails {
            handle,
            slot: Some(slot),
        })
    }

    /// Plans, and asks for the plan's workspace at once, as the host does.
    pub fn plan(&mut self, handle: Object, bench: &Bench, slot: u8) -> At {
        self.ok(plan(handle, bench, slot));
        self.ok(Call::GetWorkspaceSizeFromExecutionContext {
            handle,
            context: Object::Slot(slot),
            out: Out::Given,
        })
    }

    pub fn destroy_plan(&mut self, handle: Object, slot: u8) -> At {
        self.ok(Call::DestroyExecutionContext {
            handle,
            context: Object::Slot(slot),
        })
    }

    /// Executes into outputs that hold `fill`; the results of the reads.
    pub fn execute(&mut self, handle: Object, bench: &Bench, slot: u8, fill: u8) -> Vec<At> {
        let bound = bench.bound.clone();
        self.execute_with(handle, bench, slot, fill, bound)
    }

    /// The same with other buffers.
    pub fn execute_with(
        &mut self,
        handle: Object,
        bench: &Bench,
        slot: u8,
        fill: u8,
        bound: Vec<Bound>,
    ) -> Vec<At> {
        for &buffer in &bench.outputs {
            self.push(Step::Fill { buffer, byte: fill });
        }
        self.ok(Call::ExecuteOpGraph {
            handle,
            context: Object::Slot(slot),
            workspace: Workspace::Filled(fill),
            buffers: Some(bound),
            overrides: Vec::new(),
        });
        self.read(bench)
    }

    pub fn read(&mut self, bench: &Bench) -> Vec<At> {
        let read = |&buffer: &u8| self.push(Step::Read { buffer });
        bench.outputs.iter().map(read).collect()
    }
}

impl Draft {
    /// With one library and nothing done.
    pub fn new(plugin: &Path, load_mode: LoadMode) -> Self {
        let mut draft = Self::default();
        draft.script.libraries.push(plugin.to_owned());
        draft.script.load_mode = load_mode;
        draft
    }

    pub fn blob(&mut self, bytes: &[u8]) -> u8 {
        self.script.blobs.push(bytes.to_vec());
        (self.script.blobs.len() - 1) as u8
    }

    pub fn buffer(&mut self, bytes: &[u8]) -> u8 {
        self.script.buffers.push(bytes.to_vec());
        (self.script.buffers.len() - 1) as u8
    }

    /// Puts a sample's graph, configuration and buffers into the script.
    pub fn lay(&mut self, sample: &Sample) -> Bench {
        let graph = self.blob(&sample.bytes);
        let config = self.blob(&sample.config);
        let mut bound = Vec::new();
        for (uid, bytes) in &sample.inputs {
            let buffer = Some(self.buffer(bytes));
            let host = sample.is_host_scalar(*uid);
            bound.push(Bound {
                uid: *uid,
                buffer,
                host,
            });
        }
        let mut outputs = Vec::new();
        for (uid, size) in &sample.outputs {
            let buffer = self.buffer(&vec![0; *size]);
            outputs.push(buffer);
            bound.push(Bound {
                uid: *uid,
                buffer: Some(buffer),
                host: false,
            });
        }
        Bench {
            engine: sample.engine,
            graph,
            config,
            bound,
            outputs,
        }
    }
}

/// Room for `n` ids, as the host asks.
pub(super) const fn room(n: u32) -> Room {
    Room {
        ids: Some(n),
        max: n,
        count: Out::Given,
    }
}

/// The first call of two.
pub(super) const COUNT_ONLY: Room = Room {
    ids: None,
    max: 0,
    count: Out::Given,
};

pub(super) fn create(slot: u8) -> Call {
    Call::Create {
        slot,
        out: Out::Given,
    }
}

pub(super) fn details(handle: Object, bench: &Bench, slot: u8) -> Call {
    Call::GetEngineDetails {
        handle,
        id: bench.engine,
        graph: Data::Blob(bench.graph),
        slot,
        out: Out::Given,
        preset: false,
    }
}

pub(super) fn plan(handle: Object, bench: &Bench, slot: u8) -> Call {
    Call::CreateExecutionContext {
        handle,
        config: Data::Blob(bench.config),
        graph: Data::Blob(bench.graph),
        slot,
        out: Out::Given,
    }
}

/// The bytes that reads saw.
pub(super) fn bytes(results: &[StepResult], at: &[At]) -> Vec<Vec<u8>> {
    at.iter()
        .map(|&at| match results.get(at).map(|result| &result.value) {
            Some(Value::Bytes(bytes)) => bytes.clone(),
            _ => Vec::new(),
        })
        .collect()
}

/// What a step does, for people.
pub(super) fn name_of(step: &Step) -> String {
    match step {
        Step::Open { .. } => "dlopen".to_owned(),
        Step::Close { .. } => "dlclose".to_owned(),
        Step::Call { call, .. } => call.symbol().to_owned(),
        Step::Threads(lists) => format!("{} threads at the same time", lists.len()),
        Step::Repeat { rounds, .. } => format!("{rounds} rounds of use"),
        _ => "a step of the harness".to_owned(),
    }
}
