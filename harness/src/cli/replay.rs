//! `dnn-assay replay`: dumps of failing cases, judged again without a plugin.

use std::io::Write;

use super::args::ReplayArgs;
use super::{Error, stdout};
use crate::dump;
use crate::exit::Exit;
use crate::report::{Reporter, Terminal};

/// Judges every dump in the folder and prints what the run printed of it.
///
/// # Errors
/// Usage, where there is no dump or one cannot be read or judged; the others are judged first.
pub fn replay(args: &ReplayArgs) -> Result<Exit, Error> {
    let folders = dump::find(&args.dir).map_err(Error::usage)?;
    let mut out = stdout();
    let mut exits = Vec::new();
    for folder in &folders {
        let journal = dump::read(folder)
            .map_err(Error::usage)
            .and_then(|dump| dump::replay(&dump).map_err(|e| in_folder(folder, &e)));
        match journal {
            Ok(journal) => {
                Terminal.write(&journal, &mut out)?;
                exits.push(dump::exit_of(&journal));
            }
            Err(error) => exits.push(error.print()),
        }
    }
    out.flush()?;
    Ok(Exit::strongest(exits))
}

fn in_folder(folder: &std::path::Path, error: &dump::ReplayError) -> Error {
    Error::usage(format!("{}: {error}", folder.display()))
}
