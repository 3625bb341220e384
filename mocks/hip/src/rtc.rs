//! A stand-in for hipRTC. It compiles nothing: its "code object" names the kernels that the source
//! declares with `DNN_KERNEL`, and those run from the host's build as the others do.

#![allow(non_snake_case, clippy::missing_safety_doc)]

use std::ffi::{CStr, c_char, c_int};
use std::sync::Mutex;

/// First bytes of such a code object; then names, one per line, and NUL.
pub(crate) const MAGIC: &[u8] = b"DNN-ASSAY-MOCK-CODE\n";

const SUCCESS: c_int = 0;
const COMPILATION: c_int = 6;
const INVALID_PROGRAM: c_int = 4;

struct Program {
    source: String,
    fingerprint: String,
    code: Vec<u8>,
    log: String,
}

static PROGRAMS: Mutex<Vec<Program>> = Mutex::new(Vec::new());

type Handle = *mut std::ffi::c_void;

fn with(program: Handle, act: impl FnOnce(&mut Program) -> c_int) -> c_int {
    let mut programs = PROGRAMS.lock().unwrap_or_else(|e| e.into_inner());
    match programs.get_mut(program.addr().wrapping_sub(1)) {
        Some(program) => act(program),
        None => INVALID_PROGRAM,
    }
}

fn compile(program: &mut Program, options: &[String]) -> c_int {
    let arch = options
        .iter()
        .find_map(|option| option.strip_prefix("--offload-arch="));
    if !arch.is_some_and(|arch| arch.starts_with("gfx942")) {
        program.log = format!("the mock of hipRTC makes code for gfx942 only, not for {arch:?}\n");
        return COMPILATION;
    }
    program.code = MAGIC.to_vec();
    program.code.extend(program.fingerprint.bytes());
    program.code.push(b'\n');
    for line in program.source.lines() {
        let of = |prefix: &str| line.strip_prefix(prefix);
        let rest =
            of("DNN_KERNEL(").or_else(|| of("DNN_KERNEL_OF(")?.split_once(", ").map(|p| p.1));
        if let Some((name, _)) = rest.and_then(|rest| rest.split_once(',')) {
            program.code.extend(name.trim().bytes());
            program.code.push(b'\n');
        }
    }
    program.code.push(0);
    SUCCESS
}

/// # Safety
/// `to` has room for the bytes.
unsafe fn give(to: *mut c_char, bytes: &[u8]) -> c_int {
    // SAFETY: forwarded.
    unsafe { to.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len()) };
    SUCCESS
}

/// `hiprtcVersion`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int {
    // SAFETY: the caller gives places for both.
    unsafe {
        major.write(7);
        minor.write(1);
    }
    SUCCESS
}

/// `hiprtcGetErrorString`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetErrorString(status: c_int) -> *const c_char {
    match status {
        SUCCESS => c"HIPRTC_SUCCESS",
        COMPILATION => c"HIPRTC_ERROR_COMPILATION",
        _ => c"HIPRTC_ERROR_INVALID_PROGRAM",
    }
    .as_ptr()
}

/// `hiprtcCreateProgram`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcCreateProgram(
    program: *mut Handle,
    source: *const c_char,
    name: *const c_char,
    headers: c_int,
    texts: *const *const c_char,
    names: *const *const c_char,
) -> c_int {
    // SAFETY: the caller gives NUL-terminated texts, as many headers and names of them as it says,
    // and a place for the program.
    unsafe {
        let text = |text| CStr::from_ptr(text).to_string_lossy().into_owned();
        let source = text(source);
        let mut all = vec![(text(name), source.clone())];
        for i in 0..headers.max(0) as usize {
            all.push((text(*names.add(i)), text(*texts.add(i))));
        }
        let all = all
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        let mut programs = PROGRAMS.lock().unwrap_or_else(|e| e.into_inner());
        programs.push(Program {
            fingerprint: dnn_assay_kernel_build::fingerprint(all),
            source,
            code: Vec::new(),
            log: String::new(),
        });
        program.write(std::ptr::without_provenance_mut(programs.len()));
    }
    SUCCESS
}

/// `hiprtcCompileProgram`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcCompileProgram(
    program: Handle,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    let options: Vec<String> = (0..count.max(0) as usize)
        .map(|i| {
            // SAFETY: the caller gives `count` NUL-terminated options.
            unsafe { CStr::from_ptr(*options.add(i)) }
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    with(program, |program| compile(program, &options))
}

/// `hiprtcGetProgramLogSize`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetProgramLogSize(program: Handle, size: *mut usize) -> c_int {
    with(program, |program| {
        // SAFETY: the caller gives a place for the size.
        unsafe { size.write(program.log.len() + 1) };
        SUCCESS
    })
}

/// `hiprtcGetProgramLog`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetProgramLog(program: Handle, log: *mut c_char) -> c_int {
    // SAFETY: the caller gives as much room as it was told.
    with(program, |program| unsafe {
        give(log, &[program.log.as_bytes(), &[0]].concat())
    })
}

/// `hiprtcGetCodeSize`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetCodeSize(program: Handle, size: *mut usize) -> c_int {
    with(program, |program| {
        // SAFETY: the caller gives a place for the size.
        unsafe { size.write(program.code.len()) };
        SUCCESS
    })
}

/// `hiprtcGetCode`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetCode(program: Handle, code: *mut c_char) -> c_int {
    // SAFETY: the caller gives as much room as it was told.
    with(program, |program| unsafe { give(code, &program.code) })
}

/// `hiprtcDestroyProgram`; the number of a program is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcDestroyProgram(program: *mut Handle) -> c_int {
    // SAFETY: the caller gives the place of its program.
    unsafe { program.write(std::ptr::null_mut()) };
    SUCCESS
}
