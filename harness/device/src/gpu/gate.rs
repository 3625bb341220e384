//! A gate in a stream: a host function that the stream waits in until it is let go, or until
//! patience is at its end.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use dnn_assay_abi::gpu::Opaque;

use super::driver::{Driver, call};
use crate::backend::DeviceError;

/// How long a gate stays shut by itself: a plugin that waits for its stream inside an execution
/// would wait for ever.
const PATIENCE: Duration = Duration::from_millis(500);

/// A gate that was put into a stream.
#[derive(Debug)]
pub(super) struct Gate(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Shut,
    Open,
    /// Patience ended before anybody opened it.
    Impatient,
}

impl Gate {
    /// Puts a gate into `stream`.
    pub(super) fn put(driver: &Driver, stream: Opaque) -> Result<Self, DeviceError> {
        let shared = Arc::new(Shared::default());
        // The stream's own share, given back by `pass`.
        let its = Arc::into_raw(shared.clone()).cast_mut().cast::<c_void>();
        call!(driver, launch_host(stream, pass, its)).inspect_err(|_| {
            // SAFETY: the driver refused, so `pass` will not be called with this share.
            drop(unsafe { Arc::from_raw(its.cast_const().cast::<Shared>()) });
        })?;
        Ok(Self(shared))
    }

    /// Whether nobody has passed yet.
    pub(super) fn is_shut(&self) -> bool {
        *self.0.lock() == State::Shut
    }

    /// Lets the stream go on.
    pub(super) fn open(&self) {
        let mut state = self.0.lock();
        if *state == State::Shut {
            *state = State::Open;
        }
        self.0.changed.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the stream calls.
unsafe extern "C" fn pass(shared: *mut c_void) {
    // SAFETY: `put` gave the stream one share of the gate, and a stream calls this once.
    let shared = unsafe { Arc::from_raw(shared.cast_const().cast::<Shared>()) };
    let state = shared.lock();
    let waited = shared
        .changed
        .wait_timeout_while(state, PATIENCE, |state| *state == State::Shut);
    let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    if *state == State::Shut {
        *state = State::Impatient;
    }
}
