//! Files of claims and waivers: reading, and naming a place in them.

use std::fmt;
use std::path::Path;

use serde::Deserialize;

use super::overrides::Overrides;
use super::upstream::UpstreamConfig;
use super::waiver::{WaiverEntry, Waivers};
use crate::yaml::{self, Problem, Source, Step};

/// The version of the forms that this code reads.
pub const SCHEMA: u32 = 1;

/// A file and a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub file: String,
    /// From 1.
    pub line: u32,
}

impl Origin {
    /// Of a node.
    pub fn of(source: &Source, path: &[Step]) -> Self {
        let at = yaml::locate(&source.text, path).unwrap_or(0);
        Self {
            file: source.name.clone(),
            line: yaml::line_of(&source.text, at),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Reads a file that a person wrote.
///
/// # Errors
/// A [`Problem`] that names the file, and the option or file that asked for it.
pub fn read_document(path: &Path, asked_by: &str) -> Result<Source, Box<Problem>> {
    let name = path.display().to_string();
    let failed = |message: String| {
        let command = Source::new(asked_by, name.clone());
        Box::new(Problem::new(message, command.place(0, "this file")))
    };
    let bytes = std::fs::read(path).map_err(|e| failed(format!("cannot read {name}: {e}")))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let message = format!("{name} is not UTF-8: byte {at} begins no character");
            Err(failed(message))
        }
    }
}

/// A file of nothing but waivers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaiverFile {
    schema: u32,
    waive: Vec<WaiverEntry>,
}

/// What a file given with `--expect` holds.
#[derive(Debug)]
pub struct Expected {
    /// The waivers.
    pub waivers: Waivers,
    /// Criteria for some cases.
    pub overrides: Overrides,
    /// What hipDNN's configuration asks for and this program does not do.
    pub remarks: Vec<String>,
}

/// Reads a file of waivers: YAML, or hipDNN's engine configuration where its name ends in `.toml`.
///
/// # Errors
/// A [`Problem`] with the place.
pub fn read_waivers(source: &Source) -> Result<Expected, Box<Problem>> {
    if source.name.ends_with(".toml") {
        let config = UpstreamConfig::read(source)?;
        return Ok(Expected {
            remarks: config.remarks(source),
            overrides: config.overrides(source)?,
            waivers: config.waivers(source)?,
        });
    }
    let file: WaiverFile = yaml::read(source)?;
    check_schema(source, file.schema)?;
    Ok(Expected {
        waivers: Waivers::read(source, &file.waive)?,
        overrides: Overrides::default(),
        remarks: Vec::new(),
    })
}

/// Refuses files of a later form.
///
/// # Errors
/// A [`Problem`] at the number.
pub fn check_schema(source: &Source, schema: u32) -> Result<(), Box<Problem>> {
    if schema == SCHEMA {
        return Ok(());
    }
    let place = source.place_of(&[Step::Key("schema")], "here");
    let title = format!("this file has schema {schema}, and this version reads {SCHEMA}");
    Err(Box::new(
        Problem::new(title, place).help("use a newer dnn-assay"),
    ))
}
