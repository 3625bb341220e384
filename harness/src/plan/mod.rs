//! What a run will do, decided before any plugin is loaded: which files, which cases.

mod built_in;
mod engines;
mod filter;
mod source;

pub use built_in::{BUILTIN_CPU, BuiltInError, built_in_file, remove_unpacked, unpack_to};
pub use engines::{Engine, EngineError, EnginePattern, select_engines};
pub use filter::{FIELDS, Fields, Filter, FilterError, case_values};
pub use source::{PluginSource, SourceError, find_plugins};
