//! Modules: the kernels' names and the fingerprint of their source from a code object, their bodies
//! from a host build of the same source: the plugin's library, or the harness's own, which is
//! linked into this one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dnn_assay_abi::gpu::{Opaque, Status};
use dnn_assay_kernel_build::FINGERPRINT_PREFIX;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::status::{INVALID_HANDLE, INVALID_IMAGE, NOT_FOUND, OTHER_SOURCE};

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
    /// The harness's own: no launch of a plugin's.
    pub(crate) is_own: bool,
}

/// Kernels by name, and the fingerprint of the source that they were built from.
#[derive(Default)]
struct HostBuild {
    fingerprint: String,
    kernels: BTreeMap<String, Kernel>,
}

/// A loaded code object.
struct Module {
    names: BTreeSet<String>,
    /// Its kernels' host build; `None` where there is none.
    build: Option<&'static HostBuild>,
}

#[derive(Default)]
struct Modules {
    loaded: BTreeMap<usize, Module>,
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

/// Reads the kernels' names and finds their host build.
///
/// # Safety
/// `image` must be a whole ELF file in memory, as `hipModuleLoadData` demands.
pub(crate) unsafe fn load(image: *const c_void) -> Result<Opaque, Status> {
    // SAFETY: forwarded.
    let symbols = match unsafe { mock_names(image.cast()) } {
        Some(names) => names,
        // SAFETY: forwarded.
        None => unsafe { elf_names(image.cast()) }?,
    };
    let print = symbols.iter().find(|s| s.starts_with(FINGERPRINT_PREFIX));
    let build = host_build(print.map(String::as_str), &symbols)?;
    let module = Module {
        names: symbols,
        build,
    };
    let (number, opaque) = handle();
    with(|modules| modules.loaded.insert(number, module));
    Ok(opaque)
}

/// The host build for an object with this fingerprint and these symbols.
///
/// # Errors
/// Kernels of these names are there, built from another source.
fn host_build(
    print: Option<&str>,
    symbols: &BTreeSet<String>,
) -> Result<Option<&'static HostBuild>, Status> {
    for build in [own, plugins] {
        let build = build();
        if Some(build.fingerprint.as_str()) == print {
            return Ok(Some(build));
        }
        if let Some(name) = symbols.iter().find(|s| build.kernels.contains_key(*s)) {
            eprintln!(
                "mock HIP runtime: {name} of the code object is of source {}, of the host build {}",
                print.unwrap_or("unknown"),
                build.fingerprint
            );
            return Err(OTHER_SOURCE);
        }
    }
    Ok(None)
}

/// The symbols of a code object, those of kernels without their suffix.
///
/// # Safety
/// As [`load`].
unsafe fn elf_names(image: *const u8) -> Result<BTreeSet<String>, Status> {
    // SAFETY: forwarded.
    let bytes = unsafe { elf_bytes(image) }.ok_or(INVALID_IMAGE)?;
    let elf = goblin::elf::Elf::parse(bytes).map_err(|_| INVALID_IMAGE)?;
    if elf.header.e_machine != AMDGPU || elf.header.e_flags & 0xFF != GFX942 {
        return Err(INVALID_IMAGE);
    }
    let names = elf
        .dynsyms
        .iter()
        .filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name))
        .filter_map(|name| match name.strip_suffix(".kd") {
            Some(kernel) => Some(kernel.to_owned()),
            None => name
                .starts_with(FINGERPRINT_PREFIX)
                .then(|| name.to_owned()),
        });
    Ok(names.collect())
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
    with(|modules| modules.loaded.remove(&(module.addr() >> 4)).is_some())
}

/// A kernel's handle.
pub(crate) fn function(module: Opaque, name: &str) -> Result<Opaque, Status> {
    with(|modules| {
        let module = modules.loaded.get(&(module.addr() >> 4));
        let Module { names, build } = module.ok_or(INVALID_HANDLE)?;
        if !names.contains(name) {
            return Err(NOT_FOUND);
        }
        let kernel = build.and_then(|build| build.kernels.get(name));
        let kernel = *kernel.ok_or(NOT_FOUND)?;
        let (number, function) = handle();
        modules.functions.insert(number, kernel);
        Ok(function)
    })
}

/// The kernel of a handle.
pub(crate) fn kernel(function: Opaque) -> Option<Kernel> {
    with(|modules| modules.functions.get(&(function.addr() >> 4)).copied())
}

/// The harness's own kernels, linked into this library; none without a C++ compiler.
fn own() -> &'static HostBuild {
    static BUILD: OnceLock<HostBuild> = OnceLock::new();
    #[cfg(not(no_kernels))]
    unsafe extern "C" {
        fn dnn_guard_table() -> *const Row;
    }
    BUILD.get_or_init(|| {
        #[cfg(no_kernels)]
        return HostBuild::default();
        #[cfg(not(no_kernels))]
        // SAFETY: the function returns the address of a static table, made by our build script.
        unsafe {
            HostBuild {
                fingerprint: env!("DNN_ASSAY_FINGERPRINT").to_owned(),
                kernels: read(dnn_guard_table(), true),
            }
        }
    })
}

/// The plugin's kernels; empty where their library cannot be opened.
fn plugins() -> &'static HostBuild {
    static BUILD: OnceLock<HostBuild> = OnceLock::new();
    BUILD.get_or_init(|| open_plugins().unwrap_or_default())
}

fn open_plugins() -> Option<HostBuild> {
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
    type Text = unsafe extern "C" fn() -> *const c_char;
    // SAFETY: the library exports both functions with these types; one that is older has no
    // fingerprint.
    unsafe {
        let print = library.get::<Text>(b"dnn_assay_host_kernels_fingerprint\0");
        let print = print.map(|print| CStr::from_ptr(print()).to_string_lossy().into_owned());
        let table = library.get::<Tables>(b"dnn_assay_host_kernels\0").ok()?();
        Some(HostBuild {
            fingerprint: print.unwrap_or_else(|_| "unknown".to_owned()),
            kernels: read(table, false),
        })
    }
}

/// # Safety
/// Null, or a table that lasts and ends with a row whose name is null.
unsafe fn read(mut row: *const Row, is_own: bool) -> BTreeMap<String, Kernel> {
    let mut table = BTreeMap::new();
    // SAFETY: forwarded.
    unsafe {
        while !row.is_null() && !(*row).name.is_null() {
            let name = CStr::from_ptr((*row).name).to_string_lossy().into_owned();
            if let Some(run) = (*row).run {
                let kernel = Kernel {
                    parameter_bytes: (*row).parameter_bytes as usize,
                    run,
                    is_own,
                };
                table.insert(name, kernel);
            }
            row = row.add(1);
        }
    }
    table
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
