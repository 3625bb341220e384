//! Calls about contexts, live and as bytes.

use std::ffi::c_void;
use std::ptr;

use dnn_assay_abi::engine_plugin::functions as f;
use dnn_assay_abi::{ConstData, PluginStatus};
use libloading::os::unix::Library;

use super::call::{entry, out};
use super::data::{Argument, PRESET, handed_out, take_back};
use super::objects::{created, pick};
use super::{Objects, failed, of, status};
use crate::worker::loader::sandbox;
use crate::worker::script::{Call, Object, Out, StepResult, Value};

impl Objects {
    /// Contexts.
    pub(super) fn context_call(&mut self, library: &Library, call: &Call) -> StepResult {
        match call {
            Call::CreateExecutionContext {
                handle,
                config,
                graph,
                slot,
                out,
            } => {
                let function = entry!(library, call, CreateExecutionContext);
                let handle = pick(&self.handles, *handle);
                let config = Argument::new(self, *config);
                let graph = Argument::new(self, *graph);
                let mut context: *mut c_void = ptr::null_mut();
                // SAFETY: ABI: both buffers are borrowed for the call; one pointer is written.
                let s = unsafe {
                    function(
                        handle,
                        config.pointer(),
                        graph.pointer(),
                        out!(out, context),
                    )
                };
                created(s, context, *slot, &mut self.contexts)
            }
            Call::DestroyExecutionContext { handle, context } => {
                let function = entry!(library, call, DestroyExecutionContext);
                let handle = pick(&self.handles, *handle);
                // SAFETY: ABI: a context of this handle; NULL must be refused.
                let s = unsafe { function(handle, pick(&self.contexts, *context)) };
                status(s, Value::Nothing)
            }
            Call::GetWorkspaceSizeFromExecutionContext {
                handle,
                context,
                out,
            } => {
                let function = entry!(library, call, GetWorkspaceSizeFromExecutionContext);
                let handle = pick(&self.handles, *handle);
                let mut size = PRESET as usize;
                // SAFETY: ABI: a live context of this handle; one value is written.
                let s =
                    unsafe { function(handle, pick(&self.contexts, *context), out!(out, size)) };
                if let (Object::Slot(slot), PluginStatus::SUCCESS) = (context, s) {
                    self.workspaces.insert(*slot, size as u64);
                }
                status(s, Value::Number(size as u64))
            }
            Call::ExecuteOpGraph { .. } => self.execute(library, call),
            _ => self.serialized_call(library, call),
        }
    }

    /// Contexts as bytes.
    fn serialized_call(&mut self, library: &Library, call: &Call) -> StepResult {
        match call {
            Call::Serialize {
                handle,
                id,
                context,
                slot,
                out,
            } => {
                let function = entry!(library, call, SerializeExecutionContextWithEngineId);
                let handle = pick(&self.handles, *handle);
                let context = pick(&self.contexts, *context);
                let mut data = ConstData::EMPTY;
                // SAFETY: ABI: a live context of this handle; the struct is to be filled.
                let s = unsafe { function(handle, *id, context, out!(out, data)) };
                let result = handed_out(s, data, *slot, &mut self.serialized);
                if let Value::Data { bytes, .. } = &result.value {
                    self.saved.insert(*slot, bytes.clone());
                }
                result
            }
            Call::DestroySerialized { handle, slot } => {
                let function = entry!(library, call, DestroyData);
                let handle = pick(&self.handles, *handle);
                take_back(function, handle, *slot, &mut self.serialized)
            }
            Call::Restore {
                handle,
                data,
                slot,
                out,
            } => {
                let function = entry!(library, call, CreateExecutionContextFromSerialized);
                let handle = pick(&self.handles, *handle);
                let data = Argument::new(self, *data);
                let mut context: *mut c_void = ptr::null_mut();
                // SAFETY: ABI: the bytes are borrowed for the call; one pointer is written.
                let s = unsafe { function(handle, data.pointer(), out!(out, context)) };
                created(s, context, *slot, &mut self.contexts)
            }
            _ => failed("an unknown call".to_owned()),
        }
    }
}
