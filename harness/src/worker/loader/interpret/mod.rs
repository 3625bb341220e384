//! Doing what a script says.

mod call;
mod contexts;
mod data;
mod execute;
mod objects;
mod steps;

use std::collections::BTreeMap;

use dnn_assay_abi::PluginStatus;
use libloading::os::unix::Library;

use super::device_memory::DeviceSetup;
use super::sandbox::{self, Aligned};
use crate::worker::script::{Script, Step, StepResult, Value};

/// A script on its way.
pub(in crate::worker) struct Interpreter<'a> {
    script: &'a Script,
    libraries: Vec<Option<Library>>,
    objects: Objects,
}

/// The objects of a script.
#[derive(Clone, Default)]
struct Objects {
    handles: BTreeMap<u8, usize>,
    contexts: BTreeMap<u8, usize>,
    workspaces: BTreeMap<u8, u64>,
    /// Address and size.
    details: BTreeMap<u8, (usize, usize)>,
    serialized: BTreeMap<u8, (usize, usize)>,
    saved: BTreeMap<u8, Vec<u8>>,
    blobs: Vec<Vec<u8>>,
    buffers: Vec<Aligned>,
    /// Where the buffers of an execution lie, if not here.
    device: Option<DeviceSetup>,
    /// Function, address and contents of texts that live as long as the library.
    texts: Vec<(&'static str, usize, Vec<u8>)>,
}

impl<'a> Interpreter<'a> {
    pub fn new(script: &'a Script, device: Option<DeviceSetup>) -> Self {
        Self {
            script,
            libraries: script.libraries.iter().map(|_| None).collect(),
            objects: Objects {
                blobs: script.blobs.clone(),
                buffers: script.buffers.iter().map(|b| Aligned::new(b)).collect(),
                device,
                ..Objects::default()
            },
        }
    }

    /// Does one step.
    pub fn step(&mut self, step: &Step) -> StepResult {
        match step {
            Step::Open { library } => self.open(*library),
            Step::Close { library } => self.close(*library),
            other => self.objects.step(other, &self.libraries, self.script),
        }
    }

    fn open(&mut self, library: u8) -> StepResult {
        let index = usize::from(library);
        let opened = match self.script.libraries.get(index) {
            Some(path) => sandbox::open(path, self.script.load_mode),
            None => Err("no such library in the script".to_owned()),
        };
        match opened {
            Ok(opened) => {
                self.libraries[index] = Some(opened);
                StepResult::default()
            }
            Err(text) => failed(text),
        }
    }

    fn close(&mut self, library: u8) -> StepResult {
        let open = self.libraries.get_mut(usize::from(library));
        self.objects.texts.clear();
        match open.and_then(Option::take).map(Library::close) {
            Some(Ok(())) => StepResult::default(),
            Some(Err(error)) => failed(error.to_string()),
            None => failed("the library is not open".to_owned()),
        }
    }
}

fn failed(text: String) -> StepResult {
    of(Value::Failed(text))
}

fn of(value: Value) -> StepResult {
    StepResult {
        value,
        ..StepResult::default()
    }
}

fn status(status: PluginStatus, value: Value) -> StepResult {
    StepResult {
        status: Some(status.0),
        value,
        ..StepResult::default()
    }
}
