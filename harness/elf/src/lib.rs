//! From ELF bytes to facts and findings. Nothing is loaded, nothing is executed, nothing prints.
//!
//! [`identify`] says what a file is and, for a plugin, the facts that planning needs.

#![forbid(unsafe_code)]

mod identify;
mod memory;
mod not_a_plugin;
pub mod view;

pub use identify::{Export, MissingEntries, PluginFile, PluginRole, identify};
pub use memory::{MEMORY_NOTE_SECTION, MemoryNote, NamedMemory};
pub use not_a_plugin::{NotAPlugin, What};
pub use view::{Binding, ElfView, SymbolKind, Visibility};
