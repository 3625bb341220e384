//! Dynamic symbols in the words that people use for them.

use goblin::elf::section_header::{SHN_ABS, SHN_UNDEF};
use goblin::elf::sym::{self, Sym};
use serde::Serialize;
use std::borrow::Cow;

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SymbolKind {
    /// `NOTYPE`.
    None,
    /// Data.
    Object,
    /// A function.
    Function,
    /// A section.
    Section,
    /// A source file.
    File,
    /// A common block.
    Common,
    /// Thread-local data.
    Tls,
    /// A function whose address a resolver chooses at load time.
    Ifunc,
    /// Any other type number.
    Other(u8),
}

/// How a symbol binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// Only inside the file.
    Local,
    /// To all.
    Global,
    /// To all, a stronger definition wins at link time.
    Weak,
    /// `STB_GNU_UNIQUE`: one definition for the whole process, `RTLD_LOCAL` or not.
    Unique,
    /// Any other binding number.
    Other(u8),
}

/// Who sees a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Visibility {
    /// Everyone, and others may interpose it.
    Default,
    /// Only the file, and no other file calls into it.
    Internal,
    /// Only the file.
    Hidden,
    /// Everyone, but the file itself always uses its own definition.
    Protected,
}

/// One symbol of the dynamic symbol table.
#[derive(Clone, Debug)]
pub struct DynSymbol<'a> {
    /// Its place in the table.
    pub index: u32,
    /// Its name as stored, mangled.
    pub name: Cow<'a, str>,
    /// What it names.
    pub kind: SymbolKind,
    /// How it binds.
    pub binding: Binding,
    /// Who sees it.
    pub visibility: Visibility,
    /// The section index that it is defined in.
    pub section: u16,
    /// Its address, or offset for thread-local data.
    pub value: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its entry in the version table with the hidden bit, `None` in a file without versions.
    pub version: Option<u16>,
}

impl DynSymbol<'_> {
    /// Whether the file defines it.
    #[must_use]
    pub fn is_defined(&self) -> bool {
        u32::from(self.section) != SHN_UNDEF
    }

    /// Whether another file, or `dlsym`, can find it here. The conditions are those of glibc's
    /// lookup: defined, not local, visible, of a type that can be looked up, with an address.
    #[must_use]
    pub fn is_exported(&self) -> bool {
        let found =
            self.value != 0 || u32::from(self.section) == SHN_ABS || self.kind == SymbolKind::Tls;
        let typed = matches!(
            self.kind,
            SymbolKind::None
                | SymbolKind::Object
                | SymbolKind::Function
                | SymbolKind::Common
                | SymbolKind::Tls
                | SymbolKind::Ifunc
        );
        let seen = matches!(self.visibility, Visibility::Default | Visibility::Protected);
        let bound = matches!(
            self.binding,
            Binding::Global | Binding::Weak | Binding::Unique
        );
        self.is_defined() && found && typed && seen && bound && !self.name.is_empty()
    }

    /// Whether another file has to define it.
    #[must_use]
    pub fn is_imported(&self) -> bool {
        !self.is_defined() && self.binding != Binding::Local && !self.name.is_empty()
    }

    pub(super) fn new<'a>(index: u32, raw: &Sym, name: Cow<'a, str>) -> DynSymbol<'a> {
        DynSymbol {
            index,
            name,
            kind: kind(raw.st_type()),
            binding: binding(raw.st_bind()),
            visibility: visibility(raw.st_visibility()),
            section: raw.st_shndx as u16,
            value: raw.st_value,
            size: raw.st_size,
            version: None,
        }
    }
}

fn kind(number: u8) -> SymbolKind {
    match number {
        sym::STT_NOTYPE => SymbolKind::None,
        sym::STT_OBJECT => SymbolKind::Object,
        sym::STT_FUNC => SymbolKind::Function,
        sym::STT_SECTION => SymbolKind::Section,
        sym::STT_FILE => SymbolKind::File,
        sym::STT_COMMON => SymbolKind::Common,
        sym::STT_TLS => SymbolKind::Tls,
        sym::STT_GNU_IFUNC => SymbolKind::Ifunc,
        other => SymbolKind::Other(other),
    }
}

fn binding(number: u8) -> Binding {
    match number {
        sym::STB_LOCAL => Binding::Local,
        sym::STB_GLOBAL => Binding::Global,
        sym::STB_WEAK => Binding::Weak,
        sym::STB_GNU_UNIQUE => Binding::Unique,
        other => Binding::Other(other),
    }
}

fn visibility(number: u8) -> Visibility {
    match number {
        sym::STV_INTERNAL => Visibility::Internal,
        sym::STV_HIDDEN => Visibility::Hidden,
        sym::STV_PROTECTED => Visibility::Protected,
        _ => Visibility::Default,
    }
}
