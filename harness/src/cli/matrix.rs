//! `dnn-assay matrix`: what each engine takes, and how far it comes.

use std::io::Write;

use super::args::{MatrixArgs, MatrixFormat};
use super::run::execute_quietly;
use super::{Error, stdout};
use crate::exit::Exit;
use crate::report::matrix::Matrix;

/// Runs, and prints the matrix instead of the first screen.
///
/// # Errors
/// As [`execute_quietly`].
pub fn matrix(args: MatrixArgs) -> Result<Exit, Error> {
    let finished = execute_quietly(args.run)?;
    let matrix = Matrix::of(&finished.journal);
    let text = match args.format {
        MatrixFormat::Table => matrix.table(),
        MatrixFormat::Markdown => matrix.markdown(),
        MatrixFormat::Json => matrix.json(),
    };
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(finished.exit)
}
