//! Functions that a plugin exports only if it says so: overridden shapes, and contexts as bytes.

use super::contexts::{CONTEXTS, Context, device_buffers, execute, plan};
use super::engines::Buffers;
use super::guard::{bytes, check_graph, guard, present, put};
use super::handles::handle;
use crate::engine::{Error, Plugin};
use dnn_assay_abi::{ConstData, DeviceBuffer, PluginStatus, RawContext, RawHandle};
use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::{
    Generation, WireError, read_engine_config, write_engine_config, write_graph,
};
use std::ffi::c_void;

/// The overrides of one execution, as the host passes them.
#[derive(Clone, Copy)]
pub struct Overrides {
    /// Number of overridden tensors.
    pub count: u32,
    /// Their uids.
    pub uids: *const i64,
    /// Their ranks.
    pub ranks: *const u32,
    /// Their shapes, of `ranks[i]` extents.
    pub shapes: *const *const i64,
    /// Their strides, of `ranks[i]` strides.
    pub strides: *const *const i64,
}

/// Plans the graph anew with the overridden shapes, and executes that.
///
/// # Safety
/// As [`execute_op_graph`](super::execute_op_graph) with the overridden shapes; the arrays of
/// `overrides` must be null or as long as it says.
pub unsafe fn execute_op_graph_with_overrides(
    plugin: &'static Plugin,
    raw: RawHandle,
    context: RawContext,
    workspace: *mut c_void,
    (buffers, count): (*const DeviceBuffer, u32),
    overrides: Overrides,
) -> PluginStatus {
    guard("ExecuteOpGraphWithOverrides", || {
        let handle = handle(raw)?;
        let context = CONTEXTS.get(context)?;
        // SAFETY: forwarded.
        let buffers = unsafe { device_buffers(buffers, count) }?;
        let mut graph = context.graph.clone();
        // SAFETY: forwarded.
        unsafe { overrides.apply(&mut graph) }?;
        check_graph(&graph)?;
        let plan = plan(plugin, &context.config, &graph)?;
        if plan.workspace_size() > context.plan.workspace_size() {
            return Err(Error::invalid_value(format!(
                "the overridden shapes need {} bytes of workspace, and the context has {}",
                plan.workspace_size(),
                context.plan.workspace_size()
            )));
        }
        // SAFETY: forwarded.
        unsafe { execute(&handle, plan.as_ref(), &graph, workspace, buffers) }
    })
}

impl Overrides {
    /// # Safety
    /// The arrays must be null or as long as `count` and `ranks` say.
    unsafe fn apply(&self, graph: &mut Graph) -> Result<(), Error> {
        if self.count == 0 {
            return Ok(());
        }
        present("override_unique_ids", self.uids)?;
        present("override_lengths", self.ranks)?;
        present("override_shapes", self.shapes)?;
        present("override_strides", self.strides)?;
        for i in 0..self.count as usize {
            // SAFETY: i < count, and none of the arrays is null.
            let (uid, rank, shape, strides) = unsafe {
                (
                    self.uids.add(i).read(),
                    self.ranks.add(i).read() as usize,
                    self.shapes.add(i).read(),
                    self.strides.add(i).read(),
                )
            };
            present("an override's shape", shape)?;
            present("an override's strides", strides)?;
            let tensor = graph
                .tensors
                .iter_mut()
                .find(|tensor| tensor.uid == uid)
                .ok_or_else(|| Error::bad_param(format!("override of unknown tensor {uid}")))?;
            // SAFETY: both arrays hold `rank` numbers and are not null.
            unsafe {
                tensor.dims = std::slice::from_raw_parts(shape, rank).to_vec();
                tensor.strides = std::slice::from_raw_parts(strides, rank).to_vec();
            }
        }
        Ok(())
    }
}

/// Serialized contexts that the host holds.
static SERIALIZED: Buffers = Buffers::new("serialized_context");

/// First bytes of a serialized context; the digit is the version of the form.
const MAGIC: &[u8; 8] = b"DNNASSY1";

/// # Safety
/// `serialized` must be null or valid for a write.
pub unsafe fn serialize_execution_context(
    raw: RawHandle,
    engine_id: i64,
    context: RawContext,
    serialized: *mut ConstData,
) -> PluginStatus {
    guard("SerializeExecutionContextWithEngineId", || {
        handle(raw)?;
        present("serialized_context", serialized)?;
        let context = CONTEXTS.get(context)?;
        if context.config.engine_id != engine_id {
            return Err(Error::invalid_value(format!(
                "the context is of engine {}, not of {engine_id}",
                context.config.engine_id
            )));
        }
        let bytes = save(&context).map_err(|error| Error::internal(error.to_string()))?;
        // SAFETY: forwarded.
        unsafe { put("serialized_context", serialized, SERIALIZED.hand_out(bytes)) }
    })
}

/// # Safety
/// `serialized` must be null or valid for a read and a write.
pub unsafe fn destroy_serialized_execution_context(
    raw: RawHandle,
    serialized: *mut ConstData,
) -> PluginStatus {
    guard("DestroySerializedExecutionContext", || {
        handle(raw)?;
        // SAFETY: forwarded.
        unsafe { SERIALIZED.take_back(serialized) }
    })
}

/// # Safety
/// `serialized` must be null or describe readable bytes, `context` be null or valid for a write.
pub unsafe fn create_execution_context_from_serialized(
    plugin: &'static Plugin,
    raw: RawHandle,
    serialized: *const ConstData,
    context: *mut RawContext,
) -> PluginStatus {
    guard("CreateExecutionContextFromSerialized", || {
        handle(raw)?;
        present("execution_context", context)?;
        // SAFETY: forwarded.
        let bytes = unsafe { bytes("serialized_context", serialized) }?;
        let planned = restore(plugin, bytes)?;
        // SAFETY: forwarded.
        unsafe { put("execution_context", context, CONTEXTS.insert(planned)) }
    })
}

fn save(context: &Context) -> Result<Vec<u8>, WireError> {
    let config = write_engine_config(&context.config, Generation::Current)?;
    let graph = write_graph(&context.graph, Generation::Current)?;
    let lengths = [config.len(), graph.len()].map(|length| (length as u64).to_le_bytes());
    Ok([MAGIC.as_slice(), &lengths[0], &lengths[1], &config, &graph].concat())
}

fn restore(plugin: &'static Plugin, bytes: &[u8]) -> Result<Context, Error> {
    let foreign = || Error::bad_param("serialized_context is not one of this plugin");
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(foreign)?;
    let (config, rest) = rest.split_first_chunk().ok_or_else(foreign)?;
    let (graph, rest) = rest.split_first_chunk().ok_or_else(foreign)?;
    let [config, graph] = [config, graph].map(|length| u64::from_le_bytes(*length) as usize);
    if config.checked_add(graph) != Some(rest.len()) {
        return Err(foreign());
    }
    let (config, graph) = rest.split_at(config);
    // FlatBuffers are verified for alignment, which the parts of a whole do not have.
    let config = read_engine_config(&aligned(config))
        .map_err(|error| Error::bad_param(format!("serialized_context, configuration: {error}")))?;
    // SAFETY: the copy lives for the call.
    let (graph, _) = unsafe { super::guard::graph(&ConstData::borrow(&aligned(graph))) }?;
    Context::new(plugin, config, graph)
}

/// A copy, which the allocator aligns.
fn aligned(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}
