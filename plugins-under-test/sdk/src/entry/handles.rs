//! Handles: one per host handle, with the stream it works on.

use super::guard::{guard, present, put};
use crate::engine::Error;
use crate::live::Live;
use dnn_assay_abi::{PluginStatus, RawHandle, RawStream};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What a handle stands for.
#[derive(Default)]
pub(super) struct Handle {
    stream: AtomicPtr<c_void>,
}

impl Handle {
    pub(super) fn stream(&self) -> RawStream {
        self.stream.load(Ordering::Relaxed)
    }
}

static HANDLES: Live<Handle> = Live::new("handle");

/// The handle behind a host's pointer.
pub(super) fn handle(raw: RawHandle) -> Result<Arc<Handle>, Error> {
    HANDLES.get(raw)
}

/// # Safety
/// `handle` must be null or valid for a write.
pub unsafe fn create(handle: *mut RawHandle) -> PluginStatus {
    guard("Create", || {
        present("handle", handle)?;
        // SAFETY: forwarded.
        unsafe { put("handle", handle, HANDLES.insert(Handle::default())) }
    })
}

/// Destroys a handle of this library; any other pointer is refused.
pub fn destroy(handle: RawHandle) -> PluginStatus {
    guard("Destroy", || HANDLES.remove(handle).map(drop))
}

/// Sets the stream of later executions on this handle; null is the default stream.
pub fn set_stream(raw: RawHandle, stream: RawStream) -> PluginStatus {
    guard("SetStream", || {
        handle(raw)?.stream.store(stream, Ordering::Relaxed);
        Ok(())
    })
}
