//! `dnn-assay conform`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use super::{Error, stdout};
use crate::conform::args::{ConformArgs, ConformFormat};
use crate::conform::{self, ConformError};
use crate::exit::Exit;
use crate::plan::find_plugins;

/// Makes the checks and reports, or lists them.
///
/// # Errors
/// Usage and infrastructure. Whatever is wrong with a plugin is no error: it is in the report.
pub fn conform(args: &ConformArgs) -> Result<Exit, Error> {
    let mut out = stdout();
    if args.list {
        match args.format {
            ConformFormat::Text => conform::list_text(&mut out)?,
            ConformFormat::Json => conform::list_json(&mut out)?,
            ConformFormat::Markdown => conform::list_markdown(&mut out)?,
        }
        return Ok(Exit::Ok);
    }
    let plugin_dir = std::env::var_os("HIPDNN_PLUGIN_DIR").map(PathBuf::from);
    let sources = find_plugins(&args.plugins, plugin_dir, args.builtin).map_err(Error::usage)?;
    let mut junit = match &args.junit {
        Some(path) => Some(BufWriter::new(File::create(path).map_err(|error| {
            Error::usage(format!("{}: cannot be written: {error}", path.display()))
        })?)),
        None => None,
    };
    let report = conform::conform(args, &sources).map_err(|error| match error {
        ConformError::Option(_) | ConformError::Glob(_) | ConformError::NoCheck(_) => {
            Error::usage(error)
        }
        other => Error::infrastructure(other),
    })?;
    match args.format {
        ConformFormat::Json => conform::write_json(&report, &mut out)?,
        ConformFormat::Text | ConformFormat::Markdown => conform::write_text(&report, &mut out)?,
    }
    out.flush()?;
    if let Some(junit) = &mut junit {
        conform::write_junit(&report, junit)?;
        junit.flush()?;
    }
    Ok(report.exit())
}
