//! The loader's cache, `/etc/ld.so.cache`, in the format of glibc 2.2 and later.

use crate::view::{slice, string_at};
use serde::Serialize;
use std::collections::HashMap;

/// One library that the cache knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheEntry {
    /// Where the library is.
    pub path: String,
    /// The `glibc-hwcaps` subdirectory that it is for, such as `x86-64-v3`.
    pub hwcap: Option<String>,
}

/// Why a cache file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// Neither the new format nor the old one with the new one inside.
    #[error("not a loader cache of glibc 2.2 or later")]
    NotACache,
    /// The file ends before its entries do.
    #[error("the loader cache ends before its entries do")]
    Truncated,
}

/// The libraries of the cache that this machine can load, by SONAME.
#[derive(Clone, Debug, Default)]
pub struct LoaderCache {
    entries: HashMap<String, Vec<CacheEntry>>,
}

/// The magic of the new format with its version (`dl-cache.h` of glibc).
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// The magic of the old format, which may precede the new one.
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0\0";
/// Bytes of the header before the first entry.
const HEADER_SIZE: u64 = 48;
/// Bytes of one entry: flags, name, path, os version, hardware capabilities.
const ENTRY_SIZE: u64 = 24;
/// The mark of an entry that is for a `glibc-hwcaps` subdirectory.
const HWCAP_EXTENSION: u64 = 1 << 62;
/// The magic of the extension directory.
const EXTENSION_MAGIC: u32 = 0xeaa4_2174;
/// The tag of the extension section that lists the subdirectories' names.
const EXTENSION_HWCAPS: u32 = 1;

/// `FLAG_ELF_LIBC6` with the machine's bits.
#[cfg(target_arch = "x86_64")]
const FLAGS: u32 = 0x0303;
/// `FLAG_ELF_LIBC6` with the machine's bits.
#[cfg(target_arch = "aarch64")]
const FLAGS: u32 = 0x0a03;

impl LoaderCache {
    /// Parses a cache file.
    ///
    /// # Errors
    /// [`CacheError`] when the bytes are no cache or end too early.
    pub fn parse(bytes: &[u8]) -> Result<Self, CacheError> {
        let table = new_format(bytes).ok_or(CacheError::NotACache)?;
        let count = word(table, 20).ok_or(CacheError::Truncated)?;
        let size = u64::from(count) * ENTRY_SIZE;
        let raw = slice(table, HEADER_SIZE, size).ok_or(CacheError::Truncated)?;
        let hwcaps = hwcap_names(table);
        let mut entries: HashMap<String, Vec<CacheEntry>> = HashMap::new();
        for entry in raw.chunks_exact(24) {
            if let Some((name, found)) = read_entry(table, entry, &hwcaps) {
                entries.entry(name).or_default().push(found);
            }
        }
        Ok(Self { entries })
    }

    /// A cache with these libraries.
    #[must_use]
    pub fn of<'a>(libraries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut entries: HashMap<String, Vec<CacheEntry>> = HashMap::new();
        for (name, path) in libraries {
            entries
                .entry(name.to_owned())
                .or_default()
                .push(CacheEntry {
                    path: path.to_owned(),
                    hwcap: None,
                });
        }
        Self { entries }
    }

    /// The path that the loader takes for a name: the best of the given subdirectories, which
    /// come best first, or else the plain one.
    #[must_use]
    pub fn lookup(&self, name: &str, hwcaps: &[String]) -> Option<&str> {
        let known = self.entries.get(name)?;
        let rank = |entry: &&CacheEntry| match &entry.hwcap {
            Some(hwcap) => hwcaps.iter().position(|supported| supported == hwcap),
            None => Some(hwcaps.len()),
        };
        known
            .iter()
            .filter(|entry| rank(entry).is_some())
            .min_by_key(rank)
            .map(|entry| entry.path.as_str())
    }

    /// How many names the cache knows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the cache knows no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn new_format(bytes: &[u8]) -> Option<&[u8]> {
    if bytes.starts_with(MAGIC) {
        return Some(bytes);
    }
    if !bytes.starts_with(OLD_MAGIC) {
        return None;
    }
    // Old header: magic and count, then 12 bytes an entry, then the new format, aligned to 8.
    let end = 16 + u64::from(word(bytes, 12)?) * 12;
    let start = usize::try_from(end.next_multiple_of(8)).ok()?;
    bytes.get(start..).filter(|rest| rest.starts_with(MAGIC))
}

fn read_entry(table: &[u8], entry: &[u8], hwcaps: &[String]) -> Option<(String, CacheEntry)> {
    if word(entry, 0)? != FLAGS {
        return None;
    }
    let name = string_at(table, word(entry, 4)?.into())?.into_owned();
    let path = string_at(table, word(entry, 8)?.into())?.into_owned();
    let mask = u64::from_le_bytes(entry.get(16..24)?.try_into().ok()?);
    let hwcap = match mask {
        0 => None,
        mask if mask & HWCAP_EXTENSION != 0 => {
            Some(hwcaps.get((mask & 0xffff_ffff) as usize)?.clone())
        }
        // Bits of capabilities that glibc no longer looks at.
        _ => return None,
    };
    Some((name, CacheEntry { path, hwcap }))
}

/// The names of the `glibc-hwcaps` subdirectories, by the index that entries use.
fn hwcap_names(table: &[u8]) -> Vec<String> {
    let names = || {
        let start = usize::try_from(word(table, 32)?).ok().filter(|&s| s != 0)?;
        let directory = table.get(start..)?;
        if word(directory, 0)? != EXTENSION_MAGIC {
            return None;
        }
        let count = word(directory, 4)?.min(16) as usize;
        let section = (0..count)
            .map(|index| 8 + index * 16)
            .find(|&at| word(directory, at) == Some(EXTENSION_HWCAPS))?;
        let (offset, size) = (
            word(directory, section + 8)?,
            word(directory, section + 12)?,
        );
        let offsets = slice(table, offset.into(), size.into())?;
        let name = |at: &[u8]| Some(string_at(table, word(at, 0)?.into())?.into_owned());
        offsets.chunks_exact(4).map(name).collect()
    };
    names().unwrap_or_default()
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let found = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_le_bytes(found.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache with `(name, path, hardware capability index)` and the capability's names.
    fn image(libraries: &[(&str, &str, Option<u32>)], hwcaps: &[&str]) -> Vec<u8> {
        let strings_at = 48 + libraries.len() as u32 * 24;
        let mut strings = Vec::new();
        let mut add = |text: &str| {
            let at = strings_at + strings.len() as u32;
            strings.extend(text.bytes().chain([0]));
            at
        };
        let mut entries = Vec::new();
        for (name, path, hwcap) in libraries {
            let words = [FLAGS, add(name), add(path), 0];
            entries.extend(words.iter().flat_map(|w| w.to_le_bytes()));
            let mask = hwcap.map_or(0, |index| HWCAP_EXTENSION | u64::from(index));
            entries.extend(mask.to_le_bytes());
        }
        let names: Vec<u32> = hwcaps.iter().map(|name| add(name)).collect();
        while !strings.len().is_multiple_of(4) {
            strings.push(0);
        }
        let extension = strings_at + strings.len() as u32;
        let tail = [
            EXTENSION_MAGIC,
            1,
            EXTENSION_HWCAPS,
            0,
            extension + 24,
            names.len() as u32 * 4,
        ];
        let mut bytes = MAGIC.to_vec();
        for word in [
            libraries.len() as u32,
            strings.len() as u32,
            2,
            extension,
            0,
            0,
            0,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(entries);
        bytes.extend(strings);
        bytes.extend(tail.iter().chain(&names).flat_map(|w| w.to_le_bytes()));
        bytes
    }

    #[test]
    fn the_best_supported_subdirectory_wins() {
        let bytes = image(
            &[
                (
                    "liba.so.1",
                    "/usr/lib/glibc-hwcaps/x86-64-v3/liba.so.1",
                    Some(0),
                ),
                ("liba.so.1", "/usr/lib/liba.so.1", None),
                ("libb.so.1", "/opt/libb.so.1", None),
            ],
            &["x86-64-v3"],
        );
        let cache = LoaderCache::parse(&bytes).unwrap();
        let v3 = ["x86-64-v3".to_owned()];
        assert!(cache.lookup("liba.so.1", &v3).unwrap().contains("v3"));
        assert_eq!(cache.lookup("liba.so.1", &[]), Some("/usr/lib/liba.so.1"));
        assert_eq!(cache.lookup("libb.so.1", &v3), Some("/opt/libb.so.1"));
        assert_eq!(cache.lookup("libc.so.1", &v3), None);
    }

    #[test]
    fn the_old_format_is_skipped() {
        let new = image(&[("liba.so.1", "/a", None)], &[]);
        let mut bytes = OLD_MAGIC.to_vec();
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([0; 12]);
        bytes.extend([0; 4]);
        bytes.extend(new);
        assert_eq!(
            LoaderCache::parse(&bytes).unwrap().lookup("liba.so.1", &[]),
            Some("/a")
        );
    }

    #[test]
    fn a_cut_cache_is_refused_or_short_and_never_panics() {
        let bytes = image(&[("liba.so.1", "/a", Some(0))], &["x86-64-v2"]);
        for end in 0..bytes.len() {
            let _ = LoaderCache::parse(&bytes[..end]);
        }
        assert_eq!(
            LoaderCache::parse(b"text").unwrap_err(),
            CacheError::NotACache
        );
        assert_eq!(
            LoaderCache::parse(&bytes[..60]).unwrap_err(),
            CacheError::Truncated
        );
    }
}
