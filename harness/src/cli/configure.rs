//! From flags and `dnn-assay.yaml` to one request. Flags beat the file.

use std::path::{Path, PathBuf};

use super::args::{GateArgs, RunArgs};
use super::{Error, is_coloured};
use crate::config::{self, Config, ConfigError};
use crate::gate::{Claims, Gate, Overrides, Waivers, read_document, read_waivers};
use crate::yaml::Problem;

/// The configuration that `args` mean; `None` where there is none.
///
/// # Errors
/// Usage: two configurations, or one that cannot be read.
pub fn configuration(args: &GateArgs) -> Result<Option<Config>, Error> {
    let path = match &args.config {
        Some(path) => Some(path.clone()),
        None => {
            let folder = std::env::current_dir()?;
            config::find(&folder)
                .map_err(|e| failed(&e))?
                .map(|path| shorter(&folder, path))
        }
    };
    path.map(|path| config::load(&path).map_err(|e| failed(&e)))
        .transpose()
}

fn failed(error: &ConfigError) -> Error {
    match error {
        ConfigError::File(problem) => usage(problem),
        two => Error::usage(two),
    }
}

fn usage(problem: &Problem) -> Error {
    Error::usage(problem.render(is_coloured()))
}

/// The path from the working directory, where that is no detour.
fn shorter(folder: &Path, path: PathBuf) -> PathBuf {
    path.strip_prefix(folder)
        .map(Path::to_owned)
        .unwrap_or(path)
}

/// Fills what the command line leaves open from the configuration.
pub fn merge(args: &mut RunArgs, config: &Config) {
    let file = &config.file;
    if args.plugins.is_empty() && !args.builtin {
        args.plugins = file
            .plugins
            .iter()
            .map(|plugin| config.beside(plugin))
            .collect();
    }
    if args.selection.suite.is_empty() {
        args.selection.suite = config.suites();
    }
    if args.traits.is_empty() {
        args.declared = Some(config.traits.clone());
    }
    args.loading.device = args.loading.device.or(file.device);
    args.limits.min_verified = args.limits.min_verified.or(file.floors.verified);
    let given: Vec<String> = args
        .loading
        .env
        .iter()
        .map(|(key, _)| key.clone())
        .collect();
    let more = file
        .environment
        .iter()
        .filter(|(key, _)| !given.contains(key));
    let more: Vec<_> = more
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    args.loading.env.extend(more);
}

/// Claims, waivers and floors of the command line and the configuration.
///
/// # Errors
/// Usage, with file and line.
pub fn gate(args: &GateArgs, config: Option<&Config>) -> Result<Gate, Error> {
    let mut waivers = Waivers::default();
    let mut claims = Claims::default();
    let mut overrides = Overrides::default();
    let mut remarks = Vec::new();
    let mut claim_files = args.claims.clone();
    if let Some(config) = config {
        waivers.extend(config.waivers.clone());
        claim_files.extend(config.file.claims.iter().map(|path| config.beside(path)));
    }
    for path in &args.expect {
        let read = read_document(path, "--expect").and_then(|source| read_waivers(&source));
        let expected = read.map_err(|problem| usage(&problem))?;
        waivers.extend(expected.waivers);
        overrides.extend(expected.overrides);
        remarks.extend(expected.remarks);
    }
    for path in &claim_files {
        let read = read_document(path, "--claims").and_then(|source| Claims::read(&source));
        claims.extend(read.map_err(|problem| usage(&problem))?);
    }
    let mut gate = Gate::new(waivers, claims, args.nightly, crate::suite::today());
    gate.remarks = remarks;
    gate.overrides = overrides;
    if let Some(config) = config {
        let floors = config.file.floors.engines.iter();
        gate.floors = floors.map(|(name, least)| (name.clone(), *least)).collect();
    }
    Ok(gate)
}
