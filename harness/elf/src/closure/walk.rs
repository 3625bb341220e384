//! The objects that loading a file brings into a process, in the loader's order.

use super::environment::LoadEnvironment;
use super::search::{NotFound, Search};
use super::source::{FileBytes, FileSource};
use crate::not_a_plugin::NotAPlugin;
use crate::view::ElfView;
use goblin::elf::dynamic::{DT_RPATH, DT_RUNPATH};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Which step of the search found an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The file under inspection.
    Subject,
    /// A name with a slash, opened as a path.
    Direct,
    /// `DT_RPATH`.
    Rpath,
    /// `LD_LIBRARY_PATH`.
    LibraryPath,
    /// `DT_RUNPATH`.
    Runpath,
    /// The loader's cache.
    Cache,
    /// The default directories.
    Default,
}

/// One object of the process.
#[derive(Clone, Debug)]
pub struct ClosureObject {
    /// The path that the loader opens.
    pub path: PathBuf,
    /// Its content.
    pub bytes: FileBytes,
    /// Which step of the search found it.
    pub place: Place,
    /// The object that needed it first.
    pub loaded_by: Option<usize>,
    /// Its SONAME.
    pub soname: Option<String>,
    /// The names in its NEEDED entries, each with the object that answers to it.
    pub needed: Vec<(String, Option<usize>)>,
    pub(super) rpath: Option<String>,
    pub(super) runpath: Option<String>,
    flags_1: u64,
    canonical: PathBuf,
    names: Vec<String>,
}

impl ClosureObject {
    /// The name that people know it by: the SONAME, else the file name.
    #[must_use]
    pub fn display_name(&self) -> String {
        let file = || self.path.file_name().map(|n| n.to_string_lossy().into());
        self.soname.clone().or_else(file).unwrap_or_default()
    }

    pub(super) fn origin(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    pub(super) fn flags_1(&self) -> u64 {
        self.flags_1
    }

    fn answers_to(&self, name: &str) -> bool {
        self.soname.as_deref() == Some(name)
            || self.names.iter().any(|known| known == name)
            || self.path.to_str() == Some(name)
    }
}

/// A NEEDED library that the search does not find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingLibrary {
    /// The name in the NEEDED entry.
    pub name: String,
    /// The path of the object that needs it.
    pub needed_by: PathBuf,
    /// Why a file of that name was refused, where there was one.
    pub refused: Option<String>,
}

/// Everything that loading a file brings into a process.
#[derive(Clone, Debug)]
pub struct Closure {
    /// The host's objects first, then the file, then what it brings with it.
    pub objects: Vec<ClosureObject>,
    /// The index of the file.
    pub subject: usize,
    /// The objects that the file's symbols are looked up in after the host's, in order: the file
    /// and everything it needs, breadth first, whoever loaded it.
    pub scope: Vec<usize>,
    /// NEEDED libraries that are nowhere.
    pub missing: Vec<MissingLibrary>,
}

impl Closure {
    /// The objects that are in the process before the file.
    #[must_use]
    pub fn host(&self) -> &[ClosureObject] {
        &self.objects[..self.subject]
    }

    /// The file.
    #[must_use]
    pub fn subject(&self) -> &ClosureObject {
        &self.objects[self.subject]
    }

    /// What the file needs, directly or not, without itself.
    pub fn dependencies(&self) -> impl Iterator<Item = &ClosureObject> {
        self.scope[1..].iter().map(|&index| &self.objects[index])
    }

    /// The names from the file down to an object: who needs whom.
    #[must_use]
    pub fn chain_to(&self, target: usize) -> Vec<String> {
        let mut chain = vec![self.objects[target].display_name()];
        let mut current = target;
        while current != self.subject {
            let Some(parent) = self.scope.iter().copied().find(|&index| {
                let needed = &self.objects[index].needed;
                needed.iter().any(|(_, answer)| *answer == Some(current))
            }) else {
                break;
            };
            chain.push(self.objects[parent].display_name());
            if chain.len() > self.objects.len() {
                break;
            }
            current = parent;
        }
        chain.reverse();
        chain
    }
}

/// Walks the NEEDED entries of a file as the loader does.
///
/// # Errors
/// [`NotAPlugin`] when the file itself does not parse.
pub fn walk(
    path: &Path,
    bytes: &FileBytes,
    environment: &LoadEnvironment,
    source: &dyn FileSource,
) -> Result<Closure, NotAPlugin> {
    let mut walk = Walk {
        search: Search {
            environment,
            source,
        },
        objects: Vec::new(),
        missing: Vec::new(),
    };
    for name in environment.preload.iter().chain(&environment.host) {
        if let Some(first) = walk.load(name, None) {
            walk.load_needed(first);
        }
    }
    // What the host itself lacks is not the file's concern.
    walk.missing.clear();
    let path = environment.working_directory.join(path);
    let subject = walk.add(path, bytes.clone(), Place::Subject, None)?;
    let scope = walk.load_needed(subject);
    Ok(Closure {
        objects: walk.objects,
        subject,
        scope,
        missing: walk.missing,
    })
}

struct Walk<'a> {
    search: Search<'a>,
    objects: Vec<ClosureObject>,
    missing: Vec<MissingLibrary>,
}

impl Walk<'_> {
    /// Loads everything below an object, breadth first, and gives the resulting scope.
    fn load_needed(&mut self, root: usize) -> Vec<usize> {
        let mut scope = vec![root];
        let mut next = 0;
        while let Some(&index) = scope.get(next) {
            next += 1;
            for entry in 0..self.objects[index].needed.len() {
                let name = self.objects[index].needed[entry].0.clone();
                let answer = self.load(&name, Some(index));
                self.objects[index].needed[entry].1 = answer;
                if let Some(found) = answer.filter(|found| !scope.contains(found)) {
                    scope.push(found);
                }
            }
        }
        scope
    }

    /// The object that answers to a name, loaded now if it is not there yet.
    fn load(&mut self, name: &str, by: Option<usize>) -> Option<usize> {
        if let Some(known) = self.objects.iter().position(|o| o.answers_to(name)) {
            return Some(known);
        }
        let refused = match self.search.find(name, &self.objects, by) {
            Ok(found) => {
                let canonical = self.search.source.canonical(&found.path);
                let same = |object: &ClosureObject| object.canonical == canonical;
                if let Some(known) = self.objects.iter().position(same) {
                    self.objects[known].names.push(name.to_owned());
                    return Some(known);
                }
                match self.add(found.path, found.bytes, found.place, by) {
                    Ok(index) => {
                        self.objects[index].names.push(name.to_owned());
                        return Some(index);
                    }
                    Err(error) => Some(error.to_string()),
                }
            }
            Err(NotFound::Nowhere) => None,
            Err(NotFound::Refused(error, path)) => Some(format!("{}: {error}", path.display())),
        };
        self.report(name, by, refused);
        None
    }

    fn report(&mut self, name: &str, by: Option<usize>, refused: Option<String>) {
        let needed_by = by.map(|index| self.objects[index].path.clone());
        let missing = MissingLibrary {
            name: name.to_owned(),
            needed_by: needed_by.unwrap_or_default(),
            refused,
        };
        if !self.missing.iter().any(|known| known.name == name) {
            self.missing.push(missing);
        }
    }

    fn add(
        &mut self,
        path: PathBuf,
        bytes: FileBytes,
        place: Place,
        by: Option<usize>,
    ) -> Result<usize, NotAPlugin> {
        let view = ElfView::parse_outline(&bytes)?;
        let text = |tag| view.dynamic_texts(tag).into_iter().next();
        let object = ClosureObject {
            canonical: self.search.source.canonical(&path),
            soname: view.soname(),
            needed: view.needed().into_iter().map(|name| (name, None)).collect(),
            rpath: text(DT_RPATH),
            runpath: text(DT_RUNPATH),
            flags_1: view.flags_1(),
            path,
            place,
            loaded_by: by,
            names: Vec::new(),
            bytes,
        };
        self.objects.push(object);
        Ok(self.objects.len() - 1)
    }
}
