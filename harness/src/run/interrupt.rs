//! Ctrl-C and SIGTERM: the first asks the run to stop and report, the second ends it at once.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Installs the handler (once per process; later calls are no error) and gives the flag that it
/// sets.
pub fn on_interrupt() -> &'static AtomicBool {
    // A second installation fails, and then the first one is in force: what is wanted.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(crate::exit::Exit::Interrupted.code()));
        }
    });
    &INTERRUPTED
}
