//! The C functions, one Rust function each: what [`export_plugin!`](crate::export_plugin) wraps.
//! Not for direct use.

mod contexts;
mod engines;
mod guard;
mod handles;
mod library;
mod optional;

pub use contexts::*;
pub use engines::*;
pub use handles::*;
pub use library::*;
pub use optional::*;
