//! `dnn-assay claims`: what was verified, written down.

use super::Error;
use super::args::ClaimsArgs;
use super::run::execute;
use crate::exit::Exit;
use crate::gate::recorded;

/// Runs, then records the cases that passed per engine and architecture.
///
/// # Errors
/// As [`execute`], and usage where the file cannot be written.
pub fn claims(args: ClaimsArgs) -> Result<Exit, Error> {
    let path = args.write;
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
    {
        let message = format!(
            "--write {}: the folder {} does not exist",
            path.display(),
            folder.display()
        );
        return Err(Error::usage(message));
    }
    let finished = execute(args.run)?;
    std::fs::write(&path, recorded(&finished.journal))
        .map_err(|error| Error::usage(format!("--write {}: {error}", path.display())))?;
    Ok(finished.exit)
}
