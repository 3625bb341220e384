//! Starting, killing and reaping the worker process.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use super::config::{SpawnError, WorkerConfig};
use super::outcome::Exit;
use super::output::Output;
use super::protocol::{COMMAND, CONTROL_VARIABLE};
use super::visible;

/// After SIGTERM, before SIGKILL.
const TERM_PATIENCE: Duration = Duration::from_millis(500);
/// After SIGKILL, before the process is given up.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// A running worker.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pidfd: OwnedFd,
    /// It leads a process group of its own, which ends with it.
    leads_group: bool,
    exit: Option<Exit>,
    pub output: Output,
}

impl Process {
    /// Starts a worker that finds its end of the socket, `control`, and `nonce`.
    pub fn start(config: &WorkerConfig, control: OwnedFd, nonce: u64) -> Result<Self, SpawnError> {
        let mut command = command(config, nonce)?;
        command.stdin(Stdio::from(control));
        let wrapped = config.wrap.is_some();
        let mut readers = None;
        if !wrapped {
            let (out, out_end) = io::pipe()?;
            let (err, err_end) = io::pipe()?;
            command.stdout(out_end).stderr(err_end).process_group(0);
            readers = Some([out, err]);
        }
        let child = spawn_from_lasting_thread(command)?;
        let pidfd = pidfd_open(pid_of(&child), PidfdFlags::empty()).map_err(io::Error::from)?;
        let output = match readers {
            Some(readers) => Output::drain(readers, pidfd.try_clone()?, config.output_cap)?,
            None => Output::none(config.output_cap),
        };
        Ok(Self {
            child,
            pidfd,
            leads_group: !wrapped,
            exit: None,
            output,
        })
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Becomes readable when the process ends.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Waits for the end, at most `patience`, and reaps. `None` if it still runs.
    pub fn wait(&mut self, patience: Duration) -> Option<Exit> {
        if self.exit.is_some() {
            return self.exit;
        }
        if !ends_within(&self.pidfd, patience) {
            return None;
        }
        // Not reaped yet, so the group's number is still ours: end what the plugin left behind.
        if self.leads_group {
            let _ = kill_process_group(pid_of(&self.child), Signal::KILL);
        }
        let exit = self.child.wait().map_or(Exit::Unknown, exit_of);
        self.exit = Some(exit);
        self.exit
    }

    /// Ends the process: SIGTERM, SIGKILL, patience. `None` if it cannot be reaped.
    pub fn kill(&mut self) -> Option<Exit> {
        if self.exit.is_some() {
            return self.exit;
        }
        let _ = pidfd_send_signal(&self.pidfd, Signal::TERM);
        if let Some(exit) = self.wait(TERM_PATIENCE) {
            return Some(exit);
        }
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        if self.leads_group {
            let _ = kill_process_group(pid_of(&self.child), Signal::KILL);
        }
        self.wait(KILL_PATIENCE)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A number that another process cannot guess in one try.
pub(super) fn nonce() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn command(config: &WorkerConfig, nonce: u64) -> Result<Command, SpawnError> {
    let executable = std::env::current_exe()?;
    let mut command = match &config.wrap {
        None => {
            let mut command = Command::new(executable);
            command.env(CONTROL_VARIABLE, format!("0:{nonce:x}"));
            command
        }
        // The wrapper keeps the terminal as its input; the socket moves to descriptor 9.
        Some(wrap) => {
            let script = format!(
                "exec 9<&0; if (: </dev/tty) 2>/dev/null; then exec </dev/tty; else exec </dev/null; fi; exec {wrap} \"$@\""
            );
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(script).arg("sh").arg(executable);
            command.env(CONTROL_VARIABLE, format!("9:{nonce:x}"));
            command
        }
    };
    command.arg(COMMAND);
    set_environment(&mut command, config)?;
    Ok(command)
}

fn set_environment(command: &mut Command, config: &WorkerConfig) -> Result<(), SpawnError> {
    let control: Vec<_> = command
        .get_envs()
        .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
        .collect();
    if config.clean_env {
        command.env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    }
    for (variable, folder) in CACHES {
        if config.wrap.is_some() && *variable == "HOME" {
            continue;
        }
        let path = config.scratch.join(folder);
        std::fs::create_dir_all(&path).map_err(|source| SpawnError::Scratch {
            path: path.clone(),
            source,
        })?;
        command.env(variable, std::path::absolute(&path)?);
    }
    let lists = [
        ("LD_LIBRARY_PATH", &config.lib_path),
        ("LD_PRELOAD", &config.preload),
    ];
    for (variable, paths) in lists {
        if !paths.is_empty() {
            command.env(variable, joined(paths, variable, config.clean_env));
        }
    }
    command.envs(config.env.iter().map(|(key, value)| (key, value)));
    if let Some(index) = config.only_device {
        let changes = visible::only(config.memory, index, |name| inherited(config, name));
        change(command, changes);
    }
    command.envs(control);
    Ok(())
}

/// What the worker would see of a variable by itself; `--env` comes before our own environment.
/// With `--clean-env` the lists of visible devices still say which devices are meant.
fn inherited(config: &WorkerConfig, name: &str) -> Option<String> {
    let given = config.env.iter().rev().find(|(key, _)| key == name);
    let given = given.map(|(_, value)| value.clone());
    given.or_else(|| std::env::var(name).ok())
}

/// Sets and takes away variables.
pub(super) fn change(command: &mut Command, changes: visible::Changes) {
    for (name, value) in changes {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// Folders under the scratch folder, so that the user's home is never written.
const CACHES: &[(&str, &str)] = &[
    ("HOME", "home"),
    ("XDG_CACHE_HOME", "xdg-cache"),
    ("XDG_CONFIG_HOME", "xdg-config"),
    ("XDG_DATA_HOME", "xdg-data"),
    ("MIOPEN_USER_DB_PATH", "miopen-db"),
    ("MIOPEN_CUSTOM_CACHE_DIR", "miopen-cache"),
    ("HIPDNN_CACHE_DIR", "hipdnn-cache"),
];

/// `paths`, then what the variable holds already, joined by colons.
fn joined(paths: &[PathBuf], variable: &str, clean: bool) -> OsString {
    let inherited = match clean {
        true => None,
        false => std::env::var_os(variable).filter(|value| !value.is_empty()),
    };
    let parts = paths.iter().map(|path| path.clone().into_os_string());
    let parts: Vec<OsString> = parts.chain(inherited).collect();
    parts.join(std::ffi::OsStr::new(":"))
}

/// Spawns from a thread that lasts as long as this process: a worker asks to be killed when its
/// parent dies, and Linux means the parent's thread.
fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    type Job = (Command, Sender<io::Result<Child>>);
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, inbox) = channel::<Job>();
        thread::spawn(move || {
            for (mut command, reply) in inbox {
                // Whoever asked may have gone; then its child goes with the socket.
                let _ = reply.send(command.spawn());
            }
        });
        jobs
    });
    let (reply, answer) = channel();
    let gone = |_| io::Error::other("the spawning thread has ended");
    spawner.send((command, reply)).map_err(|_| gone(()))?;
    answer.recv().map_err(|_| gone(()))?
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn ends_within(pidfd: &OwnedFd, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) if left.is_zero() => return false,
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.signal(), status.code()) {
        (Some(signal), _) => Exit::Signal(signal),
        (None, Some(code)) => Exit::Code(code),
        (None, None) => Exit::Unknown,
    }
}
