//! Device memory: mappings between inaccessible pages.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dnn_assay_abi::gpu::Status;
use rustix::mm::{MapFlags, ProtFlags};

use crate::knobs::knobs;
use crate::status::{INVALID_VALUE, OUT_OF_MEMORY, SUCCESS};

/// Inaccessible bytes on each side.
const GUARD: usize = 64 << 10;
/// What this device says it has, bytes.
pub(crate) fn total() -> usize {
    knobs().memory
}

/// Fresh memory holds this, so that reading it is noticed.
const FRESH: u8 = 0xFD;

/// Mapped length by address of the first accessible byte.
static ALLOCATIONS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());
static COUNT: AtomicU64 = AtomicU64::new(0);

fn allocations() -> MutexGuard<'static, BTreeMap<usize, usize>> {
    ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes in use.
pub(crate) fn used() -> usize {
    allocations().values().sum()
}

/// Allocates; an empty allocation is a null pointer, as in HIP.
pub(crate) fn allocate(bytes: usize) -> Result<*mut c_void, Status> {
    let number = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
    if bytes == 0 {
        return Ok(ptr::null_mut());
    }
    let page = rustix::param::page_size();
    let len = bytes.checked_next_multiple_of(page).ok_or(OUT_OF_MEMORY)?;
    if knobs().oom_at == Some(number) || len > total().saturating_sub(used()) {
        return Err(OUT_OF_MEMORY);
    }
    // SAFETY: a fresh anonymous mapping touches no memory that anybody else holds.
    let reserved = unsafe {
        rustix::mm::mmap_anonymous(
            ptr::null_mut(),
            len + 2 * GUARD,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    }
    .map_err(|_| OUT_OF_MEMORY)?;
    let start = reserved.cast::<u8>().wrapping_add(GUARD);
    let open = rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE;
    // SAFETY: the range lies inside the mapping that was just made; nobody else knows of it.
    unsafe {
        rustix::mm::mprotect(start.cast(), len, open).map_err(|_| OUT_OF_MEMORY)?;
        start.write_bytes(FRESH, len);
    }
    allocations().insert(start.addr(), len);
    Ok(start.cast())
}

/// Frees what [`allocate`] returned; the caller has waited for all work.
pub(crate) fn free(address: *mut c_void) -> Status {
    if address.is_null() {
        return SUCCESS;
    }
    let Some(len) = allocations().remove(&address.addr()) else {
        return INVALID_VALUE;
    };
    let start = address.cast::<u8>().wrapping_sub(GUARD);
    // SAFETY: the mapping was made by `allocate` with these guards and is forgotten.
    match unsafe { rustix::mm::munmap(start.cast(), len + 2 * GUARD) } {
        Ok(()) => SUCCESS,
        Err(_) => INVALID_VALUE,
    }
}
