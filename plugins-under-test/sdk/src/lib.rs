//! Writing a hipDNN engine plugin in Rust: a safe trait, and a macro that exports the C ABI.
//!
//! Implement [`Engine`] and [`Plan`], describe the library with a [`Plugin`], and hand it to
//! [`export_plugin!`] in a crate of type `cdylib`. The SDK does the rest of the contract: both
//! wire generations are read, null and foreign pointers are refused, panics become a status with
//! a last-error text, buffers and contexts are owned as the ABI says, and the library really goes
//! away when the host closes it (nothing here registers a thread-local destructor; a plugin that
//! keeps threads or droppable thread-locals gives that up).
//!
//! `examples/minimal_plugin.rs` is a whole plugin on one page.

mod engine;
#[doc(hidden)]
pub mod entry;
mod execution;
mod export;
mod host;
mod last_error;
mod live;
pub mod log;
pub mod note;
mod panic_text;

pub use dnn_assay_abi as abi;
pub use dnn_assay_graph as graph;
pub use engine::{Engine, Error, Plan, Plugin};
pub use execution::Execution;
pub use host::Real;
