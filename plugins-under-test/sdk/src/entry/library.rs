//! Functions of the library as a whole: identity, errors, logging.

use super::guard::{guard, put};
use crate::engine::Plugin;
use crate::{last_error, log};
use dnn_assay_abi::engine_plugin::LogCallback;
use dnn_assay_abi::{PluginStatus, PluginType, Severity};
use std::ffi::{CStr, c_char};

/// The engine API version that the SDK implements: engine names are its newest part.
const API_VERSION: &CStr = c"1.4.0";

/// # Safety
/// `name` must be null or valid for a write.
pub unsafe fn get_name(plugin: &'static Plugin, name: *mut *const c_char) -> PluginStatus {
    // SAFETY: forwarded.
    guard("GetName", || unsafe {
        put("name", name, plugin.name.as_ptr())
    })
}

/// # Safety
/// `version` must be null or valid for a write.
pub unsafe fn get_version(plugin: &'static Plugin, version: *mut *const c_char) -> PluginStatus {
    // SAFETY: forwarded.
    guard("GetVersion", || unsafe {
        put("version", version, plugin.version.as_ptr())
    })
}

/// # Safety
/// `version` must be null or valid for a write.
pub unsafe fn get_api_version(version: *mut *const c_char) -> PluginStatus {
    // SAFETY: forwarded.
    guard("GetApiVersion", || unsafe {
        put("version", version, API_VERSION.as_ptr())
    })
}

/// # Safety
/// `kind` must be null or valid for a write.
pub unsafe fn get_type(kind: *mut PluginType) -> PluginStatus {
    // SAFETY: forwarded.
    guard("GetType", || unsafe {
        put("type", kind, PluginType::ENGINE)
    })
}

/// # Safety
/// `text` must be null or valid for a write.
pub unsafe fn get_last_error_string(text: *mut *const c_char) {
    if !text.is_null() {
        // SAFETY: forwarded, and not null.
        unsafe { text.write(last_error::pointer()) };
    }
}

/// Null switches logging off.
pub fn set_logging_callback(callback: Option<LogCallback>) -> PluginStatus {
    log::set_callback(callback)
}

/// Levels that the header does not name are refused.
pub fn set_log_level(level: Severity) -> PluginStatus {
    log::set_level(level)
}
