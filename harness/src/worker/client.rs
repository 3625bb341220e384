//! The parent's handle on one worker.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use dnn_assay_device::{Arena, ArenaError, Layout, Snapshot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::channel::{self, Inbox};
use super::config::{CaseRequest, Limits, SpawnError, Until, WorkerConfig};
use super::outcome::{
    CaseOutcome, CaseResult, CaseTimes, Crash, DeviceAfter, Exit, GuardHit, LoadFailure, Phase,
    PluginInfo, Reply, Shutdown, Stopped,
};
use super::process::{self, Process};
use super::protocol::{CaseEnd, Message, Request, Setup, monotonic_now};
use super::script::{Script, Transcript};

/// How long a dying process may take from closing its socket to its end (core dumps, exit
/// handlers), and how long its last words are waited for.
const DYING: Duration = Duration::from_secs(10);
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A worker process. Dropping it ends it, by force if need be.
///
/// One case at a time: prepare and fill [`arena_mut`](Self::arena_mut), [`begin`](Self::begin),
/// do something else, [`finish`](Self::finish), [`snapshot`](Self::snapshot). A worker serves
/// many cases; after [`CaseResult::needs_new_worker`] it answers every call with the same
/// [`Stopped`].
#[derive(Debug)]
pub struct Worker {
    process: Process,
    control: UnixStream,
    nonce: u64,
    inbox: Inbox,
    arena: Arena,
    /// `None`: no limits, a wrapper has the word.
    limits: Option<Limits>,
    clock: Clock,
    info: Option<PluginInfo>,
    stopped: Option<Stopped>,
    case: Option<CaseState>,
}

/// The step the worker is in and when it began.
#[derive(Clone, Copy, Debug)]
struct Clock {
    phase: Phase,
    since: u64,
}

/// What is known of the case in flight.
#[derive(Debug)]
struct CaseState {
    outcome: CaseOutcome,
    base: Option<u64>,
    workspace_align: u64,
    began: u64,
}

impl Worker {
    /// Starts a worker and waits until it is up. Nothing is loaded yet.
    pub fn spawn(config: &WorkerConfig) -> Result<Self, SpawnError> {
        let (control, theirs) = UnixStream::pair()?;
        control.set_write_timeout(Some(config.limits.load))?;
        let nonce = process::nonce();
        let process = Process::start(config, theirs.into(), nonce)?;
        let mut worker = Self {
            process,
            control,
            nonce,
            inbox: Inbox::default(),
            arena: Arena::new()?,
            limits: config.wrap.is_none().then_some(config.limits),
            clock: Clock {
                phase: Phase::Start,
                since: monotonic_now(),
            },
            info: None,
            stopped: None,
            case: None,
        };
        worker.set_up(config)?;
        Ok(worker)
    }

    /// Loads the plugin and creates its handle, in the order of the real host.
    pub fn load(&mut self) -> Result<PluginInfo, LoadFailure> {
        self.ask(Phase::Load, &Request::Load)?;
        loop {
            match self.next()? {
                Message::Loaded(info) => self.info = Some(info),
                Message::Ready => break,
                Message::LoadFailed(failure) => return Err(failure),
                other => return Err(self.unexpected(&other).into()),
            }
        }
        match &self.info {
            Some(info) => Ok(info.clone()),
            None => Err(self.broken("ready before loaded").into()),
        }
    }

    /// What is known of the plugin: also after [`LoadFailure::is_after_load`], and after a crash
    /// or a timeout in phase [`Phase::Create`].
    pub fn info(&self) -> Option<&PluginInfo> {
        self.info.as_ref()
    }

    /// The engines that accept a serialized graph.
    ///
    /// # Panics
    /// If a case is in flight.
    pub fn applicable(&mut self, graph: &[u8]) -> Reply<Vec<i64>> {
        assert!(self.case.is_none(), "a case is in flight");
        let graph = graph.to_vec();
        self.process.output.begin_case();
        let answer = self
            .ask(Phase::Applicable, &Request::Applicable { graph })
            .and_then(|()| {
                loop {
                    match self.next()? {
                        Message::Applicable(reply) => return Ok(reply),
                        Message::Log(_) => {}
                        other => return Err(self.unexpected(&other)),
                    }
                }
            });
        answer.unwrap_or_else(Reply::Stopped)
    }

    /// The shared memory of the next case.
    pub fn arena_mut(&mut self) -> &mut Arena {
        &mut self.arena
    }

    /// The shared memory.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Hands a case to the worker and returns at once. If it is to be executed, the arena must
    /// have been prepared; its buffers are given to the plugin in their order.
    ///
    /// # Panics
    /// If a case is in flight already.
    pub fn begin(&mut self, case: CaseRequest) {
        assert!(self.case.is_none(), "a case is in flight");
        self.process.output.begin_case();
        self.case = Some(CaseState {
            outcome: CaseOutcome::unfinished(),
            base: None,
            workspace_align: case.workspace_align,
            began: monotonic_now(),
        });
        let (buffers, fills) = match case.until {
            Until::Executed => (self.arena.specs(), self.arena.fills()),
            _ => (Vec::new(), Vec::new()),
        };
        // A failure here is kept in `stopped` and comes out of `finish`.
        let _ = self.ask(
            Phase::Applicable,
            &Request::Case {
                case,
                buffers,
                fills,
            },
        );
    }

    /// Waits for the case to end, within the limits.
    ///
    /// # Panics
    /// If no case is in flight.
    pub fn finish(&mut self) -> CaseOutcome {
        assert!(self.case.is_some(), "no case is in flight");
        let end = self.case_end();
        let mut case = self.case.take().expect("checked above");
        match end {
            Ok(end) => {
                case.outcome.depth = end.depth;
                case.outcome.result = end.result;
                case.outcome.notes = end.notes;
                case.outcome.log_dropped = end.log_dropped;
                case.outcome.times = end.times;
                case.outcome.device = end.device;
                case.outcome.checks = end.checks;
                case.outcome.stderr = self.process.output.tail(Duration::ZERO);
            }
            Err(stopped) => {
                let took = monotonic_now().saturating_sub(case.began);
                case.outcome.times.total = Duration::from_nanos(took);
                case.outcome.stderr = self.process.output.tail(LAST_WORDS);
                case.outcome.result = stopped.into();
            }
        }
        case.outcome
    }

    /// Checks the arena after a case: outputs, canaries, inputs, gaps, workspace, and adds what a
    /// device saw of its own memory. Meaningful after a crash too. `align` is the request's
    /// `workspace_align`.
    pub fn snapshot(&self, outcome: &CaseOutcome, align: u64) -> Result<Snapshot, ArenaError> {
        let workspace = outcome.workspace_size.map(|size| (size, align));
        let mut snapshot = self.arena.snapshot(workspace)?;
        snapshot.add(&outcome.checks);
        Ok(snapshot)
    }

    /// Has a script done. The worker need not have loaded anything; a step may take as long as a
    /// plan may.
    ///
    /// # Panics
    /// If a case is in flight.
    pub fn script(&mut self, script: &Script) -> Transcript {
        assert!(self.case.is_none(), "a case is in flight");
        self.process.output.begin_case();
        let mut results = Vec::with_capacity(script.steps.len());
        if script.steps.is_empty() {
            return Transcript {
                results,
                stopped: None,
            };
        }
        let mut sent = script.clone();
        for path in &mut sent.libraries {
            // A bare name would be searched for in the loader's folders.
            *path = std::path::absolute(&*path).unwrap_or_else(|_| path.clone());
        }
        let mut stopped = self.ask(Phase::Plan, &Request::Script(sent)).err();
        while stopped.is_none() && results.len() < script.steps.len() {
            match self.next() {
                Ok(Message::Step(result)) => {
                    results.push(result);
                    self.clock.since = monotonic_now();
                }
                Ok(other) => stopped = Some(self.unexpected(&other)),
                Err(end) => stopped = Some(end),
            }
        }
        Transcript { results, stopped }
    }

    /// Ends the worker: the plugin's handle is destroyed, the process exits normally.
    pub fn shutdown(mut self) -> Shutdown {
        let bye = self.ask(Phase::Exit, &Request::Quit).and_then(|()| {
            loop {
                match self.next()? {
                    Message::Bye { destroy_failed } => return Ok(destroy_failed),
                    Message::Log(_) => {}
                    other => return Err(self.unexpected(&other)),
                }
            }
        });
        let destroy_failed = match bye {
            Ok(destroy_failed) => destroy_failed,
            Err(stopped) => return Shutdown::Stopped(stopped),
        };
        let patience = self.limits.map_or(Duration::MAX, |limits| limits.load);
        match self
            .process
            .wait(patience.min(Duration::from_secs(1 << 30)))
        {
            None => Shutdown::Stopped(self.timeout()),
            Some(Exit::Code(0)) => match destroy_failed {
                None => Shutdown::Clean,
                Some((status, text)) => Shutdown::DestroyFailed { status, text },
            },
            Some(exit) => Shutdown::Stopped(self.crash(exit)),
        }
    }

    /// The worker's process id.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    fn set_up(&mut self, config: &WorkerConfig) -> Result<(), SpawnError> {
        let setup = Setup {
            backend: config.memory,
            library: config.device_library.clone(),
            device: config.device,
            plugin: std::path::absolute(&config.plugin)?,
            environment: config.env.clone(),
            load_mode: config.load_mode,
            workspace_cap: config.workspace_cap,
            report_faults: config.wrap.is_none() && config.preload.is_empty(),
        };
        let sent = channel::send(&self.control, self.nonce, &Request::Setup(setup))
            .and_then(|()| channel::send_descriptor(&self.control, self.arena.descriptor()));
        let silent = |stopped: Stopped| {
            let stderr = match &stopped {
                Stopped::Crash(crash) => crash.stderr.clone(),
                _ => String::new(),
            };
            SpawnError::Silent(format!("{stopped}\n{stderr}").trim_end().to_owned())
        };
        if let Err(error) = sent {
            return Err(silent(self.lost(&error)));
        }
        match self.next().map_err(silent)? {
            Message::Hello => Ok(()),
            other => Err(silent(self.unexpected(&other))),
        }
    }

    /// Sends a request; `phase` is what the worker is taken to be in until it says more.
    fn ask(&mut self, phase: Phase, request: &Request) -> Result<(), Stopped> {
        if let Some(stopped) = &self.stopped {
            return Err(stopped.clone());
        }
        self.clock = Clock {
            phase,
            since: monotonic_now(),
        };
        channel::send(&self.control, self.nonce, request).map_err(|error| self.lost(&error))
    }

    fn case_end(&mut self) -> Result<CaseEnd, Stopped> {
        loop {
            let message = self.next()?;
            let Some(case) = &mut self.case else {
                return Err(self.broken("a case without a request"));
            };
            match message {
                Message::CaseEnd(end) => return Ok(end),
                Message::Log(line) => case.outcome.log.push(line),
                Message::Details(bytes) => case.outcome.details = Some(bytes),
                Message::ConfigWorkspace(size) => case.outcome.config_workspace = Some(size),
                Message::Mapped { workspace, base } => {
                    case.outcome.workspace_size = Some(workspace);
                    case.base = Some(base);
                }
                other => return Err(self.unexpected(&other)),
            }
        }
    }

    /// The next message that is not a phase. Reads what is there before it looks at the clock:
    /// a parent that was busy elsewhere must not take a message that waits for a hang.
    fn next(&mut self) -> Result<Message, Stopped> {
        if let Some(stopped) = &self.stopped {
            return Err(stopped.clone());
        }
        let mut fault = None;
        loop {
            while let Some(message) = self
                .inbox
                .next(self.nonce)
                .map_err(|what| self.broken(&what))?
            {
                match message {
                    Message::Phase { phase, at, depth } => self.enter(phase, at, depth),
                    Message::Fault(address) => fault = Some(address),
                    other => return Ok(other),
                }
            }
            match self.inbox.fill(&self.control) {
                Ok(0) => return Err(self.ended(fault)),
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(self.ended(fault)),
            }
            self.wait_for_news(fault)?;
        }
    }

    /// Waits until there is something to read. Errs when the process ended with nothing left to
    /// read, or when the phase's limit is over.
    fn wait_for_news(&mut self, fault: Option<u64>) -> Result<(), Stopped> {
        let left = self.time_left();
        if left == Some(Duration::ZERO) {
            return Err(self.timeout());
        }
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = [
            PollFd::new(&self.control, PollFlags::IN),
            PollFd::from_borrowed_fd(self.process.descriptor(), PollFlags::IN),
        ];
        let ready = poll(&mut fds, timeout.as_ref());
        let (readable, ended) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        match ready {
            Ok(_) if ended && !readable => Err(self.ended(fault)),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(self.broken(&format!("poll: {error}"))),
        }
    }

    /// `None`: no limit.
    fn time_left(&self) -> Option<Duration> {
        let limits = self.limits?;
        let limit = match self.clock.phase {
            Phase::Execute => limits.execute,
            Phase::Applicable
            | Phase::Details
            | Phase::Workspace
            | Phase::Plan
            | Phase::Destroy => limits.plan,
            Phase::Start | Phase::Load | Phase::Create | Phase::Idle | Phase::Exit => limits.load,
        };
        let spent = Duration::from_nanos(monotonic_now().saturating_sub(self.clock.since));
        Some(limit.saturating_sub(spent))
    }

    /// The worker's own time of the step is used, but never one that is ahead of ours or behind
    /// the step before.
    fn enter(&mut self, phase: Phase, at: u64, depth: Option<Until>) {
        let since = at.clamp(self.clock.since, monotonic_now().max(self.clock.since));
        self.clock = Clock { phase, since };
        if let Some(case) = &mut self.case {
            case.outcome.depth = depth;
        }
    }

    /// The socket ended: the process is dead, dying, or has lost its socket.
    fn ended(&mut self, fault: Option<u64>) -> Stopped {
        let patience = self.time_left().unwrap_or(DYING).max(LAST_WORDS).min(DYING);
        let Some(exit) = self.process.wait(patience) else {
            return match self.process.output.flooded() {
                Some(_) => self.timeout(),
                None => self.broken("the worker closed its socket and lives on"),
            };
        };
        let stopped = self.crash(exit);
        match (stopped, fault.and_then(|address| self.guard_hit(address))) {
            (Stopped::Crash(crash), guard @ Some(_)) => {
                self.stop(Stopped::Crash(Crash { guard, ..crash }))
            }
            (stopped, _) => stopped,
        }
    }

    fn crash(&mut self, exit: Exit) -> Stopped {
        let phase = self.clock.phase;
        let stderr = self.process.output.tail(LAST_WORDS);
        self.stop(match self.process.output.flooded() {
            Some(limit) => Stopped::Flood { phase, limit },
            None => Stopped::Crash(Crash {
                exit,
                phase,
                stderr,
                guard: None,
            }),
        })
    }

    fn timeout(&mut self) -> Stopped {
        let phase = self.clock.phase;
        let abandoned = self.process.kill().is_none();
        self.stop(match self.process.output.flooded() {
            Some(limit) => Stopped::Flood { phase, limit },
            None => Stopped::Timeout { phase, abandoned },
        })
    }

    /// A request could not be written.
    fn lost(&mut self, error: &io::Error) -> Stopped {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.timeout(),
            _ => self.ended(None),
        }
    }

    fn unexpected(&mut self, message: &Message) -> Stopped {
        let text = format!("{message:?}");
        let end = text.floor_char_boundary(80);
        self.broken(&format!("unexpected message {}", &text[..end]))
    }

    fn broken(&mut self, what: &str) -> Stopped {
        self.process.kill();
        self.stop(Stopped::Broken(what.to_owned()))
    }

    fn stop(&mut self, stopped: Stopped) -> Stopped {
        self.stopped = Some(stopped.clone());
        stopped
    }

    fn guard_hit(&self, address: u64) -> Option<GuardHit> {
        let case = self.case.as_ref()?;
        let offset = address.checked_sub(case.base?)?;
        let workspace = case.outcome.workspace_size?;
        let layout = self
            .arena
            .layout()
            .with_workspace(workspace, case.workspace_align)
            .ok()?;
        nearest(&layout, offset)
    }
}

impl Drop for Worker {
    /// The socket's end makes an idle worker exit normally; one that does not is killed.
    fn drop(&mut self) {
        if self.stopped.is_none() {
            let _ = self.control.shutdown(std::net::Shutdown::Both);
            self.process.wait(LAST_WORDS);
        }
    }
}

/// The buffer whose guard holds `offset`.
fn nearest(layout: &Layout, offset: u64) -> Option<GuardHit> {
    layout.guards.iter().find(|g| g.contains(&offset))?;
    let distance = |slot: &dnn_assay_device::Slot| match offset < slot.bytes.start {
        true => slot.bytes.start - offset,
        false => offset.saturating_sub(slot.bytes.end) + 1,
    };
    let slot = layout.slots.iter().min_by_key(|slot| distance(slot))?;
    Some(GuardHit {
        uid: slot.spec.uid,
        offset: offset as i64 - slot.bytes.start as i64,
        size: slot.spec.size,
    })
}

impl CaseOutcome {
    fn unfinished() -> Self {
        Self {
            depth: None,
            result: CaseResult::Broken("unfinished".to_owned()),
            details: None,
            config_workspace: None,
            workspace_size: None,
            notes: Vec::new(),
            log: Vec::new(),
            log_dropped: 0,
            stderr: String::new(),
            times: CaseTimes::default(),
            device: DeviceAfter::default(),
            checks: Vec::new(),
        }
    }
}
