//! The exported functions.
//!
//! Pointers are the caller's, with the contracts of `hip_runtime_api.h`; what is null where HIP
//! would write is `hipErrorInvalidValue`.
#![allow(non_snake_case, clippy::missing_safety_doc)]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dnn_assay_abi::gpu::{HostFunction, Opaque, Status, hip_properties};

use crate::knobs::{Invert, PluginFault, knobs};
use crate::status::*;
use crate::{memory, module, stream, visible};

/// Version that this runtime claims: 7.1.0.
const VERSION: c_int = 70_100_000;
const ARCH: &[u8] = b"gfx942:sramecc+:xnack-\0";
const UNITS: i32 = 2;

thread_local! {
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
}

static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// Writes through a pointer of the caller's.
fn put<T>(to: *mut T, value: T) -> Status {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gave a place for one value.
    unsafe { to.write(value) };
    SUCCESS
}

fn of(result: Result<(), Status>) -> Status {
    returned(result.err().unwrap_or(SUCCESS))
}

/// The machine's number of a device.
fn known(device: c_int) -> Result<c_int, Status> {
    let devices = visible::devices();
    if devices.is_empty() || is_lost() {
        return Err(NO_DEVICE);
    }
    let index = usize::try_from(device).map_err(|_| INVALID_DEVICE)?;
    devices.get(index).copied().ok_or(INVALID_DEVICE)
}

/// Whether some process has lost the device.
fn is_lost() -> bool {
    knobs().lost_file.as_ref().is_some_and(|file| file.exists())
}

/// Loses the device, where the knob asks for that.
fn lose() {
    if let Some(file) = &knobs().lost_file {
        let _ = std::fs::write(file, "lost\n");
    }
}

macro_rules! export {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $ret:ty $body:block)*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> $ret $body
        )*
    };
}

// Devices.
export! {
    fn hipInit(flags: c_uint) -> Status {
        let result = if flags == 0 { known(0) } else { Err(INVALID_VALUE) };
        of(result.map(drop))
    }
    fn hipGetDeviceCount(count: *mut c_int) -> Status {
        if let Err(error) = known(0) {
            let _ = put(count, 0);
            return returned(error);
        }
        returned(put(count, visible::devices().len() as c_int))
    }
    fn hipSetDevice(device: c_int) -> Status {
        of(known(device).map(|_| DEVICE.set(device)))
    }
    fn hipGetDevice(device: *mut c_int) -> Status {
        returned(known(0).map_or_else(|error| error, |_| put(device, DEVICE.get())))
    }
    fn hipDriverGetVersion(version: *mut c_int) -> Status { returned(put(version, VERSION)) }
    fn hipRuntimeGetVersion(version: *mut c_int) -> Status { returned(put(version, VERSION)) }
    fn hipDeviceGetName(name: *mut c_char, len: c_int, device: c_int) -> Status {
        returned(text(name, len, device, |_| "DNN Assay mock GPU".to_owned()))
    }
    fn hipDeviceGetPCIBusId(name: *mut c_char, len: c_int, device: c_int) -> Status {
        returned(text(name, len, device, |number| format!("0000:{number:02x}:00.0")))
    }
    fn hipDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> Status {
        let mut value = *b"DNN-ASSAY-MOCK\0\0";
        returned(known(device).map_or_else(|error| error, |number| {
            value[14..].copy_from_slice(&(number as u16).to_be_bytes());
            put(uuid, value)
        }))
    }
    fn hipDeviceTotalMem(bytes: *mut usize, device: c_int) -> Status {
        returned(known(device).map_or_else(|error| error, |_| put(bytes, memory::total())))
    }
    fn hipDeviceGetAttribute(value: *mut c_int, _which: c_int, device: c_int) -> Status {
        returned(known(device).map_or_else(|error| error, |_| put(value, 0)))
    }
    fn hipGetDevicePropertiesR0600(properties: *mut c_void, device: c_int) -> Status {
        if properties.is_null() { return returned(INVALID_VALUE); }
        if let Err(error) = known(device) { return returned(error); }
        use hip_properties::{ARCH_NAME, MULTIPROCESSORS, SIZE};
        let bytes: *mut u8 = properties.cast();
        // SAFETY: the caller gave room for the structure.
        unsafe {
            bytes.write_bytes(0, SIZE);
            bytes.add(ARCH_NAME).copy_from(ARCH.as_ptr(), ARCH.len());
            bytes.add(MULTIPROCESSORS).cast::<i32>().write_unaligned(UNITS);
        }
        returned(SUCCESS)
    }
    fn hipDeviceSynchronize() -> Status {
        stream::wait_for_all();
        returned(SUCCESS)
    }
    fn hipGetErrorString(status: Status) -> *const c_char { words(status).1.as_ptr() }
    fn hipGetErrorName(status: Status) -> *const c_char { words(status).0.as_ptr() }
    fn hipGetLastError() -> Status { last(true) }
    fn hipPeekAtLastError() -> Status { last(false) }
}

fn text(to: *mut c_char, len: c_int, device: c_int, of: impl FnOnce(c_int) -> String) -> Status {
    let text = match known(device) {
        Ok(number) => of(number),
        Err(error) => return error,
    };
    let Ok(len) = usize::try_from(len) else {
        return INVALID_VALUE;
    };
    if to.is_null() || len == 0 {
        return INVALID_VALUE;
    }
    let count = text.len().min(len - 1);
    // SAFETY: the caller gave room for `len` characters.
    unsafe {
        to.cast::<u8>().copy_from(text.as_ptr(), count);
        to.add(count).write(0);
    }
    SUCCESS
}

// Memory.
export! {
    fn hipMalloc(address: *mut *mut c_void, bytes: usize) -> Status {
        if let Err(error) = known(0) { return returned(error); }
        returned(memory::allocate(bytes).map_or_else(|error| error, |at| put(address, at)))
    }
    fn hipFree(address: *mut c_void) -> Status {
        stream::wait_for_all();
        returned(memory::free(address))
    }
    fn hipHostMalloc(address: *mut *mut c_void, bytes: usize, _flags: c_uint) -> Status {
        returned(memory::allocate(bytes).map_or_else(|error| error, |at| put(address, at)))
    }
    fn hipHostFree(address: *mut c_void) -> Status {
        stream::wait_for_all();
        returned(memory::free(address))
    }
    fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> Status {
        let left = memory::total().saturating_sub(memory::used());
        returned(put(free, left).max(put(total, memory::total())))
    }
    fn hipMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, _kind: c_int) -> Status {
        copy(to, from, bytes, std::ptr::null_mut(), true)
    }
    fn hipMemcpyAsync(
        to: *mut c_void, from: *const c_void, bytes: usize, _kind: c_int, stream: Opaque
    ) -> Status {
        copy(to, from, bytes, stream, false)
    }
    fn hipMemcpyHtoD(to: *mut c_void, from: *const c_void, bytes: usize) -> Status {
        copy(to, from, bytes, std::ptr::null_mut(), true)
    }
    fn hipMemcpyDtoH(to: *mut c_void, from: *const c_void, bytes: usize) -> Status {
        copy(to, from, bytes, std::ptr::null_mut(), true)
    }
    fn hipMemcpyHtoDAsync(
        to: *mut c_void, from: *const c_void, bytes: usize, stream: Opaque
    ) -> Status {
        copy(to, from, bytes, stream, false)
    }
    fn hipMemcpyDtoHAsync(
        to: *mut c_void, from: *const c_void, bytes: usize, stream: Opaque
    ) -> Status {
        copy(to, from, bytes, stream, false)
    }
    fn hipMemcpyDtoDAsync(
        to: *mut c_void, from: *const c_void, bytes: usize, stream: Opaque
    ) -> Status {
        copy(to, from, bytes, stream, false)
    }
    fn hipMemset(to: *mut c_void, value: c_int, bytes: usize) -> Status {
        fill(to, value, bytes, std::ptr::null_mut(), true)
    }
    fn hipMemsetAsync(to: *mut c_void, value: c_int, bytes: usize, stream: Opaque) -> Status {
        fill(to, value, bytes, stream, false)
    }
}

/// An address that moves to a stream's thread.
struct Sent(*mut c_void);
// SAFETY: the API's contract is that the memory stays valid until the stream has passed the call.
unsafe impl Send for Sent {}

impl Sent {
    /// The whole value moves into a closure, not the pointer in it.
    fn address(self) -> *mut c_void {
        self.0
    }
}

fn copy(to: *mut c_void, from: *const c_void, bytes: usize, on: Opaque, wait: bool) -> Status {
    if bytes > 0 && (to.is_null() || from.is_null()) {
        return returned(INVALID_VALUE);
    }
    let (to, from) = (Sent(to), Sent(from.cast_mut()));
    queue(on, wait, move || {
        std::thread::sleep(knobs().slow_copy);
        // SAFETY: the caller vouches for both ranges until the stream has passed this copy.
        unsafe {
            to.address()
                .cast::<u8>()
                .copy_from(from.address().cast(), bytes)
        };
    })
}

fn fill(to: *mut c_void, value: c_int, bytes: usize, on: Opaque, wait: bool) -> Status {
    if bytes > 0 && to.is_null() {
        return returned(INVALID_VALUE);
    }
    let to = Sent(to);
    queue(on, wait, move || {
        // SAFETY: the caller vouches for the range until the stream has passed this call.
        unsafe { to.address().cast::<u8>().write_bytes(value as u8, bytes) };
    })
}

fn queue(on: Opaque, wait: bool, job: impl FnOnce() + Send + 'static) -> Status {
    let Some(stream) = stream::find(on) else {
        return returned(INVALID_HANDLE);
    };
    stream.push(job);
    if wait {
        stream.wait();
    }
    returned(SUCCESS)
}

// Streams and events.
export! {
    fn hipStreamCreate(out: *mut Opaque) -> Status { returned(put(out, stream::create())) }
    fn hipStreamCreateWithFlags(out: *mut Opaque, _flags: c_uint) -> Status {
        returned(put(out, stream::create()))
    }
    fn hipStreamDestroy(stream: Opaque) -> Status {
        returned(if stream::destroy(stream) { SUCCESS } else { INVALID_HANDLE })
    }
    fn hipStreamSynchronize(stream: Opaque) -> Status {
        let Some(stream) = stream::find(stream) else { return returned(INVALID_HANDLE) };
        stream.wait();
        returned(SUCCESS)
    }
    fn hipLaunchHostFunc(stream: Opaque, function: Option<HostFunction>, data: *mut c_void) -> Status {
        let Some(function) = function else { return returned(INVALID_VALUE) };
        let data = Sent(data);
        queue(stream, false, move || {
            // SAFETY: the caller gave a function for this data.
            unsafe { function(data.address()) };
        })
    }
    fn hipStreamQuery(stream: Opaque) -> Status {
        let Some(stream) = stream::find(stream) else { return returned(INVALID_HANDLE) };
        returned(if stream.is_idle() { SUCCESS } else { NOT_READY })
    }
    fn hipStreamWaitEvent(stream: Opaque, event: Opaque, _flags: c_uint) -> Status {
        match (stream::find(stream), stream::find_event(event)) {
            (Some(stream), Some(event)) => {
                stream.push(move || event.wait());
                returned(SUCCESS)
            }
            _ => returned(INVALID_HANDLE),
        }
    }
    fn hipEventCreate(out: *mut Opaque) -> Status { returned(put(out, stream::create_event())) }
    fn hipEventCreateWithFlags(out: *mut Opaque, _flags: c_uint) -> Status {
        returned(put(out, stream::create_event()))
    }
    fn hipEventDestroy(event: Opaque) -> Status {
        returned(if stream::destroy_event(event) { SUCCESS } else { INVALID_HANDLE })
    }
    fn hipEventRecord(event: Opaque, stream: Opaque) -> Status {
        match (stream::find(stream), stream::find_event(event)) {
            (Some(stream), Some(event)) => {
                event.record(&stream);
                returned(SUCCESS)
            }
            _ => returned(INVALID_HANDLE),
        }
    }
    fn hipEventQuery(event: Opaque) -> Status {
        let Some(event) = stream::find_event(event) else { return returned(INVALID_HANDLE) };
        returned(if event.is_reached() { SUCCESS } else { NOT_READY })
    }
    fn hipEventSynchronize(event: Opaque) -> Status {
        let Some(event) = stream::find_event(event) else { return returned(INVALID_HANDLE) };
        event.wait();
        returned(SUCCESS)
    }
    fn hipEventElapsedTime(milliseconds: *mut f32, from: Opaque, to: Opaque) -> Status {
        let at = |event| stream::find_event(event).map(|event| event.at());
        match (at(from), at(to)) {
            (Some(Some(from)), Some(Some(to))) => {
                let elapsed = to.saturating_duration_since(from).as_secs_f32() * 1e3;
                returned(put(milliseconds, elapsed))
            }
            (Some(_), Some(_)) => returned(NOT_READY),
            _ => returned(INVALID_HANDLE),
        }
    }
}

// Modules and launches.
export! {
    fn hipModuleLoadData(out: *mut Opaque, image: *const c_void) -> Status {
        if let Err(error) = known(0) { return returned(error); }
        // SAFETY: the caller gives a whole code object.
        let loaded = unsafe { module::load(image) };
        returned(loaded.map_or_else(|error| error, |module| put(out, module)))
    }
    fn hipModuleUnload(module: Opaque) -> Status {
        returned(if module::unload(module) { SUCCESS } else { INVALID_HANDLE })
    }
    fn hipModuleGetFunction(out: *mut Opaque, module: Opaque, name: *const c_char) -> Status {
        if name.is_null() { return returned(INVALID_VALUE); }
        // SAFETY: the caller gives a NUL-terminated name.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let found = module::function(module, &name);
        returned(found.map_or_else(|error| error, |function| put(out, function)))
    }
    fn hipModuleLaunchKernel(
        function: Opaque, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint, _shared: c_uint, stream: Opaque,
        parameters: *mut *mut c_void, _extra: *mut *mut c_void
    ) -> Status {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        returned(launch(function, grid, block, stream, parameters).err().unwrap_or(SUCCESS))
    }
}

fn launch(
    function: Opaque,
    grid: [u32; 3],
    block: [u32; 3],
    on: Opaque,
    parameters: *mut *mut c_void,
) -> Result<(), Status> {
    let kernel = module::kernel(function).ok_or(INVALID_HANDLE)?;
    let given = stream::find(on).ok_or(INVALID_HANDLE)?;
    // The host's kernels are made for one block size.
    if block != [256, 1, 1] || grid.contains(&0) || parameters.is_null() {
        return Err(INVALID_VALUE);
    }
    if kernel.is_own {
        // The faults are the plugin's, or the device's under it.
        // SAFETY: the first parameter is a structure of the size that the kernel declares.
        let mut work = unsafe { Work::new(kernel, grid, parameters) };
        given.push(move || work.run());
        return Ok(());
    }
    let plugin = knobs().plugin;
    let stream = match plugin {
        Some(PluginFault::DefaultStream) => stream::find(std::ptr::null_mut()),
        Some(PluginFault::UnjoinedStream) => stream::find(stream::create()),
        _ => Some(given),
    };
    let stream = stream.ok_or(INVALID_HANDLE)?;
    let number = LAUNCHES.fetch_add(1, Ordering::SeqCst) + 1;
    if knobs().fail_launch == Some(number) {
        return Err(LAUNCH_FAILURE);
    }
    if let Some(file) = &knobs().ras_file {
        let _ = std::fs::write(file, format!("ue: 0\nce: {number}\n"));
    }
    let here = known(DEVICE.get())?;
    match plugin {
        _ if knobs().faulty_device == Some(here) => return Ok(()),
        Some(PluginFault::LostError) => return Ok(()),
        Some(PluginFault::Leak) => drop(memory::allocate(1)?),
        _ => {}
    }
    if knobs().sticky_at == Some(number) {
        set_sticky();
        lose();
        return Err(ILLEGAL_ADDRESS);
    }
    let hangs = knobs().hang_launch == Some(number);
    // SAFETY: the first parameter is a structure of the size that the kernel declares.
    let mut work = unsafe { Work::new(kernel, grid, parameters) };
    stream.push(move || {
        std::thread::sleep(knobs().slow_kernel);
        if hangs {
            lose();
            // For ever: a kernel that never ends.
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        match plugin {
            Some(PluginFault::Short) => work.blocks -= 1,
            Some(PluginFault::Invert(poke)) => work.invert = Some(poke),
            _ => {}
        }
        work.run();
    });
    // A stray stream is either done before anybody looks or slow: what is found is the same each time.
    let is_done_at_once = match plugin {
        Some(PluginFault::Wait) => true,
        Some(PluginFault::UnjoinedStream) => knobs().slow_kernel.is_zero(),
        _ => false,
    };
    if is_done_at_once {
        stream.wait();
    }
    Ok(())
}

/// A kernel on its way.
struct Work {
    kernel: module::Kernel,
    grid: [u32; 3],
    /// How many blocks of the grid run, in their order.
    blocks: u64,
    /// In units of eight bytes, because the parameters hold pointers and doubles.
    parameters: Vec<u64>,
    /// What a faulty kernel does besides.
    invert: Option<Invert>,
}

impl Work {
    /// Copies the parameters now, because the caller's need not outlive the call.
    ///
    /// # Safety
    /// The first parameter is a structure of the size that the kernel declares.
    unsafe fn new(kernel: module::Kernel, grid: [u32; 3], parameters: *mut *mut c_void) -> Self {
        let mut words = vec![0u64; kernel.parameter_bytes.div_ceil(8)];
        // SAFETY: forwarded; the words are as many bytes or more.
        unsafe {
            let from: *const u8 = (*parameters).cast();
            let to: *mut u8 = words.as_mut_ptr().cast();
            to.copy_from(from, kernel.parameter_bytes);
        }
        Self {
            kernel,
            grid,
            blocks: grid.iter().map(|n| u64::from(*n)).product(),
            parameters: words,
            invert: None,
        }
    }

    fn run(&mut self) {
        let [x, y, z] = self.grid;
        let blocks = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| (z, y, x))));
        for (z, y, x) in blocks.take(self.blocks as usize) {
            // SAFETY: the parameters are the caller's; what they point to is checked by guards.
            unsafe { (self.kernel.run)(self.parameters.as_ptr().cast(), x, y, z) };
        }
        let Some(Invert {
            word,
            offset,
            count,
        }) = self.invert
        else {
            return;
        };
        let Some(base) = self.parameters.get(word) else {
            return;
        };
        for at in 0..count {
            let address = base.wrapping_add_signed(offset + at);
            let byte: *mut u8 = std::ptr::with_exposed_provenance_mut(address as usize);
            // SAFETY: none can be given: this is the fault that was asked for. Memory of this
            // runtime ends in inaccessible pages, so at worst the worker dies.
            unsafe { byte.write(!byte.read()) };
        }
    }
}

// What the compiler's `<<<>>>` calls.
export! {
    fn __hipRegisterFatBinary(data: *const c_void) -> *mut *mut c_void {
        data.cast_mut().cast()
    }
    fn __hipUnregisterFatBinary(_modules: *mut *mut c_void) -> () {}
    fn __hipRegisterFunction(
        _modules: *mut *mut c_void, _host: *const c_void, _device: *mut c_char,
        _name: *const c_char, _limit: c_uint, _tid: *mut c_void, _bid: *mut c_void,
        _block: *mut c_void, _grid: *mut c_void, _wave: *mut c_int
    ) -> () {}
    fn __hipRegisterVar(
        _modules: *mut *mut c_void, _variable: *mut c_void, _host: *mut c_char,
        _device: *const c_char, _external: c_int, _size: usize, _constant: c_int, _global: c_int
    ) -> () {}
    fn hipLaunchKernel(
        _function: *const c_void, _grid: Extent, _block: Extent,
        _parameters: *mut *mut c_void, _shared: usize, _stream: Opaque
    ) -> Status {
        returned(INVALID_DEVICE_FUNCTION)
    }
    fn __hipPushCallConfiguration(
        grid: Extent, block: Extent, shared: usize, stream: Opaque
    ) -> Status {
        CONFIGURATION.set((grid, block, shared, stream));
        returned(SUCCESS)
    }
    fn __hipPopCallConfiguration(
        grid: *mut Extent, block: *mut Extent, shared: *mut usize, stream: *mut Opaque
    ) -> Status {
        let last = CONFIGURATION.get();
        let all = [
            put(grid, last.0), put(block, last.1), put(shared, last.2), put(stream, last.3),
        ];
        returned(all.into_iter().max().unwrap_or(SUCCESS))
    }
}

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

thread_local! {
    static CONFIGURATION: Cell<(Extent, Extent, usize, Opaque)> = const {
        let one = Extent { x: 1, y: 1, z: 1 };
        Cell::new((one, one, 0, std::ptr::null_mut()))
    };
}
