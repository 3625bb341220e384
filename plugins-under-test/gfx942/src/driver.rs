//! The driver that this process has open, and the kernels loaded into its devices.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, OnceLock, PoisonError};

use dnn_assay_abi::gpu::{Api, Flavor, Opaque, SUCCESS, Status};
use dnn_assay_plugin_sdk::Error;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::image;
use crate::parameters::Kernel;
use crate::rtc::Compiler;

/// `RTLD_NOLOAD` of glibc, which has no portable name: succeeds only if the library is open.
const RTLD_NOLOAD: i32 = 0x4;
/// `hip`, `cuda`, or the path of a library with HIP's functions.
const OVERRIDE: &str = "DNN_ASSAY_GFX942_RUNTIME";
/// Threads of a block, fixed in the kernels.
const BLOCK: u32 = 256;

/// A driver and the modules loaded into its contexts.
pub(crate) struct Driver {
    api: Api,
    library: String,
    /// By device number (HIP) or context (CUDA).
    modules: Mutex<BTreeMap<usize, Functions>>,
    compiler: OnceLock<Result<Compiler, String>>,
}

/// The kernels of one module, in the order of [`Kernel::ALL`].
#[derive(Clone, Copy)]
struct Functions([Opaque; Kernel::ALL.len()]);

// SAFETY: a function handle is a name that the driver accepts from any thread.
unsafe impl Send for Functions {}

/// Calls a function of the driver; a missing one and a status other than success are errors in the
/// driver's words.
macro_rules! call {
    ($driver:expr, $field:ident($($arg:expr),* $(,)?)) => {{
        let driver: &Driver = $driver;
        match driver.api.$field {
            None => Err(driver.missing(stringify!($field))),
            // SAFETY: the function has the type that the driver's header gives it; pointers that
            // are passed are valid for this call, and handles come from the same driver.
            Some(function) => driver.check(stringify!($field), unsafe { function($($arg),*) }),
        }
    }};
}

/// The driver of this process: opened once, kept until it ends.
pub(crate) fn driver() -> Result<&'static Driver, Error> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    DRIVER
        .get_or_init(open)
        .as_ref()
        .map_err(|text| Error::internal(text.clone()))
}

/// Whether kernels can be made at run time.
///
/// # Errors
/// Why not, in words for the one who asks why the engine declines.
pub(crate) fn can_compile() -> Result<(), String> {
    let driver = driver().map_err(|error| format!("{}; {}", image::MISSING, error.message))?;
    driver.compiler().map(drop).map_err(|error| error.message)
}

fn open() -> Result<Driver, String> {
    match std::env::var(OVERRIDE).ok().filter(|name| !name.is_empty()) {
        Some(name) if name == "hip" => open_any(Flavor::Hip, RTLD_NOW | RTLD_LOCAL),
        Some(name) if name == "cuda" => open_any(Flavor::Cuda, RTLD_NOW | RTLD_LOCAL),
        Some(path) => open_named(Flavor::Hip, &path, RTLD_NOW | RTLD_LOCAL),
        None => open_any(Flavor::Hip, RTLD_NOW | RTLD_NOLOAD)
            .or_else(|_| open_any(Flavor::Cuda, RTLD_NOW | RTLD_NOLOAD))
            .or_else(|_| open_any(Flavor::Hip, RTLD_NOW | RTLD_LOCAL)),
    }
}

fn open_any(flavor: Flavor, flags: i32) -> Result<Driver, String> {
    let mut texts = Vec::new();
    for name in flavor.libraries() {
        match open_named(flavor, name, flags) {
            Ok(driver) => return Ok(driver),
            Err(text) => texts.push(text),
        }
    }
    Err(format!(
        "no {} runtime: {}",
        flavor.name(),
        texts.join("; ")
    ))
}

fn open_named(flavor: Flavor, name: &str, flags: i32) -> Result<Driver, String> {
    // SAFETY: the user, or the process before us, chose this driver; its constructors run here.
    let library =
        unsafe { Library::open(Some(name), flags) }.map_err(|error| format!("{name}: {error}"))?;
    // Drivers start threads, so this one is never closed.
    let library: &'static Library = Box::leak(Box::new(library));
    let find = |symbol: &str| {
        let symbol = CString::new(symbol).ok()?;
        // SAFETY: the address is only stored here; `resolve` gives it its type.
        let found = unsafe { library.get::<*mut c_void>(symbol.as_bytes_with_nul()) };
        NonNull::new(*found.ok()?)
    };
    Ok(Driver {
        // SAFETY: the library carries the functions of this flavor and is never closed.
        api: unsafe { Api::resolve(flavor, find) },
        library: name.to_owned(),
        modules: Mutex::new(BTreeMap::new()),
        compiler: OnceLock::new(),
    })
}

impl Driver {
    fn name_of(&self, field: &str) -> &'static str {
        let row = dnn_assay_abi::gpu::NAMES.iter().find(|row| row.0 == field);
        match (row, self.api.flavor) {
            (Some(row), Flavor::Hip) => row.1,
            (Some(row), Flavor::Cuda) => row.2,
            (None, _) => "",
        }
    }

    fn missing(&self, field: &str) -> Error {
        let name = self.name_of(field);
        Error::internal(format!("{} does not have {name}", self.library))
    }

    fn check(&self, field: &str, status: Status) -> Result<(), Error> {
        if status == SUCCESS {
            return Ok(());
        }
        let mut text = ptr::null();
        if let Some(function) = self.api.error_text {
            // SAFETY: any status may be asked for.
            text = unsafe { function(status) };
        } else if let Some(function) = self.api.error_text_out {
            // SAFETY: as above; the out parameter is ours.
            let _ = unsafe { function(status, &raw mut text) };
        }
        let text = if text.is_null() {
            "no text".into()
        } else {
            // SAFETY: the driver returned a NUL-terminated string that lasts.
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        };
        let name = self.name_of(field);
        Err(Error::internal(format!(
            "{name} failed with {status}: {text}"
        )))
    }

    /// What tells the current device's modules from others'. Makes device 0 current where the
    /// thread has none.
    fn context(&self) -> Result<usize, Error> {
        if self.api.flavor == Flavor::Hip {
            let mut device = 0;
            call!(self, current_device(&raw mut device))?;
            return Ok(device as usize);
        }
        call!(self, init(0))?;
        let mut context = ptr::null_mut();
        call!(self, current_context(&raw mut context))?;
        if context.is_null() {
            let mut device = 0;
            call!(self, device_get(&raw mut device, 0))?;
            call!(self, primary_context(&raw mut context, device))?;
            call!(self, set_context(context))?;
        }
        Ok(context.addr())
    }

    /// Loads the kernels into the current device, once.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        self.functions().map(|_| ())
    }

    fn functions(&self) -> Result<Functions, Error> {
        let context = self.context()?;
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(functions) = modules.get(&context) {
            return Ok(*functions);
        }
        let mut module = ptr::null_mut();
        let (bytes, by) = self.image()?;
        call!(self, module_load(&raw mut module, bytes.as_ptr().cast()))
            .map_err(|error| Error::internal(format!("{} (kernels by {by})", error.message)))?;
        let mut functions = Functions([ptr::null_mut(); Kernel::ALL.len()]);
        for (slot, kernel) in functions.0.iter_mut().zip(Kernel::ALL) {
            let name = kernel.name().as_ptr();
            call!(self, module_function(slot, module, name))?;
        }
        modules.insert(context, functions);
        Ok(functions)
    }

    /// The kernels for the current device, and who made them.
    fn image(&self) -> Result<(Cow<'static, [u8]>, String), Error> {
        let arch = self.arch()?;
        if let Some(image) = image::image(self.api.flavor, &arch) {
            return Ok((image.into(), image::COMPILER.to_owned()));
        }
        let compiler = self.compiler()?;
        let image = compiler
            .image(&arch)
            .map_err(|text| Error::internal(format!("no kernels for {arch}: {text}")))?;
        Ok((image.into(), compiler.name().to_owned()))
    }

    /// The compiler that makes kernels at run time; opened once.
    fn compiler(&self) -> Result<&Compiler, Error> {
        let opened = self
            .compiler
            .get_or_init(|| Compiler::open(self.api.flavor, &self.library));
        opened.as_ref().map_err(|text| {
            let (flavor, names) = match self.api.flavor {
                Flavor::Hip => ("gfx942", "hipRTC"),
                Flavor::Cuda => ("sm_90", "NVRTC"),
            };
            Error::not_applicable(format!(
                "no kernels: those of the build are for {flavor} (or {}), and {names} cannot \
                 compile others: {text}",
                image::MISSING
            ))
        })
    }

    /// The current device's architecture: `gfx942:sramecc+:xnack-`, `sm_90`.
    fn arch(&self) -> Result<String, Error> {
        use dnn_assay_abi::gpu::{cuda_attribute, hip_properties};
        let mut device = 0;
        if self.api.flavor == Flavor::Cuda {
            call!(self, current_device_of_context(&raw mut device))?;
            let (mut major, mut minor) = (0, 0);
            let (of_major, of_minor) = (
                cuda_attribute::CAPABILITY_MAJOR,
                cuda_attribute::CAPABILITY_MINOR,
            );
            call!(self, attribute(&raw mut major, of_major, device))?;
            call!(self, attribute(&raw mut minor, of_minor, device))?;
            return Ok(format!("sm_{major}{minor}"));
        }
        call!(self, current_device(&raw mut device))?;
        // Room for a later and larger structure; eight-byte words, because that is its alignment.
        let mut words = [0u64; hip_properties::SIZE / 4];
        call!(self, properties((&raw mut words).cast(), device))?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let name = CStr::from_bytes_until_nul(&bytes[hip_properties::ARCH_NAME..]);
        let name = name.map_err(|error| Error::internal(error.to_string()))?;
        Ok(name.to_string_lossy().into_owned())
    }

    /// Copies from the device when the stream has come so far.
    pub(crate) fn copy_back(&self, from: u64, to: &mut [u8], stream: Opaque) -> Result<(), Error> {
        let (at, len) = (to.as_mut_ptr().cast(), to.len());
        call!(self, copy_out(at, from, len, stream))?;
        call!(self, stream_synchronize(stream))
    }

    /// Queues one kernel on `stream`. `parameters` is the kernel's one argument.
    pub(crate) fn launch<P>(
        &self,
        kernel: Kernel,
        grid: [u32; 3],
        stream: Opaque,
        parameters: &P,
    ) -> Result<(), Error> {
        let function = self.functions()?.0[kernel as usize];
        let mut arguments = [ptr::from_ref(parameters).cast_mut().cast::<c_void>()];
        let [x, y, z] = grid;
        call!(
            self,
            launch(
                function,
                x,
                y,
                z,
                BLOCK,
                1,
                1,
                0,
                stream,
                arguments.as_mut_ptr(),
                ptr::null_mut()
            )
        )
        .map_err(|error| {
            let name = kernel.name().to_string_lossy();
            Error::internal(format!(
                "{name} on a grid of {x}x{y}x{z}: {}",
                error.message
            ))
        })
    }
}
