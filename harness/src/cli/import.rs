//! `dnn-assay import`: cases from data of others.

use std::io::Write;
use std::path::Path;

use super::args::{ImportArgs, ImportCommand};
use super::{Error, stdout};
use crate::bundle;
use crate::exit::Exit;
use crate::report::bundles;

/// Runs a subcommand.
///
/// # Errors
/// Usage: a folder that cannot be read or holds no bundle, or a file that cannot be written.
pub fn import(command: &ImportCommand) -> Result<Exit, Error> {
    match command {
        ImportCommand::Bundle(args) => bundle(args),
    }
}

/// Writes a suite and claims of the bundles below a folder. A bundle that cannot be loaded is named
/// and makes the exit code 2; the others are written all the same.
fn bundle(args: &ImportArgs) -> Result<Exit, Error> {
    let found = bundle::find(&args.dir).map_err(Error::usage)?;
    let imported = bundle::import(bundle::load(&args.dir, &found));
    let from = args.dir.display().to_string();
    write(&args.write, &imported.suite(&from))?;
    if let Some(path) = &args.claims {
        write(path, &imported.claims_file())?;
    }
    let mut out = stdout();
    bundles::imported(&imported, &mut out)?;
    out.flush()?;
    let broken = (!imported.broken.is_empty()).then_some(Exit::Usage);
    let nothing = imported.cases.is_empty().then_some(Exit::NothingVerified);
    Ok(Exit::strongest(
        [Exit::Ok].into_iter().chain(broken).chain(nothing),
    ))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|error| Error::usage(format!("{}: {error}", path.display())))
}
