//! What devices there are, asked in a process of its own: a broken driver may hang or abort.

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};

use dnn_assay_abi::gpu::{Flavor, cuda_attribute, hip_properties};
use serde::{Deserialize, Serialize};

use super::driver::{Driver, call};
use super::guards;
use super::health::Health;
use crate::backend::DeviceError;

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// Marketing name.
    pub name: Option<String>,
    /// `gfx942:sramecc+:xnack-` or `sm_90`.
    pub arch: Option<String>,
    /// The device's own name, hexadecimal.
    pub uuid: Option<String>,
    /// `0000:c1:00.0`.
    pub pci: Option<String>,
    /// Compute units or multiprocessors.
    pub units: Option<u32>,
    /// Memory, bytes.
    pub memory: Option<u64>,
    /// Where guards and poison are looked at, and why there.
    #[serde(default)]
    pub guards: String,
    /// Errors, users, partition modes.
    #[serde(default)]
    pub health: Health,
}

/// What a driver library says, or why it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The library that was opened.
    pub library: Option<String>,
    /// Version of the driver, as the library counts.
    pub driver: Option<i32>,
    /// Version of the HIP runtime, as the library counts.
    pub runtime: Option<i32>,
    /// Version of ROCm, as its folder says.
    #[serde(default)]
    pub rocm: Option<String>,
    /// The devices.
    pub devices: Vec<DeviceReport>,
    /// Why there is none.
    pub problem: Option<String>,
}

/// Asks the driver library. Runs foreign code in this process.
pub fn probe(flavor: Flavor, library: Option<&Path>) -> ProbeReport {
    let mut report = ProbeReport::default();
    if let Err(error) = fill(flavor, library, &mut report) {
        report.problem = Some(explained(flavor, &error));
    }
    report
}

fn fill(
    flavor: Flavor,
    library: Option<&Path>,
    report: &mut ProbeReport,
) -> Result<(), DeviceError> {
    let driver = Driver::open(flavor, library)?;
    report.library = Some(driver.library.to_owned());
    let count = driver.device_count();
    report.driver = number(|out| call!(&driver, driver_version(out)));
    report.runtime = number(|out| call!(&driver, runtime_version(out)));
    if flavor == Flavor::Hip {
        report.rocm = rocm_version();
    }
    for index in 0..count? {
        report.devices.push(describe(&driver, index as i32));
    }
    driver.select(0)
}

/// A device that is there and cannot be described is still there.
fn describe(driver: &Driver, device: i32) -> DeviceReport {
    let mut memory = 0usize;
    let mut uuid = [0u8; 16];
    let (arch, units) = arch_of(driver, device);
    let pci = text(|out, len| call!(driver, pci_bus_id(out, len, device)));
    let health = pci.as_deref().map(|pci| Health::of(driver.api.flavor, pci));
    DeviceReport {
        guards: guards::described(driver.api.flavor, arch.as_deref()),
        health: health.unwrap_or_default(),
        name: text(|out, len| call!(driver, device_name(out, len, device))),
        arch,
        units,
        uuid: call!(driver, uuid(&raw mut uuid, device))
            .ok()
            .map(|()| uuid.iter().map(|byte| format!("{byte:02x}")).collect()),
        pci,
        memory: call!(driver, total_memory(&raw mut memory, device))
            .ok()
            .map(|()| memory as u64),
    }
}

/// `7.1.0` of `/opt/rocm/.info/version`, or where `ROCM_PATH` points.
fn rocm_version() -> Option<String> {
    let root = std::env::var_os("ROCM_PATH").map_or_else(|| "/opt/rocm".into(), PathBuf::from);
    let text = std::fs::read_to_string(root.join(".info/version")).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Whether the device that this process sees as number 0 takes memory, copies and waits. Runs
/// foreign code in this process.
///
/// # Errors
/// What does not work.
pub fn check_health(flavor: Flavor, library: Option<&Path>) -> Result<(), DeviceError> {
    const BYTES: usize = 4096;
    let driver = Driver::open(flavor, library)?;
    driver.device_count()?;
    driver.select(0)?;
    let stream = driver.new_stream()?;
    let address = driver.allocate(BYTES)?;
    let sent: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
    let mut back = vec![0u8; BYTES];
    call!(
        &driver,
        copy_in(address, sent.as_ptr().cast(), BYTES, stream)
    )?;
    call!(
        &driver,
        copy_out(back.as_mut_ptr().cast(), address, BYTES, stream)
    )?;
    call!(&driver, stream_synchronize(stream))?;
    call!(&driver, free(address))?;
    if back == sent {
        return Ok(());
    }
    Err(DeviceError {
        call: "a copy there and back".to_owned(),
        text: "other bytes came back than were sent".to_owned(),
        status: None,
    })
}

/// Architecture, and compute units or multiprocessors.
pub(super) fn arch_of(driver: &Driver, device: i32) -> (Option<String>, Option<u32>) {
    match driver.api.flavor {
        Flavor::Hip => hip_arch(driver, device),
        Flavor::Cuda => cuda_arch(driver, device),
    }
}

fn hip_arch(driver: &Driver, device: i32) -> (Option<String>, Option<u32>) {
    use hip_properties::{ARCH_NAME, MULTIPROCESSORS, SIZE};
    // Room for a later and larger structure; eight-byte words, because that is its alignment.
    let mut words = [0u64; SIZE / 4];
    if call!(driver, properties((&raw mut words).cast(), device)).is_err() {
        return (None, None);
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = CStr::from_bytes_until_nul(&bytes[ARCH_NAME..ARCH_NAME + 256]);
    let units = bytes[MULTIPROCESSORS..MULTIPROCESSORS + 4].try_into();
    (
        name.ok().map(|name| name.to_string_lossy().into_owned()),
        units.ok().map(u32::from_ne_bytes),
    )
}

fn cuda_arch(driver: &Driver, device: i32) -> (Option<String>, Option<u32>) {
    use cuda_attribute::{CAPABILITY_MAJOR, CAPABILITY_MINOR, MULTIPROCESSORS};
    let ask = |which| number(|out| call!(driver, attribute(out, which, device)));
    let capability = ask(CAPABILITY_MAJOR).zip(ask(CAPABILITY_MINOR));
    (
        capability.map(|(major, minor)| format!("sm_{major}{minor}")),
        ask(MULTIPROCESSORS).and_then(|units| u32::try_from(units).ok()),
    )
}

fn number(ask: impl FnOnce(*mut i32) -> Result<(), DeviceError>) -> Option<i32> {
    let mut value = 0;
    ask(&raw mut value).ok().map(|()| value)
}

fn text(ask: impl FnOnce(*mut c_char, i32) -> Result<(), DeviceError>) -> Option<String> {
    let mut buffer = [0u8; 256];
    ask(buffer.as_mut_ptr().cast(), 255).ok()?;
    let text = CStr::from_bytes_until_nul(&buffer).ok()?;
    Some(text.to_string_lossy().into_owned())
}

/// The error, and what the device nodes say about it.
fn explained(flavor: Flavor, error: &DeviceError) -> String {
    let node = match flavor {
        Flavor::Hip => "/dev/kfd",
        Flavor::Cuda => "/dev/nvidiactl",
    };
    let advice = match std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(node)
    {
        Ok(_) => return error.to_string(),
        Err(io) if io.kind() == std::io::ErrorKind::PermissionDenied => match flavor {
            Flavor::Hip => {
                "/dev/kfd may not be opened: add the user to the groups render and video, or \
                 start the container with --device /dev/kfd --device /dev/dri --group-add render"
            }
            Flavor::Cuda => "/dev/nvidiactl may not be opened: start the container with --gpus all",
        },
        Err(_) => {
            return format!("{error} ({node} cannot be opened either: no driver is loaded here)");
        }
    };
    format!("{error} ({advice})")
}
