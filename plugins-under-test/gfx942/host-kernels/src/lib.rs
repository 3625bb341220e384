//! The gfx942 plugin's kernels for the host: the mock HIP runtime opens this library and runs
//! them block by block.

use std::ffi::c_char;

/// A kernel; a table of them ends with a null name.
#[repr(C)]
pub struct HostKernel {
    /// Its symbol in the code object, NUL-terminated.
    pub name: *const c_char,
    /// Size of its one parameter, bytes.
    pub parameter_bytes: u64,
    /// Runs one block.
    pub run: Option<unsafe extern "C" fn(parameters: *const u8, x: u32, y: u32, z: u32)>,
}

#[cfg(not(no_kernels))]
mod built {
    use super::HostKernel;

    unsafe extern "C" {
        pub fn dnn_host_table_base() -> *const HostKernel;
        pub fn dnn_host_table_fast() -> *const HostKernel;
        pub fn dnn_host_function_base(mode: u32, x: f64) -> f64;
        pub fn dnn_host_function_fast(mode: u32, x: f64) -> f64;
    }

    pub fn is_fast() -> bool {
        #[cfg(target_arch = "x86_64")]
        return std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("f16c");
        #[cfg(not(target_arch = "x86_64"))]
        true
    }
}

/// The table for this processor; null if there was no C++ compiler.
#[unsafe(no_mangle)]
pub extern "C" fn dnn_assay_host_kernels() -> *const HostKernel {
    #[cfg(no_kernels)]
    return std::ptr::null();
    #[cfg(not(no_kernels))]
    // SAFETY: both functions return the address of a static table.
    unsafe {
        if built::is_fast() {
            built::dnn_host_table_fast()
        } else {
            built::dnn_host_table_base()
        }
    }
}

/// The symbol by which an object of the same source names it, NUL-terminated.
#[unsafe(no_mangle)]
pub extern "C" fn dnn_assay_host_kernels_fingerprint() -> *const c_char {
    concat!(env!("DNN_ASSAY_FINGERPRINT"), "\0").as_ptr().cast()
}

/// The kernels' names.
pub fn names() -> Vec<String> {
    let mut names = Vec::new();
    let mut row = dnn_assay_host_kernels();
    // SAFETY: null, or a static table that ends with a row whose name is null; names are texts.
    unsafe {
        while !row.is_null() && !(*row).name.is_null() {
            let name = std::ffi::CStr::from_ptr((*row).name);
            names.push(name.to_string_lossy().into_owned());
            row = row.add(1);
        }
    }
    names
}

/// A pointwise mode of one operand at `x`, in the arithmetic of the kernels; `None` without
/// kernels. `fast` takes the build for processors with FMA where this is one.
pub fn function(mode: u32, x: f64, fast: bool) -> Option<f64> {
    #[cfg(no_kernels)]
    {
        let _ = (mode, x, fast);
        None
    }
    #[cfg(not(no_kernels))]
    // SAFETY: pure functions of their arguments; the fast one runs only where it can.
    Some(unsafe {
        if fast && built::is_fast() {
            built::dnn_host_function_fast(mode, x)
        } else {
            built::dnn_host_function_base(mode, x)
        }
    })
}
