//! What a device must do for a worker.

use std::ffi::c_void;
use std::path::Path;

use dnn_assay_abi::gpu::Flavor;

use crate::gpu::GpuBackend;
use crate::host::HostBackend;
use crate::layout::Slot;
use crate::map::ArenaMap;
use crate::memory_kind::MemoryKind;
use crate::snapshot::{DeviceCheck, Fill};

/// A device call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {text}")]
pub struct DeviceError {
    /// The call, as the runtime names it.
    pub call: String,
    /// What the runtime said.
    pub text: String,
    /// The runtime's number for it, where it gave one.
    pub status: Option<i32>,
}

impl DeviceError {
    /// Whether memory was asked for that is not there.
    pub fn is_out_of_memory(&self) -> bool {
        self.status == Some(dnn_assay_abi::gpu::OUT_OF_MEMORY)
    }
}

/// Memory that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Bytes that are needed.
    pub needs: u64,
    /// Bytes that can be had.
    pub has: u64,
}

/// What was seen while the plugin's stream was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// No output changed, and another stream went on.
    InOrder,
    /// This output changed before the stream came to it: the work went elsewhere.
    Overtaken {
        /// The tensor.
        uid: i64,
    },
    /// Another stream did not go on until this one was let go.
    OthersHeldUp,
    /// The execution returned only after the hold had ended by itself.
    Waited,
    /// The device cannot be asked, or the hold ended too soon to tell.
    Unknown,
}

/// Memory and a stream of one device, inside the worker.
///
/// The arena is the only way in and out. A host backend hands out pointers into the mapping. A GPU
/// backend allocates each slot's whole region. Where it has kernels for it, they write canaries and
/// poison there and look at them afterwards, and only outputs, and regions that were hurt, are
/// copied back; else whole regions travel both ways. Either way the parent's checks of the arena
/// read the same.
pub trait DeviceBackend {
    /// The memory that [`place`](Self::place) hands out.
    fn kind(&self) -> MemoryKind;

    /// The stream to give to the plugin, null where the device has none. It is never the
    /// default stream of a GPU: a plugin that ignores its stream shall be noticed.
    fn stream(&self) -> *mut c_void;

    /// Makes the slot's memory available to the plugin and returns the address of its first byte,
    /// aligned as the slot asks. After [`seal`](Self::seal) it is guarded and holds what `fill`
    /// says.
    ///
    /// # Errors
    /// What the runtime says.
    fn place(
        &mut self,
        map: &ArenaMap,
        slot: &Slot,
        fill: &Fill,
    ) -> Result<*mut c_void, DeviceError>;

    /// After the last [`place`](Self::place) of a case, before the first execution.
    ///
    /// # Errors
    /// What the runtime says.
    fn seal(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Why guards are not looked at where the plugin's memory is, but on copies; `None` where they
    /// are, or the plugin works in the mapping itself.
    fn checks_copies(&self) -> Option<&str> {
        None
    }

    /// Whether the plugin's memory is filled without the arena's bytes, workspaces for one.
    fn fills_itself(&self) -> bool {
        false
    }

    /// What placing `slots` needs and what there is, in bytes, where the second is less.
    ///
    /// # Errors
    /// What the runtime says.
    fn shortage(&self, _slots: &[Slot]) -> Result<Option<Shortage>, DeviceError> {
        Ok(None)
    }

    /// Holds the plugin's stream: what is queued there from now on waits until
    /// [`let_go`](Self::let_go). `false` where the device cannot, or where a plugin was seen to
    /// wait for its stream inside an execution.
    ///
    /// # Errors
    /// What the runtime says.
    fn hold(&mut self) -> Result<bool, DeviceError> {
        Ok(false)
    }

    /// After an execution was queued: what has become of the outputs, and of another stream, while
    /// the plugin's stream was held; then lets it go.
    ///
    /// # Errors
    /// What the runtime says.
    fn let_go(&mut self, _map: &ArenaMap) -> Result<Held, DeviceError> {
        Ok(Held::Unknown)
    }

    /// Bytes of device memory in use, without what this backend has allocated.
    fn used_by_others(&self) -> Option<u64> {
        None
    }

    /// Whether the device answers with errors now, whatever it is asked.
    fn is_broken(&mut self) -> bool {
        false
    }

    /// Waits for everything that was queued.
    fn synchronize(&mut self) -> Result<(), DeviceError>;

    /// Copies outputs, and whatever else the parent must see, back into the arena. Returns what
    /// the device saw of each slot, nothing where whole regions were copied.
    ///
    /// # Errors
    /// What the runtime says.
    fn collect(&mut self, map: &ArenaMap) -> Result<Vec<DeviceCheck>, DeviceError>;

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
