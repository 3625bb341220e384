//! Where the contracts are written.

/// Functions that every plugin has.
pub(super) const PLUGIN_API: &str = "https://github.com/ROCm/rocm-libraries/blob/develop/projects/hipdnn/plugin_sdk/include/hipdnn_plugin_sdk/PluginApi.h";
/// Functions of an engine plugin.
pub(super) const ENGINE_API: &str = "https://github.com/ROCm/rocm-libraries/blob/develop/projects/hipdnn/plugin_sdk/include/hipdnn_plugin_sdk/EnginePluginApi.h";
/// The host's side: loading, handles, queries, contexts.
pub(super) const HOST: &str =
    "https://github.com/ROCm/rocm-libraries/tree/develop/projects/hipdnn/backend/src/plugin";
/// The wire's schemas.
pub(super) const SCHEMAS: &str =
    "https://github.com/ROCm/rocm-libraries/tree/develop/projects/hipdnn/data_sdk/schemas";
/// Names and ids of engines.
pub(super) const ENGINE_NAMES: &str = "https://github.com/ROCm/rocm-libraries/blob/develop/projects/hipdnn/data_sdk/include/hipdnn_data_sdk/utilities/EngineNames.hpp";
/// Knobs of the MIOpen provider.
pub(super) const KNOBS: &str =
    "https://rocm.docs.amd.com/projects/hipDNN/en/latest/reference/miopen-plugin.html";
/// dlopen and dlclose.
pub(super) const DLOPEN: &str = "https://man7.org/linux/man-pages/man3/dlopen.3.html";
