//! From ELF bytes to facts and findings. Nothing is loaded, nothing is executed, nothing prints.
//!
//! * [`identify`] says what a file is and, for a plugin, the facts that planning needs;
//!   [`memory_kind_evidence`] says which memory its pointers mean.
//! * [`closure`] says what the loader would load and bind, and why it would fail.
//! * [`inspect`] checks the [`rules`] on one file under a [`policy`], [`inspect_pairs`] on every
//!   two of several.

#![forbid(unsafe_code)]

pub mod closure;
mod demangle;
pub mod finding;
mod identify;
mod inspect;
mod links;
mod memory;
mod not_a_plugin;
pub mod offload;
pub mod pairs;
pub mod policy;
pub mod rules;
pub mod view;

pub use demangle::demangle;
pub use finding::{Facts, Finding, Inspection, RuleOutcome, RuleState, Severity};
pub use identify::{Export, MissingEntries, PluginFile, PluginRole, identify};
pub use inspect::{Setting, inspect};
pub use memory::{
    MEMORY_NOTE_SECTION, MemoryEvidence, MemoryNote, MemorySign, NamedMemory, memory_kind_evidence,
};
pub use not_a_plugin::{NotAPlugin, What};
pub use pairs::{PairInspection, inspect_pairs};
pub use policy::{Contract, Policy, PolicyError, ReadyPolicy};
pub use view::{Binding, ElfView, SymbolKind, Visibility};
