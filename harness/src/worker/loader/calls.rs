//! Every call of the plugin ABI, as a safe function. The contract of the ABI is what makes these
//! calls sound for a correct plugin; a wrong one costs this process, which is its purpose.

use std::ffi::{c_char, c_void};
use std::ptr;

use dnn_assay_abi::engine_plugin::functions::GetText;
use dnn_assay_abi::{ConstData, DeviceBuffer, PluginStatus, PluginType, RawContext, RawHandle};

use super::library::Opened;
use super::symbols::{Common, Engine};
use super::text;
use crate::worker::outcome::{EngineName, LoadFailure};

/// A status other than SUCCESS, and the last-error text that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::worker) struct Failed {
    pub status: i32,
    pub text: String,
}

/// Ids that a plugin wrote into a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::worker) struct Written {
    /// The first `count` ids, or all of the buffer if `count` is larger.
    pub ids: Vec<i64>,
    /// The count that the plugin reported.
    pub count: u32,
    /// Something was written behind the buffer.
    pub overflow: bool,
}

/// A plugin's handle.
#[derive(Clone, Copy)]
pub(in crate::worker) struct Handle(RawHandle);

/// A plan.
#[derive(Clone, Copy)]
pub(in crate::worker) struct PlanContext(RawContext);

/// Engine details as the plugin left them.
pub(in crate::worker) struct Details(ConstData);

/// What the common part of the ABI says, before anything is known of engines.
pub(in crate::worker) struct Plugin {
    common: Common,
    engine: Option<Engine>,
}

const SENTINEL: i64 = 0x5EA1_5EA1_5EA1_5EA1;
/// Ids behind the buffer that must stay as they are.
const BEHIND: usize = 64;

impl Plugin {
    /// Resolves the symbols of every plugin.
    pub fn resolve_common(library: &Opened) -> Result<Self, LoadFailure> {
        let common = Common::resolve(library)?;
        Ok(Self {
            common,
            engine: None,
        })
    }

    /// Resolves the symbols of an engine plugin.
    pub fn resolve_engine(&mut self, library: &Opened) -> Result<(), LoadFailure> {
        self.engine = Some(Engine::resolve(library)?);
        Ok(())
    }

    fn engine(&self) -> &Engine {
        self.engine
            .as_ref()
            .expect("engine symbols are resolved right after the plugin's type is known")
    }

    fn check(&self, status: PluginStatus) -> Result<(), Failed> {
        if status == PluginStatus::SUCCESS {
            return Ok(());
        }
        Err(Failed {
            status: status.0,
            text: self.last_error(),
        })
    }

    /// The calling thread's last-error text.
    fn last_error(&self) -> String {
        let mut error: *const c_char = ptr::null();
        // SAFETY: ABI: sets the pointer to a NUL-terminated text of this thread.
        unsafe { (self.common.get_last_error)(&mut error) };
        // SAFETY: ABI: valid until the next call of this thread; copied at once.
        unsafe { text::copy(error) }.unwrap_or_default()
    }

    fn get_text(&self, call: GetText) -> Result<Option<String>, Failed> {
        let mut value: *const c_char = ptr::null();
        // SAFETY: ABI: sets the pointer to a NUL-terminated text of the library's.
        self.check(unsafe { call(&mut value) })?;
        // SAFETY: ABI: lives as long as the library.
        Ok(unsafe { text::copy(value) })
    }

    pub fn name(&self) -> Result<Option<String>, Failed> {
        self.get_text(self.common.get_name)
    }

    pub fn version(&self) -> Result<Option<String>, Failed> {
        self.get_text(self.common.get_version)
    }

    /// `None`: not exported.
    pub fn api_version(&self) -> Option<Result<Option<String>, Failed>> {
        self.common.get_api_version.map(|call| self.get_text(call))
    }

    pub fn kind(&self) -> Result<PluginType, Failed> {
        let mut kind = PluginType::UNSPECIFIED;
        // SAFETY: ABI: writes one value.
        self.check(unsafe { (self.common.get_type)(&mut kind) })?;
        Ok(kind)
    }

    /// Gives the plugin our log callback at level INFO. Statuses are ignored, as the host does.
    pub fn set_logging(&self) {
        if let Some(call) = self.common.set_logging_callback {
            // SAFETY: ABI: the callback may be called from any thread until the library is
            // unloaded; it is a function of this executable and stays.
            unsafe { call(Some(super::log::callback)) };
        }
        if let Some(call) = self.common.set_log_level {
            // SAFETY: ABI: takes a value.
            unsafe { call(dnn_assay_abi::Severity::INFO) };
        }
    }

    pub fn engine_count(&self) -> Result<u32, Failed> {
        let mut count = 0;
        // SAFETY: ABI: with NULL and 0 only the count is written.
        let status = unsafe { (self.engine().get_all_engine_ids)(ptr::null_mut(), 0, &mut count) };
        self.check(status)?;
        Ok(count)
    }

    pub fn engine_ids(&self, max: u32) -> Result<Written, Failed> {
        self.ids(max, |ids, count| {
            // SAFETY: ABI: at most `max` ids are written; the buffer is longer.
            unsafe { (self.engine().get_all_engine_ids)(ids, max, count) }
        })
    }

    pub fn applicable(&self, handle: Handle, graph: &[u8], max: u32) -> Result<Written, Failed> {
        let graph = ConstData::borrow(graph);
        self.ids(max, |ids, count| {
            // SAFETY: ABI: the graph is borrowed for the call; at most `max` ids are written.
            unsafe { (self.engine().get_applicable)(handle.0, &graph, ids, max, count) }
        })
    }

    fn ids(
        &self,
        max: u32,
        call: impl FnOnce(*mut i64, &mut u32) -> PluginStatus,
    ) -> Result<Written, Failed> {
        let max = max as usize;
        let mut buffer = vec![SENTINEL; max + BEHIND];
        let mut count = 0;
        self.check(call(buffer.as_mut_ptr(), &mut count))?;
        let overflow = buffer[max..].iter().any(|id| *id != SENTINEL);
        buffer.truncate(max.min(count as usize));
        Ok(Written {
            ids: buffer,
            count,
            overflow,
        })
    }

    pub fn engine_name(&self, id: i64) -> EngineName {
        let Some(call) = self.engine().get_engine_name else {
            return EngineName::NotExported;
        };
        let mut name: *const c_char = ptr::null();
        // SAFETY: ABI: sets the pointer to a NUL-terminated text of the library's.
        match self.check(unsafe { call(id, &mut name) }) {
            // SAFETY: ABI: lives as long as the library.
            Ok(()) => match unsafe { text::copy(name) } {
                Some(name) if !name.is_empty() => EngineName::Named(name),
                _ => EngineName::Null,
            },
            Err(failed) if failed.status == PluginStatus::NOT_APPLICABLE.0 => EngineName::Declined,
            Err(Failed { status, text }) => EngineName::Failed { status, text },
        }
    }

    /// `None`: SUCCESS with a NULL handle.
    pub fn create(&self) -> Result<Option<Handle>, Failed> {
        let mut handle = ptr::null_mut();
        // SAFETY: ABI: writes one pointer.
        self.check(unsafe { (self.engine().create)(&mut handle) })?;
        Ok((!handle.is_null()).then_some(Handle(handle)))
    }

    pub fn destroy(&self, handle: Handle) -> Result<(), Failed> {
        // SAFETY: ABI: a handle of this plugin, destroyed once.
        self.check(unsafe { (self.engine().destroy)(handle.0) })
    }

    pub fn set_stream(&self, handle: Handle, stream: *mut c_void) -> Result<(), Failed> {
        // SAFETY: ABI: the stream lives as long as the backend, which outlives the handle.
        self.check(unsafe { (self.engine().set_stream)(handle.0, stream) })
    }

    /// Fills `{NULL, 0}`, as the host passes it.
    pub fn details(&self, handle: Handle, id: i64, graph: &[u8]) -> Result<Details, Failed> {
        let graph = ConstData::borrow(graph);
        let mut details = ConstData::EMPTY;
        // SAFETY: ABI: the graph is borrowed for the call; the struct is ours to be filled.
        let status = unsafe { (self.engine().get_details)(handle.0, id, &graph, &mut details) };
        self.check(status)?;
        Ok(Details(details))
    }

    /// Destroys details; `Ok(false)` if the struct was not zeroed.
    pub fn destroy_details(&self, handle: Handle, mut details: Details) -> Result<bool, Failed> {
        // SAFETY: ABI: details of this handle, destroyed once.
        self.check(unsafe { (self.engine().destroy_details)(handle.0, &mut details.0) })?;
        Ok(details.0.ptr.is_null() && details.0.size == 0)
    }

    pub fn workspace_size(
        &self,
        handle: Handle,
        config: &[u8],
        graph: &[u8],
    ) -> Result<usize, Failed> {
        let (config, graph) = (ConstData::borrow(config), ConstData::borrow(graph));
        let mut size = 0;
        // SAFETY: ABI: both buffers are borrowed for the call; one value is written.
        let status =
            unsafe { (self.engine().get_workspace_size)(handle.0, &config, &graph, &mut size) };
        self.check(status)?;
        Ok(size)
    }

    /// `None`: SUCCESS with a NULL context.
    pub fn create_context(
        &self,
        handle: Handle,
        config: &[u8],
        graph: &[u8],
    ) -> Result<Option<PlanContext>, Failed> {
        let (config, graph) = (ConstData::borrow(config), ConstData::borrow(graph));
        let mut context = ptr::null_mut();
        // SAFETY: ABI: both buffers are borrowed for the call; one pointer is written.
        let status =
            unsafe { (self.engine().create_context)(handle.0, &config, &graph, &mut context) };
        self.check(status)?;
        Ok((!context.is_null()).then_some(PlanContext(context)))
    }

    pub fn destroy_context(&self, handle: Handle, context: PlanContext) -> Result<(), Failed> {
        // SAFETY: ABI: a context of this handle, destroyed once.
        self.check(unsafe { (self.engine().destroy_context)(handle.0, context.0) })
    }

    pub fn context_workspace(&self, handle: Handle, context: PlanContext) -> Result<usize, Failed> {
        let mut size = 0;
        // SAFETY: ABI: a live context of this handle; one value is written.
        let status =
            unsafe { (self.engine().get_context_workspace)(handle.0, context.0, &mut size) };
        self.check(status)?;
        Ok(size)
    }

    /// `workspace` and `buffers` point to memory that was placed for this case.
    pub fn execute(
        &self,
        handle: Handle,
        context: PlanContext,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
    ) -> Result<(), Failed> {
        let count = buffers.len() as u32;
        // SAFETY: ABI: a live context of this handle; workspace and buffers have the sizes that
        // the plan and the graph ask for, and stay mapped until the case ends.
        let status = unsafe {
            (self.engine().execute)(handle.0, context.0, workspace, buffers.as_ptr(), count)
        };
        self.check(status)
    }
}

impl Details {
    /// NULL, or no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.ptr.is_null() || self.0.size == 0
    }

    /// Length in bytes, as reported.
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// A copy of the bytes.
    pub fn copy(&self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        // SAFETY: ABI: the plugin owns `size` readable bytes until they are destroyed.
        unsafe { std::slice::from_raw_parts(self.0.ptr.cast::<u8>(), self.0.size) }.to_vec()
    }
}
