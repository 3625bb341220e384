//! Kernels compiled at run time by hipRTC or NVRTC, and kept on disk.
//!
//! Used where the build had no compiler, and on devices that its object is not for. The source is
//! the build's own, embedded. `DNN_ASSAY_GFX942_RTC` names another compiler library, or `off`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use dnn_assay_abi::gpu::Flavor;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::cache;

/// Names another compiler library, or is `off`.
const OVERRIDE: &str = "DNN_ASSAY_GFX942_RTC";

/// The source, and the headers that it includes by these names.
const SOURCE: &str = include_str!("../kernels/kernels.cpp");
macro_rules! headers {
    ($($name:literal)*) => {
        const OWN: &[(&str, &str)] = &[$(($name, include_str!(concat!("../kernels/", $name)))),*];
    };
}
headers! {
    "batchnorm.hpp" "conv.hpp" "conv_linear.hpp" "elements.hpp" "functions.hpp" "pointwise.hpp"
    "walk.hpp"
}

/// Every header: the kernels' own, and those of all kernels.
fn all_headers() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    OWN.iter().chain(dnn_assay_kernel_build::HEADERS)
}

type Program = *mut c_void;
type Texts = *const *const c_char;

/// The functions of both libraries, which differ in their prefix and in how code is called.
struct Functions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    error_text: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        Texts,
        Texts,
    ) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, Texts) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    code_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    code: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
}

/// A compiler library.
pub(crate) struct Compiler {
    functions: Functions,
    flavor: Flavor,
    /// `hipRTC 7.1`.
    name: String,
}

impl Compiler {
    /// Opens the compiler of a flavor. `runtime` is the HIP library in use: before ROCm 6 it is
    /// the compiler too.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn open(flavor: Flavor, runtime: &str) -> Result<Self, String> {
        let named = std::env::var(OVERRIDE).ok().filter(|name| !name.is_empty());
        let names: Vec<&str> = match &named {
            Some(name) if name == "off" => return Err(format!("{OVERRIDE}=off")),
            Some(name) => vec![name],
            None => match flavor {
                Flavor::Hip => vec![
                    "libhiprtc.so.7",
                    "libhiprtc.so.6",
                    "libhiprtc.so.5",
                    "libhiprtc.so",
                    runtime,
                ],
                Flavor::Cuda => vec!["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
            },
        };
        let mut texts = Vec::new();
        for name in names {
            match Self::open_named(flavor, name) {
                Ok(compiler) => return Ok(compiler),
                Err(text) => texts.push(format!("{name}: {text}")),
            }
        }
        Err(texts.join("; "))
    }

    fn open_named(flavor: Flavor, name: &str) -> Result<Self, String> {
        // SAFETY: a compiler that the system or the user named; its constructors run here.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| error.to_string())?;
        // Compilers keep threads and state, so this one is never closed.
        let library: &'static Library = Box::leak(Box::new(library));
        let (prefix, code) = match flavor {
            Flavor::Hip => ("hiprtc", "Code"),
            Flavor::Cuda => ("nvrtc", "PTX"),
        };
        macro_rules! find {
            ($name:expr) => {{
                let symbol = format!("{prefix}{}\0", $name);
                // SAFETY: hiprtc.h and nvrtc.h give the function this field's type.
                let found = unsafe { library.get(symbol.as_bytes()) };
                *found.map_err(|error| error.to_string())?
            }};
        }
        let functions = Functions {
            version: find!("Version"),
            error_text: find!("GetErrorString"),
            create: find!("CreateProgram"),
            compile: find!("CompileProgram"),
            log_size: find!("GetProgramLogSize"),
            log: find!("GetProgramLog"),
            code_size: find!(format!("Get{code}Size")),
            code: find!(format!("Get{code}")),
            destroy: find!("DestroyProgram"),
        };
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both out parameters are ours.
        unsafe { (functions.version)(&raw mut major, &raw mut minor) };
        let word = match flavor {
            Flavor::Hip => "hipRTC",
            Flavor::Cuda => "NVRTC",
        };
        Ok(Self {
            functions,
            flavor,
            name: format!("{word} {major}.{minor}"),
        })
    }

    /// The library and its version, as in `hipRTC 7.1`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the driver loads on `arch` (`gfx90a:sramecc+`, `sm_90`): from the cache, or compiled
    /// and put there. PTX ends with NUL.
    ///
    /// # Errors
    /// The compiler's words.
    pub(crate) fn image(&self, arch: &str) -> Result<Vec<u8>, String> {
        let options = self.options(arch);
        let key = self.key(&options);
        if let Some(image) = cache::read(&key) {
            return Ok(image);
        }
        let image = self.compile(&options)?;
        cache::write(&key, &image);
        Ok(image)
    }

    fn options(&self, arch: &str) -> Vec<String> {
        let mine = match self.flavor {
            Flavor::Hip => vec![
                format!("--offload-arch={arch}"),
                "-O3".to_owned(),
                "-ffp-contract=off".to_owned(),
            ],
            Flavor::Cuda => vec![
                format!("--gpu-architecture={}", arch.replace("sm_", "compute_")),
                "--fmad=false".to_owned(),
            ],
        };
        ["-std=c++20".to_owned()].into_iter().chain(mine).collect()
    }

    /// Everything that the code depends on.
    fn key(&self, options: &[String]) -> String {
        let mut parts = vec![self.name.as_str(), SOURCE];
        parts.extend(options.iter().map(String::as_str));
        parts.extend(all_headers().flat_map(|(name, text)| [*name, *text]));
        cache::key(&parts)
    }

    fn compile(&self, options: &[String]) -> Result<Vec<u8>, String> {
        let f = &self.functions;
        let source = text(SOURCE)?;
        let names = texts(all_headers().map(|header| header.0))?;
        let bodies = texts(all_headers().map(|header| header.1))?;
        let words = texts(options.iter().map(String::as_str))?;
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|t| t.as_ptr()).collect()
        };
        let (names_at, bodies_at, words_at) =
            (pointers(&names), pointers(&bodies), pointers(&words));
        let mut program = ptr::null_mut();
        // SAFETY: all texts end with NUL and live to the end of this function; counts are the
        // lengths of the lists.
        unsafe {
            self.check((f.create)(
                &raw mut program,
                source.as_ptr(),
                c"kernels.cpp".as_ptr(),
                names.len() as c_int,
                bodies_at.as_ptr(),
                names_at.as_ptr(),
            ))?;
            let compiled = (f.compile)(program, options.len() as c_int, words_at.as_ptr());
            let image = self
                .check(compiled)
                .map_err(|text| format!("{text}: {}", self.log_of(program)))
                .and_then(|()| self.bytes(program, f.code_size, f.code));
            (f.destroy)(&raw mut program);
            image
        }
    }

    fn check(&self, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: any status may be asked for; the answer is a text that lasts.
        let text = unsafe {
            let text = (self.functions.error_text)(status);
            if text.is_null() {
                "no text".into()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        };
        Err(format!("{}: {text}", self.name))
    }

    /// # Safety
    /// A program of this compiler.
    unsafe fn log_of(&self, program: Program) -> String {
        // SAFETY: forwarded.
        let log = unsafe { self.bytes(program, self.functions.log_size, self.functions.log) };
        let log = log.unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let text = text.trim_end_matches('\0').trim_end();
        text.chars().take(1000).collect()
    }

    /// # Safety
    /// A program of this compiler, and two of its functions that belong together.
    unsafe fn bytes(
        &self,
        program: Program,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, String> {
        let mut len = 0;
        // SAFETY: forwarded; the room is as large as the compiler says.
        unsafe {
            self.check(size(program, &raw mut len))?;
            let mut bytes = vec![0u8; len];
            self.check(get(program, bytes.as_mut_ptr().cast()))?;
            Ok(bytes)
        }
    }
}

fn text(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|error| error.to_string())
}

fn texts<'a>(all: impl Iterator<Item = &'a str>) -> Result<Vec<CString>, String> {
    all.map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_is_embedded_and_nothing_else_is_included() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".hpp"))
            .collect();
        files.sort();
        let own: Vec<&str> = OWN.iter().map(|header| header.0).collect();
        assert_eq!(files, own);
        let embedded: Vec<&str> = all_headers().map(|header| header.0).collect();
        for text in all_headers().map(|header| header.1).chain([SOURCE]) {
            for line in text.lines().filter(|line| line.starts_with("#include")) {
                let name = line.split('"').nth(1).unwrap_or(line);
                assert!(embedded.contains(&name), "{line}");
            }
        }
    }
}
