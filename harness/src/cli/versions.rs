//! `dnn-assay dev versions`: the symbol versions that files ask for, against a ceiling. Our own
//! release is held to one by it; `inspect` does the same for plugins under a policy.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use dnn_assay_elf::ElfView;

use super::{Error, stdout};
use crate::exit::Exit;

/// Arguments of `dev versions`.
#[derive(Args, Debug)]
pub struct VersionsArgs {
    /// Programs and shared objects
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The highest version of a family that may be asked for: GLIBC=2.28; may be repeated
    #[arg(long, value_name = "FAMILY=VERSION", value_parser = parse_most)]
    pub most: Vec<(String, Numbers)>,
}

/// The numbers of a version.
type Numbers = Vec<u64>;

fn parse_most(text: &str) -> Result<(String, Numbers), String> {
    let parsed = text
        .split_once('=')
        .and_then(|(family, version)| Some((family.to_owned(), numbers(version)?)));
    parsed.ok_or_else(|| format!("expected FAMILY=VERSION such as GLIBC=2.28, got '{text}'"))
}

fn numbers(version: &str) -> Option<Numbers> {
    let parts = version.split('.');
    parts.map(|part| part.parse().ok()).collect()
}

/// Prints the highest version of each family, by file.
///
/// # Errors
/// Usage: a file that cannot be read, or is no ELF file for this machine.
pub fn versions(args: &VersionsArgs) -> Result<Exit, Error> {
    let mut out = stdout();
    let mut exit = Exit::Ok;
    for path in &args.files {
        for (family, highest) in highest(path)? {
            let text: Vec<String> = highest.iter().map(u64::to_string).collect();
            write!(out, "{}: {family} {}", path.display(), text.join("."))?;
            let most = args.most.iter().find(|(name, _)| *name == family);
            if let Some((_, most)) = most.filter(|(_, most)| highest > *most) {
                let most: Vec<String> = most.iter().map(u64::to_string).collect();
                write!(out, ", beyond {}", most.join("."))?;
                exit = Exit::Failed;
            }
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(exit)
}

fn highest(path: &Path) -> Result<BTreeMap<String, Numbers>, Error> {
    let wrong = |what: &dyn std::fmt::Display| Error::usage(format!("{}: {what}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
    let view = ElfView::parse(&bytes).map_err(|what| wrong(&what))?;
    let mut families = BTreeMap::<String, Numbers>::new();
    for need in view.versions().needed.values() {
        if let Some((family, version)) = need.version.rsplit_once('_')
            && let Some(version) = numbers(version)
        {
            let highest = families.entry(family.to_owned()).or_default();
            if version > *highest {
                *highest = version;
            }
        }
    }
    Ok(families)
}
