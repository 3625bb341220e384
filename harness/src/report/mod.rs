//! Reports. Each is a pure function of a journal: nothing else prints, and a report written now
//! is the same as one written from the same journal a year later.

use std::io;

use crate::journal::Journal;

pub mod bundles;
pub mod calibration;
mod declined;
pub mod explain;
mod failure;
mod html;
pub mod junit;
mod markdown;
pub mod matrix;
mod next;
mod output;
pub mod progress;
mod sampled;
pub mod shrunk;
pub(crate) mod style;
pub mod terminal;
pub(crate) mod text;

pub use failure::{engine_argument, failure_text, finding_waiver, reproduction, waiver};
pub use html::Html;
pub use junit::Junit;
pub use markdown::{Annotations, MOST_ANNOTATIONS, MOST_BYTES, StepSummary};
pub use output::{say, stdout};
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
