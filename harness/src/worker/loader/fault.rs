//! Telling the parent the address of a fault, so that a guard that was hit has a name.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::ptr;

use crate::worker::channel::HEADER;
use crate::worker::protocol::Message;

/// Installs the handler for SIGSEGV and SIGBUS. The handler reports and then lets the default
/// action end the process with the signal, as if it had not been there.
pub(in crate::worker) fn report() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: an all-zero sigaction is a valid value (default action, empty mask).
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
        // SAFETY: the handler does nothing that is not async-signal-safe.
        unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
    }
}

/// Writes one frame to the socket and returns; the access then faults again and SA_RESETHAND
/// has restored the default action.
extern "C" fn on_fault(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let Some(line) = super::log::line() else {
        return;
    };
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo; SIGSEGV and SIGBUS carry an
    // address (0 where they were sent by hand).
    let address = unsafe { (*info).si_addr() } as u64;
    let mut frame = [0; HEADER + 24];
    frame[4..HEADER].copy_from_slice(&line.nonce().to_le_bytes());
    let Ok(payload) = postcard::to_slice(&Message::Fault(address), &mut frame[HEADER..]) else {
        return;
    };
    let length = payload.len();
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    let _ = rustix::io::write(line.socket().as_fd(), &frame[..HEADER + length]);
}
