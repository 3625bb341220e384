//! Functions that run when a file is loaded.

use super::{CTX, ElfView, slice, string_at};
use goblin::elf::dynamic;
use goblin::elf::reloc::RelocSection;
use goblin::elf::section_header::SHT_SYMTAB;
use goblin::elf::sym::Symtab;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// A function that runs when the file is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Constructor {
    /// The dynamic entry that lists it: `INIT` or `INIT_ARRAY`.
    pub listed_in: &'static str,
    /// Its address in the file; 0 where a relocation this reader does not follow sets it.
    pub address: u64,
    /// Its name as stored, where a symbol table has it.
    pub name: Option<String>,
}

/// Bytes of a function address.
const POINTER: u64 = 8;
/// More entries than any real file has; the rest is not read.
const LIMIT: u64 = 65_536;

impl ElfView<'_> {
    /// The functions that run when the file is loaded, in their order.
    #[must_use]
    pub fn constructors(&self) -> Vec<Constructor> {
        let mut found = Vec::new();
        if let Some(address) = self.dynamic_value(dynamic::DT_INIT) {
            found.push((address, "INIT"));
        }
        for address in self.init_array() {
            found.push((address, "INIT_ARRAY"));
        }
        if found.is_empty() {
            return Vec::new();
        }
        let wanted: HashSet<u64> = found.iter().map(|(address, _)| *address).collect();
        let names = self.function_names(&wanted);
        found
            .into_iter()
            .map(|(address, listed_in)| Constructor {
                listed_in,
                address,
                name: names.get(&address).cloned(),
            })
            .collect()
    }

    /// The addresses in `DT_INIT_ARRAY`: a relocation's addend, else what the file has there.
    fn init_array(&self) -> Vec<u64> {
        let start = self.dynamic_value(dynamic::DT_INIT_ARRAY);
        let size = self.dynamic_value(dynamic::DT_INIT_ARRAYSZ);
        let (Some(start), Some(size)) = (start, size) else {
            return Vec::new();
        };
        let count = (size / POINTER).min(LIMIT);
        let in_file = self.bytes_at(start).unwrap_or(&[]);
        let mut addresses: Vec<u64> = (0..count)
            .map(|index| {
                let word = slice(in_file, index * POINTER, POINTER);
                word.and_then(|bytes| bytes.try_into().ok())
                    .map_or(0, u64::from_le_bytes)
            })
            .collect();
        for relocation in self.addend_relocations().iter() {
            let inside = relocation.r_offset.checked_sub(start);
            let index = inside.map(|distance| distance / POINTER);
            let slot = index
                .and_then(|index| usize::try_from(index).ok())
                .and_then(|index| addresses.get_mut(index));
            if let (Some(slot), Some(addend)) = (slot, relocation.r_addend) {
                *slot = addend.cast_unsigned();
            }
        }
        addresses
    }

    fn addend_relocations(&self) -> RelocSection<'_> {
        let parsed = || {
            let bytes = self.bytes_at(self.dynamic_value(dynamic::DT_RELA)?)?;
            let size = usize::try_from(self.dynamic_value(dynamic::DT_RELASZ)?).ok()?;
            RelocSection::parse(bytes, 0, size, true, CTX).ok()
        };
        parsed().unwrap_or_default()
    }

    /// The names at these addresses, from the full symbol table and from the dynamic one.
    fn function_names(&self, addresses: &HashSet<u64>) -> HashMap<u64, String> {
        let dynamic = self.symbols().iter().filter(|s| s.is_defined());
        let mut names: HashMap<u64, String> = dynamic
            .filter(|symbol| addresses.contains(&symbol.value))
            .map(|symbol| (symbol.value, symbol.name.clone().into_owned()))
            .collect();
        let full = || {
            let mut sections = self.sections().iter();
            let table = sections.find(|section| section.sh_type == SHT_SYMTAB)?;
            let strings = self.sections().get(table.sh_link as usize)?;
            let bytes = self.section_bytes(table)?;
            let parsed = Symtab::parse(bytes, 0, bytes.len() / 24, CTX).ok()?;
            Some((parsed, self.section_bytes(strings)?))
        };
        if let Some((table, strings)) = full() {
            for symbol in table.iter() {
                let wanted = symbol.is_function() && addresses.contains(&symbol.st_value);
                let name = wanted.then(|| string_at(strings, symbol.st_name as u64));
                if let Some(name) = name.flatten().filter(|name| !name.is_empty()) {
                    names.entry(symbol.st_value).or_insert(name.into_owned());
                }
            }
        }
        names
    }
}
