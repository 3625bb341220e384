//! What kind of memory a plugin's pointers are, as far as the file says.

use crate::identify::PluginFile;
use serde::Serialize;
use std::collections::HashSet;

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

/// Where the kind of memory was read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum MemorySign {
    /// The note in the file.
    Note,
    /// Device code in the file: the section's name.
    DeviceCode {
        /// The section.
        section: &'static str,
    },
    /// A library that the file needs: the names from the file's NEEDED entry down to it.
    Library {
        /// Who needs whom, the runtime library last.
        chain: Vec<String>,
    },
    /// The file shows no sign of a device.
    Nothing,
}

/// The kinds of memory that a file asks for, and why we think so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryEvidence {
    /// The kinds, the preferred one first; never empty.
    pub kinds: Vec<NamedMemory>,
    /// Where this was read from.
    pub sign: MemorySign,
    /// One line for a report.
    pub reason: String,
}

/// Libraries that show which runtime the pointers belong to, by the stem of the SONAME.
const RUNTIMES: [(&str, NamedMemory); 5] = [
    ("libamdhip64.so", NamedMemory::Hip),
    ("libMIOpen.so", NamedMemory::Hip),
    ("librocblas.so", NamedMemory::Hip),
    ("libcudart.so", NamedMemory::Cuda),
    ("libcuda.so", NamedMemory::Cuda),
];

/// Decides the kind of memory from the file: the note, then device code, then the runtime
/// libraries among all that it needs, then host memory.
///
/// `needed_of` gives the NEEDED entries of a library by its name, `None` for one that cannot be
/// read. It is asked only if the file itself says nothing.
pub fn memory_kind_evidence(
    file: &PluginFile,
    needed_of: impl FnMut(&str) -> Option<Vec<String>>,
) -> MemoryEvidence {
    if let Some(note) = file.memory_note.as_ref().filter(|n| !n.kinds.is_empty()) {
        return MemoryEvidence {
            kinds: note.kinds.clone(),
            sign: MemorySign::Note,
            reason: format!("its note {MEMORY_NOTE_SECTION} says so"),
        };
    }
    let sections = [
        (file.has_hip_fatbin, ".hip_fatbin", NamedMemory::Hip),
        (file.has_cuda_fatbin, ".nv_fatbin", NamedMemory::Cuda),
    ];
    if let Some((_, section, kind)) = sections.into_iter().find(|(present, ..)| *present) {
        return MemoryEvidence {
            kinds: vec![kind],
            sign: MemorySign::DeviceCode { section },
            reason: format!("it carries device code ({section})"),
        };
    }
    match runtime_library(&file.needed, needed_of) {
        Some((chain, kind)) => MemoryEvidence {
            kinds: vec![kind],
            reason: format!("it needs {}", chain.join(" -> ")),
            sign: MemorySign::Library { chain },
        },
        None => MemoryEvidence {
            kinds: vec![NamedMemory::Host],
            sign: MemorySign::Nothing,
            reason: "nothing in the file or in what it needs points to a device; \
                     --device hip or --device cuda changes it"
                .into(),
        },
    }
}

/// The first runtime library, breadth first, with the names that lead to it.
fn runtime_library(
    needed: &[String],
    mut needed_of: impl FnMut(&str) -> Option<Vec<String>>,
) -> Option<(Vec<String>, NamedMemory)> {
    let mut seen: HashSet<String> = needed.iter().cloned().collect();
    let mut level: Vec<Vec<String>> = needed.iter().map(|name| vec![name.clone()]).collect();
    while !level.is_empty() {
        for chain in &level {
            let name = chain.last().expect("a chain has at least its first name");
            if let Some((_, kind)) = RUNTIMES.iter().find(|(stem, _)| is_version_of(name, stem)) {
                return Some((chain.clone(), *kind));
            }
        }
        let mut below = Vec::new();
        for chain in &level {
            let name = chain.last().expect("a chain has at least its first name");
            for next in needed_of(name).unwrap_or_default() {
                if seen.insert(next.clone()) {
                    below.push([chain.as_slice(), &[next]].concat());
                }
            }
        }
        level = below;
    }
    None
}

/// Whether a file name, which may have a path, is the stem with or without a version.
fn is_version_of(name: &str, stem: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.strip_prefix(stem)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
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

    fn needing(names: &[&str]) -> PluginFile {
        PluginFile {
            needed: names.iter().map(|name| (*name).to_owned()).collect(),
            ..PluginFile::default()
        }
    }

    fn libraries(name: &str) -> Option<Vec<String>> {
        let needed: &[&str] = match name {
            "libmine.so" => &["libc.so.6", "libMIOpen.so.1"],
            "libloop.so" => &["libloop.so"],
            "libnv.so" => &["libcudart.so.12"],
            _ => return None,
        };
        Some(needed.iter().map(|name| (*name).to_owned()).collect())
    }

    #[rstest]
    #[case(&["libamdhip64.so.6"], NamedMemory::Hip, "libamdhip64.so.6")]
    #[case(&["libc.so.6", "libmine.so"], NamedMemory::Hip, "libmine.so -> libMIOpen.so.1")]
    #[case(&["libnv.so", "libmine.so"], NamedMemory::Cuda, "libnv.so -> libcudart.so.12")]
    #[case(&["/opt/lib/libcuda.so.1"], NamedMemory::Cuda, "/opt/lib/libcuda.so.1")]
    #[case(&["libloop.so", "libcudasomething.so"], NamedMemory::Host, "--device hip")]
    #[case(&[], NamedMemory::Host, "--device hip")]
    fn the_needed_closure_decides_and_is_named(
        #[case] needed: &[&str],
        #[case] kind: NamedMemory,
        #[case] reason: &str,
    ) {
        let evidence = memory_kind_evidence(&needing(needed), libraries);
        assert_eq!(evidence.kinds, [kind]);
        assert!(evidence.reason.contains(reason), "{}", evidence.reason);
    }

    #[test]
    fn the_note_comes_before_device_code_and_that_before_libraries() {
        let mut file = needing(&["libcudart.so.12"]);
        file.has_hip_fatbin = true;
        let unasked = |_: &str| -> Option<Vec<String>> { panic!("no library need be read") };
        let from_code = memory_kind_evidence(&file, unasked);
        assert_eq!(from_code.kinds, [NamedMemory::Hip]);
        file.memory_note = MemoryNote::parse("memory=host");
        let from_note = memory_kind_evidence(&file, unasked);
        assert_eq!(from_note.kinds, [NamedMemory::Host]);
        assert_eq!(from_note.sign, MemorySign::Note);
        // A note that names no kind that we know decides nothing.
        file.memory_note = MemoryNote::parse("memory=tpu");
        assert_eq!(memory_kind_evidence(&file, unasked), from_code);
    }
}
