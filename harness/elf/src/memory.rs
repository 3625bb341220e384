//! What kind of memory a plugin's pointers are: the note that says it.

use serde::Serialize;

/// The section that holds the memory note.
pub const MEMORY_NOTE_SECTION: &str = ".note.dnn_assay";

/// A kind of memory as the note names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedMemory {
    /// Ordinary host memory.
    Host,
    /// Memory of the HIP runtime.
    Hip,
    /// Memory of the CUDA driver.
    Cuda,
}

/// The parsed note: `memory=hip,cuda`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryNote {
    /// The kinds in the order of the note, without repetition.
    pub kinds: Vec<NamedMemory>,
    /// Words of the note that name no kind, as written.
    pub unknown: Vec<String>,
}

impl MemoryNote {
    /// Parses the text of the note. `None` when it has no `memory=` field.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fields = text.split(|c: char| c == ';' || c == '\0' || c.is_whitespace());
        let value = fields
            .map(str::trim)
            .find_map(|field| field.strip_prefix("memory="))?;
        let mut note = Self::default();
        for word in value.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            let kind = match word {
                "host" => NamedMemory::Host,
                "hip" => NamedMemory::Hip,
                "cuda" => NamedMemory::Cuda,
                _ => {
                    note.unknown.push(word.to_owned());
                    continue;
                }
            };
            if !note.kinds.contains(&kind) {
                note.kinds.push(kind);
            }
        }
        Some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("memory=hip,cuda", &[NamedMemory::Hip, NamedMemory::Cuda], &[])]
    #[case("memory=host\0", &[NamedMemory::Host], &[])]
    #[case("v=1;memory=hip, hip", &[NamedMemory::Hip], &[])]
    #[case("memory=tpu,cuda", &[NamedMemory::Cuda], &["tpu"])]
    #[case("memory=", &[], &[])]
    fn parses(#[case] text: &str, #[case] kinds: &[NamedMemory], #[case] unknown: &[&str]) {
        let note = MemoryNote::parse(text).unwrap();
        assert_eq!(note.kinds, kinds);
        assert_eq!(note.unknown, unknown);
    }

    #[test]
    fn text_without_the_field_is_no_note() {
        assert_eq!(MemoryNote::parse("stream=hip"), None);
        assert_eq!(MemoryNote::parse(""), None);
    }
}
