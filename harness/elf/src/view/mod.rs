//! One pass over an ELF file: every table that a rule looks at, parsed part by part.
//!
//! goblin parses each part on its own. A part that does not parse is left empty and recorded in
//! [`ElfView::forgiven`], so that a broken plugin is still described as far as it can be and what
//! had to be forgiven becomes a finding.

mod constructors;
mod hash;
mod notes;
mod ranges;
mod symbol;
mod tables;
mod versions;

pub use constructors::Constructor;
pub use hash::SymbolCounts;
pub(crate) use ranges::loader_ranges;
pub use symbol::{Binding, DynSymbol, SymbolKind, Visibility};
pub(crate) use versions::VERSYM_HIDDEN;
pub use versions::{NeededVersion, VersionUse, Versions};

use crate::not_a_plugin::{
    EM_AMDGPU, HOST_MACHINE, NotAPlugin, What, classify_foreign, machine_name,
};
use goblin::container::{Container, Ctx, Endian};
use goblin::elf::Elf;
use goblin::elf::dynamic::{self, Dyn, Dynamic};
use goblin::elf::header::{self, Header};
use goblin::elf::program_header::{PT_DYNAMIC, PT_LOAD, ProgramHeader};
use goblin::elf::section_header::{SHT_NOBITS, SectionHeader};
use serde::Serialize;
use std::borrow::Cow;

/// A part of the file that did not parse and was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forgiven {
    /// The part, such as `section headers` or `symbol versions`.
    pub part: &'static str,
    /// What was wrong with it.
    pub problem: String,
}

/// The tables of a 64-bit little-endian ELF file for this machine. Borrows the file's bytes.
pub struct ElfView<'a> {
    bytes: &'a [u8],
    header: Header,
    segments: Vec<ProgramHeader>,
    sections: Vec<SectionHeader>,
    dynamic: Vec<Dyn>,
    dynamic_strings: &'a [u8],
    symbols: Vec<DynSymbol<'a>>,
    counts: SymbolCounts,
    versions: Versions,
    referenced: Vec<bool>,
    forgiven: Vec<Forgiven>,
}

/// 64 bits, little-endian: the only container that [`ElfView::parse`] accepts.
pub(crate) const CTX: Ctx = Ctx {
    container: Container::Big,
    le: Endian::Little,
};

impl<'a> ElfView<'a> {
    /// Parses the file's tables.
    ///
    /// # Errors
    /// [`NotAPlugin`] when the file is no 64-bit little-endian ELF file for this machine, ends
    /// before its headers say, or has program headers that cannot be read. Everything after that
    /// is forgiven and recorded.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, NotAPlugin> {
        Self::parse_for(bytes, HOST_MACHINE)
    }

    /// Parses the tables of an AMD GPU code object.
    pub(crate) fn parse_code_object(bytes: &'a [u8]) -> Result<Self, NotAPlugin> {
        Self::parse_for(bytes, EM_AMDGPU)
    }

    /// Parses everything but symbols and versions: what a walk needs.
    pub(crate) fn parse_outline(bytes: &'a [u8]) -> Result<Self, NotAPlugin> {
        let mut view = Self::parse_segments(bytes, HOST_MACHINE)?;
        view.read_dynamic();
        Ok(view)
    }

    fn parse_for(bytes: &'a [u8], machine: u16) -> Result<Self, NotAPlugin> {
        let mut view = Self::parse_segments(bytes, machine)?;
        view.read_sections();
        view.read_dynamic();
        view.read_symbols();
        Ok(view)
    }

    fn parse_segments(bytes: &'a [u8], machine: u16) -> Result<Self, NotAPlugin> {
        let header = parse_header(bytes, machine).map_err(NotAPlugin::new)?;
        check_complete(bytes, &header).map_err(NotAPlugin::new)?;
        let segments = segments(bytes, &header).map_err(NotAPlugin::new)?;
        Ok(Self {
            bytes,
            header,
            segments,
            sections: Vec::new(),
            dynamic: Vec::new(),
            dynamic_strings: &[],
            symbols: Vec::new(),
            counts: SymbolCounts::default(),
            versions: Versions::default(),
            referenced: Vec::new(),
            forgiven: Vec::new(),
        })
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The ELF header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The program headers, as the loader sees the file.
    #[must_use]
    pub fn segments(&self) -> &[ProgramHeader] {
        &self.segments
    }

    /// The section headers; empty when the file was stripped of them.
    #[must_use]
    pub fn sections(&self) -> &[SectionHeader] {
        &self.sections
    }

    /// The dynamic section up to and including its end mark.
    #[must_use]
    pub fn dynamic(&self) -> &[Dyn] {
        &self.dynamic
    }

    /// The dynamic symbols without the null symbol at index 0.
    #[must_use]
    pub fn symbols(&self) -> &[DynSymbol<'a>] {
        &self.symbols
    }

    /// How many dynamic symbols each table of the file announces.
    #[must_use]
    pub fn symbol_counts(&self) -> &SymbolCounts {
        &self.counts
    }

    /// The symbol versions that the file defines and needs.
    #[must_use]
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// What did not parse and was left out.
    #[must_use]
    pub fn forgiven(&self) -> &[Forgiven] {
        &self.forgiven
    }

    /// Whether any relocation refers to the symbol, so that the loader must bind it.
    #[must_use]
    pub fn is_referenced(&self, symbol: &DynSymbol<'_>) -> bool {
        self.referenced
            .get(symbol.index as usize)
            .copied()
            .unwrap_or(false)
    }

    /// The symbols that the file offers to others.
    pub fn exports(&self) -> impl Iterator<Item = &DynSymbol<'a>> {
        self.symbols.iter().filter(|symbol| symbol.is_exported())
    }

    /// The symbols that the file wants from others.
    pub fn imports(&self) -> impl Iterator<Item = &DynSymbol<'a>> {
        self.symbols.iter().filter(|symbol| symbol.is_imported())
    }

    /// The value of the first dynamic entry with the tag.
    #[must_use]
    pub fn dynamic_value(&self, tag: u64) -> Option<u64> {
        self.dynamic_values(tag).next()
    }

    /// The values of all dynamic entries with the tag, in order.
    pub fn dynamic_values(&self, tag: u64) -> impl Iterator<Item = u64> + '_ {
        self.dynamic
            .iter()
            .filter(move |entry| entry.d_tag == tag)
            .map(|entry| entry.d_val)
    }

    /// The strings that all dynamic entries with the tag point at, in order.
    #[must_use]
    pub fn dynamic_texts(&self, tag: u64) -> Vec<String> {
        self.dynamic_values(tag)
            .filter_map(|offset| self.dynamic_string(offset))
            .map(Cow::into_owned)
            .collect()
    }

    /// The SONAME.
    #[must_use]
    pub fn soname(&self) -> Option<String> {
        self.dynamic_texts(dynamic::DT_SONAME).into_iter().next()
    }

    /// The NEEDED libraries in the file's order.
    #[must_use]
    pub fn needed(&self) -> Vec<String> {
        self.dynamic_texts(dynamic::DT_NEEDED)
    }

    /// The flags of `DT_FLAGS`.
    #[must_use]
    pub fn flags(&self) -> u64 {
        self.dynamic_value(dynamic::DT_FLAGS).unwrap_or(0)
    }

    /// The flags of `DT_FLAGS_1`.
    #[must_use]
    pub fn flags_1(&self) -> u64 {
        self.dynamic_value(dynamic::DT_FLAGS_1).unwrap_or(0)
    }

    /// A string of the dynamic string table. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn dynamic_string(&self, offset: u64) -> Option<Cow<'a, str>> {
        string_at(self.dynamic_strings, offset)
    }

    /// The name of a section.
    #[must_use]
    pub fn section_name(&self, section: &SectionHeader) -> Cow<'a, str> {
        let names = self
            .sections
            .get(usize::from(self.header.e_shstrndx))
            .and_then(|table| self.section_bytes(table));
        names
            .and_then(|table| string_at(table, section.sh_name as u64))
            .unwrap_or(Cow::Borrowed(""))
    }

    /// The section of that name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&SectionHeader> {
        self.sections
            .iter()
            .find(|section| self.section_name(section) == name)
    }

    /// The bytes of a section in the file; `None` for one without or outside the file.
    #[must_use]
    pub fn section_bytes(&self, section: &SectionHeader) -> Option<&'a [u8]> {
        if section.sh_type == SHT_NOBITS {
            return None;
        }
        slice(self.bytes, section.sh_offset, section.sh_size)
    }

    /// The bytes from an address to the end of the file part of its segment.
    #[must_use]
    pub fn bytes_at(&self, address: u64) -> Option<&'a [u8]> {
        self.segments
            .iter()
            .filter(|segment| segment.p_type == PT_LOAD)
            .find_map(|segment| {
                let inside = address.checked_sub(segment.p_vaddr)?;
                let rest = segment.p_filesz.checked_sub(inside)?;
                slice(self.bytes, segment.p_offset.checked_add(inside)?, rest)
            })
            .filter(|found| !found.is_empty())
    }

    pub(crate) fn forgive(&mut self, part: &'static str, problem: impl ToString) {
        self.forgiven.push(Forgiven {
            part,
            problem: problem.to_string(),
        });
    }

    fn read_sections(&mut self) {
        let (offset, count) = (self.header.e_shoff, self.header.e_shnum);
        match SectionHeader::parse(self.bytes, offset as usize, count.into(), CTX) {
            Ok(sections) => self.sections = sections,
            Err(error) => self.forgive("section headers", error),
        }
    }

    fn read_dynamic(&mut self) {
        match Dynamic::parse(self.bytes, &self.segments, CTX) {
            Ok(found) => self.dynamic = found.map(|d| d.dyns).unwrap_or_default(),
            Err(error) => self.forgive("dynamic section", error),
        }
        let Some(address) = self.dynamic_value(dynamic::DT_STRTAB) else {
            return;
        };
        let size = self.dynamic_value(dynamic::DT_STRSZ).unwrap_or(u64::MAX);
        match self.bytes_at(address) {
            Some(found) => {
                let len = found.len().min(usize::try_from(size).unwrap_or(usize::MAX));
                self.dynamic_strings = &found[..len];
            }
            None => self.forgive("dynamic string table", "its address is outside the file"),
        }
    }
}

/// The part of `bytes` at `offset` with `size` bytes, if all of it is there.
pub(crate) fn slice(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    bytes.get(start..end)
}

/// The NUL-terminated string at `offset`. A string without its NUL ends with the table.
pub(crate) fn string_at(table: &[u8], offset: u64) -> Option<Cow<'_, str>> {
    let rest = table.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
    Some(String::from_utf8_lossy(&rest[..end]))
}

fn parse_header(bytes: &[u8], machine: u16) -> Result<Header, What> {
    if !bytes.starts_with(header::ELFMAG) {
        return Err(classify_foreign(bytes));
    }
    let truncated = What::Truncated {
        present: bytes.len() as u64,
        announced: header::header64::SIZEOF_EHDR as u64,
    };
    match bytes.get(header::EI_CLASS) {
        None => return Err(truncated),
        Some(&header::ELFCLASS64) => {}
        Some(&header::ELFCLASS32) => return Err(What::Elf32),
        Some(other) => return Err(What::Malformed(format!("its class byte is {other}"))),
    }
    match bytes.get(header::EI_DATA) {
        None => return Err(truncated),
        Some(&header::ELFDATA2LSB) => {}
        Some(&header::ELFDATA2MSB) => return Err(What::BigEndian),
        Some(other) => return Err(What::Malformed(format!("its byte-order byte is {other}"))),
    }
    if bytes.len() < header::header64::SIZEOF_EHDR {
        return Err(truncated);
    }
    let header = Elf::parse_header(bytes).map_err(|e| What::Malformed(e.to_string()))?;
    if header.e_machine != machine {
        return Err(What::WrongMachine(machine_name(header.e_machine)));
    }
    Ok(header)
}

/// The end of the farthest thing that the headers announce must lie inside the file.
fn check_complete(bytes: &[u8], header: &Header) -> Result<(), What> {
    let present = bytes.len() as u64;
    let table = |offset: u64, count: u16, size: u16| {
        offset.saturating_add(u64::from(count) * u64::from(size))
    };
    let mut announced = table(header.e_phoff, header.e_phnum, header.e_phentsize).max(table(
        header.e_shoff,
        header.e_shnum,
        header.e_shentsize,
    ));
    if let Ok(segments) = segments(bytes, header) {
        let loaded = segments.iter().filter(|s| s.p_type == PT_LOAD);
        let ends = loaded.map(|s| s.p_offset.saturating_add(s.p_filesz));
        announced = announced.max(ends.max().unwrap_or(0));
    }
    if announced > present {
        return Err(What::Truncated { present, announced });
    }
    Ok(())
}

fn segments(bytes: &[u8], header: &Header) -> Result<Vec<ProgramHeader>, What> {
    let count = usize::from(header.e_phnum);
    let offset = usize::try_from(header.e_phoff).unwrap_or(usize::MAX);
    ProgramHeader::parse(bytes, offset, count, CTX)
        .map_err(|error| What::Malformed(format!("its program headers do not parse: {error}")))
}

/// Says what an ELF file of the right machine is, unless it is a shared object.
pub(crate) fn check_shared_object(view: &ElfView<'_>) -> Result<(), What> {
    match view.header.e_type {
        header::ET_DYN => {}
        header::ET_EXEC => return Err(What::Executable),
        header::ET_REL => return Err(What::Object),
        header::ET_CORE => return Err(What::CoreDump),
        other => return Err(What::UnknownElfType(other)),
    }
    if view.flags_1() & dynamic::DF_1_PIE != 0 {
        return Err(What::Executable);
    }
    let code_left_out = view
        .sections
        .iter()
        .any(|s| s.sh_type == SHT_NOBITS && view.section_name(s) == ".dynamic");
    if code_left_out {
        return Err(What::DebugOnly);
    }
    let announced = view.segments.iter().any(|s| s.p_type == PT_DYNAMIC);
    if !announced {
        return Err(What::NotDynamic);
    }
    if view.dynamic.is_empty() {
        return Err(What::Malformed("its dynamic section is empty".into()));
    }
    Ok(())
}
