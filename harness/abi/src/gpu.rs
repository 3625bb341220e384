//! The parts of the HIP and CUDA driver APIs that DNN Assay calls: one table, two sets of names.
//!
//! The two APIs take the same arguments wherever a row has two names. Nothing is linked: a table
//! is filled from a library that was opened at run time, and every entry may be missing.
//! Sources: `hip/hip_runtime_api.h` and `cuda.h`.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

/// `hipError_t` or `CUresult`.
pub type Status = c_int;
/// `hipSuccess` and `CUDA_SUCCESS`.
pub const SUCCESS: Status = 0;
/// `hipErrorOutOfMemory` and `CUDA_ERROR_OUT_OF_MEMORY`.
pub const OUT_OF_MEMORY: Status = 2;
/// `hipErrorNotReady` and `CUDA_ERROR_NOT_READY`.
pub const NOT_READY: Status = 600;
/// `hipStreamNonBlocking` and `CU_STREAM_NON_BLOCKING`: does not wait for the default stream.
pub const STREAM_NON_BLOCKING: c_uint = 1;
/// An address on the device: `hipDeviceptr_t` (a pointer) and `CUdeviceptr` (an integer) are
/// passed alike on every 64-bit ABI.
pub type Address = u64;
/// Streams, events, modules, functions and contexts are pointers to what only the driver knows.
pub type Opaque = *mut c_void;
/// `hipHostFn_t` and `CUhostFn`; it must not call the driver.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);

/// Whose API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// AMD: libamdhip64.
    Hip,
    /// NVIDIA: libcuda.
    Cuda,
}

impl Flavor {
    /// Names under which the library is opened, in this order.
    pub const fn libraries(self) -> &'static [&'static str] {
        match self {
            Self::Hip => &[
                "libamdhip64.so.7",
                "libamdhip64.so.6",
                "libamdhip64.so.5",
                "libamdhip64.so",
            ],
            Self::Cuda => &["libcuda.so.1", "libcuda.so"],
        }
    }

    /// `HIP` or `CUDA`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hip => "HIP",
            Self::Cuda => "CUDA",
        }
    }
}

macro_rules! api {
    ($($(#[$doc:meta])* $field:ident: $hip:literal | $cuda:literal = fn($($arg:ty),*) -> $ret:ty;)*) => {
        /// Functions of one library; `None` where the library does not export the name, or the
        /// flavor has no such function.
        #[derive(Clone, Copy, Debug)]
        pub struct Api {
            /// Whose names were looked up.
            pub flavor: Flavor,
            $($(#[$doc])* pub $field: Option<unsafe extern "C" fn($($arg),*) -> $ret>,)*
        }

        impl Api {
            /// Looks up every name with `find`.
            ///
            /// # Safety
            /// What `find` returns for a name must be the function of that name of the flavor's
            /// API, and must stay loaded as long as the table is used.
            pub unsafe fn resolve(
                flavor: Flavor,
                find: impl Fn(&str) -> Option<NonNull<c_void>>,
            ) -> Self {
                let named = |hip: &str, cuda: &str| {
                    let name = match flavor { Flavor::Hip => hip, Flavor::Cuda => cuda };
                    if name.is_empty() { None } else { find(name) }
                };
                Self {
                    flavor,
                    $($field: named($hip, $cuda).map(|address| {
                        // SAFETY: the caller vouches for the function's type.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> $ret>(address.as_ptr()) }
                    }),)*
                }
            }
        }

        /// Field, HIP name and CUDA name of every row; an empty name is no function.
        pub const NAMES: &[(&str, &str, &str)] = &[$((stringify!($field), $hip, $cuda),)*];
    };
}

api! {
    /// Initialises the driver.
    init: "hipInit" | "cuInit" = fn(c_uint) -> Status;
    /// Number of devices.
    device_count: "hipGetDeviceCount" | "cuDeviceGetCount" = fn(*mut c_int) -> Status;
    /// The number of this thread's device.
    current_device: "hipGetDevice" | "" = fn(*mut c_int) -> Status;
    /// Makes a device current.
    set_device: "hipSetDevice" | "" = fn(c_int) -> Status;
    /// The device of an ordinal number.
    device_get: "" | "cuDeviceGet" = fn(*mut c_int, c_int) -> Status;
    /// The device's shared context.
    primary_context: "" | "cuDevicePrimaryCtxRetain" = fn(*mut Opaque, c_int) -> Status;
    /// Gives the shared context back.
    primary_release: "" | "cuDevicePrimaryCtxRelease_v2" = fn(c_int) -> Status;
    /// Makes a context current on this thread.
    set_context: "" | "cuCtxSetCurrent" = fn(Opaque) -> Status;
    /// The context that is current on this thread.
    current_context: "" | "cuCtxGetCurrent" = fn(*mut Opaque) -> Status;
    /// The number of the device of this thread's context.
    current_device_of_context: "" | "cuCtxGetDevice" = fn(*mut c_int) -> Status;
    /// The text of a status.
    error_text: "hipGetErrorString" | "" = fn(Status) -> *const c_char;
    /// The text of a status, by an out parameter.
    error_text_out: "" | "cuGetErrorString" = fn(Status, *mut *const c_char) -> Status;
    /// The name of a device.
    device_name: "hipDeviceGetName" | "cuDeviceGetName" = fn(*mut c_char, c_int, c_int) -> Status;
    /// `hipDeviceProp_t` of HIP 6 and later.
    properties: "hipGetDevicePropertiesR0600" | "" = fn(*mut c_void, c_int) -> Status;
    /// An attribute of a device.
    attribute: "hipDeviceGetAttribute" | "cuDeviceGetAttribute" = fn(*mut c_int, c_int, c_int) -> Status;
    /// Memory of a device, bytes.
    total_memory: "hipDeviceTotalMem" | "cuDeviceTotalMem_v2" = fn(*mut usize, c_int) -> Status;
    /// The 16 bytes that name a device.
    uuid: "hipDeviceGetUuid" | "cuDeviceGetUuid_v2" = fn(*mut [u8; 16], c_int) -> Status;
    /// `0000:c1:00.0`.
    pci_bus_id: "hipDeviceGetPCIBusId" | "cuDeviceGetPCIBusId" = fn(*mut c_char, c_int, c_int) -> Status;
    /// Version of the driver.
    driver_version: "hipDriverGetVersion" | "cuDriverGetVersion" = fn(*mut c_int) -> Status;
    /// Version of the runtime.
    runtime_version: "hipRuntimeGetVersion" | "" = fn(*mut c_int) -> Status;
    /// Free and total memory, bytes.
    memory_info: "hipMemGetInfo" | "cuMemGetInfo_v2" = fn(*mut usize, *mut usize) -> Status;
    /// Allocates device memory.
    allocate: "hipMalloc" | "cuMemAlloc_v2" = fn(*mut Address, usize) -> Status;
    /// Frees device memory.
    free: "hipFree" | "cuMemFree_v2" = fn(Address) -> Status;
    /// Copies to the device, in the order of a stream.
    copy_in: "hipMemcpyHtoDAsync" | "cuMemcpyHtoDAsync_v2" = fn(Address, *const c_void, usize, Opaque) -> Status;
    /// Copies from the device, in the order of a stream.
    copy_out: "hipMemcpyDtoHAsync" | "cuMemcpyDtoHAsync_v2" = fn(*mut c_void, Address, usize, Opaque) -> Status;
    /// Copies on the device, in the order of a stream.
    copy_within: "hipMemcpyDtoDAsync" | "cuMemcpyDtoDAsync_v2" = fn(Address, Address, usize, Opaque) -> Status;
    /// A stream with flags.
    stream_create: "hipStreamCreateWithFlags" | "cuStreamCreate" = fn(*mut Opaque, c_uint) -> Status;
    /// Ends a stream.
    stream_destroy: "hipStreamDestroy" | "cuStreamDestroy_v2" = fn(Opaque) -> Status;
    /// Calls a function of the host's once a stream has come to it; the stream waits for its end.
    launch_host: "hipLaunchHostFunc" | "cuLaunchHostFunc" = fn(Opaque, HostFunction, *mut c_void) -> Status;
    /// Waits for a stream.
    stream_synchronize: "hipStreamSynchronize" | "cuStreamSynchronize" = fn(Opaque) -> Status;
    /// Waits for everything.
    synchronize: "hipDeviceSynchronize" | "cuCtxSynchronize" = fn() -> Status;
    /// An event with flags.
    event_create: "hipEventCreateWithFlags" | "cuEventCreate" = fn(*mut Opaque, c_uint) -> Status;
    /// Records an event in a stream.
    event_record: "hipEventRecord" | "cuEventRecord" = fn(Opaque, Opaque) -> Status;
    /// Whether an event was reached.
    event_query: "hipEventQuery" | "cuEventQuery" = fn(Opaque) -> Status;
    /// Waits for an event.
    event_synchronize: "hipEventSynchronize" | "cuEventSynchronize" = fn(Opaque) -> Status;
    /// Milliseconds between two events.
    event_elapsed: "hipEventElapsedTime" | "cuEventElapsedTime" = fn(*mut f32, Opaque, Opaque) -> Status;
    /// Ends an event.
    event_destroy: "hipEventDestroy" | "cuEventDestroy_v2" = fn(Opaque) -> Status;
    /// Loads a code object or PTX text that ends with NUL.
    module_load: "hipModuleLoadData" | "cuModuleLoadData" = fn(*mut Opaque, *const c_void) -> Status;
    /// Unloads a module.
    module_unload: "hipModuleUnload" | "cuModuleUnload" = fn(Opaque) -> Status;
    /// A kernel by name.
    module_function: "hipModuleGetFunction" | "cuModuleGetFunction" = fn(*mut Opaque, Opaque, *const c_char) -> Status;
    /// Launches: function, grid, block, shared bytes, stream, parameters, extra.
    launch: "hipModuleLaunchKernel" | "cuLaunchKernel" = fn(
        Opaque, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Opaque,
        *mut *mut c_void, *mut *mut c_void
    ) -> Status;
}

/// Facts of `hipDeviceProp_t` as `hipGetDevicePropertiesR0600` writes it.
pub mod hip_properties {
    /// Size of the structure in HIP 7.1, bytes; give it room for later ones.
    pub const SIZE: usize = 1472;
    /// Offset of `multiProcessorCount`, an `int`.
    pub const MULTIPROCESSORS: usize = 388;
    /// Offset of `gcnArchName`, 256 bytes, NUL-terminated: `gfx942:sramecc+:xnack-`.
    pub const ARCH_NAME: usize = 1160;
}

/// `CU_DEVICE_ATTRIBUTE_*`.
pub mod cuda_attribute {
    /// Number of multiprocessors.
    pub const MULTIPROCESSORS: i32 = 16;
    /// Major number of the compute capability.
    pub const CAPABILITY_MAJOR: i32 = 75;
    /// Minor number of the compute capability.
    pub const CAPABILITY_MINOR: i32 = 76;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flavor_looks_up_its_own_names_and_no_empty_one() {
        for flavor in [Flavor::Hip, Flavor::Cuda] {
            let prefix = match flavor {
                Flavor::Hip => "hip",
                Flavor::Cuda => "cu",
            };
            // SAFETY: nothing is found, so nothing is called.
            let api = unsafe {
                Api::resolve(flavor, |name| {
                    assert!(name.starts_with(prefix), "{name}");
                    None
                })
            };
            assert!(api.init.is_none());
        }
        let names: Vec<_> = NAMES
            .iter()
            .map(|row| row.1)
            .filter(|n| !n.is_empty())
            .collect();
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn the_library_before_libcuda_has_every_name() {
        let source = include_str!("../../../ci/h200/faults.c");
        for (field, _, name) in NAMES.iter().filter(|row| !row.2.is_empty()) {
            let is_there = ["(", ")"]
                .iter()
                .any(|end| source.contains(&format!("{name}{end}")));
            assert!(is_there, "{field}: {name}");
        }
    }
}

#[cfg(test)]
mod header_tests;
