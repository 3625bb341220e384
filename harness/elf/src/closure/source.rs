//! Where the walk reads files from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The content of a file, shared between the places that look at it.
pub type FileBytes = Arc<Vec<u8>>;

/// What is known of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Whether every user of the machine may write into it.
    pub world_writable: bool,
}

/// Read access to a file tree.
pub trait FileSource {
    /// The content of a regular file, links followed. `None` when there is no such file or it
    /// may not be read: the loader treats both alike.
    ///
    /// A source may leave out (as zeros) what the loader itself does not look at: code, data and
    /// debug sections.
    fn read(&self, path: &Path) -> Option<FileBytes>;

    /// The path without links, which tells whether two paths are one file.
    fn canonical(&self, path: &Path) -> PathBuf;

    /// The directory at this path, links followed; `None` when there is none.
    fn directory(&self, path: &Path) -> Option<Directory>;
}
