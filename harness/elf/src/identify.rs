//! What a file is, and for a plugin the facts that planning and reports need.

use crate::memory::MemoryNote;
use crate::not_a_plugin::NotAPlugin;
use crate::view::{Binding, ElfView, SymbolKind, Visibility, check_shared_object};
use dnn_assay_abi::symbols::{HEURISTIC_PLUGIN, mandatory_symbols};
use goblin::elf::dynamic;
use serde::Serialize;
use std::collections::HashSet;

/// One symbol that the file offers to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Export {
    /// The name as stored, mangled.
    pub name: String,
    /// What it names.
    pub kind: SymbolKind,
    /// How it binds.
    pub binding: Binding,
    /// Who sees it.
    pub visibility: Visibility,
    /// Its size in bytes.
    pub size: u64,
}

/// What a shared object offers to a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginRole {
    /// At least one symbol of the engine interface.
    Engine,
    /// The symbols of a heuristic plugin, which DNN Assay names and does not execute.
    Heuristic,
    /// Neither.
    #[default]
    None,
}

/// The mandatory symbols that an engine plugin lacks, in the order in which the host looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MissingEntries {
    /// The names; the first is the one that the host reports.
    pub names: Vec<&'static str>,
}

impl MissingEntries {
    /// The one that the host would name.
    #[must_use]
    pub fn first(&self) -> Option<&'static str> {
        self.names.first().copied()
    }

    /// How many are missing.
    #[must_use]
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

/// A shared object of the right machine: what it says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PluginFile {
    /// The SONAME.
    pub soname: Option<String>,
    /// The libraries it needs, in its order.
    pub needed: Vec<String>,
    /// The linker's build id in lower-case hexadecimal.
    pub build_id: Option<String>,
    /// The exported symbols in the file's order.
    pub exports: Vec<Export>,
    /// The mandatory symbols of an engine plugin that it lacks.
    pub missing: MissingEntries,
    /// What it offers to a host.
    pub role: PluginRole,
    /// The memory note.
    pub memory_note: Option<MemoryNote>,
    /// Whether it carries HIP device code.
    pub has_hip_fatbin: bool,
    /// Whether it carries CUDA device code.
    pub has_cuda_fatbin: bool,
    /// `DT_RUNPATH`, one element per directory.
    pub runpath: Vec<String>,
    /// `DT_RPATH`, one element per directory.
    pub rpath: Vec<String>,
}

impl PluginFile {
    /// Whether it exports this symbol.
    #[must_use]
    pub fn exports(&self, name: &str) -> bool {
        self.exports.iter().any(|export| export.name == name)
    }

    /// Whether it is a heuristic plugin.
    #[must_use]
    pub fn looks_heuristic(&self) -> bool {
        self.role == PluginRole::Heuristic
    }

    pub(crate) fn of(view: &ElfView<'_>) -> Self {
        let exports: Vec<Export> = view
            .exports()
            .map(|symbol| Export {
                name: symbol.name.clone().into_owned(),
                kind: symbol.kind,
                binding: symbol.binding,
                visibility: symbol.visibility,
                size: symbol.size,
            })
            .collect();
        let names: HashSet<&str> = exports.iter().map(|export| export.name.as_str()).collect();
        Self {
            soname: view.soname(),
            needed: view.needed(),
            build_id: view.build_id(),
            missing: missing(&names),
            role: role(&names),
            memory_note: view.memory_note(),
            has_hip_fatbin: view.section(".hip_fatbin").is_some(),
            has_cuda_fatbin: view.section(".nv_fatbin").is_some(),
            runpath: search_path(view, dynamic::DT_RUNPATH),
            rpath: search_path(view, dynamic::DT_RPATH),
            exports,
        }
    }
}

/// Says what the file is.
///
/// # Errors
/// [`NotAPlugin`] names any file that is no shared object for this machine, and says what was
/// expected. A shared object without the plugin's symbols is no error: see
/// [`PluginFile::missing`].
pub fn identify(bytes: &[u8]) -> Result<PluginFile, NotAPlugin> {
    let view = ElfView::parse(bytes)?;
    check_shared_object(&view).map_err(NotAPlugin::new)?;
    Ok(PluginFile::of(&view))
}

fn missing(exported: &HashSet<&str>) -> MissingEntries {
    let names = mandatory_symbols()
        .map(|symbol| symbol.name)
        .filter(|name| !exported.contains(name))
        .collect();
    MissingEntries { names }
}

fn role(exported: &HashSet<&str>) -> PluginRole {
    let has = |name: &&str| exported.contains(*name);
    let all = mandatory_symbols().all(|symbol| has(&symbol.name));
    if !all && HEURISTIC_PLUGIN.iter().any(has) {
        PluginRole::Heuristic
    } else if mandatory_symbols().any(|symbol| has(&symbol.name)) {
        PluginRole::Engine
    } else {
        PluginRole::None
    }
}

/// The directories of a search path tag. An empty element stays: the loader reads it as the
/// working directory.
fn search_path(view: &ElfView<'_>, tag: u64) -> Vec<String> {
    view.dynamic_texts(tag)
        .iter()
        .flat_map(|path| path.split(':'))
        .map(str::to_owned)
        .collect()
}
