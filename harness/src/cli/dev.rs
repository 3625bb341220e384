//! `dnn-assay dev`: tools for those who work on this program.

use std::io::Write;

use super::args::{DevCommand, PowerArgs, PowerFormat};
use super::{Error, say, stdout};
use crate::exit::Exit;
use crate::pattern::globs;
use crate::power::{self, PowerError, Table, Tried};

/// Runs a tool.
///
/// # Errors
/// Usage and infrastructure.
pub fn dev(command: &DevCommand) -> Result<Exit, Error> {
    match command {
        DevCommand::Power(args) => power(args),
        DevCommand::Calibrate(args) => super::calibrate::calibrate(args),
        DevCommand::Tiers(args) => super::tiers::tiers(args),
        DevCommand::Versions(args) => super::versions::versions(args),
    }
}

/// Tries the mutants and prints the kill table.
fn power(args: &PowerArgs) -> Result<Exit, Error> {
    let table =
        Table::embedded().map_err(|problem| Error::infrastructure(problem.render(false)))?;
    let globs = globs(&args.mutant).map_err(|error| Error::usage(format!("--mutant: {error}")))?;
    let takes = |name: &str| globs.is_empty() || globs.is_match(name);
    if !table.mutants.iter().any(|mutant| takes(&mutant.name)) {
        return Err(Error::usage(PowerError::NoMutant(args.mutant.join(", "))));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(cores, usize::from);
    let result = power::power(&table, &takes, jobs, &|tried| show(args, tried));
    let result = result.map_err(|error| match error {
        PowerError::Library(_) => Error::usage(error),
        other => Error::infrastructure(other),
    })?;
    let mut out = stdout();
    match args.format {
        PowerFormat::Text => power::write_text(&result, &mut out)?,
        PowerFormat::Json => power::write_json(&result, &mut out)?,
        PowerFormat::Markdown => power::write_markdown(&result, &mut out)?,
    }
    out.flush()?;
    Ok(if result.is_complete() {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

fn show(args: &PowerArgs, tried: &Tried) {
    if args.progress {
        say(format_args!("{} {:?}", tried.mutant.name, tried.fate()));
    }
}
