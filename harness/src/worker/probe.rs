//! Asking a GPU driver what there is, in a child: the parent never opens one, and a broken driver
//! that hangs or aborts costs a reason, not a run.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use dnn_assay_abi::gpu::Flavor;
use dnn_assay_device::{MemoryKind, ProbeReport};

use super::protocol::COMMAND;

/// The second argument of a probing child; the third is the kind, the fourth a library.
const PROBE: &str = "probe";
/// A driver that says nothing for this long is broken.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the child writes before its answer: drivers write to standard output too.
const MARK: &str = "dnn-assay-probe:";

/// Answers and exits, if this process is a probing child.
pub(super) fn probe_entry() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let (Some(word), Some(probe), Some(kind)) =
        (arguments.get(1), arguments.get(2), arguments.get(3))
    else {
        return;
    };
    if word != COMMAND || probe != PROBE {
        return;
    }
    let flavor = match kind.to_str() {
        Some("hip") => Flavor::Hip,
        Some("cuda") => Flavor::Cuda,
        _ => std::process::exit(2),
    };
    let library = arguments.get(4).map(PathBuf::from);
    let report = dnn_assay_device::probe(flavor, library.as_deref());
    let text = serde_json::to_string(&report).unwrap_or_default();
    println!("{MARK}{text}");
    std::process::exit(0)
}

/// What the driver of `kind` says, or of `library` in its place. Host memory is always there.
/// `lib_path` comes before what the loader searches.
pub fn probe_devices(
    kind: MemoryKind,
    library: Option<&Path>,
    lib_path: &[PathBuf],
) -> ProbeReport {
    if kind == MemoryKind::Host {
        return ProbeReport::default();
    }
    ask(kind, library, lib_path).unwrap_or_else(|problem| ProbeReport {
        problem: Some(problem),
        ..ProbeReport::default()
    })
}

fn ask(
    kind: MemoryKind,
    library: Option<&Path>,
    lib_path: &[PathBuf],
) -> Result<ProbeReport, String> {
    let failed = |error: std::io::Error| format!("the device probe cannot be started: {error}");
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args([COMMAND, PROBE, kind.name()]).args(library);
    if !lib_path.is_empty() {
        let inherited = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty());
        let parts = lib_path.iter().map(|path| path.clone().into_os_string());
        let parts: Vec<OsString> = parts.chain(inherited).collect();
        command.env("LD_LIBRARY_PATH", parts.join(std::ffi::OsStr::new(":")));
    }
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
