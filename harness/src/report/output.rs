//! Standard output and standard error, whose reader may go away: `dnn-assay list | head`.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Standard output: in colour on a terminal, plain elsewhere, as `NO_COLOR` and the like ask. A
/// reader that has seen enough is no failure: what it does not take is dropped, and the command
/// ends with the code that it would have had.
pub fn stdout() -> impl Write {
    Patient::new(anstream::AutoStream::auto(io::stdout()))
}

/// Writes one line to standard error, if anybody reads it.
pub fn say(line: impl Display) {
    // There is no other place to say that this one is closed.
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Drops what is written once the pipe behind it is closed. Every other failure is one.
struct Patient<W> {
    inner: W,
    is_closed: bool,
}

impl<W: Write> Patient<W> {
    fn new(inner: W) -> Self {
        Self {
            inner,
            is_closed: false,
        }
    }

    /// `dropped` in place of the failure of a closed pipe.
    fn unless_closed<T>(
        &mut self,
        act: impl FnOnce(&mut W) -> io::Result<T>,
        dropped: T,
    ) -> io::Result<T> {
        if self.is_closed {
            return Ok(dropped);
        }
        match act(&mut self.inner) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(dropped)
            }
            result => result,
        }
    }
}

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_closed(|inner| inner.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_closed(Write::flush, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one write, then fails.
    struct Failing(ErrorKind, Vec<u8>);

    impl Write for Failing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !self.1.is_empty() {
                return Err(self.0.into());
            }
            self.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_closed_pipe_takes_everything_and_a_full_disk_does_not() {
        let mut closed = Patient::new(Failing(ErrorKind::BrokenPipe, Vec::new()));
        assert!(closed.write_all(b"first").is_ok() && closed.write_all(b"second").is_ok());
        assert!(closed.flush().is_ok());
        assert_eq!(closed.inner.1, b"first");
        let mut full = Patient::new(Failing(ErrorKind::StorageFull, Vec::new()));
        assert!(full.write_all(b"first").is_ok());
        let error = full.write_all(b"second").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(full.flush().is_err());
    }
}
