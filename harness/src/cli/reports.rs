//! The report files of a run: found writable before it, written after it.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::args::{OutputArgs, ReportArgs};
use super::{Error, stdout};
use crate::journal::Journal;
use crate::report::{Annotations, Html, Junit, Reporter, StepSummary, Terminal};

/// File name of the JUnit report in `--out`.
pub const JUNIT: &str = "junit.xml";

/// Where reports go, beside the terminal.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    junit: Vec<PathBuf>,
    html: Option<PathBuf>,
    step_summary: Option<PathBuf>,
}

impl Reports {
    /// The reports of a run.
    pub fn of_run(args: &OutputArgs) -> Self {
        let mut junit = vec![args.out.join(JUNIT)];
        junit.extend(args.junit.clone());
        Self {
            junit,
            html: args.html.clone(),
            step_summary: args.step_summary.clone(),
        }
    }

    /// The reports asked for from a journal.
    pub fn of_report(args: &ReportArgs) -> Self {
        Self {
            junit: args.junit.clone().into_iter().collect(),
            html: args.html.clone(),
            step_summary: args.step_summary.clone(),
        }
    }

    /// Finds a place that cannot be written before anything runs.
    ///
    /// # Errors
    /// Usage, with the path.
    pub fn check(&self) -> Result<(), Error> {
        for path in self.junit.iter().chain(&self.html) {
            File::create(path).map_err(|error| unwritable(path, &error))?;
        }
        if let Some(path) = &self.step_summary {
            appended(path).map_err(|error| unwritable(path, &error))?;
        }
        Ok(())
    }

    /// Writes every file, then the terminal's screen.
    ///
    /// # Errors
    /// What the file system says, with the path.
    pub fn write(&self, journal: &Journal) -> Result<(), Error> {
        for path in &self.junit {
            write_to(&Junit, journal, File::create(path), path)?;
        }
        if let Some(path) = &self.html {
            write_to(&Html, journal, File::create(path), path)?;
        }
        let mut out = stdout();
        if let Some(path) = &self.step_summary {
            write_to(&StepSummary, journal, appended(path), path)?;
            Annotations.write(journal, &mut out)?;
        }
        Terminal.write(journal, &mut out)?;
        Ok(out.flush()?)
    }
}

/// Other steps of the job have written to it.
fn appended(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::usage(format!("{}: cannot be written: {error}", path.display()))
}

fn write_to(
    reporter: &dyn Reporter,
    journal: &Journal,
    file: std::io::Result<File>,
    path: &Path,
) -> Result<(), Error> {
    let write = || -> std::io::Result<()> {
        let mut file = BufWriter::new(file?);
        reporter.write(journal, &mut file)?;
        file.flush()
    };
    write().map_err(|error| Error::infrastructure(format!("{}: {error}", path.display())))
}
