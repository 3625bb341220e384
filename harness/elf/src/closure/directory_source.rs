//! The machine's own file tree, read only.

use super::source::{Directory, FileBytes, FileSource};
use crate::view::loader_ranges;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The machine's own file tree.
///
/// Of a large ELF file only the tables that the loader looks at are read; the rest stays zero
/// pages that the kernel never fills, so that a gigabyte of device code in a dependency costs
/// neither time nor memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectorySource;

/// Files up to this size are read whole.
const SMALL: u64 = 1 << 20;

impl FileSource for DirectorySource {
    fn read(&self, path: &Path) -> Option<FileBytes> {
        let file = File::open(path).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() {
            return None;
        }
        let bytes = if metadata.len() <= SMALL {
            fs::read(path).ok()?
        } else {
            read_tables(&file, metadata.len())?
        };
        Some(Arc::new(bytes))
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
    }

    fn directory(&self, path: &Path) -> Option<Directory> {
        const OTHERS_WRITE: u32 = 0o002;
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
        Some(Directory {
            world_writable: metadata.mode() & OTHERS_WRITE != 0,
        })
    }
}

/// Reads the ranges that the loader needs into an otherwise zero buffer of the file's length.
fn read_tables(file: &File, length: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    let fill = |bytes: &mut Vec<u8>, offset: u64, size: u64| {
        let end = offset.saturating_add(size).min(length);
        let start = offset.min(end);
        let target = bytes.get_mut(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        file.read_exact_at(target, start).ok()
    };
    fill(&mut bytes, 0, 64)?;
    // Each round may find tables that say where further tables are: headers, then sections.
    for round in 0..2 {
        for (offset, size) in loader_ranges(&bytes, round) {
            fill(&mut bytes, offset, size)?;
        }
    }
    Some(bytes)
}
