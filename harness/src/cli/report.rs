//! `dnn-assay report`: the reports of a run again, from its journal.

use super::Error;
use super::args::ReportArgs;
use super::reports::Reports;
use super::run::JOURNAL;
use crate::exit::Exit;
use crate::journal;

/// Writes the terminal report, and others where asked for.
///
/// # Errors
/// Usage, where there is no journal, it cannot be read, or a report cannot be written.
pub fn report(args: &ReportArgs) -> Result<Exit, Error> {
    let path = if args.dir.is_dir() {
        args.dir.join(JOURNAL)
    } else {
        args.dir.clone()
    };
    let journal = journal::read(&path).map_err(Error::usage)?;
    let reports = Reports::of_report(args);
    reports.check()?;
    reports.write(&journal)?;
    Ok(Exit::Ok)
}
