//! `dnn-assay traits`: measures what engines' arithmetic does.

use std::io::Write;

use clap::{Args, Parser};

use super::args::{Cli, Command, LoadingArgs, RunArgs};
use super::{Error, stdout};
use crate::exit::Exit;
use crate::measure::{measure, write_text};
use crate::plan::find_plugins;
use crate::run::{RunOptions, examine};

/// Arguments of `traits`.
#[derive(Args, Debug)]
pub struct TraitsArgs {
    /// The plugin file [default: the built-in CPU plugin]
    #[arg(value_name = "PLUGIN")]
    pub plugin: Option<std::path::PathBuf>,
    /// Engine by name, glob, 0x-hex or decimal id; may be repeated [default: all]
    #[arg(long, value_name = "ENGINE", allow_hyphen_values = true)]
    pub engine: Vec<String>,
    /// How to load the plugin.
    #[command(flatten)]
    pub loading: LoadingArgs,
}

/// Prints what was measured and the entries for `dnn-assay.yaml`.
///
/// # Errors
/// Usage; a plugin that cannot be loaded is exit code 3, a device that is not there 5.
pub fn traits(args: TraitsArgs) -> Result<Exit, Error> {
    let scratch = tempfile::tempdir()?;
    let mut run = default_run(scratch.path())?;
    run.loading = args.loading;
    run.engine = args.engine;
    let options = RunOptions::new(&run).map_err(Error::usage)?;
    let named: Vec<_> = args.plugin.into_iter().collect();
    let sources = find_plugins(&named, None, named.is_empty()).map_err(Error::usage)?;
    let examined = examine(0, &sources[0], &options).map_err(Error::infrastructure)?;
    if let Some(error) = &examined.record.error {
        let message = format!("{}: {}", examined.record.path, error.message);
        return Err(Error::plugin(message));
    }
    let subject = examined
        .subject
        .ok_or_else(|| Error::plugin("the plugin cannot be used"))?;
    if let Some(why) = &subject.no_device {
        return Err(Error::infrastructure(format!(
            "nothing can be measured: {why}"
        )));
    }
    let mut out = stdout();
    for (at, engine) in subject.engines.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let measured = measure(&subject, engine).map_err(Error::infrastructure)?;
        write_text(&measured, &mut out)?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// The options of `run` without any flag.
pub(super) fn default_run(out: &std::path::Path) -> Result<RunArgs, Error> {
    let words = [
        "dnn-assay".as_ref(),
        "run".as_ref(),
        "--out".as_ref(),
        out.as_os_str(),
    ];
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Run(args)) => Ok(*args),
        _ => Err(Error::infrastructure("the default options cannot be had")),
    }
}
