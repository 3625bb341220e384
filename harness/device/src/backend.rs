//! What a device must do for a worker.

use std::ffi::c_void;
use std::path::Path;

use dnn_assay_abi::gpu::Flavor;

use crate::gpu::GpuBackend;
use crate::host::HostBackend;
use crate::layout::Slot;
use crate::map::ArenaMap;
use crate::memory_kind::MemoryKind;

/// A device call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {text}")]
pub struct DeviceError {
    /// The call, as the runtime names it.
    pub call: String,
    /// What the runtime said.
    pub text: String,
}

/// Memory and a stream of one device, inside the worker.
///
/// The arena is the only way in and out. A host backend hands out pointers into the mapping; a
/// GPU backend allocates a copy of each slot's whole region (canaries and poison included),
/// copies it there in [`place`](Self::place) and back in [`collect`](Self::collect), so that the
/// parent's checks read the same on every device.
pub trait DeviceBackend {
    /// The memory that [`place`](Self::place) hands out.
    fn kind(&self) -> MemoryKind;

    /// The stream to give to the plugin, null where the device has none. It is never the
    /// default stream of a GPU: a plugin that ignores its stream shall be noticed.
    fn stream(&self) -> *mut c_void;

    /// Makes the slot's memory available to the plugin, guarded, with the arena's contents, and
    /// returns the address of its first byte, aligned as the slot asks.
    fn place(&mut self, map: &ArenaMap, slot: &Slot) -> Result<*mut c_void, DeviceError>;

    /// Waits for everything that was queued.
    fn synchronize(&mut self) -> Result<(), DeviceError>;

    /// Copies every placed slot back into the arena.
    fn collect(&mut self, map: &ArenaMap) -> Result<(), DeviceError>;

    /// Frees everything that was placed. Pointers handed out are dead afterwards.
    fn release(&mut self) -> Result<(), DeviceError>;
}

/// Opens device `number` of a kind, through `library` where one is given in place of the system's.
///
/// # Errors
/// What is missing.
pub fn open_backend(
    kind: MemoryKind,
    number: u32,
    library: Option<&Path>,
) -> Result<Box<dyn DeviceBackend>, DeviceError> {
    let flavor = match kind {
        MemoryKind::Host => return Ok(Box::new(HostBackend)),
        MemoryKind::Hip => Flavor::Hip,
        MemoryKind::Cuda => Flavor::Cuda,
    };
    Ok(Box::new(GpuBackend::open(flavor, number, library)?))
}
