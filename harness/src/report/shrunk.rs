//! What is said of a case that was shrunk.

use std::io;

use super::failure::failure_text;
use super::text::plural;
use crate::journal::{CaseEnd, Journal};
use crate::shrink::Shrunk;

/// A case that was shrunk.
#[derive(Debug)]
pub struct Told<'a> {
    /// The plugin and the smallest case.
    pub journal: &'a Journal,
    /// The case that was given.
    pub from: &'a str,
    /// What it came to.
    pub shrunk: &'a Shrunk,
    /// How the smallest case ends.
    pub end: &'a CaseEnd,
    /// It as a suite.
    pub yaml: &'a str,
}

/// Writes the smallest case, its story, and a suite of it.
///
/// # Errors
/// What `out` says.
pub fn tell(told: &Told<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let Told { shrunk, .. } = told;
    writeln!(out, "shrunk from    {}", told.from)?;
    writeln!(out, "to             {}", shrunk.case.id)?;
    let tries = plural(shrunk.tries as u64, "case");
    let steps = plural(shrunk.steps as u64, "step");
    let end = if shrunk.is_smallest {
        "no simpler case fails like this"
    } else {
        "stopped at its limit; a larger --tries or --budget goes on"
    };
    writeln!(out, "after          {tries} tried, {steps}: {end}\n")?;
    out.write_all(failure_text(told.journal, told.end).as_bytes())?;
    writeln!(
        out,
        "\na regression, for suites/regressions or a suite of yours:\n"
    )?;
    for line in told.yaml.lines() {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}
