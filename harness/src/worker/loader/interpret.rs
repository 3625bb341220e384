//! Doing what a script says.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::ptr;

use dnn_assay_abi::engine_plugin::functions as f;
use dnn_assay_abi::symbols::ENGINE_PLUGIN;
use dnn_assay_abi::{ConstData, DeviceBuffer, PluginStatus, PluginType, Severity};
use libloading::os::unix::Library;

use super::device_memory::DeviceSetup;
use super::sandbox::{self, Aligned, raw_text};
use crate::worker::script::{
    Bound, Call, Data, Object, Out, Override, Room, Script, Step, StepResult, Usage, Value,
    Workspace,
};

/// Buffers of a plugin longer than this are not read.
const MAX_DATA: usize = 64 << 20;
/// Workspaces larger than this are not provided.
const MAX_WORKSPACE: u64 = 1 << 30;
const SENTINEL: i64 = 0x5EA1_5EA1_5EA1_5EA1;
const BEHIND: usize = 64;
/// What an output argument holds before the call.
const PRESET: u64 = 0xDDDD_DDDD_DDDD_DDD8;

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

/// A script on its way.
pub(in crate::worker) struct Interpreter<'a> {
    script: &'a Script,
    libraries: Vec<Option<Library>>,
    objects: Objects,
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

type Libraries = [Option<Library>];

impl Objects {
    fn step(&mut self, step: &Step, libraries: &Libraries, script: &Script) -> StepResult {
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

    fn mend(&mut self, index: u8, script: &Script) {
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

    /// A call, the last-error text after it, and whether it wrote where it must only read.
    fn observed_call(&mut self, library: &Library, call: &Call, script: &Script) -> StepResult {
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
}

/// What the host does after a failure: ask at once, on the same thread, and copy.
fn last_error(library: &Library) -> Option<crate::worker::script::RawText> {
    // SAFETY: the type is the one that the ABI gives to this name.
    let call: f::GetLastErrorString =
        unsafe { sandbox::symbol(library, "hipdnnPluginGetLastErrorString") }?;
    let mut text: *const c_char = ptr::null();
    // SAFETY: ABI: sets the pointer to a NUL-terminated text of this thread.
    unsafe { call(&mut text) };
    // SAFETY: ABI: valid until the next call of this thread; copied at once.
    unsafe { raw_text(text) }
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

/// The argument: a pointer to `$place`, or NULL.
macro_rules! out {
    ($out:expr, $place:expr) => {
        match $out {
            Out::Given => &raw mut $place,
            Out::Null => ptr::null_mut(),
        }
    };
}

fn status(status: PluginStatus, value: Value) -> StepResult {
    StepResult {
        status: Some(status.0),
        value,
        ..StepResult::default()
    }
}

impl Objects {
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

    /// Handles, details and workspace sizes.
    fn object_call(&mut self, library: &Library, call: &Call) -> StepResult {
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

    /// Contexts.
    fn context_call(&mut self, library: &Library, call: &Call) -> StepResult {
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

    fn execute(&mut self, library: &Library, call: &Call) -> StepResult {
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

    /// All buffers to the device and back: what the harness itself does around an execution.
    fn move_buffers(&mut self) -> StepResult {
        let Some(device) = self.device.clone() else {
            return StepResult::default();
        };
        let mut list: Vec<&mut Aligned> = self.buffers.iter_mut().collect();
        match device.lend(&mut list, |_| ()) {
            Ok(()) => StepResult::default(),
            Err(text) => failed(text),
        }
    }
}

/// An execution with its arguments: handle, context, workspace, buffers and their number.
type Execution<'a> = Box<
    dyn Fn(*mut c_void, *mut c_void, *mut c_void, *const DeviceBuffer, u32) -> PluginStatus + 'a,
>;

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

fn pick(slots: &BTreeMap<u8, usize>, object: Object) -> *mut c_void {
    match object {
        Object::Null => ptr::null_mut(),
        Object::Slot(slot) => slots.get(&slot).copied().unwrap_or(0) as *mut c_void,
    }
}

fn created(
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

fn preset_data(preset: bool) -> ConstData {
    match preset {
        true => ConstData {
            ptr: PRESET as *const c_void,
            size: 77,
        },
        false => ConstData::EMPTY,
    }
}

/// A buffer that a plugin handed out: kept in its slot, copied unless it is a preset or absurd.
fn handed_out(
    s: PluginStatus,
    data: ConstData,
    slot: u8,
    slots: &mut BTreeMap<u8, (usize, usize)>,
) -> StepResult {
    if s != PluginStatus::SUCCESS {
        return status(s, Value::Nothing);
    }
    slots.insert(slot, (data.ptr as usize, data.size));
    status(s, look(data))
}

/// A live buffer of the plugin's.
fn look(data: ConstData) -> Value {
    let wild = data.ptr.is_null() || data.ptr as u64 == PRESET || data.size > MAX_DATA;
    let bytes = match wild {
        true => Vec::new(),
        // SAFETY: ABI: the plugin owns `size` readable bytes until they are destroyed.
        false => unsafe { std::slice::from_raw_parts(data.ptr.cast::<u8>(), data.size) }.to_vec(),
    };
    Value::Data {
        address: data.ptr as u64,
        size: data.size as u64,
        bytes,
    }
}

/// Gives a buffer back; the value is the struct afterwards.
fn take_back(
    function: f::DestroyData,
    handle: *mut c_void,
    slot: Option<u8>,
    slots: &mut BTreeMap<u8, (usize, usize)>,
) -> StepResult {
    let Some(slot) = slot else {
        // SAFETY: ABI: NULL must be refused.
        return status(unsafe { function(handle, ptr::null_mut()) }, Value::Nothing);
    };
    let (address, size) = slots.get(&slot).copied().unwrap_or((0, 0));
    let mut data = ConstData {
        ptr: address as *const c_void,
        size,
    };
    // SAFETY: ABI: a buffer of this handle, given back once by a well-written script.
    let s = unsafe { function(handle, &mut data) };
    if s == PluginStatus::SUCCESS {
        slots.insert(slot, (data.ptr as usize, data.size));
    }
    let value = Value::Data {
        address: data.ptr as u64,
        size: data.size as u64,
        bytes: Vec::new(),
    };
    status(s, value)
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

/// A `hipdnnPluginConstData_t` for the time of a call. The bytes are the script's own blobs, which
/// stay where they are until the call is over.
struct Argument {
    data: Option<ConstData>,
}

impl Argument {
    fn new(objects: &Objects, data: Data) -> Self {
        let bytes = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| ConstData::borrow(bytes));
        let data = match data {
            Data::Null => None,
            Data::NullBytes => Some(ConstData::EMPTY),
            Data::NoBytes => Some(ConstData {
                ptr: ptr::NonNull::<u64>::dangling().as_ptr() as *const c_void,
                size: 0,
            }),
            Data::Blob(index) => bytes(objects.blobs.get(usize::from(index))),
            Data::Saved(slot) => bytes(objects.saved.get(&slot)),
        };
        Self { data }
    }

    fn pointer(&self) -> *const ConstData {
        self.data.as_ref().map_or(ptr::null(), ptr::from_ref)
    }
}
