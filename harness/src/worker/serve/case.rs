//! A case on its way: the calls of the host in their order, and what the device shows meanwhile.

use std::time::Instant;

use dnn_assay_device::{DeviceCheck, DeviceError, Held};

use super::loaded::Loaded;
use super::place::{Place, device, placed};
use super::refusal::{Refusal, failed, violation};
use super::{Backend, announce};
use crate::worker::config::{CaseRequest, Until};
use crate::worker::loader::log::Line;
use crate::worker::loader::{Details, Failed, PlanContext};
use crate::worker::outcome::{CaseResult, CaseTimes, Phase};
use crate::worker::protocol::Message;

/// Engine details longer than this are not believed.
const MAX_DETAILS: usize = 64 << 20;

/// A case on its way.
pub(super) struct CaseRun {
    line: &'static Line,
    pub(super) depth: Option<Until>,
    pub(super) notes: Vec<String>,
    pub(super) times: CaseTimes,
    details: Option<Details>,
    context: Option<PlanContext>,
    /// What the device saw of the buffers.
    pub(super) checks: Vec<DeviceCheck>,
}

impl CaseRun {
    /// A case of which nothing is done.
    pub(super) fn new(line: &'static Line) -> Self {
        Self {
            line,
            depth: None,
            notes: Vec::new(),
            times: CaseTimes::default(),
            details: None,
            context: None,
            checks: Vec::new(),
        }
    }

    fn phase(&self, phase: Phase) {
        announce(self.line, phase, self.depth);
    }

    /// Everything up to the plan, as deep as the case goes. Returns the workspace's size.
    pub(super) fn plan(&mut self, loaded: &Loaded, case: &CaseRequest) -> Result<u64, CaseResult> {
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

    pub(super) fn execute(
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
    pub(super) fn clean_up(&mut self, loaded: &Loaded) {
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
