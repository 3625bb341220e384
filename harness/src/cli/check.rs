//! `dnn-assay check`: the gate. Inspection, conformance and the suites, with claims and waivers;
//! one summary, one JUnit, one exit code.

use super::Error;
use super::args::RunArgs;
use super::run::execute;
use crate::exit::Exit;

/// Runs every stage.
///
/// # Errors
/// As [`execute`].
pub fn check(args: RunArgs) -> Result<Exit, Error> {
    Ok(execute(args)?.exit)
}
