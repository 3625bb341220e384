//! Finding and reading the file.

use std::path::{Path, PathBuf};

use super::FILE_NAME;
use super::file::ConfigFile;
use crate::gate::{Waivers, check_schema, read_document};
use crate::judge::Declared;
use crate::yaml::{self, Problem, Source};

/// A configuration and where it stands.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file.
    pub path: PathBuf,
    /// Its text, for messages.
    pub source: Source,
    /// What it says.
    pub file: ConfigFile,
    /// Its waivers, checked.
    pub waivers: Waivers,
    /// Its traits, checked.
    pub traits: Declared,
}

/// Why there is no usable configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Two files that could both be meant.
    #[error(
        "two configurations: {} and {}; remove one, or say which with --config",
        .0.display(), .1.display()
    )]
    Two(PathBuf, PathBuf),
    /// The file cannot be read, or is wrong.
    #[error("{0}")]
    File(#[from] Box<Problem>),
}

/// Names under which a configuration is looked for.
const NAMES: [&str; 2] = [FILE_NAME, "dnn-assay.yml"];

/// The configuration that holds in `folder`: of it, or of the nearest folder above that has one.
///
/// # Errors
/// [`ConfigError::Two`] where a folder has two.
pub fn find(folder: &Path) -> Result<Option<PathBuf>, ConfigError> {
    for folder in folder.ancestors() {
        let mut found = NAMES
            .iter()
            .map(|name| folder.join(name))
            .filter(|path| path.is_file());
        match (found.next(), found.next()) {
            (Some(first), Some(second)) => return Err(ConfigError::Two(first, second)),
            (Some(first), None) => return Ok(Some(first)),
            _ => {}
        }
    }
    Ok(None)
}

/// Reads a configuration.
///
/// # Errors
/// [`ConfigError::File`] with the line, a caret, and the nearest known key.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    let source = read_document(path, "--config")?;
    let file: ConfigFile = yaml::read(&source)?;
    check_schema(&source, file.schema)?;
    Ok(Config {
        traits: Declared::read(&source, &file.traits)?,
        waivers: Waivers::read(&source, &file.waive)?,
        path: path.to_owned(),
        source,
        file,
    })
}

impl Config {
    /// A path that the file names, seen from the working directory.
    pub fn beside(&self, path: &str) -> PathBuf {
        let folder = self.path.parent().unwrap_or_else(|| Path::new(""));
        folder.join(path)
    }

    /// Suites as `--suite` takes them: names stay names, paths are relative to the file.
    pub fn suites(&self) -> Vec<String> {
        let is_path = |name: &&String| name.contains(['/', '.']);
        let suites = self.file.suites.iter();
        suites
            .map(|name| match is_path(&name) {
                true => self.beside(name).display().to_string(),
                false => name.clone(),
            })
            .collect()
    }
}
