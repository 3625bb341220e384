//! What the system says of a device besides its runtime: partition modes, errors of its memory and
//! units, processes that use it. From sysfs for AMD, from NVML for NVIDIA; what cannot be read is
//! left out, and said.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};

use dnn_assay_abi::gpu::Flavor;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use serde::{Deserialize, Serialize};

/// Errors counted by a device, by name: `umc corrected`.
pub type Counters = BTreeMap<String, u64>;

/// Replaces `/sys`, for tests.
const SYSFS: &str = "DNN_ASSAY_SYSFS";

/// What was read at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// ECC and RAS counters.
    pub errors: Counters,
    /// Processes that have memory on the device, this one excepted.
    pub processes: Vec<u32>,
    /// `SPX`, `CPX`.
    pub compute_partition: Option<String>,
    /// `NPS1`, `NPS4`.
    pub memory_partition: Option<String>,
    /// What could not be read, and why.
    pub problems: Vec<String>,
}

impl Health {
    /// Reads it for the device at `pci` (`0000:c1:00.0`).
    pub(super) fn of(flavor: Flavor, pci: &str) -> Self {
        let mut health = match flavor {
            Flavor::Hip => {
                let root = std::env::var_os(SYSFS).map_or_else(|| "/sys".into(), PathBuf::from);
                amd(&root, pci)
            }
            Flavor::Cuda => nvidia(pci),
        };
        health.processes.retain(|pid| *pid != std::process::id());
        health.processes.sort_unstable();
        health.processes.dedup();
        health
    }

    /// The counters that are higher than `before`, in words.
    pub fn moved(&self, before: &Self) -> Vec<String> {
        self.errors
            .iter()
            .filter_map(|(name, now)| {
                let then = before.errors.get(name).copied().unwrap_or(0);
                (*now > then).then(|| format!("{name} {then} -> {now}"))
            })
            .collect()
    }
}

/// amdgpu's files: `ras/<block>_err_count` holds `ue: N` and `ce: N`; the kernel driver of the
/// runtime lists a process's memory as `kfd/proc/<pid>/vram_<gpu id>`.
fn amd(root: &Path, pci: &str) -> Health {
    let device = root.join("bus/pci/devices").join(pci);
    let word = |name: &str| {
        let text = std::fs::read_to_string(device.join(name)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let errors = ras(&device.join("ras"));
    let problems = match errors.is_empty() {
        true => vec![format!(
            "no error counters in {}",
            device.join("ras").display()
        )],
        false => Vec::new(),
    };
    Health {
        errors,
        problems,
        processes: kfd_processes(&root.join("class/kfd/kfd"), pci),
        compute_partition: word("current_compute_partition"),
        memory_partition: word("current_memory_partition"),
    }
}

fn ras(folder: &Path) -> Counters {
    let mut counters = Counters::new();
    for name in names(folder) {
        let Some(block) = name.strip_suffix("_err_count") else {
            continue;
        };
        let text = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        for line in text.lines() {
            let (kind, count) = match line.split_once(':') {
                Some(("ue", count)) => ("uncorrected", count),
                Some(("ce", count)) => ("corrected", count),
                _ => continue,
            };
            if let Ok(count) = count.trim().parse() {
                counters.insert(format!("{block} {kind}"), count);
            }
        }
    }
    counters
}

fn kfd_processes(kfd: &Path, pci: &str) -> Vec<u32> {
    let nodes = kfd.join("topology/nodes");
    let Some(gpu) = names(&nodes)
        .into_iter()
        .map(|node| nodes.join(node))
        .find(|node| location(node).as_deref() == Some(pci))
        .and_then(|node| std::fs::read_to_string(node.join("gpu_id")).ok())
    else {
        return Vec::new();
    };
    let memory = format!("vram_{}", gpu.trim());
    let uses = |pid: &String| {
        let text = std::fs::read_to_string(kfd.join("proc").join(pid).join(&memory));
        text.is_ok_and(|text| text.trim().parse().unwrap_or(0u64) > 0)
    };
    let processes = names(&kfd.join("proc"));
    let users = processes.into_iter().filter(uses);
    users.filter_map(|pid| pid.parse().ok()).collect()
}

/// `domain` and `location_id` (bus, device, function) of a topology node as a PCI address.
fn location(node: &Path) -> Option<String> {
    let text = std::fs::read_to_string(node.join("properties")).ok()?;
    let value = |name: &str| -> Option<u32> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse().ok()
    };
    let (domain, id) = (value("domain").unwrap_or(0), value("location_id")?);
    let (bus, device, function) = (id >> 8 & 0xFF, id >> 3 & 0x1F, id & 7);
    Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// `nvmlProcessInfo_t` of version 2 and 3.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct NvmlProcess {
    pid: c_uint,
    memory: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// NVML's counters of corrected (0) and uncorrected (1) errors since the driver was loaded (0), and
/// the processes that compute on the device.
fn nvidia(pci: &str) -> Health {
    let mut health = Health::default();
    if let Err(problem) = ask_nvml(pci, &mut health) {
        health.problems.push(problem);
    }
    health
}

fn ask_nvml(pci: &str, health: &mut Health) -> Result<(), String> {
    type Init = unsafe extern "C" fn() -> c_int;
    type ByPci = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
    type Errors = unsafe extern "C" fn(*mut c_void, c_uint, c_uint, *mut u64) -> c_int;
    type Processes = unsafe extern "C" fn(*mut c_void, *mut c_uint, *mut NvmlProcess) -> c_int;
    const ROOM: usize = 256;

    // SAFETY: constructors of a driver's library run here; this process exists to bear that.
    let library = unsafe { Library::open(Some("libnvidia-ml.so.1"), RTLD_NOW | RTLD_LOCAL) };
    // The library stays open: drivers start threads.
    let library: &'static Library =
        Box::leak(Box::new(library.map_err(|error| format!("NVML: {error}"))?));
    let nvml = Nvml { library };
    let pci = CString::new(pci).map_err(|error| error.to_string())?;
    let mut device = std::ptr::null_mut();
    // SAFETY: the functions have these types in nvml.h; out parameters are ours, and the room for
    // processes is as large as said.
    unsafe {
        nvml.ask("nvmlInit_v2", |init: Init| init())?;
        nvml.ask("nvmlDeviceGetHandleByPciBusId_v2", |by_pci: ByPci| {
            by_pci(pci.as_ptr(), &raw mut device)
        })?;
        for (kind, name) in [(0, "memory corrected"), (1, "memory uncorrected")] {
            let mut count = 0;
            let asked = nvml.ask("nvmlDeviceGetTotalEccErrors", |errors: Errors| {
                errors(device, kind, 0, &raw mut count)
            });
            match asked {
                Ok(()) => drop(health.errors.insert(name.to_owned(), count)),
                Err(problem) => health.problems.push(format!("{name} errors: {problem}")),
            }
        }
        let mut room = [NvmlProcess::default(); ROOM];
        let mut count = ROOM as c_uint;
        let name = "nvmlDeviceGetComputeRunningProcesses_v3";
        nvml.ask(name, |list: Processes| {
            list(device, &raw mut count, room.as_mut_ptr())
        })?;
        let users = room.iter().take(count as usize);
        health.processes = users.map(|process| process.pid).collect();
    }
    Ok(())
}

/// NVML's functions, with its errors in its words.
struct Nvml {
    library: &'static Library,
}

impl Nvml {
    /// # Safety
    /// `F` is the type of the function of that name.
    unsafe fn ask<F: Copy>(&self, name: &str, call: impl FnOnce(F) -> c_int) -> Result<(), String> {
        let symbol = format!("{name}\0");
        // SAFETY: forwarded.
        let found = unsafe { self.library.get::<F>(symbol.as_bytes()) };
        match call(*found.map_err(|_| format!("NVML has no {name}"))?) {
            0 => Ok(()),
            status => Err(format!("{name}: error {status}: {}", self.words(status))),
        }
    }

    fn words(&self, status: c_int) -> String {
        type Words = unsafe extern "C" fn(c_int) -> *const c_char;
        // SAFETY: nvml.h gives the function this type; its answer is a text that lasts.
        unsafe {
            match self.library.get::<Words>(b"nvmlErrorString\0") {
                Ok(words) => CStr::from_ptr(words(status)).to_string_lossy().into_owned(),
                Err(_) => "no text".to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn counters_processes_and_partitions_are_read_from_the_devices_own_files() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let device = "bus/pci/devices/0000:c1:00.0";
        write(
            root,
            &format!("{device}/ras/umc_err_count"),
            "ue: 0\nce: 4\n",
        );
        write(
            root,
            &format!("{device}/ras/features"),
            "feature mask: 0x1\n",
        );
        write(
            root,
            &format!("{device}/current_compute_partition"),
            "SPX\n",
        );
        write(
            root,
            &format!("{device}/current_memory_partition"),
            "NPS1\n",
        );
        let kfd = "class/kfd/kfd";
        // Node 0 is a processor; node 1 another device.
        for (node, properties, id) in [
            (0, "location_id 0\ndomain 0\n", "0\n"),
            (1, "location_id 49408\ndomain 1\n", "111\n"),
            (2, "domain 0\nlocation_id 49408\n", "222\n"),
        ] {
            let node = format!("{kfd}/topology/nodes/{node}");
            write(root, &format!("{node}/properties"), properties);
            write(root, &format!("{node}/gpu_id"), id);
        }
        write(root, &format!("{kfd}/proc/10/vram_222"), "4096\n");
        write(root, &format!("{kfd}/proc/11/vram_222"), "0\n");
        write(root, &format!("{kfd}/proc/12/vram_111"), "4096\n");

        let health = amd(root, "0000:c1:00.0");
        assert_eq!(health.processes, [10]);
        assert_eq!(health.errors["umc corrected"], 4);
        assert_eq!(health.errors.len(), 2);
        assert_eq!(health.compute_partition.as_deref(), Some("SPX"));
        assert_eq!(health.memory_partition.as_deref(), Some("NPS1"));
        assert!(health.problems.is_empty());

        write(
            root,
            &format!("{device}/ras/umc_err_count"),
            "ue: 1\nce: 4\n",
        );
        let later = amd(root, "0000:c1:00.0");
        assert_eq!(later.moved(&health), ["umc uncorrected 0 -> 1"]);
        assert_eq!(health.moved(&health), [""; 0]);
    }

    #[test]
    fn a_machine_without_these_files_says_only_that() {
        let root = tempfile::tempdir().unwrap();
        let health = amd(root.path(), "0000:c1:00.0");
        assert_eq!(health.problems.len(), 1);
        assert!(health.problems[0].starts_with("no error counters in "));
        let nothing = Health {
            problems: Vec::new(),
            ..health
        };
        assert_eq!(nothing, Health::default());
    }
}
