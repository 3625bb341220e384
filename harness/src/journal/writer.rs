//! Writes a journal.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Record;

/// Appends records to a file, each with one `write` call so that a crash of the machine's
/// processes leaves whole lines.
#[derive(Debug)]
pub struct JournalWriter<W: Write = File> {
    sink: W,
    path: PathBuf,
    line: Vec<u8>,
}

impl JournalWriter<File> {
    /// Creates the file; an existing one is replaced.
    ///
    /// # Errors
    /// Whatever the file system says; the message names the path.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(path)
            .map_err(|error| named(path, &error))?;
        Ok(Self::new(file, path))
    }
}

impl<W: Write> JournalWriter<W> {
    /// Writes to `sink`; `path` is for messages.
    pub fn new(sink: W, path: &Path) -> Self {
        Self {
            sink,
            path: path.to_owned(),
            line: Vec::new(),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one record.
    ///
    /// # Errors
    /// Whatever the file system says; the message names the path.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)?;
        self.line.push(b'\n');
        self.sink
            .write_all(&self.line)
            .map_err(|error| named(&self.path, &error))
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("journal {}: {error}", path.display()))
}
