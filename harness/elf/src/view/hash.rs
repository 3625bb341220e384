//! How many dynamic symbols there are: three tables know, and they must agree.

use super::{ElfView, slice};
use goblin::elf::dynamic;
use goblin::elf::section_header::SHT_DYNSYM;
use serde::Serialize;

/// The number of dynamic symbols, the null symbol included, as each table has it. `None` where
/// the file lacks the table or the table does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SymbolCounts {
    /// From the section header of `.dynsym`.
    pub section: Option<u64>,
    /// From the chain count of `DT_HASH`.
    pub hash: Option<u64>,
    /// From the last chain of `DT_GNU_HASH`; a table without an entry says nothing.
    pub gnu_hash: Option<u64>,
}

impl SymbolCounts {
    /// Whether all tables that say a number say the same.
    #[must_use]
    pub fn agree(&self) -> bool {
        let mut said = [self.section, self.hash, self.gnu_hash]
            .into_iter()
            .flatten();
        let first = said.next();
        said.all(|count| Some(count) == first)
    }

    /// The largest of the numbers.
    pub(super) fn largest(&self) -> u64 {
        [self.section, self.hash, self.gnu_hash]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or(0)
    }
}

/// Bytes of an `Elf64_Sym`.
const SYMBOL_SIZE: u64 = 24;

impl ElfView<'_> {
    pub(super) fn read_symbol_counts(&mut self) {
        self.counts.section = self
            .sections
            .iter()
            .find(|section| section.sh_type == SHT_DYNSYM)
            .map(|section| section.sh_size / SYMBOL_SIZE);
        if let Some(address) = self.dynamic_value(dynamic::DT_HASH) {
            match self.bytes_at(address).and_then(|table| word(table, 4)) {
                Some(chains) => self.counts.hash = Some(chains.into()),
                None => self.forgive("hash table", "its address is outside the file"),
            }
        }
        if let Some(address) = self.dynamic_value(dynamic::DT_GNU_HASH) {
            match self.bytes_at(address).and_then(gnu_hash_count) {
                Some(count) => self.counts.gnu_hash = count,
                None => self.forgive("GNU hash table", "it runs past the end of its segment"),
            }
        }
    }
}

/// The number of symbols that a GNU hash table covers: the index after the end of the chain that
/// starts last. `Some(None)` for a table without an entry, `None` for one that runs out of bounds.
fn gnu_hash_count(table: &[u8]) -> Option<Option<u64>> {
    let buckets = word(table, 0)? as usize;
    let first = word(table, 4)?;
    let bloom_words = u64::from(word(table, 8)?);
    let bucket_start = 16 + bloom_words * 8;
    let bucket_bytes = slice(table, bucket_start, buckets as u64 * 4)?;
    let last = bucket_bytes
        .chunks_exact(4)
        .filter_map(|bytes| word(bytes, 0))
        .max()
        .unwrap_or(0);
    if last < first || last == 0 {
        return Some(None);
    }
    let chains = table.get(
        usize::try_from(bucket_start)
            .ok()?
            .checked_add(buckets * 4)?..,
    )?;
    let start = (last - first) as usize;
    let length = chains
        .chunks_exact(4)
        .skip(start)
        .position(|hash| word(hash, 0).is_some_and(|hash| hash & 1 != 0))?;
    Some(Some(u64::from(last) + length as u64 + 1))
}

fn word(table: &[u8], offset: usize) -> Option<u32> {
    let bytes = table.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn counts_to_the_end_of_the_last_chain() {
        // One bucket, first hashed symbol 3, one bloom word, chain of 3 and 4 with 4 last.
        let bytes = table(&[1, 3, 1, 0, 0, 0, 3, 0x10, 0x11]);
        assert_eq!(gnu_hash_count(&bytes), Some(Some(5)));
    }

    #[test]
    fn an_empty_table_says_nothing_and_a_cut_one_is_refused() {
        assert_eq!(gnu_hash_count(&table(&[1, 1, 1, 0, 0, 0, 0])), Some(None));
        assert_eq!(gnu_hash_count(&table(&[1, 3, 1, 0, 0, 0, 3, 0x10])), None);
        assert_eq!(gnu_hash_count(&table(&[u32::MAX, 3, u32::MAX, 0])), None);
    }
}
