//! Reports. Each is a pure function of a journal: nothing else prints, and a report written now
//! is the same as one written from the same journal a year later.

use std::io;

use crate::journal::Journal;

mod declined;
pub mod explain;
mod failure;
pub mod junit;
mod next;
pub mod progress;
mod style;
pub mod terminal;
mod text;

pub use failure::{failure_text, reproduction, waiver};
pub use junit::Junit;
pub use terminal::Terminal;

#[cfg(test)]
mod tests;

/// Makes one sort of report.
pub trait Reporter {
    /// The name used on the command line: `junit`, `terminal`.
    fn name(&self) -> &'static str;

    /// Writes the report of `journal`.
    ///
    /// # Errors
    /// What `out` says.
    fn write(&self, journal: &Journal, out: &mut dyn io::Write) -> io::Result<()>;
}
