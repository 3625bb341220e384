//! `dnn-assay inspect`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use dnn_assay_elf::{Policy, ReadyPolicy};

use super::{Error, is_coloured, stdout};
use crate::exit::Exit;
use crate::inspect::args::{InspectArgs, InspectFormat};
use crate::inspect::{self, Inspector, Report};
use crate::plan::find_plugins;

/// Inspects files and reports, or lists the rules.
///
/// # Errors
/// Usage and infrastructure. Whatever is wrong with a plugin is no error: it is in the report.
pub fn inspect(args: &InspectArgs) -> Result<Exit, Error> {
    let mut out = stdout();
    if args.list {
        match args.format {
            InspectFormat::Text => inspect::list_text(&mut out)?,
            InspectFormat::Json => inspect::list_json(&mut out)?,
            InspectFormat::Markdown => inspect::list_markdown(&mut out)?,
        }
        return Ok(Exit::Ok);
    }
    if args.format == InspectFormat::Markdown {
        // Before any file is read. (The parser cannot say it: --list and files exclude each other,
        // and what is excluded is not asked for.)
        return Err(Error::usage("--format markdown is a form of --list"));
    }
    let (policy, ready) = policy(args)?;
    let sources = find_plugins(&args.files, None, false).map_err(Error::usage)?;
    let files: Vec<_> = sources.into_iter().map(|source| source.path).collect();
    let variable = |name| std::env::var(name).unwrap_or_default();
    let inspector = Inspector::new(ready).with_variables(
        &args.lib_path,
        &variable("LD_LIBRARY_PATH"),
        &variable("LD_PRELOAD"),
    );
    let report = inspector.inspect(&files).map_err(Error::usage)?;
    match args.format {
        InspectFormat::Json => inspect::write_json(&report, &mut out)?,
        InspectFormat::Text | InspectFormat::Markdown => inspect::write_text(&report, &mut out)?,
    }
    out.flush()?;
    if let Some(path) = &args.junit {
        write_to(path, |file| inspect::write_junit(&report, file))?;
    }
    match &args.write_baseline {
        Some(path) => baseline(args, path, &policy, &report),
        None => Ok(report.exit()),
    }
}

/// The policy as given, and ready with what the arguments add.
fn policy(args: &InspectArgs) -> Result<(Policy, ReadyPolicy), Error> {
    let (mut policy, mut ready) = match &args.policy {
        Some(path) => inspect::read_policy(path)
            .map_err(|problem| Error::usage(problem.render(is_coloured())))?,
        None => {
            let policy = Policy::default();
            let ready = policy.ready().map_err(|errors| of_arguments(&errors))?;
            (policy, ready)
        }
    };
    if args.arch.is_some() {
        policy.arch.clone_from(&args.arch);
        ready = policy.ready().map_err(|errors| of_arguments(&errors))?;
    }
    if args.write_baseline.is_some() {
        let unlimited = Policy {
            listed_per_rule: usize::MAX,
            ..policy.clone()
        };
        ready = unlimited.ready().map_err(|errors| of_arguments(&errors))?;
    }
    Ok((policy, ready))
}

fn of_arguments(errors: &[dnn_assay_elf::PolicyError]) -> Error {
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    Error::usage(format!("--arch: {}", texts.join("; ")))
}

/// Writes the baseline. What it accepts is no failure; a file that is no plugin is.
fn baseline(
    args: &InspectArgs,
    path: &Path,
    policy: &Policy,
    report: &Report,
) -> Result<Exit, Error> {
    let real = |path: &Path| path.canonicalize().ok();
    let given = args.policy.as_deref().and_then(real);
    if given.is_some() && given == real(path) {
        return Err(Error::usage(
            "--write-baseline would write over the file of --policy, and lose its comments",
        ));
    }
    let today = crate::suite::today();
    write_to(path, |file| {
        inspect::write_baseline(report, policy, today, file)
    })?;
    Ok(match report.exit() {
        Exit::Failed => Exit::Ok,
        other => other,
    })
}

fn write_to(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Error> {
    let failed = |error| Error::usage(format!("{}: cannot be written: {error}", path.display()));
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    write(&mut file).and_then(|()| file.flush()).map_err(failed)
}
