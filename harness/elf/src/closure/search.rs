//! Where glibc looks for a library, in its order (`_dl_map_object` in `elf/dl-load.c`).

use super::environment::LoadEnvironment;
use super::source::{FileBytes, FileSource};
use super::walk::{ClosureObject, Place};
use crate::not_a_plugin::{NotAPlugin, What};
use crate::view::ElfView;
use goblin::elf::dynamic::DF_1_NODEFLIB;
use std::path::{Path, PathBuf};

/// A library that the search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it is, by the path that the loader opens.
    pub path: PathBuf,
    /// Its content.
    pub bytes: FileBytes,
    /// Which step of the search found it.
    pub place: Place,
}

/// Why the search ended without a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotFound {
    /// No place of the search has it.
    Nowhere,
    /// A file of that name stopped the search: the loader gives up on it with an error.
    Refused(NotAPlugin, PathBuf),
}

pub(super) struct Search<'a> {
    pub environment: &'a LoadEnvironment,
    pub source: &'a dyn FileSource,
}

impl Search<'_> {
    /// Finds the library that `objects[by]` needs under `name`. Without `by` it is the host that
    /// asks.
    pub fn find(
        &self,
        name: &str,
        objects: &[ClosureObject],
        by: Option<usize>,
    ) -> Result<Found, NotFound> {
        if name.contains('/') {
            let origin = by.map_or(Path::new("/"), |index| objects[index].origin());
            let path = self.absolute(&self.expand(name, origin));
            return self
                .open(path, Place::Direct)
                .unwrap_or(Err(NotFound::Nowhere));
        }
        for (directory, place) in self.directories(objects, by) {
            if let Some(outcome) = self.in_directory(&directory, name, place) {
                return outcome;
            }
        }
        let plain = by.is_none_or(|index| objects[index].flags_1() & DF_1_NODEFLIB == 0);
        let cached = self
            .environment
            .cache
            .as_ref()
            .and_then(|cache| cache.lookup(name, &self.environment.hwcaps))
            .map(PathBuf::from)
            .filter(|path| plain || !self.is_default(path));
        if let Some(outcome) = cached.and_then(|path| self.open(path, Place::Cache)) {
            return outcome;
        }
        if plain {
            for directory in &self.environment.default_directories {
                if let Some(outcome) = self.in_directory(directory, name, Place::Default) {
                    return outcome;
                }
            }
        }
        Err(NotFound::Nowhere)
    }

    /// The directories before the cache: RPATH of the one who asks and of those who loaded it,
    /// unless it has a RUNPATH; the library path; its RUNPATH, which nobody inherits.
    fn directories(&self, objects: &[ClosureObject], by: Option<usize>) -> Vec<(PathBuf, Place)> {
        let asking = by.map(|index| &objects[index]);
        let mut directories = Vec::new();
        if asking.is_some_and(|object| object.runpath.is_none()) {
            let mut next = by;
            while let Some(object) = next.map(|index| &objects[index]) {
                if object.runpath.is_none() {
                    directories.extend(self.expand_list(&object.rpath, object, Place::Rpath));
                }
                next = object.loaded_by;
            }
        }
        let library_path = self.environment.library_path.iter();
        directories.extend(library_path.map(|element| {
            let expanded = self.expand(element, Path::new("/"));
            (self.absolute(&expanded), Place::LibraryPath)
        }));
        if let Some(object) = asking {
            directories.extend(self.expand_list(&object.runpath, object, Place::Runpath));
        }
        directories
    }

    fn expand_list(
        &self,
        list: &Option<String>,
        object: &ClosureObject,
        place: Place,
    ) -> Vec<(PathBuf, Place)> {
        let elements = list.iter().flat_map(|list| list.split(':'));
        elements
            .map(|element| {
                let expanded = self.expand(element, object.origin());
                (self.absolute(&expanded), place)
            })
            .collect()
    }

    /// Replaces `$ORIGIN`, `$LIB` and `$PLATFORM`, with or without braces.
    fn expand(&self, text: &str, origin: &Path) -> String {
        let origin = origin.to_string_lossy();
        let tokens = [
            ("ORIGIN", &*origin),
            ("LIB", &self.environment.lib),
            ("PLATFORM", &self.environment.platform),
        ];
        let mut expanded = text.to_owned();
        for (token, value) in tokens {
            expanded = expanded
                .replace(&format!("${{{token}}}"), value)
                .replace(&format!("${token}"), value);
        }
        expanded
    }

    fn absolute(&self, path: &str) -> PathBuf {
        self.environment.working_directory.join(path)
    }

    fn is_default(&self, path: &Path) -> bool {
        let directory = path.parent();
        let mut defaults = self.environment.default_directories.iter();
        defaults.any(|default| directory.is_some_and(|d| d.starts_with(default)))
    }

    fn in_directory(
        &self,
        directory: &Path,
        name: &str,
        place: Place,
    ) -> Option<Result<Found, NotFound>> {
        let special = self.environment.hwcaps.iter();
        special
            .map(|hwcap| directory.join("glibc-hwcaps").join(hwcap).join(name))
            .chain([directory.join(name)])
            .find_map(|path| self.open(path, place))
    }

    /// Opens a candidate. `None` makes the search go on: no such file, or one for another
    /// machine, which the loader skips in silence.
    fn open(&self, path: PathBuf, place: Place) -> Option<Result<Found, NotFound>> {
        let bytes = self.source.read(&path)?;
        match ElfView::parse_outline(&bytes) {
            Ok(_) => Some(Ok(Found { path, bytes, place })),
            Err(error) => match error.what {
                What::WrongMachine(_) | What::Elf32 | What::BigEndian => None,
                _ => Some(Err(NotFound::Refused(error, path))),
            },
        }
    }
}
