//! Asking a GPU driver what there is, in a child: the parent never opens one, and a broken driver
//! that hangs or aborts costs a reason, not a run.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use dnn_assay_abi::gpu::Flavor;
use dnn_assay_device::{MemoryKind, ProbeReport};

use super::client::Worker;
use super::config::WorkerConfig;
use super::protocol::COMMAND;
use super::{process, visible};

/// The second argument of a child that lists devices; the third is the kind, the fourth a library.
const PROBE: &str = "probe";
/// A driver that says nothing for this long is broken.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the child writes before its answer: drivers write to standard output too.
const MARK: &str = "dnn-assay-probe:";

/// The same for a child that only tries whether one device does as it is told.
const HEALTH: &str = "health";

/// Answers and exits, if this process is a probing child.
pub(super) fn probe_entry() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let (Some(word), Some(what), Some(kind)) =
        (arguments.get(1), arguments.get(2), arguments.get(3))
    else {
        return;
    };
    if word != COMMAND || (what != PROBE && what != HEALTH) {
        return;
    }
    let flavor = match kind.to_str() {
        Some("hip") => Flavor::Hip,
        Some("cuda") => Flavor::Cuda,
        _ => std::process::exit(2),
    };
    let library = arguments.get(4).map(Path::new);
    let report = if what == PROBE {
        dnn_assay_device::probe(flavor, library)
    } else {
        let problem = dnn_assay_device::check_health(flavor, library).err();
        ProbeReport {
            problem: problem.map(|error| error.to_string()),
            ..ProbeReport::default()
        }
    };
    let text = serde_json::to_string(&report).unwrap_or_default();
    println!("{MARK}{text}");
    std::process::exit(0)
}

/// Whose devices are asked for, and with what environment: that of the workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asker {
    /// A library in place of the system's.
    pub library: Option<PathBuf>,
    /// Folders that come before what the loader searches.
    pub lib_path: Vec<PathBuf>,
    /// Variables that workers get.
    pub env: Vec<(String, String)>,
}

/// What the driver of `kind` says. Host memory is always there.
pub fn probe_devices(kind: MemoryKind, asker: &Asker) -> ProbeReport {
    report(kind, |kind| ask(kind, PROBE, asker, None))
}

impl Worker {
    /// Whether the device of a worker that was started with `config` does as it is told: asked in
    /// a fresh child, after a worker hung or its device answered with errors only.
    ///
    /// # Errors
    /// What does not work.
    pub fn check_device(config: &WorkerConfig) -> Result<(), String> {
        let asker = Asker {
            library: config.device_library.clone(),
            lib_path: config.lib_path.clone(),
            env: config.env.clone(),
        };
        let only = config.only_device;
        match report(config.memory, |kind| ask(kind, HEALTH, &asker, only)).problem {
            None => Ok(()),
            Some(problem) => Err(problem),
        }
    }
}

fn report(
    kind: MemoryKind,
    ask: impl FnOnce(MemoryKind) -> Result<ProbeReport, String>,
) -> ProbeReport {
    if kind == MemoryKind::Host {
        return ProbeReport::default();
    }
    ask(kind).unwrap_or_else(|problem| ProbeReport {
        problem: Some(problem),
        ..ProbeReport::default()
    })
}

fn ask(
    kind: MemoryKind,
    what: &str,
    asker: &Asker,
    only: Option<u32>,
) -> Result<ProbeReport, String> {
    let failed = |error: std::io::Error| format!("the device probe cannot be started: {error}");
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command
        .args([COMMAND, what, kind.name()])
        .args(&asker.library);
    if !asker.lib_path.is_empty() {
        let inherited = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty());
        let parts = asker.lib_path.iter().cloned().map(PathBuf::into_os_string);
        let parts: Vec<OsString> = parts.chain(inherited).collect();
        command.env("LD_LIBRARY_PATH", parts.join(std::ffi::OsStr::new(":")));
    }
    command.envs(asker.env.iter().map(|(key, value)| (key, value)));
    let inherited = |name: &str| {
        let given = asker.env.iter().rev().find(|(key, _)| key == name);
        let given = given.map(|(_, value)| value.clone());
        given.or_else(|| std::env::var(name).ok())
    };
    let changes = match only {
        Some(index) => visible::only(kind, index, inherited),
        None => visible::any(kind, inherited),
    };
    process::change(&mut command, changes);
    command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut out = child.stdout.take();
    let (sender, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(out) = &mut out {
            let _ = out.read_to_end(&mut text);
        }
        let _ = sender.send(text);
    });
    let text = answer.recv_timeout(PATIENCE);
    if text.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(failed)?;
    let text = text.map_err(|_| format!("the driver said nothing for {} s", PATIENCE.as_secs()))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines()
        .find_map(|line| serde_json::from_str(line.strip_prefix(MARK)?).ok())
        .ok_or_else(|| format!("the driver broke the process that asked it ({status})"))
}
