//! The first record of a run: what it is and where it runs.

use std::collections::BTreeMap;
use std::process::Command;

use sha2::{Digest, Sha256};

use super::device::device_of;
use super::options::RunOptions;
use super::subject::hex;
use crate::journal::{Host, RunStart, SCHEMA};
use crate::plan::PluginSource;
use crate::suite::Suite;

/// Variables with these prefixes steer results and are recorded.
const STEERING: [&str; 8] = [
    "LD_", "HIP_", "ROCR_", "HSA_", "AMD_", "MIOPEN_", "HIPDNN_", "ROCBLAS_",
];

/// The record of a run of `suite` on `sources` with `options`.
pub fn run_start(
    options: &RunOptions,
    sources: &[PluginSource],
    suite: &Suite,
    criterion: &str,
) -> RunStart {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let environment = steering_environment();
    let mut config = Sha256::new();
    config.update(format!(
        "{criterion} {} {:?}",
        options.seed, options.declared
    ));
    config.update(format!("{environment:?}"));
    let mut plan = Sha256::new();
    for case in &suite.cases {
        plan.update(case.id.as_bytes());
        plan.update(b"\n");
    }
    RunStart {
        schema: SCHEMA,
        time: jiff::Timestamp::now().to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        arguments,
        suites: vec![suite.name.clone()],
        out: Some(options.out.to_string_lossy().into_owned()),
        host: Some(host()),
        device: Some(device_of(options, sources)),
        git_revision: git_revision(),
        config_hash: Some(hex(&config.finalize())),
        plan_hash: Some(hex(&plan.finalize())),
        seed: Some(options.seed),
        cases: Some(suite.cases.len() as u64),
        criterion: Some(criterion.to_owned()),
        environment,
        ..RunStart::default()
    }
}

fn steering_environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value)))
        .filter(|(key, _)| STEERING.iter().any(|prefix| key.starts_with(prefix)))
        .map(|(key, value)| (key, value.to_string_lossy().into_owned()))
        .collect()
}

fn host() -> Host {
    let system = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    Host {
        name: Some(text(system.nodename())),
        os: Some(format!(
            "{} {}",
            text(system.sysname()),
            text(system.release())
        )),
        cpu: field_of("/proc/cpuinfo", "model name"),
        cores: std::thread::available_parallelism()
            .ok()
            .map(|n| usize::from(n) as u32),
        memory: field_of("/proc/meminfo", "MemTotal").and_then(|text| {
            let kib: u64 = text.split_whitespace().next()?.parse().ok()?;
            Some(kib * 1024)
        }),
    }
}

fn field_of(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The revision of the working directory, where it is a git checkout and git is there.
fn git_revision() -> Option<String> {
    let output = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .stderr(std::process::Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
