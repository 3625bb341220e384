//! From ELF bytes to facts and findings. Nothing is loaded, nothing is executed, nothing prints.
//!
//! * [`identify`] says what a file is and, for a plugin, the facts that planning needs;
//!   [`memory_kind_evidence`] says which memory its pointers mean.
//! * [`closure`] says what the loader would load and bind, and why it would fail.

#![forbid(unsafe_code)]

pub mod closure;
mod identify;
mod memory;
mod not_a_plugin;
pub mod view;

pub use identify::{Export, MissingEntries, PluginFile, PluginRole, identify};
pub use memory::{
    MEMORY_NOTE_SECTION, MemoryEvidence, MemoryNote, MemorySign, NamedMemory, memory_kind_evidence,
};
pub use not_a_plugin::{NotAPlugin, What};
pub use view::{Binding, ElfView, SymbolKind, Visibility};
