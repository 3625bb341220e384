//! What a file is when it is no plugin, and what was expected instead.

use goblin::elf::header;
use serde::Serialize;

/// What a file turned out to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// No bytes at all.
    Empty,
    /// Readable text; the first line, cut to 60 characters.
    Text(String),
    /// A text file that stands for a library at link time only.
    LinkerScript,
    /// The pointer that Git LFS leaves where the content was not fetched.
    GitLfsPointer,
    /// A script with an interpreter line.
    Script(String),
    /// A file that ends before its own headers say it does: bytes present, bytes announced.
    Truncated {
        /// Bytes in the file.
        present: u64,
        /// Bytes that the headers announce.
        announced: u64,
    },
    /// ELF for another processor.
    WrongMachine(String),
    /// ELF of 32 bits.
    Elf32,
    /// ELF of the other byte order.
    BigEndian,
    /// An ELF program.
    Executable,
    /// A relocatable object, before linking.
    Object,
    /// A core dump.
    CoreDump,
    /// A shared object without its code, split off for a debugger.
    DebugOnly,
    /// An ELF file without a dynamic section.
    NotDynamic,
    /// An ELF type that no loader knows.
    UnknownElfType(u16),
    /// A Windows library or program.
    Windows {
        /// Whether the file says of itself that it is a library.
        library: bool,
    },
    /// A macOS library or program.
    MachO,
    /// A static archive; `true` for a thin one, which holds names only.
    StaticArchive {
        /// Whether the archive holds names only.
        thin: bool,
    },
    /// LLVM bitcode.
    Bitcode,
    /// WebAssembly.
    WebAssembly,
    /// A compressed file, with the format's name.
    Compressed(&'static str),
    /// Headers that contradict themselves.
    Malformed(String),
    /// None of these; the first bytes in hexadecimal.
    Unknown(String),
}

/// A file that cannot be a plugin on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("not a plugin: {}; expected {expected}", describe(.what))]
pub struct NotAPlugin {
    /// What the file is.
    pub what: What,
    /// What was expected instead.
    pub expected: String,
}

impl NotAPlugin {
    pub(crate) fn new(what: What) -> Self {
        Self {
            what,
            expected: format!(
                "a 64-bit little-endian ELF shared object for {}",
                machine_name(HOST_MACHINE)
            ),
        }
    }
}

/// The ELF machine number that this build of DNN Assay can load.
#[cfg(target_arch = "x86_64")]
pub(crate) const HOST_MACHINE: u16 = header::EM_X86_64;
/// The ELF machine number that this build of DNN Assay can load.
#[cfg(target_arch = "aarch64")]
pub(crate) const HOST_MACHINE: u16 = header::EM_AARCH64;

fn describe(what: &What) -> String {
    match what {
        What::Empty => "the file is empty".into(),
        What::Text(line) => format!("the file is text that begins `{line}`"),
        What::LinkerScript => {
            "the file is a linker script, which names the library at link time only".into()
        }
        What::GitLfsPointer => {
            "the file is a Git LFS pointer; fetch the content with `git lfs pull`".into()
        }
        What::Script(line) => format!("the file is a script that begins `{line}`"),
        What::Truncated { present, announced } => format!(
            "the file is truncated: it has {present} bytes, its headers announce {announced}"
        ),
        What::WrongMachine(name) => format!("the file is ELF for {name}"),
        What::Elf32 => "the file is 32-bit ELF".into(),
        What::BigEndian => "the file is big-endian ELF".into(),
        What::Executable => "the file is an ELF executable".into(),
        What::Object => "the file is an ELF object that has not been linked".into(),
        What::CoreDump => "the file is a core dump".into(),
        What::DebugOnly => {
            "the file holds only the debug information of a library, not its code".into()
        }
        What::NotDynamic => "the file is ELF without a dynamic section".into(),
        What::UnknownElfType(number) => format!("the file is ELF of unknown type {number}"),
        What::Windows { library: true } => "the file is a Windows DLL".into(),
        What::Windows { library: false } => "the file is a Windows program".into(),
        What::MachO => "the file is Mach-O (macOS)".into(),
        What::StaticArchive { thin: false } => "the file is a static archive".into(),
        What::StaticArchive { thin: true } => "the file is a thin static archive".into(),
        What::Bitcode => "the file is LLVM bitcode".into(),
        What::WebAssembly => "the file is WebAssembly".into(),
        What::Compressed(format) => format!("the file is compressed ({format})"),
        What::Malformed(problem) => format!("the file is malformed ELF: {problem}"),
        What::Unknown(bytes) => format!("the file is of unknown kind, its first bytes are {bytes}"),
    }
}

/// Names a file that is not ELF at all by its first bytes.
pub(crate) fn classify_foreign(bytes: &[u8]) -> What {
    if bytes.is_empty() {
        return What::Empty;
    }
    if bytes.len() < 4 && header::ELFMAG.starts_with(bytes) {
        return What::Truncated {
            present: bytes.len() as u64,
            announced: header::header64::SIZEOF_EHDR as u64,
        };
    }
    classify_magic(bytes)
        .or_else(|| classify_text(bytes))
        .unwrap_or_else(|| What::Unknown(hex(&bytes[..bytes.len().min(8)])))
}

fn classify_magic(bytes: &[u8]) -> Option<What> {
    const MACH_O: [[u8; 4]; 5] = [
        [0xfe, 0xed, 0xfa, 0xce],
        [0xfe, 0xed, 0xfa, 0xcf],
        [0xce, 0xfa, 0xed, 0xfe],
        [0xcf, 0xfa, 0xed, 0xfe],
        [0xca, 0xfe, 0xba, 0xbe],
    ];
    const COMPRESSED: [(&[u8], &str); 5] = [
        (b"\x1f\x8b", "gzip"),
        (b"PK\x03\x04", "zip"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"BZh", "bzip2"),
    ];
    if bytes.starts_with(b"MZ") {
        return Some(What::Windows {
            library: windows_library(bytes),
        });
    }
    if MACH_O.iter().any(|magic| bytes.starts_with(magic)) {
        return Some(What::MachO);
    }
    if bytes.starts_with(b"!<arch>\n") {
        return Some(What::StaticArchive { thin: false });
    }
    if bytes.starts_with(b"!<thin>\n") {
        return Some(What::StaticArchive { thin: true });
    }
    if bytes.starts_with(b"BC\xc0\xde") {
        return Some(What::Bitcode);
    }
    if bytes.starts_with(b"\0asm") {
        return Some(What::WebAssembly);
    }
    COMPRESSED
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
        .map(|(_, name)| What::Compressed(name))
}

/// Reads the characteristics of a PE header: bit 13 marks a library. A file that is cut before
/// that point is named by the commoner case, the library.
fn windows_library(bytes: &[u8]) -> bool {
    const FILE_DLL: u16 = 0x2000;
    let characteristics = || {
        let pe = u32::from_le_bytes(bytes.get(0x3c..0x40)?.try_into().ok()?) as usize;
        let header = bytes.get(pe..)?;
        if !header.starts_with(b"PE\0\0") {
            return None;
        }
        Some(u16::from_le_bytes(header.get(22..24)?.try_into().ok()?))
    };
    characteristics().is_none_or(|flags| flags & FILE_DLL != 0)
}

fn classify_text(bytes: &[u8]) -> Option<What> {
    let head = &bytes[..bytes.len().min(512)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The cut at 512 bytes may have split a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    if valid.is_empty() || valid.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    if valid.starts_with("version https://git-lfs") {
        return Some(What::GitLfsPointer);
    }
    if valid.starts_with("/* GNU ld script")
        || valid.starts_with("INPUT(")
        || valid.starts_with("INPUT (")
        || valid.starts_with("GROUP")
    {
        return Some(What::LinkerScript);
    }
    let line: String = valid
        .trim_start()
        .lines()
        .next()
        .unwrap_or("")
        .chars()
        .take(60)
        .collect();
    Some(if line.starts_with("#!") {
        What::Script(line)
    } else {
        What::Text(line)
    })
}

/// The name of an ELF machine as people say it.
pub(crate) fn machine_name(machine: u16) -> String {
    match machine {
        header::EM_X86_64 => "x86-64".into(),
        header::EM_AARCH64 => "AArch64".into(),
        header::EM_386 => "x86 (32-bit)".into(),
        header::EM_ARM => "ARM (32-bit)".into(),
        header::EM_PPC64 => "PowerPC 64".into(),
        header::EM_RISCV => "RISC-V".into(),
        header::EM_S390 => "s390x".into(),
        header::EM_MIPS => "MIPS".into(),
        header::EM_BPF => "BPF".into(),
        EM_AMDGPU => "an AMD GPU (a code object, not a host library)".into(),
        EM_CUDA => "an NVIDIA GPU (a cubin, not a host library)".into(),
        other => format!("machine number {other}"),
    }
}

/// ELF machine number of AMD GPU code objects (LLVM, "User Guide for AMDGPU Backend").
pub(crate) const EM_AMDGPU: u16 = 224;
/// ELF machine number of CUDA binaries.
const EM_CUDA: u16 = 190;

/// Lower-case hexadecimal without separators.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}
