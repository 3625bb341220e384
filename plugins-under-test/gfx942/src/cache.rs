//! Compiled kernels on disk, by a key that names everything they depend on.
//!
//! `DNN_ASSAY_GFX942_CACHE`, else `dnn-assay` below `$XDG_CACHE_HOME` or `$HOME/.cache`. A file is
//! written under another name and renamed, and holds a hash of itself: half of one is none. A
//! cache that cannot be written is no error.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

const FOLDER: &str = "DNN_ASSAY_GFX942_CACHE";
const HASH: usize = 32;

/// The name of what depends on `parts`, hexadecimal.
pub(crate) fn key(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// What is kept under `key`.
pub(crate) fn read(key: &str) -> Option<Vec<u8>> {
    read_from(&folder()?, key)
}

/// Keeps `image` under `key`.
pub(crate) fn write(key: &str, image: &[u8]) {
    if let Some(folder) = folder() {
        let _ = write_to(&folder, key, image);
    }
}

fn folder() -> Option<PathBuf> {
    let given = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let below = |name, rest: &str| Some(PathBuf::from(given(name)?).join(rest));
    given(FOLDER)
        .map(PathBuf::from)
        .or_else(|| below("XDG_CACHE_HOME", "dnn-assay"))
        .or_else(|| below("HOME", ".cache/dnn-assay"))
}

fn read_from(folder: &Path, key: &str) -> Option<Vec<u8>> {
    let mut bytes = std::fs::read(folder.join(key)).ok()?;
    let image = bytes.len().checked_sub(HASH)?;
    let hash = bytes.split_off(image);
    (Sha256::digest(&bytes)[..] == hash[..]).then_some(bytes)
}

fn write_to(folder: &Path, key: &str, image: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let unfinished = folder.join(format!("{key}.{}", std::process::id()));
    std::fs::write(&unfinished, [image, &Sha256::digest(image)[..]].concat())?;
    std::fs::rename(&unfinished, folder.join(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_is_read_back_and_half_of_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("made");
        assert_eq!(read_from(&folder, "k"), None);
        write_to(&folder, "k", b"image").unwrap();
        assert_eq!(read_from(&folder, "k").as_deref(), Some(&b"image"[..]));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        let whole = std::fs::read(folder.join("k")).unwrap();
        std::fs::write(folder.join("k"), &whole[..whole.len() - 1]).unwrap();
        assert_eq!(read_from(&folder, "k"), None);
    }

    #[test]
    fn a_key_tells_parts_from_their_concatenation() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }
}
