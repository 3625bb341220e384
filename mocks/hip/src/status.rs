//! `hipError_t`: the values that this runtime returns, their names and texts.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use dnn_assay_abi::gpu::Status;

macro_rules! statuses {
    ($($name:ident = $number:literal, $c_name:literal, $text:literal;)*) => {
        $(pub(crate) const $name: Status = $number;)*

        /// Name and text of a status.
        pub(crate) fn words(status: Status) -> (&'static CStr, &'static CStr) {
            match status {
                $($number => ($c_name, $text),)*
                _ => (c"hipErrorUnknown", c"unknown error"),
            }
        }
    };
}

statuses! {
    SUCCESS = 0, c"hipSuccess", c"no error";
    INVALID_VALUE = 1, c"hipErrorInvalidValue", c"invalid argument";
    OUT_OF_MEMORY = 2, c"hipErrorOutOfMemory", c"out of memory";
    INVALID_DEVICE_FUNCTION = 98, c"hipErrorInvalidDeviceFunction",
        c"the mock HIP runtime cannot run device code that is embedded in a program";
    NO_DEVICE = 100, c"hipErrorNoDevice", c"no ROCm-capable device is detected";
    INVALID_DEVICE = 101, c"hipErrorInvalidDevice", c"invalid device ordinal";
    INVALID_IMAGE = 200, c"hipErrorInvalidImage",
        c"the module is no gfx942 code object of AMDGPU";
    OTHER_SOURCE = 303, c"hipErrorSharedObjectInitFailed",
        c"the code object and the mock HIP runtime's host build of its kernels are of different \
          sources: build the plugin and libdnn_assay_gfx942_host_kernels.so together";
    INVALID_HANDLE = 400, c"hipErrorInvalidHandle", c"invalid resource handle";
    NOT_FOUND = 500, c"hipErrorNotFound",
        c"the module has no such kernel, or the mock HIP runtime has no host build of it";
    NOT_READY = 600, c"hipErrorNotReady", c"device not ready";
    ILLEGAL_ADDRESS = 700, c"hipErrorIllegalAddress", c"an illegal memory access was encountered";
    LAUNCH_FAILURE = 719, c"hipErrorLaunchFailure", c"unspecified launch failure";
}

static STICKY: AtomicBool = AtomicBool::new(false);

thread_local! {
    static LAST: Cell<Status> = const { Cell::new(SUCCESS) };
}

/// From now on every call fails.
pub(crate) fn set_sticky() {
    STICKY.store(true, Ordering::SeqCst);
}

/// What a call returns: its own status, or the sticky error.
pub(crate) fn returned(status: Status) -> Status {
    let status = if STICKY.load(Ordering::SeqCst) {
        ILLEGAL_ADDRESS
    } else {
        status
    };
    if status != SUCCESS && status != NOT_READY {
        LAST.set(status);
    }
    status
}

/// The last error of this thread, which is forgotten if `take`.
pub(crate) fn last(take: bool) -> Status {
    let last = LAST.get();
    if take && !STICKY.load(Ordering::SeqCst) {
        LAST.set(SUCCESS);
    }
    last
}
