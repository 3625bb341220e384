//! The exported functions of a plugin, as data: name, generation, whether the host insists.

use crate::version::{self, ApiVersion};

/// Whether the host refuses a library that lacks a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The host refuses the library without it.
    Mandatory,
    /// The host does without.
    Optional,
}

/// Optional symbols that mean something only together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Stands for itself.
    Single,
    /// Saving and restoring execution contexts: serialize, destroy, create from serialized.
    Serialization,
}

/// One exported function of the plugin ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The exact exported name.
    pub name: &'static str,
    /// Mandatory or optional.
    pub need: Need,
    /// The group it completes.
    pub group: Group,
    /// The engine API version that introduced it, `None` where it has always been there.
    pub since: Option<ApiVersion>,
}

const fn mandatory(name: &'static str) -> Symbol {
    Symbol {
        name,
        need: Need::Mandatory,
        group: Group::Single,
        since: None,
    }
}

const fn optional(name: &'static str, group: Group, since: Option<ApiVersion>) -> Symbol {
    Symbol {
        name,
        need: Need::Optional,
        group,
        since,
    }
}

/// Symbols of an engine plugin in the order in which the host resolves them, so that the first
/// one missing here is the one that the host reports. 16 are mandatory, in every generation.
pub const ENGINE_PLUGIN: &[Symbol] = &[
    mandatory("hipdnnPluginGetName"),
    mandatory("hipdnnPluginGetVersion"),
    mandatory("hipdnnPluginGetType"),
    mandatory("hipdnnPluginGetLastErrorString"),
    optional(
        "hipdnnPluginGetApiVersion",
        Group::Single,
        Some(version::ASSUMED),
    ),
    optional("hipdnnPluginSetLoggingCallback", Group::Single, None),
    optional("hipdnnPluginSetLogLevel", Group::Single, None),
    mandatory("hipdnnEnginePluginGetAllEngineIds"),
    mandatory("hipdnnEnginePluginCreate"),
    mandatory("hipdnnEnginePluginDestroy"),
    mandatory("hipdnnEnginePluginSetStream"),
    mandatory("hipdnnEnginePluginGetApplicableEngineIds"),
    mandatory("hipdnnEnginePluginGetEngineDetails"),
    mandatory("hipdnnEnginePluginDestroyEngineDetails"),
    mandatory("hipdnnEnginePluginGetWorkspaceSize"),
    mandatory("hipdnnEnginePluginCreateExecutionContext"),
    mandatory("hipdnnEnginePluginDestroyExecutionContext"),
    optional(
        "hipdnnEnginePluginSerializeExecutionContextWithEngineId",
        Group::Serialization,
        None,
    ),
    optional(
        "hipdnnEnginePluginDestroySerializedExecutionContext",
        Group::Serialization,
        None,
    ),
    optional(
        "hipdnnEnginePluginCreateExecutionContextFromSerialized",
        Group::Serialization,
        None,
    ),
    mandatory("hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext"),
    mandatory("hipdnnEnginePluginExecuteOpGraph"),
    optional(
        "hipdnnEnginePluginExecuteOpGraphWithOverrides",
        Group::Single,
        Some(version::OVERRIDES),
    ),
    optional(
        "hipdnnEnginePluginGetEngineName",
        Group::Single,
        Some(version::ENGINE_NAMES),
    ),
    // The save hook of an earlier generation; the newest host no longer resolves it.
    optional(
        "hipdnnEnginePluginSerializeExecutionContext",
        Group::Single,
        None,
    ),
];

/// Symbols that only a heuristic plugin exports (type 2); DNN Assay names such a plugin and
/// executes nothing of it.
pub const HEURISTIC_PLUGIN: &[&str] = &[
    "hipdnnHeuristicPluginGetAllPolicyIds",
    "hipdnnHeuristicPluginGetPolicyName",
    "hipdnnHeuristicHandleCreate",
    "hipdnnHeuristicHandleDestroy",
    "hipdnnHeuristicHandleSetDeviceProperties",
    "hipdnnHeuristicPolicyDescriptorCreate",
    "hipdnnHeuristicPolicyDescriptorDestroy",
    "hipdnnHeuristicPolicySetEngineIds",
    "hipdnnHeuristicPolicySetSerializedGraph",
    "hipdnnHeuristicPolicyFinalize",
    "hipdnnHeuristicPolicyGetSortedEngineIds",
];

/// The mandatory symbols of an engine plugin, in the host's order.
pub fn mandatory_symbols() -> impl Iterator<Item = &'static Symbol> {
    ENGINE_PLUGIN
        .iter()
        .filter(|symbol| symbol.need == Need::Mandatory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sixteen_are_mandatory_and_names_are_unique() {
        assert_eq!(mandatory_symbols().count(), 16);
        let names: HashSet<_> = ENGINE_PLUGIN.iter().map(|s| s.name).collect();
        assert_eq!(names.len(), ENGINE_PLUGIN.len());
        let trio = ENGINE_PLUGIN
            .iter()
            .filter(|s| s.group == Group::Serialization);
        assert_eq!(trio.count(), 3);
    }
}
