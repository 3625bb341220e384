//! Which kind of memory a plugin works on. Decided in the parent, without loading it.

use std::path::Path;

use dnn_assay_device::MemoryKind;
use dnn_assay_elf::{NamedMemory, PluginFile};

use crate::cli::args::DeviceChoice;

/// A memory kind and why it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryDecision {
    /// The kind.
    pub kind: MemoryKind,
    /// The reason, in one phrase.
    pub why: String,
    /// The mock HIP runtime stands in for the real one.
    pub mock: bool,
}

/// Libraries whose presence among the dependencies says that a plugin drives an AMD GPU.
const HIP_LIBRARIES: &[&str] = &["libamdhip64", "libMIOpen", "librocblas"];
/// The same for NVIDIA.
const CUDA_LIBRARIES: &[&str] = &["libcuda.so", "libcudart"];

/// Decides, in this order: `--device`, the note in the file, device code or GPU libraries among
/// the dependencies, host.
pub fn decide(choice: Option<DeviceChoice>, file: &PluginFile) -> MemoryDecision {
    let of = |kind, why: String| MemoryDecision {
        kind,
        why,
        mock: false,
    };
    if let Some(choice) = choice {
        let (kind, name) = match choice {
            DeviceChoice::Host => (MemoryKind::Host, "host"),
            DeviceChoice::Hip => (MemoryKind::Hip, "hip"),
            DeviceChoice::Cuda => (MemoryKind::Cuda, "cuda"),
            DeviceChoice::MockHip => (MemoryKind::Hip, "mock-hip"),
        };
        return MemoryDecision {
            kind,
            why: format!("--device {name}"),
            mock: choice == DeviceChoice::MockHip,
        };
    }
    if let Some(kind) = file
        .memory_note
        .as_ref()
        .and_then(|note| note.kinds.first())
    {
        let kind = match kind {
            NamedMemory::Host => MemoryKind::Host,
            NamedMemory::Hip => MemoryKind::Hip,
            NamedMemory::Cuda => MemoryKind::Cuda,
        };
        return of(kind, "the file's note .note.dnn_assay".to_owned());
    }
    if file.has_hip_fatbin {
        return of(MemoryKind::Hip, "the file holds .hip_fatbin".to_owned());
    }
    if let Some(library) = needs(file, HIP_LIBRARIES) {
        return of(MemoryKind::Hip, format!("the file needs {library}"));
    }
    if let Some(library) = needs(file, CUDA_LIBRARIES) {
        return of(MemoryKind::Cuda, format!("the file needs {library}"));
    }
    of(
        MemoryKind::Host,
        "nothing in the file speaks of a GPU; --device hip or cuda changes that".to_owned(),
    )
}

fn needs<'a>(file: &'a PluginFile, libraries: &[&str]) -> Option<&'a str> {
    file.needed
        .iter()
        .map(String::as_str)
        .find(|needed| libraries.iter().any(|library| needed.starts_with(library)))
}

/// Whether this machine has a device of the kind, `Err` with the reason where it has none.
/// Device backends other than host memory are not part of this version.
pub fn device_present(kind: MemoryKind) -> Result<(), String> {
    match kind {
        MemoryKind::Host => Ok(()),
        MemoryKind::Hip if !Path::new("/dev/kfd").exists() => {
            Err("no AMD GPU here: /dev/kfd does not exist".to_owned())
        }
        MemoryKind::Hip => Err("HIP memory is not supported by this version".to_owned()),
        MemoryKind::Cuda => Err("CUDA memory is not supported by this version".to_owned()),
    }
}
