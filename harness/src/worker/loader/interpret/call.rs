//! Calls of a plugin's functions: its texts, its log, its engines. Those that need an object are in
//! [`objects`](super::objects) and [`contexts`](super::contexts).

use std::ffi::c_char;
use std::ptr;

use dnn_assay_abi::engine_plugin::functions as f;
use dnn_assay_abi::{PluginStatus, PluginType, Severity};
use libloading::os::unix::Library;

use super::data::Argument;
use super::objects::pick;
use super::{Objects, of, status};
use crate::worker::loader::sandbox::{self, raw_text};
use crate::worker::script::{Call, Out, RawText, Room, Script, StepResult, Value};

/// What lies in and behind an array of ids before the call.
const SENTINEL: i64 = 0x5EA1_5EA1_5EA1_5EA1;
/// How many ids there is room for behind what the plugin is told.
const BEHIND: usize = 64;

/// The function called `$name`, or an early return that says it is not there.
macro_rules! entry {
    ($library:expr, $call:expr, $type:ident) => {
        // SAFETY: the type is the one that the ABI gives to this name, and the library is open
        // for the time of the call.
        match unsafe { sandbox::symbol::<f::$type>($library, $call.symbol()) } {
            Some(function) => function,
            None => return of(Value::Absent),
        }
    };
}
pub(super) use entry;

/// The argument: a pointer to `$place`, or NULL.
macro_rules! out {
    ($out:expr, $place:expr) => {
        match $out {
            Out::Given => &raw mut $place,
            Out::Null => ptr::null_mut(),
        }
    };
}
pub(super) use out;

impl Objects {
    /// A call, the last-error text after it, and whether it wrote where it must only read.
    pub(super) fn observed_call(
        &mut self,
        library: &Library,
        call: &Call,
        script: &Script,
    ) -> StepResult {
        let before = self.blobs.clone();
        let mut result = self.call(library, call);
        result.wrote_input = before != self.blobs;
        if result.wrote_input {
            (0..script.blobs.len()).for_each(|i| self.mend(i as u8, script));
        }
        if result.status.is_some_and(|s| s != PluginStatus::SUCCESS.0) {
            result.error = Some(last_error(library));
        }
        result
    }

    fn call(&mut self, library: &Library, call: &Call) -> StepResult {
        match call {
            Call::GetName(out) | Call::GetVersion(out) | Call::GetApiVersion(out) => {
                let function = entry!(library, call, GetText);
                let mut text: *const c_char = ptr::null();
                // SAFETY: ABI: sets a pointer; NULL must be refused.
                let s = unsafe { function(out!(out, text)) };
                self.lasting_text(call, s, text)
            }
            Call::GetEngineName { id, out } => {
                let function = entry!(library, call, GetEngineName);
                let mut text: *const c_char = ptr::null();
                // SAFETY: ABI: sets a pointer; NULL must be refused.
                let s = unsafe { function(*id, out!(out, text)) };
                self.lasting_text(call, s, text)
            }
            Call::GetLastErrorString(out) => {
                let function = entry!(library, call, GetLastErrorString);
                let mut text: *const c_char = ptr::null();
                // SAFETY: ABI: sets a pointer; does nothing with NULL.
                unsafe { function(out!(out, text)) };
                // SAFETY: ABI: valid until the next call of this thread.
                of(Value::Text(unsafe { raw_text(text) }))
            }
            Call::GetType(out) => {
                let function = entry!(library, call, GetType);
                let mut kind = PluginType::UNSPECIFIED;
                // SAFETY: ABI: writes one value; NULL must be refused.
                let s = unsafe { function(out!(out, kind)) };
                status(s, Value::Number(kind.0 as u64))
            }
            Call::SetLoggingCallback(which) => {
                let function = entry!(library, call, SetLoggingCallback);
                // SAFETY: ABI: functions of this executable, which stay; or NULL.
                let s = unsafe { function(which.map(sandbox::callback)) };
                status(s, Value::Nothing)
            }
            Call::SetLogLevel(level) => {
                let function = entry!(library, call, SetLogLevel);
                // SAFETY: ABI: takes a value.
                status(unsafe { function(Severity(*level)) }, Value::Nothing)
            }
            Call::GetAllEngineIds(room) => {
                let function = entry!(library, call, GetAllEngineIds);
                // SAFETY: ABI: writes at most `max` ids and the count; the array is longer.
                ids(*room, |ids, count| unsafe {
                    function(ids, room.max, count)
                })
            }
            Call::GetApplicableEngineIds {
                handle,
                graph,
                room,
            } => {
                let function = entry!(library, call, GetApplicableEngineIds);
                let handle = pick(&self.handles, *handle);
                let graph = Argument::new(self, *graph);
                ids(*room, |ids, count| {
                    // SAFETY: ABI: the graph is borrowed for the call; at most `max` ids.
                    unsafe { function(handle, graph.pointer(), ids, room.max, count) }
                })
            }
            _ => self.object_call(library, call),
        }
    }

    fn lasting_text(&mut self, call: &Call, s: PluginStatus, text: *const c_char) -> StepResult {
        if s != PluginStatus::SUCCESS {
            return status(s, Value::Text(None));
        }
        // SAFETY: ABI: NULL or a NUL-terminated text that lives as long as the library.
        let read = unsafe { raw_text(text) };
        if let Some(read) = &read {
            let known = (call.symbol(), text as usize, read.bytes.clone());
            self.texts.push(known);
        }
        status(s, Value::Text(read))
    }
}

/// What the host does after a failure: ask at once, on the same thread, and copy.
fn last_error(library: &Library) -> Option<RawText> {
    // SAFETY: the type is the one that the ABI gives to this name.
    let call: f::GetLastErrorString =
        unsafe { sandbox::symbol(library, "hipdnnPluginGetLastErrorString") }?;
    let mut text: *const c_char = ptr::null();
    // SAFETY: ABI: sets the pointer to a NUL-terminated text of this thread.
    unsafe { call(&mut text) };
    // SAFETY: ABI: valid until the next call of this thread; copied at once.
    unsafe { raw_text(text) }
}

fn ids(room: Room, call: impl FnOnce(*mut i64, *mut u32) -> PluginStatus) -> StepResult {
    let mut buffer = room
        .ids
        .map(|length| vec![SENTINEL; length as usize + BEHIND]);
    let mut count = 0;
    let pointer = buffer.as_mut().map_or(ptr::null_mut(), |b| b.as_mut_ptr());
    let s = call(pointer, out!(room.count, count));
    let mut ids = buffer.unwrap_or_default();
    let max = (room.max as usize).min(ids.len());
    let overflow = ids[max..].iter().any(|id| *id != SENTINEL);
    ids.truncate(max.min(count as usize));
    let value = Value::Ids {
        ids,
        count,
        overflow,
    };
    status(s, value)
}
