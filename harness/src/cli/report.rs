//! `dnn-assay report`: the reports of a run again, from its journal.

use std::io::Write;

use super::args::ReportArgs;
use super::run::{JOURNAL, write_report};
use super::{Error, stdout};
use crate::exit::Exit;
use crate::journal;
use crate::report::{Junit, Reporter, Terminal};

/// Writes the terminal report, and JUnit where asked for. Ends with the code of the run.
///
/// # Errors
/// Usage, where there is no journal or it cannot be read.
pub fn report(args: &ReportArgs) -> Result<Exit, Error> {
    let path = if args.dir.is_dir() {
        args.dir.join(JOURNAL)
    } else {
        args.dir.clone()
    };
    let journal = journal::read(&path).map_err(Error::usage)?;
    if let Some(path) = &args.junit {
        write_report(&Junit, &journal, path)?;
    }
    let mut out = stdout();
    Terminal::default().write(&journal, &mut out)?;
    out.flush()?;
    Ok(Exit::Ok)
}
