//! Which plugin files a run tests, and why these.

use std::path::{Path, PathBuf};

use super::built_in::{BUILTIN_CPU, BuiltInError, built_in_file};

/// A plugin file and the reason it is tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginSource {
    /// The file.
    pub path: PathBuf,
    /// Why this one, in one phrase.
    pub why: String,
}

/// Why no plugin file could be named.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A named file or folder does not exist.
    #[error("{}: no such file or folder; name a plugin's .so file, or a folder that holds some", .0.display())]
    Missing(PathBuf),
    /// A folder cannot be read.
    #[error("{}: cannot be read: {source}", .path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A folder holds no file that ends in `.so`.
    #[error("{}: the folder holds no plugin: no file in it ends in .so (subfolders are not searched, as hipDNN does not search them)", .0.display())]
    EmptyFolder(PathBuf),
    /// The built-in plugin cannot be had.
    #[error("the built-in plugin: {0}")]
    Builtin(#[from] BuiltInError),
}

/// Finds the plugins: the arguments, then `HIPDNN_PLUGIN_DIR`, then the built-in one; `builtin`
/// forces the last.
///
/// # Errors
/// [`SourceError`] for the first name that leads nowhere.
pub fn find_plugins(
    arguments: &[PathBuf],
    plugin_dir: Option<PathBuf>,
    builtin: bool,
) -> Result<Vec<PluginSource>, SourceError> {
    if builtin {
        return Ok(vec![builtin_plugin("asked for with --builtin")?]);
    }
    if !arguments.is_empty() {
        return expand(arguments, "named on the command line");
    }
    match plugin_dir.filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => expand(&[dir], "HIPDNN_PLUGIN_DIR"),
        None => Ok(vec![builtin_plugin(
            "the built-in plugin, because none was named and HIPDNN_PLUGIN_DIR is not set",
        )?]),
    }
}

fn expand(paths: &[PathBuf], why: &str) -> Result<Vec<PluginSource>, SourceError> {
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            let files = plugins_in(path)?;
            if files.is_empty() {
                return Err(SourceError::EmptyFolder(path.clone()));
            }
            let why = format!("in the folder {} ({why})", path.display());
            sources.extend(files.into_iter().map(|path| PluginSource {
                path,
                why: why.clone(),
            }));
        } else if path.exists() {
            sources.push(PluginSource {
                path: path.clone(),
                why: why.to_owned(),
            });
        } else {
            return Err(SourceError::Missing(path.clone()));
        }
    }
    Ok(sources)
}

/// Files of a folder whose extension is exactly `.so`, in the order of their paths, as hipDNN
/// takes them.
fn plugins_in(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let unreadable = |source| SourceError::Unreadable {
        path: folder.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|e| e == "so") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn builtin_plugin(why: &str) -> Result<PluginSource, SourceError> {
    Ok(PluginSource {
        path: built_in_file(BUILTIN_CPU)?,
        why: why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in files {
            std::fs::write(folder.path().join(file), "").expect("a file in it");
        }
        folder
    }

    #[test]
    fn a_folder_means_every_plugin_in_it_in_order() {
        let dir = folder(&["b.so", "a.so", "libx.so.1", "notes.txt"]);
        std::fs::create_dir(dir.path().join("c.so")).expect("a folder");
        let found = find_plugins(&[dir.path().to_owned()], None, false).expect("two plugins");
        let names: Vec<_> = found.iter().map(|s| s.path.file_name()).collect();
        assert_eq!(names, [Some("a.so".as_ref()), Some("b.so".as_ref())]);
    }

    #[test]
    fn arguments_beat_the_environment() {
        let (a, b) = (folder(&["a.so"]), folder(&["b.so"]));
        let dir = Some(b.path().to_owned());
        let by_environment = find_plugins(&[], dir.clone(), false).expect("one plugin");
        assert!(by_environment[0].path.ends_with("b.so"));
        assert!(by_environment[0].why.contains("HIPDNN_PLUGIN_DIR"));
        let by_argument = find_plugins(&[a.path().join("a.so")], dir, false).expect("one plugin");
        assert!(by_argument[0].path.ends_with("a.so"));
    }

    #[test]
    fn names_that_lead_nowhere_are_errors() {
        let dir = folder(&["libx.so.1"]);
        let empty = find_plugins(&[dir.path().to_owned()], None, false);
        assert!(matches!(empty, Err(SourceError::EmptyFolder(_))));
        let missing = find_plugins(&[dir.path().join("no.so")], None, false);
        assert!(matches!(missing, Err(SourceError::Missing(_))));
    }
}
