//! A thread without a catch-all at its root.

use std::ffi::c_void;

type Job<'a> = Box<dyn FnOnce() -> i32 + Send + 'a>;

struct Shared<'a> {
    job: Option<Job<'a>>,
    code: i32,
}

/// Runs `job` on a thread made by pthread_create and waits for it.
///
/// Threads of the standard library, and `main` itself, catch whatever unwinds to their root. A
/// foreign exception would be "caught" there and the process aborted with no word of what it
/// was. Here the search for a handler ends at the bottom of the stack, and the C++ runtime
/// calls its terminate handler, which prints the exception's type and text.
pub(in crate::worker) fn run(job: impl FnOnce() -> i32 + Send) -> i32 {
    let mut shared = Shared {
        job: Some(Box::new(job)),
        code: 1,
    };
    let mut thread: libc::pthread_t = 0;
    // SAFETY: the two types differ in what they say about unwinding only. Nothing that unwinds
    // reaches the C library's frame: the search phase finds no handler and stops.
    let start = unsafe {
        std::mem::transmute::<
            unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
            extern "C" fn(*mut c_void) -> *mut c_void,
        >(start)
    };
    // SAFETY: `shared` outlives the thread, which is joined below, and is not touched meanwhile.
    let error = unsafe {
        libc::pthread_create(
            &mut thread,
            std::ptr::null(),
            start,
            (&raw mut shared).cast(),
        )
    };
    if error != 0 {
        return shared.job.take().map_or(1, |job| job());
    }
    // SAFETY: a joinable thread, joined once.
    unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
    shared.code
}

/// # Safety
/// `shared` points to a [`Shared`] that nobody else uses until this thread is joined.
unsafe extern "C-unwind" fn start(shared: *mut c_void) -> *mut c_void {
    // SAFETY: as the function's contract says.
    let shared = unsafe { &mut *shared.cast::<Shared<'_>>() };
    if let Some(job) = shared.job.take() {
        shared.code = job();
    }
    std::ptr::null_mut()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_job_runs_elsewhere_and_its_code_comes_back() {
        let here = std::thread::current().id();
        let code = super::run(|| i32::from(std::thread::current().id() != here) + 6);
        assert_eq!(code, 7);
    }
}
