//! The worker's line to its parent, and the log callback that writes to it from any thread.

use std::ffi::c_char;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dnn_assay_abi::Severity;
use rustix::process::{Pid, getpid};
use serde::Serialize;

use super::text;
use crate::worker::channel;
use crate::worker::outcome::LogLine;
use crate::worker::protocol::Message;

/// Lines and bytes of log that one case may send. Below what the socket holds, so that a parent
/// that is busy with the reference does not stop the plugin.
const MAX_LINES: u32 = 200;
const MAX_BYTES: usize = 48 << 10;

/// Set once; the callback has no argument to find it by.
static LINE: OnceLock<Line> = OnceLock::new();

/// The socket, shared by the serving thread and the plugin's threads.
pub(in crate::worker) struct Line {
    socket: UnixStream,
    nonce: u64,
    process: Pid,
    quota: Mutex<Quota>,
}

#[derive(Default)]
struct Quota {
    lines: u32,
    bytes: usize,
    dropped: u64,
}

impl Line {
    /// Opens the one line of this process.
    pub fn open(socket: UnixStream, nonce: u64) -> &'static Self {
        LINE.get_or_init(|| Self {
            socket,
            nonce,
            process: getpid(),
            quota: Mutex::default(),
        })
    }

    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    pub fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Writes one message; frames of different threads do not mix.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let _turn = self.quota();
        channel::send(&self.socket, self.nonce, message)
    }

    /// A case begins: its quota is fresh.
    pub fn begin_case(&self) {
        *self.quota() = Quota::default();
    }

    /// Lines beyond the quota since the case began.
    pub fn dropped(&self) -> u64 {
        self.quota().dropped
    }

    fn quota(&self) -> MutexGuard<'_, Quota> {
        self.quota.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, line: LogLine) {
        // A fork of this process has our socket but is not us.
        if getpid() != self.process {
            return;
        }
        let mut quota = self.quota();
        let bytes = quota.bytes + line.text.len() + 64;
        if quota.lines >= MAX_LINES || bytes > MAX_BYTES {
            quota.dropped += 1;
            return;
        }
        quota.lines += 1;
        quota.bytes = bytes;
        // A parent that is gone is noticed by the serving thread.
        let _ = channel::send(&self.socket, self.nonce, &Message::Log(line));
    }
}

/// The process's line, if it is open.
pub(super) fn line() -> Option<&'static Line> {
    LINE.get()
}

/// `hipdnnCallback_t`.
///
/// # Safety
/// `message` is NULL or a NUL-terminated text.
pub(super) unsafe extern "C-unwind" fn callback(severity: Severity, message: *const c_char) {
    // SAFETY: the ABI's contract of the callback.
    let text = unsafe { text::copy(message) };
    if let (Some(line), Some(text)) = (LINE.get(), text) {
        line.log(LogLine {
            severity: severity.0,
            text,
        });
    }
}
