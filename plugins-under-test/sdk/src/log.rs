//! Log lines to the host, through the callback that it has set.

use dnn_assay_abi::engine_plugin::LogCallback;
use dnn_assay_abi::{PluginStatus, Severity};
use std::ffi::CString;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

static CALLBACK: Mutex<Option<LogCallback>> = Mutex::new(None);
static LEVEL: AtomicI32 = AtomicI32::new(Severity::INFO.0);

/// Says `message` at `severity`, if the host listens at that level.
pub fn line(severity: Severity, message: &str) {
    if !wants(severity) {
        return;
    }
    let callback = *CALLBACK.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(callback) = callback else { return };
    let Ok(text) = CString::new(message.replace('\0', " ")) else {
        return;
    };
    // SAFETY: the host keeps the callback valid until it unloads the library, and the text lives
    // and is NUL-terminated for the call.
    unsafe { callback(severity, text.as_ptr()) };
}

/// Whether the host listens at `severity`: spares the making of a text that nobody reads.
pub fn wants(severity: Severity) -> bool {
    severity.0 >= LEVEL.load(Ordering::Relaxed)
        && CALLBACK
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
}

/// Null switches logging off.
pub(crate) fn set_callback(callback: Option<LogCallback>) -> PluginStatus {
    *CALLBACK.lock().unwrap_or_else(PoisonError::into_inner) = callback;
    PluginStatus::SUCCESS
}

/// Refuses a level that the header does not name.
pub(crate) fn set_level(level: Severity) -> PluginStatus {
    if level.name().is_none() {
        return PluginStatus::INVALID_VALUE;
    }
    LEVEL.store(level.0, Ordering::Relaxed);
    PluginStatus::SUCCESS
}
