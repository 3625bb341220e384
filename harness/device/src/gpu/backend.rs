//! The backend of [`MemoryKind::Hip`] and [`MemoryKind::Cuda`].

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::Path;

use dnn_assay_abi::gpu::{Address, Flavor, Opaque};

use super::driver::{Driver, call};
use crate::backend::{DeviceBackend, DeviceError};
use crate::layout::Slot;
use crate::map::ArenaMap;
use crate::memory_kind::MemoryKind;

/// Addresses on the device have the same low bits as in the arena, up to this many bytes: a
/// buffer is aligned as it declares there, and no better.
const PAGE: u64 = 4096;
/// Memory that is kept for the next case, bytes.
const KEEP: usize = 512 << 20;

/// Memory and a stream of one device, through a driver library.
///
/// Every slot's whole region, canaries and poison included, is copied to memory of its own and
/// back, so that the parent's checks are the same as on the host. Memory is kept from case to
/// case: allocating is slow, and frees wait for the device.
#[derive(Debug)]
pub struct GpuBackend {
    driver: Driver,
    kind: MemoryKind,
    stream: Opaque,
    placed: Vec<Placed>,
    spare: BTreeMap<usize, Vec<Address>>,
    spare_bytes: usize,
}

#[derive(Debug)]
struct Placed {
    slot: Slot,
    /// What was allocated.
    allocation: Address,
    bytes: usize,
    /// Where the region starts in it.
    region: Address,
}

impl GpuBackend {
    /// Opens device `number` through `library`, or through the flavor's own library.
    ///
    /// # Errors
    /// What is missing, in the driver's or the loader's words.
    pub fn open(flavor: Flavor, number: u32, library: Option<&Path>) -> Result<Self, DeviceError> {
        let driver = Driver::open(flavor, library)?;
        driver.device_count()?;
        driver.select(number)?;
        Ok(Self {
            stream: driver.new_stream()?,
            driver,
            kind: match flavor {
                Flavor::Hip => MemoryKind::Hip,
                Flavor::Cuda => MemoryKind::Cuda,
            },
            placed: Vec::new(),
            spare: BTreeMap::new(),
            spare_bytes: 0,
        })
    }

    fn take(&mut self, bytes: usize) -> Result<Address, DeviceError> {
        if let Some(address) = self.spare.get_mut(&bytes).and_then(Vec::pop) {
            self.spare_bytes -= bytes;
            return Ok(address);
        }
        match self.driver.allocate(bytes) {
            Ok(address) => Ok(address),
            Err(_) if self.spare_bytes > 0 => {
                self.free_spare()?;
                self.driver.allocate(bytes)
            }
            Err(error) => Err(error),
        }
    }

    fn free_spare(&mut self) -> Result<(), DeviceError> {
        self.spare_bytes = 0;
        for address in std::mem::take(&mut self.spare).into_values().flatten() {
            call!(&self.driver, free(address))?;
        }
        Ok(())
    }
}

fn region_bytes(slot: &Slot) -> usize {
    (slot.region.end - slot.region.start) as usize
}

/// The region's first byte in the mapping.
fn region_in(map: &ArenaMap, slot: &Slot) -> *mut c_void {
    let before = (slot.bytes.start - slot.region.start) as usize;
    map.pointer(slot).cast::<u8>().wrapping_sub(before).cast()
}

impl DeviceBackend for GpuBackend {
    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn stream(&self) -> *mut c_void {
        self.stream
    }

    fn place(&mut self, map: &ArenaMap, slot: &Slot) -> Result<*mut c_void, DeviceError> {
        let placed = self.try_place(map, slot);
        self.let_go_unless(placed.is_ok());
        placed
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        call!(&self.driver, stream_synchronize(self.stream))
    }

    fn collect(&mut self, map: &ArenaMap) -> Result<(), DeviceError> {
        let collected = self.try_collect(map);
        self.let_go_unless(collected.is_ok());
        collected
    }

    fn release(&mut self) -> Result<(), DeviceError> {
        for placed in std::mem::take(&mut self.placed) {
            self.spare_bytes += placed.bytes;
            self.spare
                .entry(placed.bytes)
                .or_default()
                .push(placed.allocation);
        }
        if self.spare_bytes > KEEP {
            self.free_spare()?;
        }
        Ok(())
    }
}

impl GpuBackend {
    /// After a failure nothing may stay placed, and no copy on its way may outlive the mapping.
    fn let_go_unless(&mut self, fine: bool) {
        if !fine {
            let _ = self.synchronize();
            let _ = self.release();
        }
    }

    fn try_place(&mut self, map: &ArenaMap, slot: &Slot) -> Result<*mut c_void, DeviceError> {
        let align = slot.spec.align.max(PAGE);
        let bytes = region_bytes(slot) + 2 * align as usize;
        let allocation = self.take(bytes)?;
        let region = allocation.next_multiple_of(align) + slot.region.start % align;
        self.placed.push(Placed {
            slot: slot.clone(),
            allocation,
            bytes,
            region,
        });
        let host = region_in(map, slot).cast_const();
        call!(
            &self.driver,
            copy_in(region, host, region_bytes(slot), self.stream)
        )?;
        let buffer = region + (slot.bytes.start - slot.region.start);
        Ok(std::ptr::without_provenance_mut(buffer as usize))
    }

    fn try_collect(&mut self, map: &ArenaMap) -> Result<(), DeviceError> {
        for placed in &self.placed {
            let host = region_in(map, &placed.slot);
            let bytes = region_bytes(&placed.slot);
            call!(
                &self.driver,
                copy_out(host, placed.region, bytes, self.stream)
            )?;
        }
        call!(&self.driver, stream_synchronize(self.stream))
    }
}
