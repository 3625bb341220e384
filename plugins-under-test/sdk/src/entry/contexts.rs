//! Execution contexts: planned graphs.

use super::engines::engine;
use super::guard::{config, graph, guard, present, put};
use super::handles::{Handle, handle};
use crate::engine::{Error, Plan, Plugin};
use crate::execution::Execution;
use crate::live::Live;
use dnn_assay_abi::{ConstData, DeviceBuffer, PluginStatus, RawContext, RawHandle};
use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::EngineConfig;
use std::ffi::c_void;

/// What a context stands for. It owns all it needs: graph and configuration are the host's.
pub(super) struct Context {
    pub(super) config: EngineConfig,
    pub(super) graph: Graph,
    pub(super) plan: Box<dyn Plan>,
}

impl Context {
    /// Plans `graph` as `config` says.
    pub(super) fn new(
        plugin: &'static Plugin,
        config: EngineConfig,
        graph: Graph,
    ) -> Result<Self, Error> {
        let plan = plan(plugin, &config, &graph)?;
        Ok(Self {
            config,
            graph,
            plan,
        })
    }
}

pub(super) static CONTEXTS: Live<Context> = Live::new("execution_context");

/// The plan that the configured engine makes for `graph`.
pub(super) fn plan(
    plugin: &'static Plugin,
    config: &EngineConfig,
    graph: &Graph,
) -> Result<Box<dyn Plan>, Error> {
    let engine = engine(plugin, config.engine_id)?;
    engine.supports(graph).map_err(Error::not_applicable)?;
    engine.plan(graph, &config.knobs)
}

/// # Safety
/// `engine_config` and `op_graph` must be null or describe readable bytes, `size` be null or
/// valid for a write.
pub unsafe fn get_workspace_size(
    plugin: &'static Plugin,
    raw: RawHandle,
    engine_config: *const ConstData,
    op_graph: *const ConstData,
    size: *mut usize,
) -> PluginStatus {
    guard("GetWorkspaceSize", || {
        handle(raw)?;
        present("workspace_size", size)?;
        // SAFETY: forwarded.
        let (config, (graph, _)) = unsafe { (config(engine_config)?, graph(op_graph)?) };
        let plan = plan(plugin, &config, &graph)?;
        // SAFETY: forwarded.
        unsafe { put("workspace_size", size, plan.workspace_size()) }
    })
}

/// # Safety
/// `engine_config` and `op_graph` must be null or describe readable bytes, `context` be null or
/// valid for a write.
pub unsafe fn create_execution_context(
    plugin: &'static Plugin,
    raw: RawHandle,
    engine_config: *const ConstData,
    op_graph: *const ConstData,
    context: *mut RawContext,
) -> PluginStatus {
    guard("CreateExecutionContext", || {
        handle(raw)?;
        present("execution_context", context)?;
        // SAFETY: forwarded.
        let (config, (graph, _)) = unsafe { (config(engine_config)?, graph(op_graph)?) };
        let planned = Context::new(plugin, config, graph)?;
        // SAFETY: forwarded.
        unsafe { put("execution_context", context, CONTEXTS.insert(planned)) }
    })
}

/// Destroys a context of this library; any other pointer is refused.
pub fn destroy_execution_context(raw: RawHandle, context: RawContext) -> PluginStatus {
    guard("DestroyExecutionContext", || {
        handle(raw)?;
        CONTEXTS.remove(context).map(drop)
    })
}

/// # Safety
/// `size` must be null or valid for a write.
pub unsafe fn get_workspace_size_from_execution_context(
    raw: RawHandle,
    context: RawContext,
    size: *mut usize,
) -> PluginStatus {
    guard("GetWorkspaceSizeFromExecutionContext", || {
        handle(raw)?;
        let context = CONTEXTS.get(context)?;
        // SAFETY: forwarded.
        unsafe { put("workspace_size", size, context.plan.workspace_size()) }
    })
}

/// # Safety
/// The buffers must be as the contract of `ExecuteOpGraph` says: `count` entries, each null or
/// valid for the tensor that its uid names.
pub unsafe fn execute_op_graph(
    raw: RawHandle,
    context: RawContext,
    workspace: *mut c_void,
    buffers: *const DeviceBuffer,
    count: u32,
) -> PluginStatus {
    guard("ExecuteOpGraph", || {
        let handle = handle(raw)?;
        let context = CONTEXTS.get(context)?;
        // SAFETY: forwarded.
        let buffers = unsafe { device_buffers(buffers, count) }?;
        let plan = context.plan.as_ref();
        // SAFETY: forwarded.
        unsafe { execute(&handle, plan, &context.graph, workspace, buffers) }
    })
}

/// # Safety
/// As [`execute_op_graph`], for the tensors of `graph`.
pub(super) unsafe fn execute(
    handle: &Handle,
    plan: &dyn Plan,
    graph: &Graph,
    workspace: *mut c_void,
    buffers: &[DeviceBuffer],
) -> Result<(), Error> {
    if plan.workspace_size() > 0 {
        present("workspace", workspace)?;
    }
    // SAFETY: forwarded.
    let execution = unsafe { Execution::new(graph, buffers, workspace, handle.stream()) };
    plan.execute(&execution)
}

/// # Safety
/// `buffers` must be null or valid for reads of `count` entries for the time of `'a`.
pub(super) unsafe fn device_buffers<'a>(
    buffers: *const DeviceBuffer,
    count: u32,
) -> Result<&'a [DeviceBuffer], Error> {
    present("device_buffers", buffers)?;
    // SAFETY: forwarded, and not null.
    Ok(unsafe { std::slice::from_raw_parts(buffers, count as usize) })
}
