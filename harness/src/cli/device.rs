//! `dnn-assay device`: what the drivers here offer.

use std::io::Write;

use dnn_assay_device::{DeviceReport, Health, MemoryKind, ProbeReport};

use super::{Error, stdout};
use crate::cli::args::{DeviceArgs, DeviceChoice};
use crate::exit::Exit;
use crate::run::mock_library;
use crate::worker::{Asker, probe_devices};

/// Asks each kind in a child of its own. No device is a fact, not a failure.
pub fn device(args: &DeviceArgs) -> Result<Exit, Error> {
    let kinds = match args.device {
        Some(kind) => vec![kind],
        None => vec![DeviceChoice::Hip, DeviceChoice::Cuda],
    };
    let reports: Vec<_> = kinds.into_iter().map(ask).collect();
    let mut out = stdout();
    if args.json {
        let all: serde_json::Map<_, _> = reports
            .iter()
            .filter_map(|(name, report)| {
                Some((name.to_string(), serde_json::to_value(report).ok()?))
            })
            .collect();
        writeln!(out, "{}", serde_json::Value::Object(all))?;
        return Ok(Exit::Ok);
    }
    for (name, report) in &reports {
        write!(out, "{}", text(name, report))?;
    }
    Ok(Exit::Ok)
}

fn ask(choice: DeviceChoice) -> (&'static str, ProbeReport) {
    let (name, kind, library) = match choice {
        DeviceChoice::Host => ("host", MemoryKind::Host, None),
        DeviceChoice::Hip => ("hip", MemoryKind::Hip, None),
        DeviceChoice::Cuda => ("cuda", MemoryKind::Cuda, None),
        DeviceChoice::MockHip => ("mock-hip", MemoryKind::Hip, Some(mock_library())),
    };
    let asker = Asker {
        library,
        ..Asker::default()
    };
    (name, probe_devices(kind, &asker))
}

fn text(name: &str, report: &ProbeReport) -> String {
    let mut text = format!("{name}: ");
    match &report.problem {
        Some(problem) => text.push_str(&format!("no device: {problem}\n")),
        None if name == "host" => text.push_str("this machine's memory\n"),
        None => text.push_str(&format!("{}\n", count(report.devices.len()))),
    }
    let facts = [
        ("library", report.library.clone()),
        ("driver version", report.driver.map(|v| v.to_string())),
        ("runtime version", report.runtime.map(|v| v.to_string())),
        ("ROCm", report.rocm.clone()),
    ];
    for (what, value) in facts {
        if let Some(value) = value {
            text.push_str(&format!("  {what}: {value}\n"));
        }
    }
    for (index, device) in report.devices.iter().enumerate() {
        text.push_str(&format!("  device {index}: {}\n", described(device)));
        text.push_str(&format!("    guards: {}\n", device.guards));
        text.push_str(&format!("    health: {}\n", health(&device.health)));
    }
    text
}

fn count(devices: usize) -> String {
    match devices {
        1 => "1 device".to_owned(),
        n => format!("{n} devices"),
    }
}

fn described(device: &DeviceReport) -> String {
    let facts = [
        device.name.clone(),
        device.arch.clone(),
        device.units.map(|units| format!("{units} compute units")),
        device
            .memory
            .map(|bytes| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)),
        device.pci.as_ref().map(|pci| format!("PCI {pci}")),
        device.uuid.as_ref().map(|uuid| format!("UUID {uuid}")),
        mode(&device.health.compute_partition, "compute partition"),
        mode(&device.health.memory_partition, "memory partition"),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What was read of errors and users, and what could not be.
fn health(health: &Health) -> String {
    let errors = health.errors.iter();
    let counters = errors.map(|(name, count)| format!("{name} {count}"));
    let mut facts: Vec<String> = counters.collect();
    facts.push(match health.processes.len() {
        0 => "no other user".to_owned(),
        _ => used_by(&health.processes).unwrap_or_default(),
    });
    facts.extend(health.problems.iter().cloned());
    facts.join(", ")
}

fn mode(mode: &Option<String>, what: &str) -> Option<String> {
    mode.as_ref().map(|mode| format!("{what} {mode}"))
}

fn used_by(processes: &[u32]) -> Option<String> {
    let list: Vec<String> = processes.iter().map(u32::to_string).collect();
    (!list.is_empty()).then(|| format!("used by process {}", list.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_and_its_absence_in_words() {
        let none = ProbeReport {
            problem: Some("hipGetDeviceCount: error 100".to_owned()),
            ..ProbeReport::default()
        };
        assert_eq!(
            text("hip", &none),
            "hip: no device: hipGetDeviceCount: error 100\n"
        );
        let one = ProbeReport {
            devices: vec![DeviceReport {
                arch: Some("sm_90".to_owned()),
                units: Some(132),
                guards: "checked on the device".to_owned(),
                health: Health {
                    errors: [("memory corrected".to_owned(), 3)].into(),
                    problems: vec!["NVML has no nvmlX".to_owned()],
                    ..Health::default()
                },
                ..DeviceReport::default()
            }],
            ..ProbeReport::default()
        };
        let expected = "cuda: 1 device
  device 0: sm_90, 132 compute units
    guards: checked on the device
    health: memory corrected 3, no other user, NVML has no nvmlX
";
        assert_eq!(text("cuda", &one), expected);
    }
}
