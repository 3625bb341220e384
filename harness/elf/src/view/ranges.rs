//! Which parts of a file the loader's view of it needs.

use super::CTX;
use goblin::elf::Elf;
use goblin::elf::program_header::{PT_DYNAMIC, PT_INTERP, PT_NOTE, ProgramHeader};
use goblin::elf::section_header::{
    SHF_ALLOC, SHT_DYNAMIC, SHT_DYNSYM, SHT_GNU_HASH, SHT_GNU_VERDEF, SHT_GNU_VERNEED,
    SHT_GNU_VERSYM, SHT_HASH, SHT_NOTE, SHT_REL, SHT_RELA, SHT_STRTAB, SectionHeader,
};

/// The `(offset, size)` ranges that have to be present for [`super::ElfView::parse`] to see what
/// the loader sees. Round 0 needs the ELF header and gives the header tables; round 1 needs those
/// and gives the tables they point at. A file without section headers needs all of itself.
pub(crate) fn loader_ranges(bytes: &[u8], round: usize) -> Vec<(u64, u64)> {
    let Ok(header) = Elf::parse_header(bytes) else {
        return Vec::new();
    };
    let whole = vec![(0, bytes.len() as u64)];
    if header.e_shoff == 0 || header.e_shnum == 0 {
        return whole;
    }
    if round == 0 {
        let table = |count: u16, size: u16| u64::from(count) * u64::from(size);
        return vec![
            (header.e_phoff, table(header.e_phnum, header.e_phentsize)),
            (header.e_shoff, table(header.e_shnum, header.e_shentsize)),
        ];
    }
    let (phoff, shoff) = (header.e_phoff as usize, header.e_shoff as usize);
    let segments = ProgramHeader::parse(bytes, phoff, header.e_phnum.into(), CTX);
    let sections = SectionHeader::parse(bytes, shoff, header.e_shnum.into(), CTX);
    let (Ok(segments), Ok(sections)) = (segments, sections) else {
        return whole;
    };
    let of_segments = segments
        .iter()
        .filter(|s| matches!(s.p_type, PT_DYNAMIC | PT_INTERP | PT_NOTE))
        .map(|s| (s.p_offset, s.p_filesz));
    let names = sections.get(usize::from(header.e_shstrndx));
    let of_sections = sections
        .iter()
        .filter(|section| is_loader_table(section))
        .chain(names)
        .map(|s| (s.sh_offset, s.sh_size));
    of_segments.chain(of_sections).collect()
}

fn is_loader_table(section: &SectionHeader) -> bool {
    let allocated = section.sh_flags & u64::from(SHF_ALLOC) != 0;
    let kind = matches!(
        section.sh_type,
        SHT_STRTAB
            | SHT_DYNSYM
            | SHT_DYNAMIC
            | SHT_HASH
            | SHT_GNU_HASH
            | SHT_GNU_VERDEF
            | SHT_GNU_VERNEED
            | SHT_GNU_VERSYM
            | SHT_NOTE
            | SHT_REL
            | SHT_RELA
    );
    allocated && kind
}
