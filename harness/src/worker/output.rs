//! The plugin's standard output and error: drained always, kept a little, capped.

use std::collections::VecDeque;
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};

/// Bytes of standard error that are kept.
const TAIL: usize = 16 << 10;

#[derive(Debug, Default)]
struct State {
    /// Bytes since the case began.
    written: u64,
    tail: VecDeque<u8>,
    flooded: bool,
    closed: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    cap: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a thread collects from a worker's two pipes.
#[derive(Clone, Debug)]
pub(super) struct Output {
    shared: Arc<Shared>,
}

impl Output {
    /// Drains `pipes` (standard output, standard error) until both end. A worker that writes
    /// more than `cap` bytes in one case is killed through `process`.
    pub fn drain(pipes: [PipeReader; 2], process: OwnedFd, cap: u64) -> io::Result<Self> {
        let output = Self::none(cap);
        output.shared.lock().closed = false;
        let shared = Arc::clone(&output.shared);
        thread::Builder::new()
            .name("worker-output".to_owned())
            .spawn(move || {
                drain(pipes, &process, &shared);
                shared.lock().closed = true;
                shared.changed.notify_all();
            })?;
        Ok(output)
    }

    /// For a worker whose output goes to the terminal.
    pub fn none(cap: u64) -> Self {
        let state = State {
            closed: true,
            ..State::default()
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                changed: Condvar::new(),
                cap,
            }),
        }
    }

    /// A case begins: counting and the tail start anew.
    pub fn begin_case(&self) {
        let mut state = self.shared.lock();
        state.written = 0;
        state.tail.clear();
    }

    /// The cap that was broken, if it was.
    pub fn flooded(&self) -> Option<u64> {
        self.shared.lock().flooded.then_some(self.shared.cap)
    }

    /// The last of standard error. Waits up to `patience` for the pipes to end, so that the
    /// last words of a dead process are in.
    pub fn tail(&self, patience: Duration) -> String {
        let state = self.shared.lock();
        let (mut state, _) = self
            .shared
            .changed
            .wait_timeout_while(state, patience, |state| !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(state.tail.make_contiguous()).into_owned()
    }
}

fn drain(pipes: [PipeReader; 2], process: &OwnedFd, shared: &Shared) {
    let mut pipes = pipes.map(Some);
    let mut buffer = vec![0; 64 << 10];
    while pipes.iter().any(Option::is_some) {
        let open: Vec<usize> = (0..2).filter(|&i| pipes[i].is_some()).collect();
        let mut fds: Vec<_> = pipes
            .iter()
            .flatten()
            .map(|pipe| PollFd::new(pipe, PollFlags::IN))
            .collect();
        if !matches!(poll(&mut fds, None), Ok(_) | Err(rustix::io::Errno::INTR)) {
            return;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (i, _) in open.into_iter().zip(ready).filter(|(_, ready)| *ready) {
            let count = match pipes[i].as_mut().map(|pipe| pipe.read(&mut buffer)) {
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Some(Ok(count)) => count,
                _ => 0,
            };
            match count {
                0 => pipes[i] = None,
                _ => note(shared, process, &buffer[..count], i == 1),
            }
        }
    }
}

fn note(shared: &Shared, process: &OwnedFd, bytes: &[u8], is_error: bool) {
    let mut state = shared.lock();
    state.written += bytes.len() as u64;
    if is_error {
        state.tail.extend(bytes);
        let excess = state.tail.len().saturating_sub(TAIL);
        state.tail.drain(..excess);
    }
    if state.written > shared.cap && !state.flooded {
        state.flooded = true;
        // It may have ended by itself in the meantime; then there is nothing to kill.
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}
