//! From paths to files, as hipDNN's loader goes: which folders, which names, in which order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;

/// Where the host looks unless it is told otherwise, relative to its own library.
pub const DEFAULT_FOLDER: &str = "hipdnn_plugins/engines/";

/// `hipdnnPluginLoadingMode_ext_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The default path (or HIPDNN_PLUGIN_DIR in its place) and the given ones
    #[default]
    Additive,
    /// The given ones only; HIPDNN_PLUGIN_DIR is ignored
    Absolute,
}

/// What is searched.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Paths of the application.
    pub paths: Vec<PathBuf>,
    /// How they combine.
    pub mode: Mode,
    /// HIPDNN_PLUGIN_DIR; empty is as good as absent.
    pub variable: Option<PathBuf>,
    /// Folder of libhipdnn_backend.so, if it is known.
    pub backend_folder: Option<PathBuf>,
}

/// What the search gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The places searched, in order, with a word on where each comes from.
    pub places: Vec<(PathBuf, String)>,
    /// Files that the host would try to load, in its order.
    pub files: Vec<PathBuf>,
    /// What it passes over or refuses by name.
    pub ignored: Vec<Ignored>,
}

/// A path that is not loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ignored {
    /// The path.
    pub path: PathBuf,
    /// Why, in the host's words where it has any.
    pub why: String,
    /// The host tries it and logs an error; else it does not even look.
    pub is_error: bool,
}

const EXTENSION: &str = "Invalid file extension. Expected .so";

/// Searches as hipDNN does. Reads folders and links, loads nothing.
pub fn find(search: &Search) -> Found {
    let mut found = Found::default();
    let mut places: BTreeSet<(PathBuf, String)> = BTreeSet::new();
    for (path, why) in wanted(search) {
        match absolute(&path, search.backend_folder.as_deref()) {
            Some(path) => {
                places.insert((weakly_canonical(&path), why));
            }
            None => found.ignored.push(Ignored {
                path,
                why: format!(
                    "{why}: hipDNN takes a relative path from the folder of libhipdnn_backend.so, not from here, and \
                     that folder is not known; --backend FILE names it, or give an absolute path"
                ),
                is_error: false,
            }),
        }
    }
    let mut files = BTreeSet::new();
    for (place, why) in places {
        if !found.places.iter().any(|(known, _)| *known == place) {
            take_place(&place, &mut files, &mut found.ignored);
            found.places.push((place, why));
        }
    }
    found.files = files.into_iter().collect();
    found
}

/// The paths in question, and where each comes from.
fn wanted(search: &Search) -> Vec<(PathBuf, String)> {
    let variable = search
        .variable
        .clone()
        .filter(|path| !path.as_os_str().is_empty());
    let mut wanted = Vec::new();
    if search.mode == Mode::Additive {
        wanted.push(match variable {
            Some(path) => (
                path,
                "HIPDNN_PLUGIN_DIR, in place of the default".to_owned(),
            ),
            None => (PathBuf::from(DEFAULT_FOLDER), "the default".to_owned()),
        });
    }
    let given = search.paths.iter().cloned();
    wanted.extend(given.map(|path| (path, "given".to_owned())));
    wanted
}

/// Relative paths start from the backend's folder, not from the current one.
fn absolute(path: &Path, backend: Option<&Path>) -> Option<PathBuf> {
    match path.is_absolute() {
        true => Some(path.to_owned()),
        false => backend.map(|folder| folder.join(path)),
    }
}

/// As std::filesystem::weakly_canonical: links are followed as far as the path exists.
fn weakly_canonical(path: &Path) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => weakly_canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

fn take_place(place: &Path, files: &mut BTreeSet<PathBuf>, ignored: &mut Vec<Ignored>) {
    if place.extension().is_none()
        && let Some(library) = with_prefix(place)
        && library.is_file()
    {
        // A library called lib<name>.so wins over a folder called <name>.
        return take_file(&library, files, ignored);
    }
    if place.is_dir() {
        return take_folder(place, files, ignored);
    }
    take_file(place, files, ignored);
}

/// `<folder>/lib<name>.so`.
fn with_prefix(place: &Path) -> Option<PathBuf> {
    let name = place.file_name()?.to_string_lossy().into_owned();
    Some(place.with_file_name(format!("lib{name}.so")))
}

/// Not recursive; regular files whose extension is exactly `.so`, links followed.
fn take_folder(folder: &Path, files: &mut BTreeSet<PathBuf>, ignored: &mut Vec<Ignored>) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            return ignored.push(Ignored {
                path: folder.to_owned(),
                why: format!("the folder cannot be read: {error}"),
                is_error: true,
            });
        }
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let why = if path.is_dir() {
            "a folder: the search is not recursive"
        } else if !path.is_file() {
            "no regular file, or a link that leads nowhere"
        } else if path.extension().is_none_or(|extension| extension != "so") {
            "the extension is not exactly .so"
        } else {
            take_file(&path, files, ignored);
            continue;
        };
        ignored.push(Ignored {
            path,
            why: why.to_owned(),
            is_error: false,
        });
    }
}

/// The name is checked after links were followed, which is the trap of versioned links.
fn take_file(path: &Path, files: &mut BTreeSet<PathBuf>, ignored: &mut Vec<Ignored>) {
    let real = weakly_canonical(path);
    let mut refuse = |why: String| {
        ignored.push(Ignored {
            path: path.to_owned(),
            why,
            is_error: true,
        });
    };
    if real.extension().is_none_or(|extension| extension != "so") {
        let trap = match real == path {
            true => String::new(),
            false => format!(
                " (the link leads to {}, and the host looks at that name; copy the file, or name \
                 the real file *.so and link the other way)",
                real.display()
            ),
        };
        return refuse(format!("{}{EXTENSION}{trap}", prefix(&real)));
    }
    if !real.is_file() {
        let shown = real.display();
        return refuse(format!(
            "{}Shared libary: plugin file does not exist: {shown}",
            prefix(&real)
        ));
    }
    if !files.insert(real.clone()) {
        ignored.push(Ignored {
            path: path.to_owned(),
            why: format!("the same file as {}: skipped silently", real.display()),
            is_error: false,
        });
    }
}

/// How the host begins the text of a failed load.
pub(super) fn prefix(path: &Path) -> String {
    format!("Error loading plugin from [{}]: ", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        folder
    }

    fn given(path: &Path) -> Search {
        Search {
            paths: vec![path.to_owned()],
            mode: Mode::Absolute,
            ..Search::default()
        }
    }

    fn names(found: &Found) -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        found.files.iter().map(name).collect()
    }

    fn why(found: &Found, name: &str) -> String {
        let of = |ignored: &&Ignored| ignored.path.ends_with(name);
        found.ignored.iter().find(of).unwrap().why.clone()
    }

    #[test]
    fn a_folder_gives_its_own_so_files_in_order() {
        let folder = folder(&["b.so", "a.so", "c.so.1", "deep/d.so", "e.dll", "README"]);
        let found = find(&given(folder.path()));
        assert_eq!(names(&found), ["a.so", "b.so"]);
        assert!(why(&found, "deep").contains("not recursive"));
        assert!(why(&found, "c.so.1").contains("exactly .so"));
        assert!(found.ignored.iter().all(|ignored| !ignored.is_error));
    }

    #[test]
    fn a_versioned_link_is_refused_by_the_name_it_leads_to() {
        let folder = folder(&["libx.so.1.2"]);
        symlink("libx.so.1.2", folder.path().join("libx.so")).unwrap();
        let found = find(&given(folder.path()));
        assert!(found.files.is_empty());
        assert!(why(&found, "libx.so").contains(EXTENSION));
        assert!(why(&found, "libx.so").contains("libx.so.1.2"));
    }

    #[test]
    fn the_same_file_under_two_names_is_taken_once() {
        let folder = folder(&["a.so"]);
        symlink("a.so", folder.path().join("b.so")).unwrap();
        let found = find(&given(folder.path()));
        assert_eq!(names(&found), ["a.so"]);
        assert!(why(&found, "b.so").contains("skipped silently"));
    }

    #[test]
    fn names_without_extension_become_libraries() {
        let folder = folder(&["libmine.so", "mine/other.so"]);
        let found = find(&given(&folder.path().join("mine")));
        assert_eq!(names(&found), ["libmine.so"]);
        let missing = find(&given(&folder.path().join("none.so")));
        assert!(
            missing.ignored[0]
                .why
                .contains("plugin file does not exist")
        );
        let wrong = find(&given(&folder.path().join("libmine.so.3")));
        assert!(wrong.ignored[0].why.contains(EXTENSION) && wrong.ignored[0].is_error);
    }

    #[test]
    fn the_variable_replaces_the_default_and_absolute_ignores_both() {
        let backend = folder(&["hipdnn_plugins/engines/default.so", "rel/r.so"]);
        let other = folder(&["o.so"]);
        let search = |mode, variable: Option<&Path>| Search {
            paths: vec![PathBuf::from("rel")],
            mode,
            variable: variable.map(Path::to_owned),
            backend_folder: Some(backend.path().to_owned()),
        };
        let names_of = |mode, variable| names(&find(&search(mode, variable)));
        assert_eq!(names_of(Mode::Additive, None), ["default.so", "r.so"]);
        assert_eq!(names_of(Mode::Additive, Some(Path::new(""))).len(), 2);
        let replaced = names_of(Mode::Additive, Some(other.path()));
        assert!(
            replaced.contains(&"o.so".to_owned()) && !replaced.contains(&"default.so".to_owned())
        );
        assert_eq!(names_of(Mode::Absolute, Some(other.path())), ["r.so"]);
        let unknown = Search {
            backend_folder: None,
            ..search(Mode::Additive, None)
        };
        assert!(
            find(&unknown)
                .ignored
                .iter()
                .all(|i| i.why.contains("--backend"))
        );
    }
}
