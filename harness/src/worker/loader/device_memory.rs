//! Device memory of scripts: the buffers of an execution are copied to a device of the thread's own
//! opening, and back when the device has done everything that was queued.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use dnn_assay_abi::gpu::Flavor;
use dnn_assay_device::{
    ArenaMap, BufferSpec, DeviceBackend, Fill, Layout, MemoryKind, Placement, Residence, Role,
    open_backend,
};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::sandbox::Aligned;

/// Which device, through which library.
#[derive(Clone, Debug)]
pub(in crate::worker) struct DeviceSetup {
    pub kind: MemoryKind,
    pub number: u32,
    pub library: Option<PathBuf>,
}

/// A device opened by this thread.
struct Opened {
    backend: Box<dyn DeviceBackend>,
    /// `hipDeviceSynchronize` or `cuCtxSynchronize`: a plugin may use streams of its own.
    wait: unsafe extern "C" fn() -> c_int,
    arena: OwnedFd,
}

thread_local! {
    static OPENED: RefCell<Option<Opened>> = const { RefCell::new(None) };
}

/// Alignment of every buffer, bytes: what device allocators give.
const ALIGNMENT: u64 = 256;

impl DeviceSetup {
    /// The stream of this thread, for `SetStream`.
    pub fn stream(&self) -> Result<*mut c_void, String> {
        self.with(|opened| Ok(opened.backend.stream()))
    }

    /// Copies buffers to the device, lets `act` have their addresses, and copies them back.
    pub(super) fn lend<T>(
        &self,
        buffers: &mut [&mut Aligned],
        act: impl FnOnce(&[*mut c_void]) -> T,
    ) -> Result<T, String> {
        self.with(|opened| opened.lend(buffers, act))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Opened) -> Result<T, String>) -> Result<T, String> {
        OPENED.with_borrow_mut(|opened| {
            if opened.is_none() {
                *opened = Some(self.open()?);
            }
            let opened = opened.as_mut().expect("it was set above");
            act(opened)
        })
    }

    fn open(&self) -> Result<Opened, String> {
        let flavor = match self.kind {
            MemoryKind::Cuda => Flavor::Cuda,
            MemoryKind::Hip | MemoryKind::Host => Flavor::Hip,
        };
        let backend = open_backend(self.kind, self.number, self.library.as_deref())
            .map_err(|error| error.to_string())?;
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let arena = rustix::fs::memfd_create("dnn-assay-script", flags)
            .map_err(|error| error.to_string())?;
        Ok(Opened {
            backend,
            wait: self.wait(flavor)?,
            arena,
        })
    }

    fn wait(&self, flavor: Flavor) -> Result<unsafe extern "C" fn() -> c_int, String> {
        let name: &[u8] = match flavor {
            Flavor::Hip => b"hipDeviceSynchronize\0",
            Flavor::Cuda => b"cuCtxSynchronize\0",
        };
        let names = match &self.library {
            Some(path) => vec![path.clone()],
            None => flavor.libraries().iter().map(PathBuf::from).collect(),
        };
        for path in names {
            // SAFETY: the backend has opened it already; its constructors have run.
            let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
            let Ok(library) = library else { continue };
            // SAFETY: the type is the one that both drivers' headers give to this name; the
            // library is never closed.
            let found = unsafe { library.get::<unsafe extern "C" fn() -> c_int>(name) };
            let found = found.map(|symbol| *symbol);
            std::mem::forget(library);
            return found.map_err(|error| error.to_string());
        }
        Err("the device's library is not open".to_owned())
    }
}

impl Opened {
    fn lend<T>(
        &mut self,
        buffers: &mut [&mut Aligned],
        act: impl FnOnce(&[*mut c_void]) -> T,
    ) -> Result<T, String> {
        let map = self.map(buffers)?;
        let placed = self.place(&map, buffers);
        let result = placed.and_then(|pointers| {
            self.backend.synchronize().map_err(|e| e.to_string())?;
            let result = act(&pointers);
            // SAFETY: the driver's own function, which takes nothing.
            match unsafe { (self.wait)() } {
                0 => {}
                status => return Err(format!("waiting for the device: error {status}")),
            }
            self.backend.collect(&map).map_err(|e| e.to_string())?;
            Ok(result)
        });
        self.backend.release().map_err(|e| e.to_string())?;
        let result = result?;
        for (slot, buffer) in map.layout().slots.iter().zip(buffers) {
            let bytes = map.pointer(slot).cast::<u8>();
            let size = slot.spec.size as usize;
            // SAFETY: the slot is mapped for `size` bytes, and nothing writes to it any more: the
            // device was waited for, and the plugin never had this address.
            buffer.assign(unsafe { std::slice::from_raw_parts(bytes, size) });
        }
        Ok(result)
    }

    fn map(&self, buffers: &[&mut Aligned]) -> Result<ArenaMap, String> {
        let spec = |(uid, buffer): (i64, &&mut Aligned)| BufferSpec {
            uid,
            size: buffer.bytes().len() as u64,
            align: ALIGNMENT,
            placement: Placement::Middle,
            role: Role::Output,
            residence: Residence::Whole,
        };
        let specs: Vec<_> = (0..).zip(buffers).map(spec).collect();
        let layout = Layout::compute(&specs, rustix::param::page_size() as u64)
            .map_err(|error| error.to_string())?;
        ArenaMap::new(&self.arena, layout).map_err(|error| error.to_string())
    }

    fn place(
        &mut self,
        map: &ArenaMap,
        buffers: &[&mut Aligned],
    ) -> Result<Vec<*mut c_void>, String> {
        let slots = map.layout().slots.iter().zip(buffers);
        slots
            .map(|(slot, buffer)| {
                let bytes = buffer.bytes();
                // SAFETY: the slot is mapped for as many bytes as the buffer has, and no one
                // else has its address.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        bytes.as_ptr(),
                        map.pointer(slot).cast::<u8>(),
                        bytes.len(),
                    );
                }
                let placed = self.backend.place(map, slot, &Fill::Bytes);
                placed.map_err(|error| error.to_string())
            })
            .collect()
    }
}
