//! Opening libraries, resolving names in the host's order.

use std::ffi::CString;
use std::path::Path;

use dnn_assay_abi::symbols::{ENGINE_PLUGIN, HEURISTIC_PLUGIN, mandatory_symbols};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::worker::config::LoadMode;
use crate::worker::outcome::LoadFailure;

/// `RTLD_DEEPBIND` of glibc, which has no portable name.
pub(super) const RTLD_DEEPBIND: i32 = 0x8;

/// A plugin's library, open until the process ends, as the host leaves it by default.
#[derive(Clone, Copy)]
pub(in crate::worker) struct Opened {
    library: &'static Library,
}

impl Opened {
    /// Opens a plugin, running its constructors.
    pub fn open(path: &Path, mode: LoadMode) -> Result<Self, LoadFailure> {
        let shown = path.to_string_lossy().into_owned();
        if !path.exists() {
            return Err(LoadFailure::FileMissing { path: shown });
        }
        let flags = match mode {
            LoadMode::Local => RTLD_NOW | RTLD_LOCAL,
            LoadMode::Deepbind => RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND,
        };
        let library = open(path, flags).map_err(|text| LoadFailure::Open { path: shown, text })?;
        Ok(Self { library })
    }

    /// The address of `name`, typed; the error is the loader's text.
    ///
    /// # Safety
    /// `T` is the function pointer type that the plugin ABI gives to `name`.
    pub(super) unsafe fn get<T: Copy>(&self, name: &str) -> Result<T, String> {
        let name = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: the caller vouches for the type; the library is never closed, so the copy
        // stays valid.
        let symbol = unsafe { self.library.get::<T>(name.as_bytes_with_nul()) };
        symbol.map(|symbol| *symbol).map_err(loader_text)
    }

    /// Whether `name` is exported, and if not, what the loader says.
    pub fn lookup(&self, name: &str) -> Result<(), String> {
        // SAFETY: the address is dropped unused, so its type does not matter.
        unsafe { self.get::<*const ()>(name) }.map(|_| ())
    }

    /// The failure to report if one of `names` (mandatory, in the host's order) is missing.
    pub fn require(&self, names: &[&'static str]) -> Result<(), LoadFailure> {
        let Some((first, text)) = names
            .iter()
            .find_map(|name| Some((*name, self.lookup(name).err()?)))
        else {
            return Ok(());
        };
        let missing = mandatory_symbols().filter(|symbol| self.lookup(symbol.name).is_err());
        Err(LoadFailure::MissingSymbols {
            first: first.to_owned(),
            count: missing.count(),
            text,
        })
    }

    /// The optional symbols that are exported.
    pub fn optional_symbols(&self) -> Vec<String> {
        use dnn_assay_abi::symbols::Need;
        ENGINE_PLUGIN
            .iter()
            .filter(|symbol| symbol.need == Need::Optional && self.lookup(symbol.name).is_ok())
            .map(|symbol| symbol.name.to_owned())
            .collect()
    }

    /// Whether it exports functions of a heuristic plugin.
    pub fn is_heuristic(&self) -> bool {
        HEURISTIC_PLUGIN
            .iter()
            .any(|name| self.lookup(name).is_ok())
    }
}

/// A device runtime opened by path before the plugin, so that the plugin's NEEDED entry is
/// satisfied by its SONAME.
pub(in crate::worker) struct DeviceRuntime;

impl DeviceRuntime {
    /// Opens it for the life of the process; the error is the loader's text.
    pub fn open(path: &Path) -> Result<Self, String> {
        open(path, RTLD_NOW | RTLD_LOCAL).map(|_| Self)
    }
}

fn open(path: &Path, flags: i32) -> Result<&'static Library, String> {
    // SAFETY: constructors of foreign code run here; that is what this process is for. Whatever
    // they do ends with it.
    let library = unsafe { Library::open(Some(path), flags) }.map_err(loader_text)?;
    Ok(Box::leak(Box::new(library)))
}

/// What `dlerror` said, without libloading's own words around it.
pub(super) fn loader_text(error: libloading::Error) -> String {
    match std::error::Error::source(&error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}
