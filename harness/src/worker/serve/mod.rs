//! The worker's side: answers requests until it is told to quit or its parent is gone.

mod case;
mod loaded;
mod place;
mod refusal;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use dnn_assay_device::{BufferSpec, DeviceBackend, DeviceError, Fill, MemoryKind, open_backend};

use super::channel;
use super::config::{CaseRequest, Until};
use super::load;
use super::loader::device_memory::DeviceSetup;
use super::loader::interpret::Interpreter;
use super::loader::log::Line;
use super::loader::{DeviceRuntime, Failed, fault};
use super::outcome::{CaseResult, DeviceAfter, LoadFailure, Phase, Reply};
use super::protocol::{CaseEnd, Message, Request, Setup, monotonic_now};
use super::script::{Script, StepResult, Value};
use case::CaseRun;
use loaded::Loaded;
use place::Place;
use refusal::not_loaded;

/// Exit code of a worker whose parent is gone or speaks nonsense.
const LOST: i32 = 112;

/// Serves; the return value is the process's exit code.
pub(super) fn serve(control: UnixStream, nonce: u64) -> i32 {
    let Ok(Some(Request::Setup(setup))) = channel::receive(&control, nonce) else {
        return LOST;
    };
    let Ok(arena) = channel::receive_descriptor(&control) else {
        return LOST;
    };
    if setup.report_faults {
        fault::report();
    }
    let line = Line::open(control, nonce);
    let mut server = Server {
        line,
        setup,
        arena,
        loaded: None,
        backend: Err(DeviceError {
            call: "open".to_owned(),
            text: "nothing is loaded yet".to_owned(),
            status: None,
        }),
        told: false,
    };
    if line.send(&Message::Hello).is_err() {
        return LOST;
    }
    server.answer_all()
}

struct Server {
    line: &'static Line,
    setup: Setup,
    arena: OwnedFd,
    loaded: Option<Loaded>,
    backend: Backend,
    /// What is said once was said.
    told: bool,
}

/// A device, or why there is none.
type Backend = Result<Box<dyn DeviceBackend>, DeviceError>;

impl Server {
    fn answer_all(&mut self) -> i32 {
        loop {
            let request = channel::receive(self.line.socket(), self.line.nonce());
            let Ok(Some(request)) = request else {
                // The parent let go of the socket: an end like any other.
                return 0;
            };
            let answer = match request {
                Request::Load => match self.load() {
                    Ok(()) => Message::Ready,
                    Err(failure) => Message::LoadFailed(failure),
                },
                Request::Applicable { graph } => Message::Applicable(self.applicable(&graph)),
                Request::Case {
                    case,
                    buffers,
                    fills,
                } => {
                    let end = self.case(case, &buffers, &fills);
                    Message::CaseEnd(end)
                }
                Request::Script(script) => match self.script(&script) {
                    Some(last) => Message::Step(last),
                    None => return 0,
                },
                Request::Quit => {
                    let bye = self.quit();
                    return i32::from(self.line.send(&bye).is_err());
                }
                Request::Setup(_) => return LOST,
            };
            if self.line.send(&answer).is_err() {
                return 0;
            }
        }
    }

    fn load(&mut self) -> Result<(), LoadFailure> {
        if self.loaded.is_some() {
            return Ok(());
        }
        self.phase(Phase::Load, None);
        if let Some(path) = &self.setup.library {
            DeviceRuntime::open(path).map_err(LoadFailure::Device)?;
        }
        let (plugin, info) = load::load(&self.setup.plugin, self.setup.load_mode)?;
        let engines = info.engines.iter().map(|engine| engine.id).collect();
        let _ = self.line.send(&Message::Loaded(info));

        self.phase(Phase::Create, None);
        self.backend = open_backend(
            self.setup.backend,
            self.setup.device,
            self.setup.library.as_deref(),
        );
        let handle = plugin
            .create()
            .map_err(|Failed { status, text }| LoadFailure::CreateFailed { status, text })?
            .ok_or(LoadFailure::NullHandle)?;
        let stream = self.backend.as_ref().map(|backend| backend.stream());
        if let Ok(stream) = stream
            && !stream.is_null()
        {
            plugin
                .set_stream(handle, stream)
                .map_err(|Failed { status, text }| LoadFailure::Call {
                    what: "set stream for engine plugin handle".to_owned(),
                    status,
                    text,
                })?;
        }
        self.loaded = Some(Loaded {
            plugin,
            handle,
            engines,
        });
        Ok(())
    }

    fn applicable(&self, graph: &[u8]) -> Reply<Vec<i64>> {
        self.line.begin_case();
        self.phase(Phase::Applicable, None);
        let Some(loaded) = &self.loaded else {
            return not_loaded().into();
        };
        match loaded.applicable(graph) {
            Ok(ids) => Reply::Ok(ids),
            Err(end) => end.into(),
        }
    }

    fn case(&mut self, case: CaseRequest, buffers: &[BufferSpec], fills: &[Fill]) -> CaseEnd {
        let began = Instant::now();
        self.line.begin_case();
        let mut run = CaseRun::new(self.line);
        run.notes.extend(self.untold());
        let used = |backend: &Backend| backend.as_ref().ok()?.used_by_others();
        let before = used(&self.backend);
        let result = match &self.loaded {
            None => not_loaded().into(),
            Some(loaded) => {
                let result = run.plan(loaded, &case).and_then(|size| match case.until {
                    Until::Executed => {
                        let place = Place {
                            arena: &self.arena,
                            buffers,
                            fills,
                            workspace: (size, case.workspace_align),
                            cap: self.setup.workspace_cap,
                        };
                        run.execute(loaded, &mut self.backend, place, case.executions)
                    }
                    _ => Ok(()),
                });
                run.clean_up(loaded);
                result.err().unwrap_or(CaseResult::Ok)
            }
        };
        run.times.total = began.elapsed();
        let mut device = DeviceAfter::default();
        if let (Some(before), Some(after)) = (before, used(&self.backend)) {
            device.growth = after as i64 - before as i64;
        }
        let failed = matches!(
            result,
            CaseResult::CallFailed { .. } | CaseResult::Execution(_) | CaseResult::Device(_)
        );
        if let (true, Ok(backend)) = (failed, &mut self.backend) {
            device.broken = backend.is_broken();
        }
        CaseEnd {
            depth: run.depth,
            result,
            notes: run.notes,
            log_dropped: self.line.dropped(),
            times: run.times,
            device,
            checks: run.checks,
        }
    }

    /// Said once: guards are looked at on copies, although the plugin's memory is elsewhere.
    fn untold(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.told, true) {
            return None;
        }
        let why = self.backend.as_ref().ok()?.checks_copies()?;
        Some(format!(
            "guards and poison are checked on copies in host memory: {why}"
        ))
    }

    /// Does the steps and tells of each but the last; `None` where the parent is gone. A script
    /// without steps is never sent.
    fn script(&self, script: &Script) -> Option<StepResult> {
        if let Some(Err(text)) = self.setup.library.as_deref().map(DeviceRuntime::open) {
            return Some(StepResult {
                value: Value::Failed(text),
                ..StepResult::default()
            });
        }
        let mut interpreter = Interpreter::new(script, self.device());
        let (last, others) = script.steps.split_last()?;
        for step in others {
            let result = interpreter.step(step);
            self.line.send(&Message::Step(result)).ok()?;
        }
        let last = interpreter.step(last);
        // Libraries stay open until the process ends, as the host leaves them by default.
        std::mem::forget(interpreter);
        Some(last)
    }

    /// The device of scripts; `None` for host memory.
    fn device(&self) -> Option<DeviceSetup> {
        let on_device = self.setup.backend != MemoryKind::Host;
        on_device.then(|| DeviceSetup {
            kind: self.setup.backend,
            number: self.setup.device,
            library: self.setup.library.clone(),
        })
    }

    fn quit(&mut self) -> Message {
        self.phase(Phase::Exit, None);
        let destroyed = match self.loaded.take() {
            Some(loaded) => loaded.plugin.destroy(loaded.handle),
            None => Ok(()),
        };
        Message::Bye {
            destroy_failed: destroyed.err().map(|failed| (failed.status, failed.text)),
        }
    }

    fn phase(&self, phase: Phase, depth: Option<Until>) {
        announce(self.line, phase, depth);
    }
}

/// A parent that is gone is noticed at the next request.
fn announce(line: &Line, phase: Phase, depth: Option<Until>) {
    let at = monotonic_now();
    let _ = line.send(&Message::Phase { phase, at, depth });
}
