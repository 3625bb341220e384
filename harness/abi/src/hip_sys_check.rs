//! Proof, at compile time, that our function types are those of `hip-runtime-sys`: the same number
//! of arguments, each passed as ours is. Built with the feature `hip-sys-check` only, because that
//! crate needs HIP's headers.

use std::ffi::{c_char, c_int, c_void};

use hip_runtime_sys as hip;

use crate::gpu::{Address, Api, HostFunction, Opaque};

/// A type of theirs that the C ABI passes as `Ours`: a pointer for a pointer, an enumeration for
/// its integer.
trait PassedAs<Ours> {}

macro_rules! passed_as {
    ($($theirs:ty => $ours:ty;)*) => {$(
        impl PassedAs<$ours> for $theirs {}
        const _: () = {
            assert!(size_of::<$theirs>() == size_of::<$ours>());
            assert!(align_of::<$theirs>() == align_of::<$ours>());
        };
    )*};
}

impl<T> PassedAs<T> for T {}
passed_as! {
    hip::hipError_t => c_int;
    hip::hipDeviceAttribute_t => c_int;
    hip::hipStream_t => Opaque;
    hip::hipEvent_t => Opaque;
    hip::hipModule_t => Opaque;
    hip::hipFunction_t => Opaque;
    *mut hip::hipStream_t => *mut Opaque;
    *mut hip::hipEvent_t => *mut Opaque;
    *mut hip::hipModule_t => *mut Opaque;
    *mut hip::hipFunction_t => *mut Opaque;
    *mut hip::hipUUID => *mut [u8; 16];
    *mut *mut c_void => *mut Address;
    hip::hipDeviceptr_t => Address;
    *mut c_void => *const c_void;
    hip::hipHostFn_t => HostFunction;
}
const _: () = assert!(size_of::<hip::hipUUID>() == 16 && size_of::<c_char>() == 1);

/// A function of theirs against a row of our table.
trait SameFunction<Ours> {}

macro_rules! same_function {
    ($($($theirs:ident: $ours:ident),*;)*) => {$(
        impl<$($theirs, $ours,)* R, S> SameFunction<Option<unsafe extern "C" fn($($ours),*) -> S>>
            for unsafe extern "C" fn($($theirs),*) -> R
        where
            $($theirs: PassedAs<$ours>,)*
            R: PassedAs<S>,
        {
        }
    )*};
}
same_function! {
    ;
    A: A1;
    A: A1, B: B1;
    A: A1, B: B1, C: C1;
    A: A1, B: B1, C: C1, D: D1;
    A: A1, B: B1, C: C1, D: D1, E: E1, F: F1, G: G1, H: H1, I: I1, J: J1, K: K1;
}

fn same<Ours, Theirs: SameFunction<Ours>>(_: &Ours, _: Theirs) {}

macro_rules! rows {
    ($($field:ident = $name:ident($($blank:tt),*);)*) => {
        /// Compiles only where every row has the type of its function.
        #[allow(dead_code, reason = "being compiled is its purpose")]
        fn proof(api: &Api) {
            $({
                let theirs: unsafe extern "C" fn($($blank),*) -> _ = hip::$name;
                same(&api.$field, theirs);
            })*
        }

        /// Field and HIP name of every row that the proof is of.
        #[cfg(test)]
        const PROVEN: &[(&str, &str)] = &[$((stringify!($field), stringify!($name))),*];
    };
}
rows! {
    init = hipInit(_);
    device_count = hipGetDeviceCount(_);
    current_device = hipGetDevice(_);
    set_device = hipSetDevice(_);
    device_name = hipDeviceGetName(_, _, _);
    attribute = hipDeviceGetAttribute(_, _, _);
    total_memory = hipDeviceTotalMem(_, _);
    uuid = hipDeviceGetUuid(_, _);
    pci_bus_id = hipDeviceGetPCIBusId(_, _, _);
    driver_version = hipDriverGetVersion(_);
    runtime_version = hipRuntimeGetVersion(_);
    memory_info = hipMemGetInfo(_, _);
    allocate = hipMalloc(_, _);
    free = hipFree(_);
    copy_in = hipMemcpyHtoDAsync(_, _, _, _);
    copy_out = hipMemcpyDtoHAsync(_, _, _, _);
    copy_within = hipMemcpyDtoDAsync(_, _, _, _);
    stream_create = hipStreamCreateWithFlags(_, _);
    stream_destroy = hipStreamDestroy(_);
    launch_host = hipLaunchHostFunc(_, _, _);
    stream_synchronize = hipStreamSynchronize(_);
    synchronize = hipDeviceSynchronize();
    event_create = hipEventCreateWithFlags(_, _);
    event_record = hipEventRecord(_, _);
    event_query = hipEventQuery(_);
    event_synchronize = hipEventSynchronize(_);
    event_elapsed = hipEventElapsedTime(_, _, _);
    event_destroy = hipEventDestroy(_);
    module_load = hipModuleLoadData(_, _);
    module_unload = hipModuleUnload(_);
    module_function = hipModuleGetFunction(_, _, _);
    launch = hipModuleLaunchKernel(_, _, _, _, _, _, _, _, _, _, _);
}

/// Written out, because its argument is an enumeration for which our integers have more values.
const _: () = {
    type Theirs = unsafe extern "C" fn(hip::hipError_t) -> *const c_char;
    let _: Theirs = hip::hipGetErrorString;
};

#[cfg(test)]
mod tests {
    use super::PROVEN;
    use crate::gpu::NAMES;

    /// Rows that `hip-runtime-sys` cannot speak of: it is older, or has them written out above.
    const OTHERS: &[&str] = &["hipGetDevicePropertiesR0600", "hipGetErrorString"];

    #[test]
    fn every_row_with_a_hip_name_is_proven() {
        for (field, name, _) in NAMES.iter().filter(|row| !row.1.is_empty()) {
            let proven = PROVEN.contains(&(field, name));
            assert!(proven != OTHERS.contains(name), "{field}: {name}");
        }
    }
}
