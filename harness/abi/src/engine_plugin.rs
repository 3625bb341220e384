//! Types and function signatures of the hipDNN engine plugin ABI (LP64).
//!
//! C enums are 4 bytes; they are transparent integers here, so that a value nobody has thought
//! of is data and not undefined behaviour. Functions are `extern "C-unwind"`: a C++ exception
//! that leaves a plugin ends the worker with a message instead of being undefined.

use std::ffi::{c_char, c_void};
use std::fmt;

macro_rules! c_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $value:literal, $text:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $name(pub i32);

        impl $name {
            $($(#[$vmeta])* pub const $variant: Self = Self($value);)*

            /// Every value the headers name, with its C name.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$variant, $text)),*];

            /// The C name of this value, or `None` for one that the headers do not have.
            pub fn name(self) -> Option<&'static str> {
                Self::ALL.iter().find(|(value, _)| *value == self).map(|(_, name)| *name)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(self, f) }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => write!(f, "{name}({})", self.0),
                    None => write!(f, "unknown({})", self.0),
                }
            }
        }
    };
}

c_enum! {
    /// `hipdnnPluginStatus_t`.
    PluginStatus {
        /// The call did what it says.
        SUCCESS = 0, "HIPDNN_PLUGIN_STATUS_SUCCESS";
        /// An argument is null or malformed.
        BAD_PARAM = 1, "HIPDNN_PLUGIN_STATUS_BAD_PARAM";
        /// An argument is well formed but out of range.
        INVALID_VALUE = 2, "HIPDNN_PLUGIN_STATUS_INVALID_VALUE";
        /// The plugin failed.
        INTERNAL_ERROR = 3, "HIPDNN_PLUGIN_STATUS_INTERNAL_ERROR";
        /// Memory could not be had.
        ALLOC_FAILED = 4, "HIPDNN_PLUGIN_STATUS_ALLOC_FAILED";
        /// Not for this graph; also "no name" of `GetEngineName`. Later headers only.
        NOT_APPLICABLE = 5, "HIPDNN_PLUGIN_STATUS_NOT_APPLICABLE";
        /// Something must be called first. Later headers only.
        NOT_INITIALIZED = 6, "HIPDNN_PLUGIN_STATUS_NOT_INITIALIZED";
    }
}

c_enum! {
    /// `hipdnnPluginType_t`.
    PluginType {
        /// No type given.
        UNSPECIFIED = 0, "HIPDNN_PLUGIN_TYPE_UNSPECIFIED";
        /// Runs graphs: what DNN Assay judges.
        ENGINE = 1, "HIPDNN_PLUGIN_TYPE_ENGINE";
        /// Ranks engines; it executes nothing.
        HEURISTIC = 2, "HIPDNN_PLUGIN_TYPE_HEURISTIC";
    }
}

c_enum! {
    /// `hipdnnSeverity_t`.
    Severity {
        /// Progress.
        INFO = 0, "HIPDNN_SEV_INFO";
        /// Something odd.
        WARN = 1, "HIPDNN_SEV_WARN";
        /// Something failed.
        ERROR = 2, "HIPDNN_SEV_ERROR";
        /// Nothing more can be done.
        FATAL = 3, "HIPDNN_SEV_FATAL";
        /// As a level: say nothing.
        OFF = 4, "HIPDNN_SEV_OFF";
    }
}

c_enum! {
    /// `hipdnnBackendBehaviorNote_t`, carried as `i32` in engine details.
    BehaviorNote {
        /// Kernels are compiled at run time.
        RUNTIME_COMPILATION = 0, "HIPDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION";
        /// Tensors are copied into another layout.
        REQUIRES_LAYOUT_TRANSFORM = 1, "HIPDNN_BEHAVIOR_NOTE_REQUIRES_LAYOUT_TRANSFORM";
        /// Execution can be captured in a graph.
        SUPPORTS_GRAPH_CAPTURE = 2, "HIPDNN_BEHAVIOR_NOTE_SUPPORTS_GRAPH_CAPTURE";
        /// Another library does the work.
        EXTERNAL_LIBRARY_DEPENDENCY = 3, "HIPDNN_BEHAVIOR_NOTE_EXTERNAL_LIBRARY_DEPENDENCY";
        /// Plans can be serialized.
        SUPPORTS_EXECUTION_PLAN_SERIALIZATION = 4, "HIPDNN_BEHAVIOR_NOTE_SUPPORTS_EXECUTION_PLAN_SERIALIZATION";
    }
}

/// `HIPDNN_PLUGIN_ERROR_STRING_MAX_LENGTH`: bytes of a last-error text, NUL included.
pub const ERROR_STRING_MAX_LENGTH: usize = 2048;

/// `hipdnnPluginConstData_t`: a borrowed or plugin-owned byte buffer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ConstData {
    /// First byte, or null.
    pub ptr: *const c_void,
    /// Length in bytes.
    pub size: usize,
}

impl ConstData {
    /// `{NULL, 0}`, as the host passes it where the plugin is to fill it.
    pub const EMPTY: Self = Self {
        ptr: std::ptr::null(),
        size: 0,
    };

    /// A borrow of `bytes`; the caller keeps them alive for the call.
    pub fn borrow(bytes: &[u8]) -> Self {
        Self {
            ptr: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }
}

/// `hipdnnPluginDeviceBuffer_t`: a tensor's uid and its first element.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceBuffer {
    /// The tensor's uid in the graph.
    pub uid: i64,
    /// Device pointer; a host pointer for run-time pass-by-value scalars.
    pub ptr: *mut c_void,
}

/// `hipdnnEnginePluginHandle_t`, opaque.
pub type RawHandle = *mut c_void;
/// `hipdnnEnginePluginExecutionContext_t`, opaque.
pub type RawContext = *mut c_void;
/// `hipStream_t`, opaque; null is the default stream.
pub type RawStream = *mut c_void;
/// `hipdnnCallback_t`: severity and NUL-terminated message, called from any thread.
pub type LogCallback = unsafe extern "C-unwind" fn(Severity, *const c_char);

const _: () = {
    assert!(size_of::<PluginStatus>() == 4 && align_of::<PluginStatus>() == 4);
    assert!(size_of::<PluginType>() == 4 && size_of::<Severity>() == 4);
    assert!(size_of::<ConstData>() == 16 && align_of::<ConstData>() == 8);
    assert!(std::mem::offset_of!(ConstData, ptr) == 0);
    assert!(std::mem::offset_of!(ConstData, size) == 8);
    assert!(size_of::<DeviceBuffer>() == 16 && align_of::<DeviceBuffer>() == 8);
    assert!(std::mem::offset_of!(DeviceBuffer, uid) == 0);
    assert!(std::mem::offset_of!(DeviceBuffer, ptr) == 8);
    assert!(size_of::<Option<LogCallback>>() == 8);
};

/// Function pointer types, named as the symbols without their `hipdnnPlugin` or
/// `hipdnnEnginePlugin` prefix. Argument order is the header's.
pub mod functions {
    use super::*;

    /// `hipdnnPluginGetName`, `GetVersion`, `GetApiVersion`.
    pub type GetText = unsafe extern "C-unwind" fn(*mut *const c_char) -> PluginStatus;
    /// `hipdnnPluginGetType`.
    pub type GetType = unsafe extern "C-unwind" fn(*mut PluginType) -> PluginStatus;
    /// `hipdnnPluginGetLastErrorString`.
    pub type GetLastErrorString = unsafe extern "C-unwind" fn(*mut *const c_char);
    /// `hipdnnPluginSetLoggingCallback`.
    pub type SetLoggingCallback = unsafe extern "C-unwind" fn(Option<LogCallback>) -> PluginStatus;
    /// `hipdnnPluginSetLogLevel`.
    pub type SetLogLevel = unsafe extern "C-unwind" fn(Severity) -> PluginStatus;
    /// `GetAllEngineIds(ids, max, count)`.
    pub type GetAllEngineIds = unsafe extern "C-unwind" fn(*mut i64, u32, *mut u32) -> PluginStatus;
    /// `Create(handle)`.
    pub type Create = unsafe extern "C-unwind" fn(*mut RawHandle) -> PluginStatus;
    /// `Destroy(handle)`.
    pub type Destroy = unsafe extern "C-unwind" fn(RawHandle) -> PluginStatus;
    /// `SetStream(handle, stream)`.
    pub type SetStream = unsafe extern "C-unwind" fn(RawHandle, RawStream) -> PluginStatus;
    /// `GetApplicableEngineIds(handle, graph, ids, max, count)`.
    pub type GetApplicableEngineIds = unsafe extern "C-unwind" fn(
        RawHandle,
        *const ConstData,
        *mut i64,
        u32,
        *mut u32,
    ) -> PluginStatus;
    /// `GetEngineDetails(handle, engine, graph, details)`.
    pub type GetEngineDetails = unsafe extern "C-unwind" fn(
        RawHandle,
        i64,
        *const ConstData,
        *mut ConstData,
    ) -> PluginStatus;
    /// `DestroyEngineDetails(handle, details)`; also `DestroySerializedExecutionContext`.
    pub type DestroyData = unsafe extern "C-unwind" fn(RawHandle, *mut ConstData) -> PluginStatus;
    /// `GetWorkspaceSize(handle, config, graph, bytes)`.
    pub type GetWorkspaceSize = unsafe extern "C-unwind" fn(
        RawHandle,
        *const ConstData,
        *const ConstData,
        *mut usize,
    ) -> PluginStatus;
    /// `CreateExecutionContext(handle, config, graph, context)`.
    pub type CreateExecutionContext = unsafe extern "C-unwind" fn(
        RawHandle,
        *const ConstData,
        *const ConstData,
        *mut RawContext,
    ) -> PluginStatus;
    /// `DestroyExecutionContext(handle, context)`.
    pub type DestroyExecutionContext =
        unsafe extern "C-unwind" fn(RawHandle, RawContext) -> PluginStatus;
    /// `GetWorkspaceSizeFromExecutionContext(handle, context, bytes)`.
    pub type GetWorkspaceSizeFromExecutionContext =
        unsafe extern "C-unwind" fn(RawHandle, RawContext, *mut usize) -> PluginStatus;
    /// `ExecuteOpGraph(handle, context, workspace, buffers, count)`.
    pub type ExecuteOpGraph = unsafe extern "C-unwind" fn(
        RawHandle,
        RawContext,
        *mut c_void,
        *const DeviceBuffer,
        u32,
    ) -> PluginStatus;
    /// `ExecuteOpGraphWithOverrides`: as `ExecuteOpGraph`, then count, uids, ranks, shapes,
    /// strides of the overridden tensors.
    pub type ExecuteOpGraphWithOverrides = unsafe extern "C-unwind" fn(
        RawHandle,
        RawContext,
        *mut c_void,
        *const DeviceBuffer,
        u32,
        u32,
        *const i64,
        *const u32,
        *const *const i64,
        *const *const i64,
    ) -> PluginStatus;
    /// `GetEngineName(engine, name)`; no handle.
    pub type GetEngineName = unsafe extern "C-unwind" fn(i64, *mut *const c_char) -> PluginStatus;
    /// `SerializeExecutionContextWithEngineId(handle, engine, context, bytes)`.
    pub type SerializeExecutionContextWithEngineId =
        unsafe extern "C-unwind" fn(RawHandle, i64, RawContext, *mut ConstData) -> PluginStatus;
    /// `SerializeExecutionContext(handle, context, bytes)`, the older form.
    pub type SerializeExecutionContext =
        unsafe extern "C-unwind" fn(RawHandle, RawContext, *mut ConstData) -> PluginStatus;
    /// `CreateExecutionContextFromSerialized(handle, bytes, context)`.
    pub type CreateExecutionContextFromSerialized =
        unsafe extern "C-unwind" fn(RawHandle, *const ConstData, *mut RawContext) -> PluginStatus;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_data() {
        assert_eq!(PluginStatus(42).to_string(), "unknown(42)");
        assert_eq!(
            PluginStatus::ALLOC_FAILED.to_string(),
            "HIPDNN_PLUGIN_STATUS_ALLOC_FAILED(4)"
        );
        assert_eq!(PluginType(2), PluginType::HEURISTIC);
    }
}
