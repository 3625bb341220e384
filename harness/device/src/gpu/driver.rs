//! A driver library: opened by name or path, its functions as results with the driver's words.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};

use dnn_assay_abi::gpu::{Address, Api, Flavor, Opaque, STREAM_NON_BLOCKING, SUCCESS, Status};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::backend::DeviceError;

/// An open driver library. It stays open until the process ends: drivers start threads.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// The functions.
    pub(super) api: Api,
    /// The name under which it was opened.
    pub(super) library: &'static str,
}

/// A name that a driver library does not export.
fn missing(call: &str) -> DeviceError {
    DeviceError {
        call: call.to_owned(),
        text: "the library does not have this function".to_owned(),
        status: None,
    }
}

/// Calls `$field` of a driver, with its error as a [`DeviceError`].
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
pub(super) use call;

impl Driver {
    /// Opens `library`, or the flavor's own names in their order.
    ///
    /// # Errors
    /// What the loader says of each name.
    pub fn open(flavor: Flavor, library: Option<&Path>) -> Result<Self, DeviceError> {
        let names: Vec<String> = match library {
            Some(path) => vec![path.to_string_lossy().into_owned()],
            None => flavor.libraries().iter().map(|&n| n.to_owned()).collect(),
        };
        let mut texts = Vec::new();
        for name in &names {
            // SAFETY: constructors of a driver run here; this process exists to bear that.
            match unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) } {
                Ok(library) => return Ok(Self::of(flavor, library, name.clone())),
                Err(error) => texts.push(match std::error::Error::source(&error) {
                    Some(source) => source.to_string(),
                    None => error.to_string(),
                }),
            }
        }
        Err(DeviceError {
            call: format!("open the {} runtime", flavor.name()),
            text: texts.join("; "),
            status: None,
        })
    }

    fn of(flavor: Flavor, library: Library, name: String) -> Self {
        let library: &'static Library = Box::leak(Box::new(library));
        let find = |symbol: &str| {
            let symbol = CString::new(symbol).ok()?;
            // SAFETY: the address is only stored here; `resolve` gives it its type.
            let found = unsafe { library.get::<*mut c_void>(symbol.as_bytes_with_nul()) };
            NonNull::new(*found.ok()?)
        };
        Self {
            // SAFETY: the library carries the names of this flavor's API and is never closed.
            api: unsafe { Api::resolve(flavor, find) },
            library: Box::leak(name.into_boxed_str()),
        }
    }

    /// The name that the flavor's header gives to a row of the table.
    fn name_of(&self, field: &str) -> &'static str {
        let row = dnn_assay_abi::gpu::NAMES.iter().find(|row| row.0 == field);
        match (row, self.api.flavor) {
            (Some(row), Flavor::Hip) => row.1,
            (Some(row), Flavor::Cuda) => row.2,
            (None, _) => "",
        }
    }

    pub(super) fn missing(&self, field: &str) -> DeviceError {
        missing(self.name_of(field))
    }

    pub(super) fn check(&self, field: &str, status: Status) -> Result<(), DeviceError> {
        if status == SUCCESS {
            return Ok(());
        }
        Err(DeviceError {
            call: self.name_of(field).to_owned(),
            text: self.error_text(status),
            status: Some(status),
        })
    }

    /// `error 100: no ROCm-capable device is detected`.
    fn error_text(&self, status: Status) -> String {
        let mut text = ptr::null();
        if let Some(function) = self.api.error_text {
            // SAFETY: any status may be asked for; the answer is a string that lasts.
            text = unsafe { function(status) };
        } else if let Some(function) = self.api.error_text_out {
            // SAFETY: as above; the out parameter is ours.
            let _ = unsafe { function(status, &raw mut text) };
        }
        if text.is_null() {
            return format!("error {status}");
        }
        // SAFETY: the driver returned a NUL-terminated string that lasts.
        let text = unsafe { CStr::from_ptr(text) };
        format!("error {status}: {}", text.to_string_lossy())
    }

    /// Number of devices; initialises the driver. Zero devices are an error with words.
    pub(super) fn device_count(&self) -> Result<u32, DeviceError> {
        if self.api.flavor == Flavor::Cuda {
            call!(self, init(0))?;
        }
        // hipInit's status without a device depends on the version: only the count is asked.
        let mut count = 0;
        call!(self, device_count(&raw mut count))?;
        if count <= 0 {
            return Err(DeviceError {
                call: self.name_of("device_count").to_owned(),
                text: "no device".to_owned(),
                status: None,
            });
        }
        Ok(count as u32)
    }

    /// Makes device `number` current on this thread.
    pub(super) fn select(&self, number: u32) -> Result<(), DeviceError> {
        let number = number as i32;
        match self.api.flavor {
            Flavor::Hip => call!(self, set_device(number)),
            Flavor::Cuda => {
                let (mut device, mut context) = (0, ptr::null_mut());
                call!(self, device_get(&raw mut device, number))?;
                call!(self, primary_context(&raw mut context, device))?;
                call!(self, set_context(context))
            }
        }
    }

    pub(super) fn new_stream(&self) -> Result<Opaque, DeviceError> {
        let mut stream = ptr::null_mut();
        call!(self, stream_create(&raw mut stream, STREAM_NON_BLOCKING))?;
        Ok(stream)
    }

    pub(super) fn allocate(&self, bytes: usize) -> Result<Address, DeviceError> {
        let mut address = 0;
        call!(self, allocate(&raw mut address, bytes)).map_err(|error| match self.memory() {
            Ok((free, total)) => DeviceError {
                text: format!(
                    "{} (needs {bytes} bytes, {free} of {total} are free)",
                    error.text
                ),
                ..error
            },
            Err(_) => error,
        })?;
        Ok(address)
    }

    /// Free and total bytes.
    pub(super) fn memory(&self) -> Result<(usize, usize), DeviceError> {
        let (mut free, mut total) = (0, 0);
        call!(self, memory_info(&raw mut free, &raw mut total))?;
        Ok((free, total))
    }
}
