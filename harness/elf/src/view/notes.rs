//! Notes: the build id and the memory note.

use super::{CTX, ElfView, slice};
use crate::memory::{MEMORY_NOTE_SECTION, MemoryNote};
use crate::not_a_plugin::hex;
use goblin::elf::note::{NT_GNU_BUILD_ID, NoteDataIterator};
use goblin::elf::program_header::PT_NOTE;
use goblin::elf::section_header::SHT_NOTE;

/// One note of the file.
struct Note<'a> {
    name: &'a str,
    kind: u32,
    content: &'a [u8],
}

impl<'a> ElfView<'a> {
    /// The linker's build id in lower-case hexadecimal.
    #[must_use]
    pub fn build_id(&self) -> Option<String> {
        self.notes()
            .into_iter()
            .find(|note| note.name == "GNU" && note.kind == NT_GNU_BUILD_ID)
            .map(|note| hex(note.content))
    }

    /// The memory note. It may be a proper ELF note, or bare text in the section
    /// [`MEMORY_NOTE_SECTION`], which is what one line of C writes.
    #[must_use]
    pub fn memory_note(&self) -> Option<MemoryNote> {
        let section = self
            .section(MEMORY_NOTE_SECTION)
            .and_then(|section| self.section_bytes(section));
        let Some(bytes) = section else {
            return self
                .notes()
                .into_iter()
                .filter(|note| note.name.to_ascii_lowercase().starts_with("dnn"))
                .find_map(|note| memory_text(note.content));
        };
        let framed = parse_notes(bytes, 4)
            .into_iter()
            .find_map(|note| memory_text(note.content));
        framed.or_else(|| memory_text(bytes))
    }

    fn notes(&self) -> Vec<Note<'a>> {
        let segments = self
            .segments
            .iter()
            .filter(|segment| segment.p_type == PT_NOTE)
            .map(|s| (s.p_offset, s.p_filesz, s.p_align));
        let sections = self
            .sections
            .iter()
            .filter(|section| section.sh_type == SHT_NOTE)
            .map(|s| (s.sh_offset, s.sh_size, s.sh_addralign));
        segments
            .chain(sections)
            .filter_map(|(offset, size, align)| Some((slice(self.bytes, offset, size)?, align)))
            .flat_map(|(bytes, align)| parse_notes(bytes, align))
            .collect()
    }
}

/// The notes up to the first that does not parse.
fn parse_notes(bytes: &[u8], align: u64) -> Vec<Note<'_>> {
    let notes = NoteDataIterator {
        data: bytes,
        size: bytes.len(),
        offset: 0,
        ctx: (if align == 8 { 8 } else { 4 }, CTX),
    };
    notes
        .map_while(Result::ok)
        .map(|note| Note {
            name: note.name.trim_end_matches('\0'),
            kind: note.n_type,
            content: note.desc,
        })
        .collect()
}

fn memory_text(bytes: &[u8]) -> Option<MemoryNote> {
    MemoryNote::parse(std::str::from_utf8(bytes).ok()?)
}
