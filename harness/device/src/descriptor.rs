//! Descriptors that a process inherits.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// Lowest number of an adopted descriptor: beyond those that shells and wrappers hand around.
const LOWEST: RawFd = 20;

/// A close-on-exec duplicate of the inherited descriptor `number`, with a high number of its
/// own. The inherited one stays as it is. Fails if `number` is not open.
pub fn adopt_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: borrowed for one system call, which answers EBADF if nothing is open there; no
    // ownership is claimed.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_dupfd_cloexec(inherited, LOWEST)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn adopts_what_is_open_and_refuses_the_rest() {
        let fd = adopt_descriptor(0).unwrap();
        assert!(fd.as_raw_fd() >= LOWEST);
        assert!(adopt_descriptor(-1).is_err());
        assert!(adopt_descriptor(1 << 20).is_err());
    }
}
