//! Calls about handles, details and workspace sizes.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;

use dnn_assay_abi::PluginStatus;
use dnn_assay_abi::engine_plugin::functions as f;
use libloading::os::unix::Library;

use super::call::{entry, out};
use super::data::{Argument, PRESET, handed_out, preset_data, take_back};
use super::{Objects, failed, of, status};
use crate::worker::loader::device_memory::DeviceSetup;
use crate::worker::loader::sandbox;
use crate::worker::script::{Call, Object, Out, StepResult, Value};

impl Objects {
    /// Handles, details and workspace sizes.
    pub(super) fn object_call(&mut self, library: &Library, call: &Call) -> StepResult {
        match call {
            Call::Create { slot, out } => {
                let function = entry!(library, call, Create);
                // As in a run: the device is there before the first handle.
                if let Some(Err(text)) = self.device.as_ref().map(DeviceSetup::stream) {
                    return failed(text);
                }
                let mut handle: *mut c_void = ptr::null_mut();
                // SAFETY: ABI: writes one pointer; NULL must be refused.
                let s = unsafe { function(out!(out, handle)) };
                created(s, handle, *slot, &mut self.handles)
            }
            Call::Destroy(handle) => {
                let function = entry!(library, call, Destroy);
                // SAFETY: ABI: a handle of this plugin; NULL must be refused.
                let s = unsafe { function(pick(&self.handles, *handle)) };
                status(s, Value::Nothing)
            }
            Call::SetStream(handle) => {
                let function = entry!(library, call, SetStream);
                let stream = self.device.as_ref().map(DeviceSetup::stream).transpose();
                let stream = match stream {
                    Ok(stream) => stream.unwrap_or(ptr::null_mut()),
                    Err(text) => return failed(text),
                };
                // SAFETY: ABI: a stream that stays as long as this thread; NULL is the default one.
                let s = unsafe { function(pick(&self.handles, *handle), stream) };
                status(s, Value::Nothing)
            }
            Call::GetEngineDetails {
                handle,
                id,
                graph,
                slot,
                out,
                preset,
            } => {
                let function = entry!(library, call, GetEngineDetails);
                let handle = pick(&self.handles, *handle);
                let graph = Argument::new(self, *graph);
                let mut details = preset_data(*preset);
                // SAFETY: ABI: the graph is borrowed for the call; the struct is to be filled.
                let s = unsafe { function(handle, *id, graph.pointer(), out!(out, details)) };
                handed_out(s, details, *slot, &mut self.details)
            }
            Call::DestroyEngineDetails { handle, slot } => {
                let function = entry!(library, call, DestroyData);
                let handle = pick(&self.handles, *handle);
                take_back(function, handle, *slot, &mut self.details)
            }
            Call::GetWorkspaceSize {
                handle,
                config,
                graph,
                out,
            } => {
                let function = entry!(library, call, GetWorkspaceSize);
                let handle = pick(&self.handles, *handle);
                let config = Argument::new(self, *config);
                let graph = Argument::new(self, *graph);
                let mut size = PRESET as usize;
                // SAFETY: ABI: both buffers are borrowed for the call; one value is written.
                let s =
                    unsafe { function(handle, config.pointer(), graph.pointer(), out!(out, size)) };
                status(s, Value::Number(size as u64))
            }
            _ => self.context_call(library, call),
        }
    }
}

pub(super) fn pick(slots: &BTreeMap<u8, usize>, object: Object) -> *mut c_void {
    match object {
        Object::Null => ptr::null_mut(),
        Object::Slot(slot) => slots.get(&slot).copied().unwrap_or(0) as *mut c_void,
    }
}

pub(super) fn created(
    s: PluginStatus,
    object: *mut c_void,
    slot: u8,
    slots: &mut BTreeMap<u8, usize>,
) -> StepResult {
    if s == PluginStatus::SUCCESS {
        slots.insert(slot, object as usize);
    }
    status(s, Value::Pointer(object as u64))
}
