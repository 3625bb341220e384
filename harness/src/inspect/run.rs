//! Inspecting the files of this machine.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dnn_assay_elf::closure::{DirectorySource, FileBytes, LoadEnvironment};
use dnn_assay_elf::{ReadyPolicy, Setting, inspect, inspect_pairs};
use jiff::civil::Date;

use super::results::{FileReport, Refused, Report};

/// Why files could not be inspected. What is wrong with a plugin is no error: it is in the report.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// A file that cannot be read.
    #[error("{}: cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Where and against what files are inspected.
#[derive(Debug)]
pub struct Inspector {
    environment: LoadEnvironment,
    policy: ReadyPolicy,
    today: Date,
}

impl Inspector {
    /// The loader of this machine, today.
    #[must_use]
    pub fn new(policy: ReadyPolicy) -> Self {
        Self {
            environment: LoadEnvironment::of_this_machine(),
            policy,
            today: crate::suite::today(),
        }
    }

    /// With the loader's variables: `library_path` as `LD_LIBRARY_PATH`, after the given folders,
    /// and `preload` as `LD_PRELOAD`.
    #[must_use]
    pub fn with_variables(
        mut self,
        folders: &[PathBuf],
        library_path: &str,
        preload: &str,
    ) -> Self {
        let folders = folders.iter().map(|f| f.to_string_lossy().into_owned());
        let environment = self.environment.with_library_path(library_path);
        self.environment = environment.with_preload(preload);
        self.environment.library_path.splice(0..0, folders);
        self
    }

    /// Inspects every file, and every two of those that are plugins.
    ///
    /// # Errors
    /// The first file that cannot be read.
    pub fn inspect(&self, files: &[PathBuf]) -> Result<Report, InspectError> {
        let mut report = Report::default();
        let mut members = Vec::new();
        for path in files {
            let (bytes, file) = self.read_and_inspect(path)?;
            if file.is_ok() {
                members.push((path.clone(), bytes));
            }
            report.files.push(file);
        }
        if members.len() > 1 {
            report.pairs = inspect_pairs(&members, &DirectorySource, &self.policy, self.today)
                .expect("the members were just inspected, so they are plugin files");
        }
        Ok(report)
    }

    /// Inspects one file.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn inspect_file(&self, path: &Path) -> Result<FileReport, InspectError> {
        Ok(self.read_and_inspect(path)?.1)
    }

    fn read_and_inspect(&self, path: &Path) -> Result<(FileBytes, FileReport), InspectError> {
        let bytes = std::fs::read(path).map_err(|source| InspectError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let bytes = Arc::new(bytes);
        let setting = Setting {
            environment: &self.environment,
            source: &DirectorySource,
            policy: &self.policy,
            today: self.today,
        };
        let inspection = inspect(path, &bytes, &setting);
        let file = inspection.map(Box::new).map_err(|what| Refused {
            path: path.to_owned(),
            what,
        });
        Ok((bytes, file))
    }
}
