//! The worker's side: answers requests until it is told to quit or its parent is gone.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use dnn_assay_abi::DeviceBuffer;
use dnn_assay_device::{
    ArenaMap, BufferSpec, DeviceBackend, DeviceCheck, DeviceError, Fill, Held, Layout, MemoryKind,
    Role, Shortage, WORKSPACE_UID, open_backend,
};

use super::channel;
use super::config::{CaseRequest, Until};
use super::load;
use super::loader::device_memory::DeviceSetup;
use super::loader::interpret::Interpreter;
use super::loader::log::Line;
use super::loader::{Details, DeviceRuntime, Failed, Handle, PlanContext, Plugin, Written, fault};
use super::outcome::{CaseResult, CaseTimes, DeviceAfter, LoadFailure, Phase, Reply};
use super::protocol::{CaseEnd, Message, Request, Setup, monotonic_now};
use super::script::{Script, StepResult};

/// Engine details longer than this are not believed.
const MAX_DETAILS: usize = 64 << 20;
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

/// A plugin with a handle.
struct Loaded {
    plugin: Plugin,
    handle: Handle,
    engines: Vec<i64>,
}

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
        let mut run = CaseRun {
            line: self.line,
            depth: None,
            notes: Vec::new(),
            times: CaseTimes::default(),
            details: None,
            context: None,
            checks: Vec::new(),
        };
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
                value: super::script::Value::Failed(text),
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

fn not_loaded() -> Refusal {
    violation("Create", "no plugin is loaded")
}

/// An answer that ends a question or a case.
enum Refusal {
    Failed(&'static str, Failed),
    Violation(&'static str, String),
}

fn violation(call: &'static str, what: impl Into<String>) -> Refusal {
    Refusal::Violation(call, what.into())
}

/// For `map_err`: names the call that failed.
fn failed(call: &'static str) -> impl FnOnce(Failed) -> Refusal {
    move |failed| Refusal::Failed(call, failed)
}

impl From<Refusal> for CaseResult {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Failed(call, Failed { status, text }) => Self::CallFailed {
                call: call.to_owned(),
                status,
                text,
            },
            Refusal::Violation(call, what) => Self::Violation {
                call: call.to_owned(),
                what,
            },
        }
    }
}

impl<T> From<Refusal> for Reply<T> {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Failed(call, Failed { status, text }) => Self::CallFailed {
                call: call.to_owned(),
                status,
                text,
            },
            Refusal::Violation(call, what) => Self::Violation {
                call: call.to_owned(),
                what,
            },
        }
    }
}

impl Loaded {
    /// One call, as the host makes it: room for as many ids as the plugin has engines.
    fn applicable(&self, graph: &[u8]) -> Result<Vec<i64>, Refusal> {
        const CALL: &str = "GetApplicableEngineIds";
        let max = self.engines.len() as u32;
        let Written {
            ids,
            count,
            overflow,
        } = self
            .plugin
            .applicable(self.handle, graph, max)
            .map_err(failed(CALL))?;
        if overflow {
            let what = format!("ids written behind the buffer of {max}");
            return Err(violation(CALL, what));
        }
        if count > max {
            let what = format!("More applicable engines than expected: {count} of {max}");
            return Err(violation(CALL, what));
        }
        for (i, id) in ids.iter().enumerate() {
            if ids[..i].contains(id) {
                let what = format!("Duplicate engine IDs found: {id}");
                return Err(violation(CALL, what));
            }
            if !self.engines.contains(id) {
                let what = format!("Engine ID not found in the plugin's known IDs: {id}");
                return Err(violation(CALL, what));
            }
        }
        Ok(ids)
    }
}

/// A case on its way.
struct CaseRun {
    line: &'static Line,
    depth: Option<Until>,
    notes: Vec<String>,
    times: CaseTimes,
    details: Option<Details>,
    context: Option<PlanContext>,
    /// What the device saw of the buffers.
    checks: Vec<DeviceCheck>,
}

/// Where a case's memory comes from.
struct Place<'a> {
    arena: &'a OwnedFd,
    buffers: &'a [BufferSpec],
    /// What they hold, in the same order.
    fills: &'a [Fill],
    /// Size and alignment.
    workspace: (u64, u64),
    cap: u64,
}

impl CaseRun {
    fn phase(&self, phase: Phase) {
        announce(self.line, phase, self.depth);
    }

    /// Everything up to the plan, as deep as the case goes. Returns the workspace's size.
    fn plan(&mut self, loaded: &Loaded, case: &CaseRequest) -> Result<u64, CaseResult> {
        self.phase(Phase::Applicable);
        let began = Instant::now();
        let ids = loaded.applicable(&case.graph);
        self.times.applicable = began.elapsed();
        if !ids?.contains(&case.engine_id) {
            return Err(CaseResult::Declined);
        }
        self.depth = Some(Until::Applicable);
        if case.until == Until::Applicable {
            return Ok(0);
        }
        let began = Instant::now();
        let planned = self.details_and_context(loaded, case);
        self.times.plan = began.elapsed();
        let size = planned?;
        self.depth = Some(Until::Planned);
        Ok(size)
    }

    fn details_and_context(&mut self, loaded: &Loaded, case: &CaseRequest) -> Result<u64, Refusal> {
        let Loaded { plugin, handle, .. } = loaded;
        self.phase(Phase::Details);
        let details = plugin
            .details(*handle, case.engine_id, &case.graph)
            .map_err(failed("GetEngineDetails"))?;
        self.check_details(&details)?;
        self.details = Some(details);

        self.phase(Phase::Workspace);
        let size = plugin
            .workspace_size(*handle, &case.config, &case.graph)
            .map_err(failed("GetWorkspaceSize"))?;
        let size = not_negative("GetWorkspaceSize", size)?;
        let _ = self.line.send(&Message::ConfigWorkspace(size));

        self.phase(Phase::Plan);
        // Copies that are spoilt after the call: the plugin must not keep them.
        let (mut config, mut graph) = (case.config.clone(), case.graph.clone());
        let context = plugin
            .create_context(*handle, &config, &graph)
            .map_err(failed("CreateExecutionContext"))?
            .ok_or_else(|| violation("CreateExecutionContext", "SUCCESS with a NULL context"))?;
        self.context = Some(context);
        config.fill(0xDD);
        graph.fill(0xDD);
        let size = plugin
            .context_workspace(*handle, context)
            .map_err(failed("GetWorkspaceSizeFromExecutionContext"))?;
        not_negative("GetWorkspaceSizeFromExecutionContext", size)
    }

    fn check_details(&self, details: &Details) -> Result<(), Refusal> {
        const CALL: &str = "GetEngineDetails";
        if details.is_empty() {
            return Err(violation(CALL, "engine details are empty or NULL"));
        }
        if details.size() > MAX_DETAILS {
            let what = format!("engine details of {} bytes", details.size());
            return Err(violation(CALL, what));
        }
        let bytes = details.copy();
        let _ = self.line.send(&Message::Details(bytes.clone()));
        dnn_assay_graph::wire::read_engine_details(&bytes)
            .map(|_| ())
            .map_err(|error| violation(CALL, format!("engine details do not verify: {error}")))
    }

    fn execute(
        &mut self,
        loaded: &Loaded,
        backend: &mut Backend,
        place: Place<'_>,
        executions: u32,
    ) -> Result<(), CaseResult> {
        let backend = match backend {
            Ok(backend) => backend.as_mut(),
            Err(error) => return Err(CaseResult::Device(error.to_string())),
        };
        let context = self.context.expect("a plan precedes its execution");
        let map = place.map(!backend.fills_itself())?;
        place.check_room(backend, &map)?;
        let (workspace, buffers) = placed(backend, &map, place.fills).map_err(device)?;
        backend.seal().map_err(device)?;
        let _ = self.line.send(&Message::Mapped {
            workspace: place.workspace.0,
            base: map.base_address(),
        });
        let mut outcome = Ok(());
        for execution in 0..executions.max(1) {
            // The first execution finds its stream held.
            let held = execution == 0 && backend.hold().map_err(device)?;
            self.phase(Phase::Execute);
            let began = Instant::now();
            let call = loaded
                .plugin
                .execute(loaded.handle, context, workspace, &buffers);
            let called = began.elapsed();
            let seen = held.then(|| backend.let_go(&map));
            let began = Instant::now();
            let synchronized = backend.synchronize();
            self.times.executions.push(called + began.elapsed());
            outcome = call
                .map_err(|text| failed("ExecuteOpGraph")(text).into())
                .and(synchronized.map_err(execution_error))
                .and(self.check_stream(seen));
            if outcome.is_err() {
                break;
            }
        }
        let collected = backend.collect(&map).map_err(execution_error);
        let released = backend.release().map_err(execution_error);
        let collected = collected.map(|checks| self.checks = checks);
        outcome.and(collected).and(released)?;
        self.depth = Some(Until::Executed);
        Ok(())
    }

    /// What holding the stream has shown.
    fn check_stream(&mut self, seen: Option<Result<Held, DeviceError>>) -> Result<(), CaseResult> {
        match seen {
            Some(Ok(Held::Overtaken { uid })) => Err(violation(
                "ExecuteOpGraph",
                format!(
                    "tensor {uid} was written before the stream given by SetStream came to the \
                     work: it runs on another stream"
                ),
            )
            .into()),
            Some(Ok(Held::OthersHeldUp)) => {
                let text = "another stream did not go on while the plugin's stream was held";
                self.notes.push(text.to_owned());
                Ok(())
            }
            Some(Ok(Held::Waited)) => {
                let text =
                    "ExecuteOpGraph waits for its stream: where the work goes is not checked";
                self.notes.push(text.to_owned());
                Ok(())
            }
            Some(Err(error)) => Err(execution_error(error)),
            Some(Ok(Held::InOrder | Held::Unknown)) | None => Ok(()),
        }
    }

    /// Destroys what was created, in the host's order: the plan, then the details. Failures are
    /// logged by the host, and noted here.
    fn clean_up(&mut self, loaded: &Loaded) {
        if self.context.is_none() && self.details.is_none() {
            return;
        }
        self.phase(Phase::Destroy);
        let began = Instant::now();
        if let Some(context) = self.context.take()
            && let Err(failed) = loaded.plugin.destroy_context(loaded.handle, context)
        {
            self.note("destroy execution context", &failed);
        }
        if let Some(details) = self.details.take() {
            match loaded.plugin.destroy_details(loaded.handle, details) {
                Ok(true) => {}
                Ok(false) => self
                    .notes
                    .push("DestroyEngineDetails did not zero the struct".to_owned()),
                Err(failed) => self.note("destroy engine details", &failed),
            }
        }
        self.times.destroy = began.elapsed();
    }

    fn note(&mut self, what: &str, failed: &Failed) {
        let status = dnn_assay_abi::PluginStatus(failed.status);
        let text = &failed.text;
        self.notes
            .push(format!("Failed to {what}. Status: {status}, Error: {text}"));
    }
}

impl Place<'_> {
    /// `with_workspace`: a workspace's first contents travel from here.
    fn map(&self, with_workspace: bool) -> Result<ArenaMap, CaseResult> {
        let (bytes, align) = self.workspace;
        let no_memory = |text: String| CaseResult::NoMemory {
            bytes,
            text: format!("the plan wants a workspace of {bytes} bytes: {text}"),
        };
        if bytes > self.cap {
            let cap = self.cap;
            return Err(no_memory(format!("the limit is {cap} bytes")));
        }
        let layout = Layout::compute(self.buffers, rustix::param::page_size() as u64)
            .and_then(|layout| layout.with_workspace(bytes, align))
            .map_err(|error| no_memory(error.to_string()))?;
        let all = layout.len;
        let mut map = ArenaMap::new(self.arena, layout).map_err(|error| CaseResult::NoMemory {
            bytes: all,
            text: format!("the case's buffers want {all} bytes of address space: {error}"),
        })?;
        if let Some(slot) = map.layout().slot(WORKSPACE_UID).cloned() {
            map.poison_workspace(&slot, with_workspace);
        }
        Ok(map)
    }

    /// Whether the device has room for all of it.
    fn check_room(&self, backend: &dyn DeviceBackend, map: &ArenaMap) -> Result<(), CaseResult> {
        let short = backend.shortage(&map.layout().slots).map_err(device)?;
        let Some(Shortage { needs, has }) = short else {
            return Ok(());
        };
        Err(CaseResult::NoMemory {
            bytes: needs,
            text: format!("needs {needs} bytes of device memory, has {has}"),
        })
    }
}

/// The workspace's address (NULL if it is empty) and the plugin's buffers.
fn placed(
    backend: &mut dyn DeviceBackend,
    map: &ArenaMap,
    fills: &[Fill],
) -> Result<(*mut std::ffi::c_void, Vec<DeviceBuffer>), DeviceError> {
    let mut workspace = std::ptr::null_mut();
    let mut buffers = Vec::with_capacity(map.layout().slots.len());
    let fills = fills.iter().chain(std::iter::repeat(&Fill::Bytes));
    for (slot, fill) in map.layout().slots.iter().zip(fills) {
        let uid = slot.spec.uid;
        match slot.spec.role {
            Role::Workspace if slot.spec.size == 0 => {}
            Role::Workspace => workspace = backend.place(map, slot, &Fill::Scratch)?,
            Role::HostScalar => {
                let ptr = map.pointer(slot);
                buffers.push(DeviceBuffer { uid, ptr });
            }
            Role::Input | Role::Output => {
                let ptr = backend.place(map, slot, fill)?;
                buffers.push(DeviceBuffer { uid, ptr });
            }
        }
    }
    Ok((workspace, buffers))
}

/// An error before the plugin was called; too little memory is none of the device's.
fn device(error: DeviceError) -> CaseResult {
    if error.is_out_of_memory() {
        return CaseResult::NoMemory {
            bytes: 0,
            text: error.to_string(),
        };
    }
    CaseResult::Device(error.to_string())
}

fn execution_error(error: DeviceError) -> CaseResult {
    CaseResult::Execution(error.to_string())
}

/// A size as the host reads it: negative as `int64_t` is refused.
fn not_negative(call: &'static str, size: usize) -> Result<u64, Refusal> {
    if i64::try_from(size).is_ok() {
        return Ok(size as u64);
    }
    let as_host = size as i64;
    let what = format!("workspace size {size} is negative as the host reads it ({as_host})");
    Err(violation(call, what))
}
