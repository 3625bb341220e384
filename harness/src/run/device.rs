//! What a run knows of devices beside the cases: who they are, whether they are well, who else uses
//! them.

use dnn_assay_device::DeviceReport;

use super::context::Context;
use super::memory::{self, MemoryDecision};
use super::options::RunOptions;
use super::subject::Subject;
use crate::cli::args::DeviceChoice;
use crate::journal::{DeviceIdentity, InfraKind};
use crate::plan::PluginSource;
use crate::worker::Asker;

/// The device of the first plugin's first worker; kind `none` where no device is used.
pub fn device_of(options: &RunOptions, sources: &[PluginSource]) -> DeviceIdentity {
    let none = DeviceIdentity {
        kind: Some("none".to_owned()),
        ..DeviceIdentity::default()
    };
    let decide = |source: &PluginSource| {
        let bytes = std::fs::read(&source.path).ok()?;
        let file = dnn_assay_elf::identify(&bytes).ok()?;
        Some(memory::decide(options.device, &file))
    };
    let found = sources.first().and_then(decide).and_then(|decision| {
        let report = memory::devices(&decision, options.lib_path(), options.env()).ok()?;
        let first = report.devices.first()?;
        let mut identity = identity(&decision, options, first);
        identity.driver = report.driver.map(|version| version.to_string());
        identity.rocm = report.rocm;
        Some(identity)
    });
    found.unwrap_or(none)
}

fn identity(
    decision: &MemoryDecision,
    options: &RunOptions,
    device: &DeviceReport,
) -> DeviceIdentity {
    let kind = match options.device {
        Some(DeviceChoice::MockHip) => "mock-hip",
        _ => decision.kind.name(),
    };
    DeviceIdentity {
        kind: Some(kind.to_owned()),
        arch: device.arch.clone(),
        name: device.name.clone(),
        uuid: device.uuid.clone(),
        pci: device.pci.clone(),
        compute_partition: device.health.compute_partition.clone(),
        memory_partition: device.health.memory_partition.clone(),
        ..DeviceIdentity::default()
    }
}

/// The devices of a subject by number, as people find them again.
pub fn name_of(subject: &Subject, number: usize) -> String {
    let device = &subject.devices[number];
    let uuid = device.uuid.as_deref().or(device.pci.as_deref());
    format!("device {number} ({})", uuid.unwrap_or("no name"))
}

/// Notes who else uses the devices before the first case.
///
/// # Errors
/// What the journal's file says.
pub fn note_users(context: &Context, subject: &Subject) -> std::io::Result<()> {
    for (number, device) in subject.devices.iter().enumerate() {
        let users: Vec<String> = device.health.processes.iter().map(u32::to_string).collect();
        if !users.is_empty() {
            let name = name_of(subject, number);
            let text = format!(
                "{name} is used by other processes too: {}",
                users.join(", ")
            );
            context.infra(InfraKind::ForeignProcess, text)?;
        }
    }
    Ok(())
}

/// Notes error counters that have moved since the devices were first asked.
///
/// # Errors
/// What the journal's file says.
pub fn note_errors(context: &Context, subject: &Subject) -> std::io::Result<()> {
    if subject.devices.iter().all(|d| d.health.errors.is_empty()) {
        return Ok(());
    }
    let config = &subject.config;
    let asker = Asker {
        library: config.device_library.clone(),
        lib_path: config.lib_path.clone(),
        env: config.env.clone(),
    };
    let Ok(now) = memory::ask_now(config.memory, &asker) else {
        return Ok(());
    };
    for (number, (before, after)) in subject.devices.iter().zip(&now.devices).enumerate() {
        for moved in after.health.moved(&before.health) {
            let name = name_of(subject, number);
            let text = format!("{name} counted errors during the run: {moved}");
            context.infra(InfraKind::DeviceErrors, text)?;
        }
    }
    Ok(())
}
