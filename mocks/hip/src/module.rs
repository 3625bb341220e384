//! Modules: the kernels' names from a code object, their bodies from the host's library.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dnn_assay_abi::gpu::{Opaque, Status};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::status::{INVALID_HANDLE, INVALID_IMAGE, NOT_FOUND};

/// `EM_AMDGPU`.
const AMDGPU: u16 = 224;
/// The low byte of `e_flags` of a gfx942 object.
const GFX942: u32 = 0x4C;
/// Overrides the library beside this one.
const LIBRARY: &str = "DNN_ASSAY_MOCK_HIP_KERNELS";

/// One row of the host library's table.
#[repr(C)]
#[derive(Clone, Copy)]
struct Row {
    name: *const c_char,
    parameter_bytes: u64,
    run: Option<unsafe extern "C" fn(*const u8, u32, u32, u32)>,
}

/// A kernel that can run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    /// Size of its one parameter, bytes.
    pub(crate) parameter_bytes: usize,
    /// Runs one block.
    pub(crate) run: unsafe extern "C" fn(*const u8, u32, u32, u32),
}

#[derive(Default)]
struct Modules {
    names: BTreeMap<usize, BTreeSet<String>>,
    functions: BTreeMap<usize, Kernel>,
}

static MODULES: Mutex<Option<Modules>> = Mutex::new(None);
static NEXT: AtomicUsize = AtomicUsize::new(1);

fn with<T>(act: impl FnOnce(&mut Modules) -> T) -> T {
    let mut modules: MutexGuard<'_, Option<Modules>> =
        MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    act(modules.get_or_insert_with(Modules::default))
}

fn handle() -> (usize, Opaque) {
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    (number, ptr::without_provenance_mut(number << 4))
}

/// Reads the kernels' names.
///
/// # Safety
/// `image` must be a whole ELF file in memory, as `hipModuleLoadData` demands.
pub(crate) unsafe fn load(image: *const c_void) -> Result<Opaque, Status> {
    // SAFETY: forwarded.
    if let Some(names) = unsafe { mock_names(image.cast()) } {
        let (number, module) = handle();
        with(|modules| modules.names.insert(number, names));
        return Ok(module);
    }
    // SAFETY: forwarded.
    let bytes = unsafe { elf_bytes(image.cast()) }.ok_or(INVALID_IMAGE)?;
    let elf = goblin::elf::Elf::parse(bytes).map_err(|_| INVALID_IMAGE)?;
    if elf.header.e_machine != AMDGPU || elf.header.e_flags & 0xFF != GFX942 {
        return Err(INVALID_IMAGE);
    }
    let names: BTreeSet<String> = elf
        .dynsyms
        .iter()
        .filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name))
        .filter_map(|name| name.strip_suffix(".kd"))
        .map(str::to_owned)
        .collect();
    let (number, module) = handle();
    with(|modules| modules.names.insert(number, names));
    Ok(module)
}

/// The names in a code object of the mock of hipRTC.
///
/// # Safety
/// As [`load`]; such a code object ends with NUL.
unsafe fn mock_names(image: *const c_char) -> Option<BTreeSet<String>> {
    use crate::rtc::MAGIC;
    let four = 4;
    // SAFETY: forwarded; every image has four bytes, and one that begins so is a text.
    let text = unsafe {
        if image.is_null() || std::slice::from_raw_parts(image.cast::<u8>(), four) != &MAGIC[..four]
        {
            return None;
        }
        CStr::from_ptr(image)
    };
    let names = text.to_bytes().strip_prefix(MAGIC)?;
    let names = String::from_utf8_lossy(names);
    Some(names.lines().map(str::to_owned).collect())
}

/// The file that starts at `image`: its section headers, which linkers put last, say how long.
///
/// # Safety
/// As [`load`].
unsafe fn elf_bytes(image: *const u8) -> Option<&'static [u8]> {
    const HEADER: usize = 64;
    if image.is_null() {
        return None;
    }
    // SAFETY: forwarded; every image is longer than the magic number.
    if unsafe { std::slice::from_raw_parts(image, 4) } != b"\x7fELF" {
        return None;
    }
    // SAFETY: forwarded; an ELF file has a header.
    let header = unsafe { std::slice::from_raw_parts(image, HEADER) };
    let table = u64::from_le_bytes(header[40..48].try_into().ok()?);
    let each = u16::from_le_bytes(header[58..60].try_into().ok()?);
    let count = u16::from_le_bytes(header[60..62].try_into().ok()?);
    let len = usize::try_from(table).ok()? + usize::from(each) * usize::from(count);
    // SAFETY: forwarded; the caller keeps the image while it loads it.
    Some(unsafe { std::slice::from_raw_parts(image, len) })
}

/// Forgets a module; its functions are dead.
pub(crate) fn unload(module: Opaque) -> bool {
    with(|modules| modules.names.remove(&(module.addr() >> 4)).is_some())
}

/// A kernel's handle.
pub(crate) fn function(module: Opaque, name: &str) -> Result<Opaque, Status> {
    let kernel = table().get(name).copied();
    with(|modules| {
        let names = modules
            .names
            .get(&(module.addr() >> 4))
            .ok_or(INVALID_HANDLE)?;
        if !names.contains(name) {
            return Err(NOT_FOUND);
        }
        let kernel = kernel.ok_or(NOT_FOUND)?;
        let (number, function) = handle();
        modules.functions.insert(number, kernel);
        Ok(function)
    })
}

/// The kernel of a handle.
pub(crate) fn kernel(function: Opaque) -> Option<Kernel> {
    with(|modules| modules.functions.get(&(function.addr() >> 4)).copied())
}

/// The host's kernels by name; empty where their library cannot be opened.
fn table() -> &'static BTreeMap<String, Kernel> {
    static TABLE: OnceLock<BTreeMap<String, Kernel>> = OnceLock::new();
    TABLE.get_or_init(|| read_table().unwrap_or_default())
}

fn read_table() -> Option<BTreeMap<String, Kernel>> {
    let path = match std::env::var_os(LIBRARY) {
        Some(path) => PathBuf::from(path),
        None => own_folder()?.join("libdnn_assay_gfx942_host_kernels.so"),
    };
    // SAFETY: the library is the harness's own or the one that the user named.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
    let library: &'static Library = match library {
        Ok(library) => Box::leak(Box::new(library)),
        Err(error) => {
            eprintln!("mock HIP runtime: no kernels: {}: {error}", path.display());
            return None;
        }
    };
    type Tables = unsafe extern "C" fn() -> *const Row;
    // SAFETY: the library exports this function with this type.
    let mut row = unsafe { library.get::<Tables>(b"dnn_assay_host_kernels\0").ok()?() };
    let mut table = BTreeMap::new();
    // SAFETY: the table is static, and ends with a row whose name is null.
    unsafe {
        while !row.is_null() && !(*row).name.is_null() {
            let name = CStr::from_ptr((*row).name).to_string_lossy().into_owned();
            if let Some(run) = (*row).run {
                let parameter_bytes = (*row).parameter_bytes as usize;
                table.insert(
                    name,
                    Kernel {
                        parameter_bytes,
                        run,
                    },
                );
            }
            row = row.add(1);
        }
    }
    Some(table)
}

/// The folder of this library.
fn own_folder() -> Option<PathBuf> {
    static ANCHOR: u8 = 0;
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: the address lies in this library, and the structure is ours.
    let found = unsafe { libc::dladdr((&raw const ANCHOR).cast(), &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of this library, which is open.
    let name: CString = unsafe { CStr::from_ptr(info.dli_fname) }.to_owned();
    let path = PathBuf::from(OsStr::from_bytes(name.as_bytes()));
    path.parent().map(PathBuf::from)
}
