//! C types, enum values, symbol names and version rules of the APIs that DNN Assay speaks.
//!
//! This crate knows no behaviour: it loads nothing and calls nothing. Every number of an ABI
//! stands here once. Today that is the hipDNN plugin API (`PluginApi.h`, `EnginePluginApi.h`
//! of the hipDNN plugin SDK).

pub mod engine_id;
pub mod engine_plugin;
pub mod gpu;
#[cfg(feature = "hip-sys-check")]
mod hip_sys_check;
pub mod symbols;
pub mod version;

pub use engine_id::engine_id;
pub use engine_plugin::{
    BehaviorNote, ConstData, DeviceBuffer, ERROR_STRING_MAX_LENGTH, PluginStatus, PluginType,
    RawContext, RawHandle, RawStream, Severity,
};
pub use version::ApiVersion;
