//! The typed table of a plugin's functions.

use dnn_assay_abi::engine_plugin::functions as f;

use super::library::Opened;
use crate::worker::outcome::LoadFailure;

macro_rules! table {
    (
        $(#[$meta:meta])* $name:ident {
            mandatory { $($field:ident: $type:ident = $symbol:literal,)* }
            optional { $($ofield:ident: $otype:ident = $osymbol:literal,)* }
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub(super) struct $name {
            $(pub $field: f::$type,)*
            $(pub $ofield: Option<f::$otype>,)*
        }

        impl $name {
            /// The mandatory names, in the host's order.
            pub const MANDATORY: &'static [&'static str] = &[$($symbol),*];

            /// Resolves everything; the first missing mandatory name is the failure.
            pub fn resolve(library: &Opened) -> Result<Self, LoadFailure> {
                library.require(Self::MANDATORY)?;
                Ok(Self {
                    $(
                        // SAFETY: the type is the one that the ABI gives to this name.
                        $field: unsafe { library.get::<f::$type>($symbol) }.map_err(|text| {
                            LoadFailure::MissingSymbols { first: $symbol.to_owned(), count: 1, text }
                        })?,
                    )*
                    $(
                        // SAFETY: the type is the one that the ABI gives to this name.
                        $ofield: unsafe { library.get::<f::$otype>($osymbol) }.ok(),
                    )*
                })
            }
        }
    };
}

table! {
    /// What every plugin exports, heuristic plugins too.
    Common {
        mandatory {
            get_name: GetText = "hipdnnPluginGetName",
            get_version: GetText = "hipdnnPluginGetVersion",
            get_type: GetType = "hipdnnPluginGetType",
            get_last_error: GetLastErrorString = "hipdnnPluginGetLastErrorString",
        }
        optional {
            get_api_version: GetText = "hipdnnPluginGetApiVersion",
            set_logging_callback: SetLoggingCallback = "hipdnnPluginSetLoggingCallback",
            set_log_level: SetLogLevel = "hipdnnPluginSetLogLevel",
        }
    }
}

table! {
    /// What an engine plugin exports.
    Engine {
        mandatory {
            get_all_engine_ids: GetAllEngineIds = "hipdnnEnginePluginGetAllEngineIds",
            create: Create = "hipdnnEnginePluginCreate",
            destroy: Destroy = "hipdnnEnginePluginDestroy",
            set_stream: SetStream = "hipdnnEnginePluginSetStream",
            get_applicable: GetApplicableEngineIds = "hipdnnEnginePluginGetApplicableEngineIds",
            get_details: GetEngineDetails = "hipdnnEnginePluginGetEngineDetails",
            destroy_details: DestroyData = "hipdnnEnginePluginDestroyEngineDetails",
            get_workspace_size: GetWorkspaceSize = "hipdnnEnginePluginGetWorkspaceSize",
            create_context: CreateExecutionContext = "hipdnnEnginePluginCreateExecutionContext",
            destroy_context: DestroyExecutionContext = "hipdnnEnginePluginDestroyExecutionContext",
            get_context_workspace: GetWorkspaceSizeFromExecutionContext =
                "hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext",
            execute: ExecuteOpGraph = "hipdnnEnginePluginExecuteOpGraph",
        }
        optional {
            get_engine_name: GetEngineName = "hipdnnEnginePluginGetEngineName",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_abi::symbols::mandatory_symbols;

    #[test]
    fn the_tables_are_the_abi_s_mandatory_symbols_in_order() {
        let ours: Vec<_> = [Common::MANDATORY, Engine::MANDATORY].concat();
        let abi: Vec<_> = mandatory_symbols().map(|symbol| symbol.name).collect();
        assert_eq!(ours, abi);
    }
}
