//! `dnn-assay init`: from a plugin file to a commented configuration.

use std::io::Write;
use std::path::Path;

use super::args::InitArgs;
use super::traits::default_run;
use super::{Error, stdout};
use crate::config::{Plan, commented};
use crate::exit::Exit;
use crate::plan::find_plugins;
use crate::run::{RunOptions, examine};

/// Loads the plugin once and writes what was found.
///
/// # Errors
/// Usage: a file that is there already, or cannot be written. A plugin that cannot be loaded is
/// exit code 3 with what is wrong with it.
pub fn init(args: InitArgs) -> Result<Exit, Error> {
    let output = args.output;
    if output.exists() && !args.force {
        let message = format!(
            "{}: there already; --force writes over it",
            output.display()
        );
        return Err(Error::usage(message));
    }
    let scratch = tempfile::tempdir()?;
    let mut run = default_run(scratch.path())?;
    run.loading = args.loading;
    let options = RunOptions::new(&run).map_err(Error::usage)?;
    let sources =
        find_plugins(std::slice::from_ref(&args.plugin), None, false).map_err(Error::usage)?;
    let record = examine(0, &sources[0], &options)
        .map_err(Error::infrastructure)?
        .record;
    if let Some(error) = &record.error {
        return Err(Error::plugin(format!("{}: {}", record.path, error.message)));
    }
    let both = |what: &Option<String>, why: &Option<String>| {
        (
            what.clone().unwrap_or_default(),
            why.clone().unwrap_or_default(),
        )
    };
    let plan = Plan {
        plugin: relative(&args.plugin, &output),
        memory: both(&record.memory, &record.memory_reason),
        engines: record.engines.iter().map(|engine| engine.label()).collect(),
        wire: both(&record.wire, &record.wire_reason),
    };
    std::fs::write(&output, commented(&plan))
        .map_err(|error| Error::usage(format!("{}: {error}", output.display())))?;
    let mut out = stdout();
    writeln!(out, "wrote {}; next: dnn-assay check", output.display())?;
    Ok(Exit::Ok)
}

/// The plugin as seen from the folder of the configuration, where that is possible without
/// guessing: a path below that folder, else an absolute one.
fn relative(plugin: &Path, output: &Path) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = absolute(output)
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default();
    let plugin = absolute(plugin);
    plugin
        .strip_prefix(&folder)
        .unwrap_or(&plugin)
        .display()
        .to_string()
}
