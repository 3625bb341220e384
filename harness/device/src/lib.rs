//! Guarded, poisoned memory that a judge and the accused share.
//!
//! The parent owns an [`Arena`] (a memfd) and speaks to it with positional reads and writes only:
//! whatever a plugin does to its own mapping, or to the file, the parent gets an error and never
//! a fault. The worker maps the same file ([`ArenaMap`]), makes the guards inaccessible and hands
//! plain pointers to the plugin. Where things lie is computed once, purely ([`Layout`]), and both
//! sides compute the same.
//!
//! This crate knows no operations and no plugins.

mod arena;
mod backend;
mod descriptor;
mod gpu;
mod host;
mod layout;
mod map;
mod memory_kind;
mod poison;
mod snapshot;
mod sparse;
mod view;

pub use arena::{Arena, ArenaError};
pub use backend::{DeviceBackend, DeviceError, Held, Shortage, open_backend};
pub use descriptor::adopt_descriptor;
pub use gpu::{
    Counters, DeviceReport, Driver, GpuBackend, Health, ProbeReport, check_health, probe,
};
pub use host::HostBackend;
pub use layout::{
    BufferSpec, DEFAULT_ALIGNMENT, GUARD_BYTES, Layout, LayoutError, MAX_ALIGNMENT, Placement,
    Residence, Role, Slot, WORKSPACE_ALIGNMENT, WORKSPACE_UID,
};
pub use map::ArenaMap;
pub use memory_kind::{MemoryKind, UnknownMemoryKind};
pub use poison::{Element, Pattern, Run, canary_byte, fill_canary};
pub use snapshot::{BufferCheck, Damage, DeviceCheck, Fill, OutputCheck, Snapshot, Span};
pub use view::ElementView;
