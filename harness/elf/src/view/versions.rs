//! Symbol versions: what the file defines, what it needs and which symbol demands it.

use super::{CTX, ElfView};
use goblin::elf::dynamic;
use goblin::elf::section_header::{SHT_GNU_VERDEF, SHT_GNU_VERNEED, SHT_GNU_VERSYM, SectionHeader};
use goblin::elf::symver::{VerdefSection, VerneedSection, VersymSection};
use serde::Serialize;
use std::collections::BTreeMap;

/// A version that the file needs from a library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NeededVersion {
    /// The library's SONAME.
    pub file: String,
    /// The version's name, such as `GLIBC_2.34`.
    pub version: String,
    /// Whether its absence is tolerated.
    pub weak: bool,
}

/// What an entry of the version table stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionUse {
    /// No version: index 0 or 1.
    Unversioned,
    /// A version that the file defines.
    Defined(String),
    /// A version that the file needs.
    Needed(NeededVersion),
    /// An index that no table explains.
    Unknown(u16),
}

/// The version tables of a file.
#[derive(Clone, Debug, Default)]
pub struct Versions {
    /// Versions defined, by index; the base version, which names the file, is left out.
    pub defined: BTreeMap<u16, String>,
    /// Versions needed, by index.
    pub needed: BTreeMap<u16, NeededVersion>,
    /// Whether the file has a version definition table at all.
    pub has_definitions: bool,
    /// Whether each symbol has an entry in a version table.
    pub has_table: bool,
}

/// The flag of a definition that names the file itself.
const VER_FLG_BASE: u16 = 1;
/// The flag of a need whose absence is tolerated.
const VER_FLG_WEAK: u16 = 2;
/// The bit of a version table entry that hides the symbol from unversioned lookup.
pub(crate) const VERSYM_HIDDEN: u16 = 0x8000;

impl Versions {
    /// What an entry of the version table stands for.
    #[must_use]
    pub fn of(&self, entry: u16) -> VersionUse {
        let index = entry & !VERSYM_HIDDEN;
        if let Some(needed) = self.needed.get(&index) {
            return VersionUse::Needed(needed.clone());
        }
        match self.defined.get(&index) {
            Some(name) => VersionUse::Defined(name.clone()),
            None if index <= 1 => VersionUse::Unversioned,
            None => VersionUse::Unknown(index),
        }
    }
}

impl ElfView<'_> {
    pub(super) fn read_versions(&mut self) {
        self.read_needed_versions();
        self.read_defined_versions();
        let count = self.referenced.len() as u64;
        let Some(table) = self.version_table(dynamic::DT_VERSYM, SHT_GNU_VERSYM, 0, count * 2)
        else {
            return;
        };
        match VersymSection::parse(self.bytes, &[table], CTX) {
            Ok(Some(entries)) => {
                self.versions.has_table = true;
                for symbol in &mut self.symbols {
                    symbol.version = entries.get_at(symbol.index as usize).map(|v| v.vs_val);
                }
            }
            Ok(None) => {}
            Err(error) => self.forgive("symbol versions", error),
        }
    }

    fn read_defined_versions(&mut self) {
        let count = self.dynamic_value(dynamic::DT_VERDEFNUM).unwrap_or(0);
        let Some(table) = self.version_table(dynamic::DT_VERDEF, SHT_GNU_VERDEF, count, u64::MAX)
        else {
            return;
        };
        self.versions.has_definitions = true;
        let parsed = match VerdefSection::parse(self.bytes, &[table], CTX) {
            Ok(parsed) => parsed,
            Err(error) => return self.forgive("version definitions", error),
        };
        let mut seen = 0;
        for definition in parsed.iter().flatten() {
            seen += 1;
            let name = definition.iter().next();
            let name = name.and_then(|aux| self.dynamic_string(aux.vda_name as u64));
            if definition.vd_flags & VER_FLG_BASE == 0
                && let Some(name) = name
            {
                let index = definition.vd_ndx & !VERSYM_HIDDEN;
                self.versions.defined.insert(index, name.into_owned());
            }
        }
        self.check_length("version definitions", count, seen);
    }

    fn read_needed_versions(&mut self) {
        let count = self.dynamic_value(dynamic::DT_VERNEEDNUM).unwrap_or(0);
        let Some(table) = self.version_table(dynamic::DT_VERNEED, SHT_GNU_VERNEED, count, u64::MAX)
        else {
            return;
        };
        let parsed = match VerneedSection::parse(self.bytes, &[table], CTX) {
            Ok(parsed) => parsed,
            Err(error) => return self.forgive("version needs", error),
        };
        let mut seen = 0;
        for need in parsed.iter().flatten() {
            seen += 1;
            let file = self.dynamic_string(need.vn_file as u64).unwrap_or_default();
            for aux in need.iter() {
                let version = self.dynamic_string(aux.vna_name as u64).unwrap_or_default();
                let needed = NeededVersion {
                    file: file.clone().into_owned(),
                    version: version.into_owned(),
                    weak: aux.vna_flags & VER_FLG_WEAK != 0,
                };
                let index = aux.vna_other & !VERSYM_HIDDEN;
                self.versions.needed.insert(index, needed);
            }
        }
        self.check_length("version needs", count, seen);
    }

    fn check_length(&mut self, part: &'static str, announced: u64, seen: u64) {
        if announced != seen {
            self.forgive(
                part,
                format!("{announced} entries are announced, {seen} parse"),
            );
        }
    }

    /// The place of a version table as the dynamic section has it, in the form of a section
    /// header, which goblin reads it by. The loader never looks at the real section headers.
    fn version_table(
        &mut self,
        tag: u64,
        kind: u32,
        count: u64,
        size: u64,
    ) -> Option<SectionHeader> {
        let address = self.dynamic_value(tag)?;
        let Some(bytes) = self.bytes_at(address) else {
            self.forgive("symbol versions", "a version table lies outside the file");
            return None;
        };
        let offset = bytes.as_ptr() as usize - self.bytes.as_ptr() as usize;
        Some(SectionHeader {
            sh_type: kind,
            sh_offset: offset as u64,
            sh_size: size.min(bytes.len() as u64),
            sh_info: u32::try_from(count).unwrap_or(u32::MAX),
            sh_entsize: 2,
            ..SectionHeader::default()
        })
    }
}
