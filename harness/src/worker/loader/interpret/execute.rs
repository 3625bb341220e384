//! Executions: workspaces and buffers where the plugin expects them.

use std::ffi::c_void;
use std::ptr;

use dnn_assay_abi::engine_plugin::functions as f;
use dnn_assay_abi::{DeviceBuffer, PluginStatus};
use libloading::os::unix::Library;

use super::call::entry;
use super::objects::pick;
use super::{Objects, failed, of, status};
use crate::worker::loader::sandbox::{self, Aligned};
use crate::worker::script::{Bound, Call, Object, Override, StepResult, Value, Workspace};

/// Workspaces larger than this are not provided.
const MAX_WORKSPACE: u64 = 1 << 30;

/// An execution with its arguments: handle, context, workspace, buffers and their number.
type Execution<'a> = Box<
    dyn Fn(*mut c_void, *mut c_void, *mut c_void, *const DeviceBuffer, u32) -> PluginStatus + 'a,
>;

impl Objects {
    pub(super) fn execute(&mut self, library: &Library, call: &Call) -> StepResult {
        let Call::ExecuteOpGraph {
            handle,
            context,
            workspace,
            buffers,
            overrides,
        } = call
        else {
            return failed("not an execution".to_owned());
        };
        let run: Execution<'_> = if overrides.is_empty() {
            let function = entry!(library, call, ExecuteOpGraph);
            Box::new(move |handle, context, workspace, list, count| {
                // SAFETY: ABI: the buffers have the sizes that the graph asks for, the
                // workspace the plan's, and all stay for the call.
                unsafe { function(handle, context, workspace, list, count) }
            })
        } else {
            let function = entry!(library, call, ExecuteOpGraphWithOverrides);
            Box::new(move |handle, context, workspace, list, count| {
                with_overrides(
                    function,
                    handle,
                    context,
                    workspace,
                    (list, count),
                    overrides,
                )
            })
        };
        let handle = pick(&self.handles, *handle);
        let mut workspace = match self.workspace(*context, *workspace) {
            Ok(workspace) => workspace,
            Err(text) => return failed(text),
        };
        let context = pick(&self.contexts, *context);
        let bound = buffers.as_deref();
        let lent = self.lend(
            bound.unwrap_or_default(),
            &mut workspace,
            |workspace, list| {
                let (list, count) = match bound {
                    Some(_) => (list.as_ptr(), list.len() as u32),
                    None => (ptr::null(), 0),
                };
                run(handle, context, workspace, list, count)
            },
        );
        match lent {
            Ok(s) => status(s, Value::Nothing),
            Err(text) => failed(text),
        }
    }

    /// All buffers to the device and back: what the harness itself does around an execution.
    pub(super) fn move_buffers(&mut self) -> StepResult {
        let Some(device) = self.device.clone() else {
            return StepResult::default();
        };
        let mut list: Vec<&mut Aligned> = self.buffers.iter_mut().collect();
        match device.lend(&mut list, |_| ()) {
            Ok(()) => StepResult::default(),
            Err(text) => failed(text),
        }
    }

    fn workspace(&self, context: Object, wanted: Workspace) -> Result<Option<Aligned>, String> {
        let size = match context {
            Object::Slot(slot) => self.workspaces.get(&slot).copied().unwrap_or(0),
            Object::Null => 0,
        };
        match wanted {
            Workspace::Filled(_) if size > MAX_WORKSPACE => {
                Err(format!("a workspace of {size} bytes"))
            }
            Workspace::Filled(byte) if size > 0 => {
                Ok(Some(Aligned::new(&vec![byte; size as usize])))
            }
            _ => Ok(None),
        }
    }

    /// Lets `act` have the workspace and the buffers, where the plugin expects them.
    fn lend<T>(
        &mut self,
        bound: &[Bound],
        workspace: &mut Option<Aligned>,
        act: impl FnOnce(*mut c_void, &[DeviceBuffer]) -> T,
    ) -> Result<T, String> {
        let on_host: Vec<*mut c_void> = self.buffers.iter_mut().map(Aligned::pointer).collect();
        let Some(device) = self.device.clone() else {
            let workspace = workspace
                .as_mut()
                .map_or(ptr::null_mut(), |workspace| workspace.pointer());
            return Ok(act(workspace, &addressed(bound, &on_host)));
        };
        let lent = |index: usize| {
            let used = |b: &Bound| !b.host && b.buffer.is_some_and(|i| usize::from(i) == index);
            bound.iter().any(used)
        };
        let mut indices = Vec::new();
        let mut list: Vec<&mut Aligned> = Vec::new();
        for (index, buffer) in self.buffers.iter_mut().enumerate() {
            if lent(index) {
                indices.push(index);
                list.push(buffer);
            }
        }
        let has_workspace = workspace.is_some();
        list.extend(workspace.as_mut());
        device.lend(&mut list, |pointers| {
            let mut all = on_host.clone();
            for (index, pointer) in indices.iter().zip(pointers) {
                all[*index] = *pointer;
            }
            let workspace = match (has_workspace, pointers.last()) {
                (true, Some(pointer)) => *pointer,
                _ => ptr::null_mut(),
            };
            act(workspace, &addressed(bound, &all))
        })
    }
}

/// The buffers by their addresses.
fn addressed(bound: &[Bound], pointers: &[*mut c_void]) -> Vec<DeviceBuffer> {
    let address = |bound: &Bound| {
        let pointer = bound.buffer.and_then(|i| pointers.get(usize::from(i)));
        DeviceBuffer {
            uid: bound.uid,
            ptr: pointer.copied().unwrap_or(ptr::null_mut()),
        }
    };
    bound.iter().map(address).collect()
}

fn with_overrides(
    function: f::ExecuteOpGraphWithOverrides,
    handle: *mut c_void,
    context: *mut c_void,
    workspace: *mut c_void,
    (list, count): (*const DeviceBuffer, u32),
    overrides: &[Override],
) -> PluginStatus {
    let uids: Vec<i64> = overrides.iter().map(|o| o.uid).collect();
    let ranks: Vec<u32> = overrides.iter().map(|o| o.dims.len() as u32).collect();
    let shapes: Vec<*const i64> = overrides.iter().map(|o| o.dims.as_ptr()).collect();
    let strides: Vec<*const i64> = overrides.iter().map(|o| o.strides.as_ptr()).collect();
    // SAFETY: ABI: as for ExecuteOpGraph with the overridden shapes; the arrays hold one entry
    // per override and live for the call.
    unsafe {
        function(
            handle,
            context,
            workspace,
            list,
            count,
            overrides.len() as u32,
            uids.as_ptr(),
            ranks.as_ptr(),
            shapes.as_ptr(),
            strides.as_ptr(),
        )
    }
}
