//! Which definition every import binds to, and what would make `dlopen` fail.
//!
//! The rules are those of glibc: `do_lookup_x` and `check_match` in `elf/dl-lookup.c`,
//! `_dl_check_map_versions` in `elf/dl-version.c`.

use super::walk::Closure;
use crate::view::{self, DynSymbol, ElfView, VERSYM_HIDDEN, VersionUse};
use serde::Serialize;
use std::collections::HashMap;

/// Who provides an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The object's index in [`Closure::objects`].
    pub object: usize,
    /// Whether the importing object itself needs the provider, directly or not. Otherwise the
    /// import is satisfied by what happens to be in the process.
    pub needed: bool,
}

/// One import of the file under inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportUse {
    /// The name as stored, mangled.
    pub symbol: String,
    /// The version asked for.
    pub version: Option<String>,
    /// Whether it may stay undefined.
    pub weak: bool,
    /// Who provides it.
    pub provider: Option<Provider>,
}

/// One reason for `dlopen` to fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Failure {
    /// A NEEDED library is nowhere.
    Library {
        /// The name in the NEEDED entry.
        name: String,
        /// Who needs it.
        needed_by: String,
        /// Why a file of that name was refused, where there was one.
        refused: Option<String>,
    },
    /// A library is there in a version that lacks a symbol version.
    Version {
        /// The path of the library.
        library: String,
        /// The version that it lacks.
        version: String,
        /// Who asks for it.
        needed_by: String,
    },
    /// No object of the process defines a symbol.
    Symbol {
        /// The name as stored, mangled.
        symbol: String,
        /// The version asked for.
        version: Option<String>,
        /// Who asks for it.
        needed_by: String,
    },
}

impl Failure {
    /// The text that `dlerror` would give.
    #[must_use]
    pub fn loader_text(&self) -> String {
        match self {
            Self::Library {
                refused: Some(reason),
                ..
            } => reason.clone(),
            Self::Library { name, .. } => {
                format!("{name}: cannot open shared object file: No such file or directory")
            }
            Self::Version {
                library,
                version,
                needed_by,
            } => format!("{library}: version `{version}' not found (required by {needed_by})"),
            Self::Symbol {
                symbol,
                version,
                needed_by,
            } => {
                let version = version.as_ref().map(|v| format!(", version {v}"));
                format!(
                    "{needed_by}: undefined symbol: {symbol}{}",
                    version.unwrap_or_default()
                )
            }
        }
    }
}

/// A symbol that a library of the closure defines for itself and would take from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name as stored, mangled.
    pub symbol: String,
    /// The library's index in [`Closure::objects`].
    pub object: usize,
}

/// What binds to what when the file is loaded.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// The imports of the file under inspection, in its order.
    pub imports: Vec<ImportUse>,
    /// Everything that makes `dlopen(RTLD_NOW)` fail, in the order in which the loader meets it.
    pub failures: Vec<Failure>,
    /// Symbols that a library defines for itself and would take from the file instead.
    pub captured: Vec<Binding>,
    /// For each NEEDED entry of the file, whether anything binds to that library.
    pub used_needed: Vec<bool>,
}

impl Bindings {
    /// Binds every import of the file and of the libraries that it brings into the process.
    #[must_use]
    pub fn of(closure: &Closure) -> Self {
        let parse = |index: usize| ElfView::parse(&closure.objects[index].bytes).ok();
        let views: Vec<_> = (0..closure.objects.len()).map(parse).collect();
        let scope = (0..closure.subject).chain(closure.scope.iter().copied());
        let binder = Binder {
            closure,
            views: &views,
            offers: offers(&views, scope),
        };
        binder.run()
    }
}

/// Where each demanded name is defined, in lookup order: object and symbol index.
type Offers<'a> = HashMap<&'a str, Vec<(usize, usize)>>;

fn offers<'a>(views: &'a [Option<ElfView<'a>>], scope: impl Iterator<Item = usize>) -> Offers<'a> {
    let mut offers = Offers::new();
    for view in views.iter().flatten() {
        let demanded = view.symbols().iter().filter(|s| view.is_referenced(s));
        for symbol in demanded {
            offers.entry(&symbol.name).or_default();
        }
    }
    let mut seen = vec![false; views.len()];
    for object in scope {
        if std::mem::replace(&mut seen[object], true) {
            continue;
        }
        let Some(view) = &views[object] else { continue };
        for (index, symbol) in view.symbols().iter().enumerate() {
            if symbol.is_exported()
                && let Some(places) = offers.get_mut(&*symbol.name)
            {
                places.push((object, index));
            }
        }
    }
    offers
}

struct Binder<'a> {
    closure: &'a Closure,
    views: &'a [Option<ElfView<'a>>],
    offers: Offers<'a>,
}

impl Binder<'_> {
    fn run(&self) -> Bindings {
        let closure = self.closure;
        let mut failures: Vec<Failure> = closure
            .missing
            .iter()
            .map(|missing| Failure::Library {
                name: missing.name.clone(),
                needed_by: missing.needed_by.display().to_string(),
                refused: missing.refused.clone(),
            })
            .collect();
        let fresh = || {
            let scope = closure.scope.iter().copied();
            scope.filter(|&index| index >= closure.subject)
        };
        for object in fresh() {
            failures.extend(self.missing_versions(object));
        }
        // The loader relocates what the file needs before the file itself.
        let mut captured = Vec::new();
        for object in fresh().collect::<Vec<_>>().into_iter().rev() {
            failures.extend(self.unresolved(object));
            if object != closure.subject {
                captured.extend(self.captured(object));
            }
        }
        let imports = self.imports();
        Bindings {
            used_needed: self.used_needed(&imports),
            imports,
            failures,
            captured,
        }
    }

    fn missing_versions(&self, object: usize) -> Vec<Failure> {
        let Some(view) = &self.views[object] else {
            return Vec::new();
        };
        let lacks = |need: &&view::NeededVersion| {
            let by_name = |(name, _): &&(String, Option<usize>)| *name == need.file;
            let entry = self.closure.objects[object].needed.iter().find(by_name);
            let library = entry.and_then(|(_, answer)| *answer)?;
            let offered = self.views[library].as_ref()?.versions();
            let defined = offered.defined.values().any(|name| *name == need.version);
            // A library that defines no version at all draws a warning and loads, unless it has
            // no table of versions either: then an assertion of the loader ends the process.
            let missing = !defined && (offered.has_definitions || !offered.has_table);
            (missing && !need.weak).then_some(library)
        };
        view.versions()
            .needed
            .values()
            .filter_map(|need| {
                lacks(&need).map(|library| Failure::Version {
                    library: self.path(library),
                    version: need.version.clone(),
                    needed_by: self.path(object),
                })
            })
            .collect()
    }

    fn unresolved(&self, object: usize) -> Vec<Failure> {
        let Some(view) = &self.views[object] else {
            return Vec::new();
        };
        // A symbol of a library that is missing, or of a missing version, fails once, there.
        let explained = |version: &VersionUse| match version {
            VersionUse::Needed(need) => {
                let missing = &self.closure.missing;
                missing.iter().any(|library| library.name == need.file)
            }
            _ => !self.closure.missing.is_empty(),
        };
        view.imports()
            .filter(|symbol| symbol.binding != view::Binding::Weak && view.is_referenced(symbol))
            .map(|symbol| (symbol, version_of(view, symbol)))
            .filter(|(symbol, version)| {
                self.lookup(&symbol.name, version).is_none() && !explained(version)
            })
            .map(|(symbol, version)| Failure::Symbol {
                symbol: symbol.name.clone().into_owned(),
                version: version_name(&version),
                needed_by: self.path(object),
            })
            .collect()
    }

    /// The library's own symbols that the file, which comes first in the scope, takes over.
    fn captured(&self, object: usize) -> Vec<Binding> {
        let Some(view) = &self.views[object] else {
            return Vec::new();
        };
        view.exports()
            .filter(|symbol| {
                symbol.visibility == view::Visibility::Default && view.is_referenced(symbol)
            })
            .filter(|symbol| {
                let version = version_of(view, symbol);
                self.lookup(&symbol.name, &version) == Some(self.closure.subject)
            })
            .map(|symbol| Binding {
                symbol: symbol.name.clone().into_owned(),
                object,
            })
            .collect()
    }

    fn imports(&self) -> Vec<ImportUse> {
        let Some(view) = &self.views[self.closure.subject] else {
            return Vec::new();
        };
        view.imports()
            .map(|symbol| {
                let version = version_of(view, symbol);
                let provider = self.lookup(&symbol.name, &version);
                ImportUse {
                    symbol: symbol.name.clone().into_owned(),
                    version: version_name(&version),
                    weak: symbol.binding == view::Binding::Weak,
                    provider: provider.map(|object| Provider {
                        object,
                        needed: self.closure.scope.contains(&object),
                    }),
                }
            })
            .collect()
    }

    fn used_needed(&self, imports: &[ImportUse]) -> Vec<bool> {
        let uses = |answer: usize| {
            let mut providers = imports.iter().filter_map(|import| import.provider.as_ref());
            providers.any(|provider| provider.object == answer)
        };
        self.closure
            .subject()
            .needed
            .iter()
            .map(|(_, answer)| answer.is_none_or(uses))
            .collect()
    }

    /// The first object of the lookup order whose definition matches.
    fn lookup(&self, name: &str, version: &VersionUse) -> Option<usize> {
        let places = self.offers.get(name)?;
        let mut start = 0;
        while let Some(&(object, _)) = places.get(start) {
            let end = start + places[start..].iter().take_while(|p| p.0 == object).count();
            let view = self.views[object].as_ref();
            let candidates = places[start..end]
                .iter()
                .filter_map(|&(_, index)| view.map(|view| &view.symbols()[index]));
            if view.is_some_and(|view| matches(view, candidates, version)) {
                return Some(object);
            }
            start = end;
        }
        None
    }

    fn path(&self, object: usize) -> String {
        self.closure.objects[object].path.display().to_string()
    }
}

fn version_of(view: &ElfView<'_>, symbol: &DynSymbol<'_>) -> VersionUse {
    match symbol.version {
        Some(entry) => view.versions().of(entry),
        None => VersionUse::Unversioned,
    }
}

fn version_name(version: &VersionUse) -> Option<String> {
    match version {
        VersionUse::Needed(need) => Some(need.version.clone()),
        VersionUse::Defined(name) => Some(name.clone()),
        VersionUse::Unversioned | VersionUse::Unknown(_) => None,
    }
}

/// Whether one object's definitions of a name satisfy a reference (`check_match` of glibc).
fn matches<'a>(
    view: &ElfView<'_>,
    candidates: impl Iterator<Item = &'a DynSymbol<'a>>,
    wanted: &VersionUse,
) -> bool {
    let wanted = version_name(wanted);
    let mut versioned = 0;
    for candidate in candidates {
        let Some(entry) = candidate.version else {
            return true;
        };
        let index = entry & !VERSYM_HIDDEN;
        let hidden = entry & VERSYM_HIDDEN != 0;
        match &wanted {
            Some(name) => match view.versions().defined.get(&index) {
                Some(own) if own == name => return true,
                // A definition of the base version serves any reference, unless hidden.
                None if !hidden => return true,
                _ => {}
            },
            // Without a version the base and the first version serve; a later one only if it is
            // the single one that is not hidden.
            None if index < 3 => return true,
            None if !hidden => versioned += 1,
            None => {}
        }
    }
    versioned == 1
}
