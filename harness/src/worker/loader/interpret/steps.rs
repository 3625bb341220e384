//! Steps: opening apart, which is the interpreter's.

use std::ffi::{c_char, c_void};

use dnn_assay_abi::symbols::ENGINE_PLUGIN;
use dnn_assay_abi::{ConstData, PluginStatus};
use libloading::os::unix::Library;

use super::data::look;
use super::{Objects, failed, of};
use crate::worker::loader::sandbox::{self, raw_text};
use crate::worker::script::{Script, Step, StepResult, Usage, Value};

type Libraries = [Option<Library>];

impl Objects {
    pub(super) fn step(
        &mut self,
        step: &Step,
        libraries: &Libraries,
        script: &Script,
    ) -> StepResult {
        let library = |index: u8| libraries.get(usize::from(index))?.as_ref();
        match step {
            Step::Open { .. } | Step::Close { .. } => {
                failed("libraries are opened and closed by the first thread only".to_owned())
            }
            Step::Mappings { library } => match script.libraries.get(usize::from(*library)) {
                Some(path) => of(Value::Number(sandbox::mappings(path))),
                None => failed("no such library in the script".to_owned()),
            },
            Step::Entries { library: index } => match library(*index) {
                Some(library) => of(Value::Entries(entries(library))),
                None => failed("the library is not open".to_owned()),
            },
            Step::Call {
                library: index,
                call,
            } => match library(*index) {
                Some(library) => self.observed_call(library, call, script),
                None => failed("the library is not open".to_owned()),
            },
            Step::Spoil { blob } => {
                if let Some(blob) = self.blobs.get_mut(usize::from(*blob)) {
                    blob.fill(0xDD);
                }
                StepResult::default()
            }
            Step::Mend { blob } => {
                self.mend(*blob, script);
                StepResult::default()
            }
            Step::Fill { buffer, byte } => {
                if let Some(buffer) = self.buffers.get_mut(usize::from(*buffer)) {
                    buffer.fill(*byte);
                }
                StepResult::default()
            }
            Step::Read { buffer } => match self.buffers.get(usize::from(*buffer)) {
                Some(buffer) => of(Value::Bytes(buffer.bytes().to_vec())),
                None => failed("no such buffer in the script".to_owned()),
            },
            Step::MoveBuffers => self.move_buffers(),
            Step::Look { details } => {
                let (address, size) = self.details.get(details).copied().unwrap_or((0, 0));
                let data = ConstData {
                    ptr: address as *const c_void,
                    size,
                };
                of(look(data))
            }
            Step::Reread => of(Value::Changed(self.reread())),
            Step::TakeLog => of(Value::Log(sandbox::take_log())),
            Step::Repeat { rounds, steps } => self.repeat(*rounds, steps, libraries, script),
            Step::Threads(threads) => self.threads(threads, libraries, script),
        }
    }

    pub(super) fn mend(&mut self, index: u8, script: &Script) {
        let index = usize::from(index);
        if let (Some(blob), Some(bytes)) = (self.blobs.get_mut(index), script.blobs.get(index)) {
            blob.copy_from_slice(bytes);
        }
    }

    fn repeat(
        &mut self,
        rounds: u32,
        steps: &[Step],
        libraries: &Libraries,
        script: &Script,
    ) -> StepResult {
        let mut result = StepResult::default();
        let mut series: Vec<Usage> = Vec::with_capacity(rounds as usize);
        for _ in 0..rounds {
            for step in steps {
                let seen = self.step(step, libraries, script);
                let bad = seen.status.is_some_and(|s| s != PluginStatus::SUCCESS.0);
                if bad && result.status.is_none() {
                    (result.status, result.error) = (seen.status, seen.error);
                }
            }
            // What we keep of the round must not look like the plugin's growth.
            self.texts.clear();
            drop(sandbox::take_log());
            series.push(sandbox::usage());
        }
        result.value = Value::Series(series);
        result
    }

    fn threads(&self, threads: &[Vec<Step>], libraries: &Libraries, script: &Script) -> StepResult {
        let results = std::thread::scope(|scope| {
            let running: Vec<_> = threads
                .iter()
                .map(|steps| {
                    let mut own = self.clone();
                    scope.spawn(move || {
                        let run = |step| own.step(step, libraries, script);
                        steps.iter().map(run).collect::<Vec<_>>()
                    })
                })
                .collect();
            let ended = running.into_iter().map(|thread| thread.join());
            ended.map(Result::unwrap_or_default).collect()
        });
        of(Value::Threads(results))
    }

    fn reread(&self) -> Vec<String> {
        let changed = self.texts.iter().filter(|(_, address, before)| {
            // SAFETY: ABI: such texts live as long as the library, which is open: closing one
            // empties the list.
            let now = unsafe { raw_text(*address as *const c_char) };
            now.is_none_or(|now| now.bytes != *before)
        });
        changed
            .map(|(function, ..)| (*function).to_owned())
            .collect()
    }
}

fn entries(library: &Library) -> Vec<(String, String)> {
    ENGINE_PLUGIN
        .iter()
        .filter_map(|symbol| {
            let file = sandbox::file_of(library, symbol.name)?;
            Some((symbol.name.to_owned(), file))
        })
        .collect()
}
