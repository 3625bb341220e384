//! A file tree in memory.

use super::source::{Directory, FileBytes, FileSource};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file tree in memory: tests and recorded systems.
#[derive(Clone, Debug, Default)]
pub struct MemorySource {
    files: BTreeMap<PathBuf, FileBytes>,
    links: BTreeMap<PathBuf, PathBuf>,
    writable: Vec<PathBuf>,
}

impl MemorySource {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file.
    #[must_use]
    pub fn with(mut self, path: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        self.files.insert(path.into(), Arc::new(bytes));
        self
    }

    /// Adds a link to a file.
    #[must_use]
    pub fn with_link(mut self, path: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        self.links.insert(path.into(), target.into());
        self
    }

    /// Says that everyone may write into a directory.
    #[must_use]
    pub fn with_writable(mut self, directory: impl Into<PathBuf>) -> Self {
        self.writable.push(directory.into());
        self
    }
}

impl FileSource for MemorySource {
    fn read(&self, path: &Path) -> Option<FileBytes> {
        self.files.get(&self.canonical(path)).cloned()
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        let plain = without_dots(path);
        self.links.get(&plain).cloned().unwrap_or(plain)
    }

    fn directory(&self, path: &Path) -> Option<Directory> {
        let plain = without_dots(path);
        let world_writable = self.writable.contains(&plain);
        let known = world_writable || self.files.keys().any(|file| file.starts_with(&plain));
        known.then_some(Directory { world_writable })
    }
}

/// Removes `.` and resolves `..` by the text of the path alone.
fn without_dots(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
