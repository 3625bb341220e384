//! The worker's side of the shared memory: a mapping whose guards are inaccessible.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags};

use crate::layout::{Layout, MAX_ALIGNMENT, Residence, Slot};
use crate::poison::fill_canary;

/// A mapped arena. Guards fault on access; the rest is readable and writable, inputs too (the
/// parent finds changed inputs).
#[derive(Debug)]
pub struct ArenaMap {
    reserved: *mut c_void,
    reserved_len: usize,
    base: *mut u8,
    layout: Layout,
}

impl ArenaMap {
    /// Maps `file` as `layout` says, growing the file if it is shorter.
    pub fn new(file: impl AsFd, layout: Layout) -> io::Result<Self> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let len = usize::try_from(layout.len).map_err(|_| too_large())?;
        if (rustix::fs::fstat(&file)?.st_size as u64) < layout.len {
            rustix::fs::ftruncate(&file, layout.len)?;
        }
        let align = layout.slots.iter().map(|slot| slot.spec.align).max();
        let slack = match align {
            Some(align) if align > rustix::param::page_size() as u64 => MAX_ALIGNMENT as usize,
            _ => 0,
        };
        let reserved_len = len.checked_add(slack).ok_or_else(too_large)?;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no
        // memory that anybody else holds.
        let reserved = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                reserved_len,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let base = match slack {
            0 => reserved.cast(),
            _ => reserved
                .cast::<u8>()
                .map_addr(|at| at.next_multiple_of(slack)),
        };
        // Owned from here on: a failure below unmaps.
        let map = Self {
            reserved,
            reserved_len,
            base,
            layout,
        };
        for slot in &map.layout.slots {
            map.open(&file, slot)?;
        }
        Ok(map)
    }

    /// Maps the accessible pages of one slot over the reservation.
    fn open(&self, file: impl AsFd, slot: &Slot) -> io::Result<()> {
        let len = (slot.region.end - slot.region.start) as usize;
        let sharing = MapFlags::SHARED | MapFlags::FIXED;
        let flags = match slot.spec.residence {
            // All of it is written or read: one call instead of a fault per page.
            Residence::Whole => sharing | MapFlags::POPULATE,
            Residence::Elements => sharing,
        };
        // SAFETY: the region lies inside the reservation, which this value owns and to which no
        // references exist; MAP_FIXED replaces inaccessible pages only.
        unsafe {
            rustix::mm::mmap(
                self.at(slot.region.start).cast(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
                file,
                slot.region.start,
            )
        }?;
        Ok(())
    }

    /// The layout that is mapped.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The address of the arena's first byte, which is inaccessible itself.
    pub fn base_address(&self) -> u64 {
        self.base.addr() as u64
    }

    /// The address of a slot's first byte, for the plugin.
    pub fn pointer(&self, slot: &Slot) -> *mut c_void {
        self.at(slot.bytes.start).cast()
    }

    /// Whether a slot's region, canaries included, holds `bytes`.
    pub fn region_equals(&self, slot: &Slot, bytes: &[u8]) -> bool {
        let len = (slot.region.end - slot.region.start) as usize;
        debug_assert!(self.layout.slots.contains(slot));
        // SAFETY: the region is mapped readable; a device's plugin has no pointer into it, and
        // the slice ends with this function.
        let region = unsafe { std::slice::from_raw_parts(self.at(slot.region.start), len) };
        region == bytes
    }

    /// A slot's bytes, for reading before the plugin gets the pointer.
    pub(crate) fn bytes(&self, slot: &Slot) -> &[u8] {
        debug_assert!(self.layout.slots.contains(slot));
        let len = slot.spec.size as usize;
        // SAFETY: the slot is mapped readable; a device's plugin has no pointer into it, and
        // nobody writes it before the case ends.
        unsafe { std::slice::from_raw_parts(self.at(slot.bytes.start), len) }
    }

    /// Writes canaries around a workspace and, where the plugin works in this mapping or a copy of
    /// it, fills it with `0xFF`, which is NaN in every float type. Called before the plugin gets
    /// the pointer.
    pub fn poison_workspace(&mut self, slot: &Slot, body_too: bool) {
        debug_assert!(self.layout.slots.contains(slot));
        let len = (slot.region.end - slot.region.start) as usize;
        let before = (slot.bytes.start - slot.region.start) as usize;
        // SAFETY: the region is mapped readable and writable, `&mut self` and the protocol (the
        // plugin has not seen this slot yet, the parent does not map the file) make the access
        // exclusive, and the slice ends with this function.
        let region = unsafe { std::slice::from_raw_parts_mut(self.at(slot.region.start), len) };
        let (head, rest) = region.split_at_mut(before);
        let (body, tail) = rest.split_at_mut(slot.spec.size as usize);
        fill_canary(slot.region.start, head);
        if body_too {
            body.fill(0xFF);
        }
        fill_canary(slot.bytes.end, tail);
    }

    fn at(&self, offset: u64) -> *mut u8 {
        self.base.wrapping_add(offset as usize)
    }
}

impl Drop for ArenaMap {
    fn drop(&mut self) {
        // SAFETY: the reservation belongs to this value; the plugin was told that the case is
        // over, and one that still writes there faults, which is the verdict it deserves.
        let unmapped = unsafe { rustix::mm::munmap(self.reserved, self.reserved_len) };
        debug_assert!(unmapped.is_ok());
    }
}
