//! The macro that exports the ABI.

/// A `&'static CStr` from a constant `&str`, such as `env!("CARGO_PKG_VERSION")`. Text with an
/// inner NUL does not compile.
#[macro_export]
macro_rules! c_str {
    ($text:expr) => {{
        const TEXT: &str = $text;
        const BYTES: [u8; TEXT.len() + 1] = {
            let mut bytes = [0; TEXT.len() + 1];
            let mut i = 0;
            while i < TEXT.len() {
                bytes[i] = TEXT.as_bytes()[i];
                i += 1;
            }
            bytes
        };
        const C_TEXT: &::std::ffi::CStr = match ::std::ffi::CStr::from_bytes_with_nul(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("the text has a NUL in it"),
        };
        C_TEXT
    }};
}

/// Exports a [`Plugin`](crate::Plugin) from a `cdylib`: the 16 mandatory functions of the engine
/// plugin ABI, `GetApiVersion`, `SetLoggingCallback`, `SetLogLevel` and `GetEngineName`, and the
/// ELF note `.note.dnn_assay` with the memory kind.
///
/// ```ignore
/// export_plugin! {
///     plugin: Plugin { name: c"mine", version: c"1.0", engines: &[&MyEngine] },
///     memory: "host",
///     with: [overrides, serialization],
/// }
/// ```
///
/// `memory` names where buffers must lie: `host`, `hip`, `cuda`, or several joined by commas.
/// `with` is optional. `overrides` exports `ExecuteOpGraphWithOverrides`, which plans the graph
/// anew with the given shapes; `serialization` exports the three functions that turn contexts
/// into bytes and back.
#[macro_export]
macro_rules! export_plugin {
    (plugin: $plugin:expr, memory: $memory:literal $(, with: [$($extra:ident),* $(,)?])? $(,)?) => {
        /// The ABI, exported. Nothing here is for Rust callers.
        #[allow(missing_docs, clippy::missing_safety_doc, non_snake_case, unsafe_code)]
        mod __dnn_assay_exports {
            #[allow(unused_imports)]
            use super::*;
            use $crate::abi::engine_plugin::LogCallback;
            use $crate::abi::{
                ConstData, DeviceBuffer, PluginStatus, PluginType, RawContext, RawHandle,
                RawStream, Severity,
            };
            use $crate::entry;
            use ::std::ffi::{c_char, c_void};

            static PLUGIN: $crate::Plugin = $plugin;

            const MEMORY: &str = concat!("memory=", $memory);

            #[used]
            #[unsafe(link_section = ".note.dnn_assay")]
            static NOTE: $crate::note::Note<{ $crate::note::padded(MEMORY.len()) }> =
                $crate::note::Note::new(MEMORY);

            $crate::__export_functions! {
                hipdnnPluginGetName(name: *mut *const c_char) -> PluginStatus
                    => get_name(&PLUGIN, name);
                hipdnnPluginGetVersion(version: *mut *const c_char) -> PluginStatus
                    => get_version(&PLUGIN, version);
                hipdnnPluginGetApiVersion(version: *mut *const c_char) -> PluginStatus
                    => get_api_version(version);
                hipdnnPluginGetType(kind: *mut PluginType) -> PluginStatus
                    => get_type(kind);
                hipdnnPluginGetLastErrorString(text: *mut *const c_char) -> ()
                    => get_last_error_string(text);
                hipdnnPluginSetLoggingCallback(callback: Option<LogCallback>) -> PluginStatus
                    => set_logging_callback(callback);
                hipdnnPluginSetLogLevel(level: Severity) -> PluginStatus
                    => set_log_level(level);
                hipdnnEnginePluginGetAllEngineIds(
                    ids: *mut i64, max: u32, count: *mut u32
                ) -> PluginStatus => get_all_engine_ids(&PLUGIN, ids, max, count);
                hipdnnEnginePluginGetEngineName(id: i64, name: *mut *const c_char) -> PluginStatus
                    => get_engine_name(&PLUGIN, id, name);
                hipdnnEnginePluginCreate(handle: *mut RawHandle) -> PluginStatus
                    => create(handle);
                hipdnnEnginePluginDestroy(handle: RawHandle) -> PluginStatus
                    => destroy(handle);
                hipdnnEnginePluginSetStream(handle: RawHandle, stream: RawStream) -> PluginStatus
                    => set_stream(handle, stream);
                hipdnnEnginePluginGetApplicableEngineIds(
                    handle: RawHandle, graph: *const ConstData,
                    ids: *mut i64, max: u32, count: *mut u32
                ) -> PluginStatus
                    => get_applicable_engine_ids(&PLUGIN, handle, graph, ids, max, count);
                hipdnnEnginePluginGetEngineDetails(
                    handle: RawHandle, id: i64, graph: *const ConstData, details: *mut ConstData
                ) -> PluginStatus => get_engine_details(&PLUGIN, handle, id, graph, details);
                hipdnnEnginePluginDestroyEngineDetails(
                    handle: RawHandle, details: *mut ConstData
                ) -> PluginStatus => destroy_engine_details(handle, details);
                hipdnnEnginePluginGetWorkspaceSize(
                    handle: RawHandle, config: *const ConstData, graph: *const ConstData,
                    size: *mut usize
                ) -> PluginStatus => get_workspace_size(&PLUGIN, handle, config, graph, size);
                hipdnnEnginePluginCreateExecutionContext(
                    handle: RawHandle, config: *const ConstData, graph: *const ConstData,
                    context: *mut RawContext
                ) -> PluginStatus
                    => create_execution_context(&PLUGIN, handle, config, graph, context);
                hipdnnEnginePluginDestroyExecutionContext(
                    handle: RawHandle, context: RawContext
                ) -> PluginStatus => destroy_execution_context(handle, context);
                hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(
                    handle: RawHandle, context: RawContext, size: *mut usize
                ) -> PluginStatus
                    => get_workspace_size_from_execution_context(handle, context, size);
                hipdnnEnginePluginExecuteOpGraph(
                    handle: RawHandle, context: RawContext, workspace: *mut c_void,
                    buffers: *const DeviceBuffer, count: u32
                ) -> PluginStatus
                    => execute_op_graph(handle, context, workspace, buffers, count);
            }

            $($($crate::__export_extra!($extra);)*)?
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_functions {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty => $entry:ident($($pass:expr),*);)*) => {
        $(
            // A panic that escaped the entry would end the process here: "C" does not unwind.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> $result {
                // SAFETY: the host calls as the ABI's contract for this function says.
                #[allow(unused_unsafe)]
                unsafe { entry::$entry($($pass),*) }
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_extra {
    (overrides) => {
        $crate::__export_functions! {
            hipdnnEnginePluginExecuteOpGraphWithOverrides(
                handle: RawHandle, context: RawContext, workspace: *mut c_void,
                buffers: *const DeviceBuffer, buffer_count: u32, count: u32,
                uids: *const i64, ranks: *const u32,
                shapes: *const *const i64, strides: *const *const i64
            ) -> PluginStatus => execute_op_graph_with_overrides(
                &PLUGIN, handle, context, workspace, (buffers, buffer_count),
                entry::Overrides { count, uids, ranks, shapes, strides }
            );
        }
    };
    (serialization) => {
        $crate::__export_functions! {
            hipdnnEnginePluginSerializeExecutionContextWithEngineId(
                handle: RawHandle, id: i64, context: RawContext, bytes: *mut ConstData
            ) -> PluginStatus => serialize_execution_context(handle, id, context, bytes);
            hipdnnEnginePluginDestroySerializedExecutionContext(
                handle: RawHandle, bytes: *mut ConstData
            ) -> PluginStatus => destroy_serialized_execution_context(handle, bytes);
            hipdnnEnginePluginCreateExecutionContextFromSerialized(
                handle: RawHandle, bytes: *const ConstData, context: *mut RawContext
            ) -> PluginStatus
                => create_execution_context_from_serialized(&PLUGIN, handle, bytes, context);
        }
    };
}
