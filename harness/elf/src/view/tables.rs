//! Symbols and the relocations that refer to them.

use super::{CTX, DynSymbol, ElfView, string_at};
use goblin::elf::dynamic;
use goblin::elf::reloc::RelocSection;
use goblin::elf::sym::Symtab;
use std::borrow::Cow;

impl<'a> ElfView<'a> {
    pub(super) fn read_symbols(&mut self) {
        self.read_symbol_counts();
        let relocated = self.relocated_symbols();
        let highest = relocated.iter().copied().max().map_or(0, |i| i as u64 + 1);
        let announced = self.counts.largest();
        let Some(address) = self.dynamic_value(dynamic::DT_SYMTAB) else {
            return;
        };
        let Some(table) = self.bytes_at(address) else {
            self.forgive("dynamic symbol table", "its address is outside the file");
            return;
        };
        let room = table.len() as u64 / 24;
        let wanted = announced.max(highest);
        if wanted > room {
            let problem = format!("{wanted} symbols are announced, the file has room for {room}");
            self.forgive("dynamic symbol table", problem);
        }
        let count = usize::try_from(wanted.min(room)).unwrap_or(0);
        match Symtab::parse(table, 0, count, CTX) {
            Ok(parsed) => self.symbols = self.named(&parsed),
            Err(error) => self.forgive("dynamic symbol table", error),
        }
        self.referenced = vec![false; count];
        for index in relocated {
            if let Some(slot) = self.referenced.get_mut(index) {
                *slot = true;
            }
        }
        self.read_versions();
    }

    fn named(&self, table: &Symtab<'_>) -> Vec<DynSymbol<'a>> {
        let strings = self.dynamic_strings;
        let entries = table.iter().enumerate().skip(1);
        entries
            .map(|(index, raw)| {
                let name = string_at(strings, raw.st_name as u64);
                DynSymbol::new(index as u32, &raw, name.unwrap_or(Cow::Borrowed("")))
            })
            .collect()
    }

    /// The symbol of every dynamic relocation that has one.
    fn relocated_symbols(&mut self) -> Vec<usize> {
        let uses_addends = self.dynamic_value(dynamic::DT_PLTREL) != Some(dynamic::DT_REL);
        let tables = [
            (dynamic::DT_RELA, dynamic::DT_RELASZ, true),
            (dynamic::DT_REL, dynamic::DT_RELSZ, false),
            (dynamic::DT_JMPREL, dynamic::DT_PLTRELSZ, uses_addends),
        ];
        let mut symbols = Vec::new();
        for (start, size, addends) in tables {
            let (Some(address), Some(size)) = (self.dynamic_value(start), self.dynamic_value(size))
            else {
                continue;
            };
            let bytes = self.bytes_at(address).unwrap_or(&[]);
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            match RelocSection::parse(bytes, 0, size, addends, CTX) {
                Ok(section) => {
                    symbols.extend(section.iter().map(|r| r.r_sym).filter(|&i| i != 0));
                }
                Err(error) => self.forgive("relocations", error),
            }
        }
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }
}
