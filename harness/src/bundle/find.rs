//! Which files below a folder are bundles.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The topology of a sweep.
pub const TEMPLATE: &str = "graph.template.json";
/// Its cases.
pub const SWEEP: &str = "sweep.json";

/// A bundle's files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// One graph: this file, with others of its stem beside it.
    Single(PathBuf),
    /// A folder with a template and its cases.
    Sweep(PathBuf),
}

/// A folder that cannot be read, or holds nothing.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// What the system said.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// No bundle at all.
    #[error(
        "{path}: there is no bundle here: neither NAME.json nor {TEMPLATE} with {SWEEP}",
        path = path.display()
    )]
    Nothing {
        /// The folder.
        path: PathBuf,
    },
}

/// The bundles below `root`, in the order of their paths. Links are not followed.
///
/// # Errors
/// [`FindError`].
pub fn find(root: &Path) -> Result<Vec<Found>, FindError> {
    let mut found = BTreeSet::new();
    walk(root, &mut found)?;
    if found.is_empty() {
        return Err(FindError::Nothing {
            path: root.to_owned(),
        });
    }
    Ok(found.into_iter().collect())
}

fn walk(folder: &Path, found: &mut BTreeSet<Found>) -> Result<(), FindError> {
    let failed = |source| FindError::Io {
        path: folder.to_owned(),
        source,
    };
    // Half a sweep is one too: loading it will say what is missing.
    if folder.join(TEMPLATE).is_file() || folder.join(SWEEP).is_file() {
        found.insert(Found::Sweep(folder.to_owned()));
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let path = entry.path();
        if kind.is_dir() {
            walk(&path, found)?;
        } else if kind.is_file() && is_graph(&path) {
            found.insert(Found::Single(path));
        }
    }
    Ok(())
}

/// `Name.json`, but not `Name.meta.json` and `Name.support.json`.
fn is_graph(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(stem) = name.strip_suffix(".json") else {
        return false;
    };
    let last = stem.rsplit('.').next().unwrap_or_default();
    !["meta", "support"].contains(&last)
}
