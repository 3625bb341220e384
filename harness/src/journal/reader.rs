//! Reads a journal, also one that was cut.

use std::path::{Path, PathBuf};

use super::record::{Record, SCHEMA};
use super::{Journal, RunStart};

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be opened or read.
    #[error("cannot read the journal {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line in the middle is no record.
    #[error("line {line} of the journal is no record: {message}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// The journal comes from a later version.
    #[error(
        "the journal has schema {found}, and this version reads up to {SCHEMA}: use a newer dnn-assay"
    )]
    Schema {
        /// Its schema.
        found: u32,
    },
}

/// Reads a journal file.
///
/// # Errors
/// [`JournalError`].
pub fn read(path: &Path) -> Result<Journal, JournalError> {
    let bytes = std::fs::read(path).map_err(|source| JournalError::Io {
        path: path.to_owned(),
        source,
    })?;
    read_bytes(&bytes)
}

/// Reads a journal up to its last whole record. A last line without its line feed was cut by a
/// crash and is left out; [`Journal::truncated`] says so. Record types that this version does not
/// know are passed over and counted.
///
/// # Errors
/// [`JournalError::Line`] where a line that has its line feed is no JSON object with a `record`,
/// [`JournalError::Schema`] for a later schema.
pub fn read_bytes(bytes: &[u8]) -> Result<Journal, JournalError> {
    let mut journal = Journal::default();
    let whole = bytes
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    journal.truncated = whole < bytes.len();
    for (index, line) in bytes[..whole].split(|&b| b == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        match parse_line(line) {
            Ok(Some(Record::RunStart(start))) if start.schema > SCHEMA => {
                return Err(JournalError::Schema {
                    found: start.schema,
                });
            }
            Ok(Some(record)) => journal.push(record),
            Ok(None) => journal.unknown_records += 1,
            Err(error) => {
                return Err(JournalError::Line {
                    line: index + 1,
                    message: error.to_string(),
                });
            }
        }
    }
    Ok(journal)
}

/// The record types of schema 1.
const KNOWN: [&str; 6] = [
    "run-start",
    "plugin",
    "case-start",
    "case-end",
    "infra",
    "run-end",
];

fn parse_line(line: &[u8]) -> Result<Option<Record>, serde_json::Error> {
    #[derive(serde::Deserialize)]
    struct Tag {
        record: String,
        schema: Option<u32>,
    }
    let error = match serde_json::from_slice::<Record>(line) {
        Ok(record) => return Ok(Some(record)),
        Err(error) => error,
    };
    let tag: Tag = serde_json::from_slice(line)?;
    match tag.schema {
        Some(schema) if schema > SCHEMA => Ok(Some(Record::RunStart(Box::new(RunStart {
            schema,
            ..RunStart::default()
        })))),
        _ if KNOWN.contains(&tag.record.as_str()) => Err(error),
        _ => Ok(None),
    }
}
