//! What scripts need of the process: libraries that can be closed, memory that tensors live in,
//! log callbacks that collect, and figures of the process's use.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use dnn_assay_abi::Severity;
use dnn_assay_abi::engine_plugin::LogCallback;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::worker::config::LoadMode;
use crate::worker::script::{LogEntry, RawText, Usage};

/// Longest text that is read.
const MAX_TEXT: usize = 8 << 10;
/// Most log lines that are kept.
const MAX_LOG: usize = 10_000;

/// Opens a library that can be closed again. The error is the loader's text.
pub(super) fn open(path: &Path, mode: LoadMode) -> Result<Library, String> {
    let flags = RTLD_NOW
        | RTLD_LOCAL
        | match mode {
            LoadMode::Local => 0,
            LoadMode::Deepbind => super::library::RTLD_DEEPBIND,
        };
    // SAFETY: constructors of foreign code run here; that is what this process is for.
    unsafe { Library::open(Some(path), flags) }.map_err(super::library::loader_text)
}

/// The address of `name`, typed.
///
/// # Safety
/// `T` is the function pointer type that the plugin ABI gives to `name`, and the copy is not
/// called after the library was closed.
pub(super) unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Option<T> {
    let name = CString::new(name).ok()?;
    // SAFETY: the caller vouches for the type.
    let symbol = unsafe { library.get::<T>(name.as_bytes_with_nul()) };
    symbol.ok().map(|symbol| *symbol)
}

/// The file that an exported entry lies in, as the loader knows it.
pub(super) fn file_of(library: &Library, name: &str) -> Option<String> {
    // SAFETY: the address is not called.
    let address = unsafe { symbol::<*const c_void>(library, name) }?;
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: `info` is ours to be filled; any address may be asked for.
    if unsafe { libc::dladdr(address, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr set a NUL-terminated name that lives as long as the library.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(name.to_string_lossy().into_owned())
}

/// Copies a C string as it is.
///
/// # Safety
/// `text` is NULL, or readable up to its NUL or for 8 KiB.
pub(super) unsafe fn raw_text(text: *const c_char) -> Option<RawText> {
    if text.is_null() {
        return None;
    }
    let mut bytes = Vec::new();
    let mut terminated = false;
    while bytes.len() < MAX_TEXT {
        // SAFETY: no NUL came before this byte, and fewer than 8 KiB were read.
        match unsafe { text.add(bytes.len()).cast::<u8>().read() } {
            0 => {
                terminated = true;
                break;
            }
            byte => bytes.push(byte),
        }
    }
    Some(RawText { bytes, terminated })
}

static LOG: Mutex<Vec<LogEntry>> = Mutex::new(Vec::new());

/// Takes the lines that arrived.
pub(super) fn take_log() -> Vec<LogEntry> {
    std::mem::take(&mut *LOG.lock().unwrap_or_else(PoisonError::into_inner))
}

/// One of the two callbacks.
pub(super) fn callback(which: u8) -> LogCallback {
    match which {
        0 => first,
        _ => second,
    }
}

/// # Safety
/// As [`collect`].
unsafe extern "C-unwind" fn first(severity: Severity, message: *const c_char) {
    // SAFETY: forwarded.
    unsafe { collect(0, severity, message) }
}

/// # Safety
/// As [`collect`].
unsafe extern "C-unwind" fn second(severity: Severity, message: *const c_char) {
    // SAFETY: forwarded.
    unsafe { collect(1, severity, message) }
}

/// # Safety
/// `message` is NULL or a NUL-terminated text: the ABI's contract of the callback.
unsafe fn collect(callback: u8, severity: Severity, message: *const c_char) {
    // SAFETY: forwarded.
    let text = unsafe { raw_text(message) };
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    if log.len() < MAX_LOG {
        log.push(LogEntry {
            callback,
            severity: severity.0,
            text,
        });
    }
}

/// Memory of a tensor or a workspace.
pub(super) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    size: usize,
}

/// At least what any device runtime gives.
const ALIGNMENT: usize = 256;

impl Aligned {
    pub fn new(contents: &[u8]) -> Self {
        let mut memory = vec![0; contents.len() + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        memory[start..start + contents.len()].copy_from_slice(contents);
        Self {
            memory,
            start,
            size: contents.len(),
        }
    }

    pub fn pointer(&mut self) -> *mut c_void {
        self.memory[self.start..].as_mut_ptr().cast()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.size]
    }

    /// Takes over as many bytes.
    pub fn assign(&mut self, bytes: &[u8]) {
        self.memory[self.start..self.start + self.size].copy_from_slice(bytes);
    }

    pub fn fill(&mut self, byte: u8) {
        self.memory[self.start..self.start + self.size].fill(byte);
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        Self::new(self.bytes())
    }
}

/// What this process uses now.
pub(super) fn usage() -> Usage {
    let count =
        |folder: &str| std::fs::read_dir(folder).map_or(0, |entries| entries.count() as u64);
    let resident = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0);
    Usage {
        heap: heap(),
        resident: resident * rustix::param::page_size() as u64,
        descriptors: count("/proc/self/fd"),
        threads: count("/proc/self/task"),
    }
}

/// Bytes that the C library's allocator has given out. `mallinfo2` is looked up, because it came with
/// glibc 2.33 and the release runs on older ones: there `mallinfo` counts, in 32 bits.
fn heap() -> u64 {
    // SAFETY: the name is a C string, and looking it up runs no code of a plugin.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
    if found.is_null() {
        // SAFETY: reads the allocator's counters.
        let heap = unsafe { libc::mallinfo() };
        return u64::from(heap.uordblks.cast_unsigned()) + u64::from(heap.hblkhd.cast_unsigned());
    }
    // SAFETY: malloc.h of glibc declares the function so.
    let ask: unsafe extern "C" fn() -> libc::mallinfo2 = unsafe { std::mem::transmute(found) };
    // SAFETY: reads the allocator's counters.
    let heap = unsafe { ask() };
    (heap.uordblks + heap.hblkhd) as u64
}

/// Mappings of `path` in this process.
pub(super) fn mappings(path: &Path) -> u64 {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let Some(path) = path.to_str() else { return 0 };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter(|line| line.ends_with(path)).count() as u64
}
