//! The first line of every `main`: become a worker if that is what this process is for.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use super::loader::bare_thread;
use super::protocol::{COMMAND, CONTROL_VARIABLE};
use super::serve::serve;

/// Exit code of a worker that cannot reach its parent.
const NO_PARENT: i32 = 111;

/// Serves as a worker and never returns, if this process was started as one: its first argument
/// is `worker` and the control variable is set. Else does nothing.
///
/// Call it first thing in `main`, in test binaries too: workers are this executable again.
pub fn worker_entry() {
    if std::env::args_os()
        .nth(1)
        .is_none_or(|word| word != COMMAND)
    {
        return;
    }
    super::probe::probe_entry();
    let Ok(variable) = std::env::var(CONTROL_VARIABLE) else {
        return;
    };
    let Some((control, nonce, wrapped)) = connect(&variable) else {
        std::process::exit(NO_PARENT);
    };
    // A worker must not outlive its parent, hung or not. The socket's end tells the others.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if !wrapped {
        // Crashes are expected here; no dumps in the user's folders.
        let none = Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        let _ = setrlimit(Resource::Core, none);
    }
    // The plugin is driven from a thread with nothing above it that could catch an exception: a
    // C++ runtime then says what was thrown before it aborts.
    let code = bare_thread::run(move || serve(control, nonce));
    std::process::exit(code)
}

/// The socket named by `<descriptor>:<nonce>`, moved out of the way of standard input.
fn connect(variable: &str) -> Option<(UnixStream, u64, bool)> {
    let (number, nonce) = variable.split_once(':')?;
    let number: i32 = number.parse().ok()?;
    let nonce = u64::from_str_radix(nonce, 16).ok()?;
    let control: OwnedFd = dnn_assay_device::adopt_descriptor(number).ok()?;
    let on_stdin = number == 0;
    if on_stdin {
        let null = File::open("/dev/null").ok()?;
        rustix::stdio::dup2_stdin(&null).ok()?;
    }
    Some((UnixStream::from(control), nonce, !on_stdin))
}
