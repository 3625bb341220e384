//! Which kind of memory a plugin works on. Decided in the parent, without loading it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use dnn_assay_device::{MemoryKind, ProbeReport};
use dnn_assay_elf::{NamedMemory, PluginFile};

use crate::cli::args::DeviceChoice;
use crate::worker::{Asker, probe_devices};

/// A memory kind and why it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryDecision {
    /// The kind.
    pub kind: MemoryKind,
    /// The reason, in one phrase.
    pub why: String,
    /// The library that stands in for the system's: the mock HIP runtime.
    pub library: Option<PathBuf>,
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
        library: None,
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
            library: (choice == DeviceChoice::MockHip).then(mock_library),
        };
    }
    if let Some(kinds) = file.memory_note.as_ref().map(|note| &note.kinds[..])
        && let Some(kind) = preferred(kinds)
    {
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

/// The first kind of a note; where it names several, the first that this machine has.
fn preferred(kinds: &[NamedMemory]) -> Option<MemoryKind> {
    let kinds = kinds.iter().map(|kind| match kind {
        NamedMemory::Host => MemoryKind::Host,
        NamedMemory::Hip => MemoryKind::Hip,
        NamedMemory::Cuda => MemoryKind::Cuda,
    });
    let here = |kind: &MemoryKind| {
        let decision = MemoryDecision {
            kind: *kind,
            why: String::new(),
            library: None,
        };
        device_present(&decision, &[]).is_ok()
    };
    let several = kinds.len() > 1;
    let first = kinds.clone().next();
    if several {
        kinds.clone().find(here).or(first)
    } else {
        first
    }
}

fn needs<'a>(file: &'a PluginFile, libraries: &[&str]) -> Option<&'a str> {
    file.needed
        .iter()
        .map(String::as_str)
        .find(|needed| libraries.iter().any(|library| needed.starts_with(library)))
}

/// The devices that this machine has for a decision, or why it has none. `lib_path` and `env` are
/// the workers'. The driver is asked once per process, in a child.
///
/// # Errors
/// Why there is none.
pub fn devices(
    decision: &MemoryDecision,
    lib_path: &[PathBuf],
    env: &[(String, String)],
) -> Result<ProbeReport, String> {
    static ANSWERS: Mutex<BTreeMap<Question, Answer>> = Mutex::new(BTreeMap::new());
    let asker = Asker {
        library: decision.library.clone(),
        lib_path: lib_path.to_vec(),
        env: env.to_vec(),
    };
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let question = (decision.kind.name(), asker.clone());
    let ask = || ask_now(decision.kind, &asker);
    answers.entry(question).or_insert_with(ask).clone()
}

/// As [`devices`], asked anew.
///
/// # Errors
/// Why there is none.
pub(super) fn ask_now(kind: MemoryKind, asker: &Asker) -> Answer {
    let report = probe_devices(kind, asker);
    match report.problem {
        None => Ok(report),
        Some(problem) => Err(format!("no {kind} device: {problem}")),
    }
}

/// Whether this machine has a device for a decision.
///
/// # Errors
/// Why it has none.
pub fn device_present(decision: &MemoryDecision, lib_path: &[PathBuf]) -> Result<(), String> {
    devices(decision, lib_path, &[]).map(drop)
}

type Question = (&'static str, Asker);
type Answer = Result<ProbeReport, String>;

/// The file name of the mock HIP runtime.
const MOCK_HIP: &str = "libdnn_assay_mock_hip.so";

/// `DNN_ASSAY_HIP_LIBRARY`, else the mock that was built with this program. Where there is none the
/// name alone is given, and opening it fails with the loader's words.
pub fn mock_library() -> PathBuf {
    std::env::var_os("DNN_ASSAY_HIP_LIBRARY")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .or_else(|| crate::plan::built_in_file(MOCK_HIP).ok())
        .unwrap_or_else(|| PathBuf::from(MOCK_HIP))
}
