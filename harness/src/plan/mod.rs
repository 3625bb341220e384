//! What a run will do, decided before any plugin is loaded: which files, which cases.

mod engines;
mod filter;
mod source;

pub use engines::{Engine, EngineError, EnginePattern, select_engines};
pub use filter::{FIELDS, Fields, Filter, FilterError, case_values};
pub use source::{BUILTIN_CPU, PluginSource, SourceError, built_in_file, find_plugins};
