//! Engines: which there are, which take a graph, what they say of themselves.

use super::guard::{check_graph, graph, guard, present, put, put_ids, raw_graph};
use super::handles::handle;
use crate::engine::{Engine, Error, Plugin, engine_id_of};
use crate::live::Live;
use crate::log;
use dnn_assay_abi::{ConstData, PluginStatus, RawHandle, Severity};
use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::{EngineDetails, Generation, write_engine_details};
use std::ffi::c_char;

/// Serialized details that the host holds, by the address of the box that holds their bytes.
static DETAILS: Buffers = Buffers::new("engine_details");

/// # Safety
/// `ids` must be null or valid for writes of `max` ids, `count` null or valid for a write.
pub unsafe fn get_all_engine_ids(
    plugin: &'static Plugin,
    ids: *mut i64,
    max: u32,
    count: *mut u32,
) -> PluginStatus {
    guard("GetAllEngineIds", || {
        present("num_engines", count)?;
        let all: Vec<i64> = plugin.engines.iter().map(|e| engine_id_of(*e)).collect();
        let number = if ids.is_null() && max == 0 {
            all.len()
        } else {
            // SAFETY: forwarded.
            unsafe { put_ids(&all, ids, max) }?
        };
        // SAFETY: forwarded.
        unsafe { put("num_engines", count, number as u32) }
    })
}

/// # Safety
/// `name` must be null or valid for a write.
pub unsafe fn get_engine_name(
    plugin: &'static Plugin,
    id: i64,
    name: *mut *const c_char,
) -> PluginStatus {
    guard("GetEngineName", || {
        present("name", name)?;
        let engine = engine(plugin, id)?;
        // SAFETY: forwarded.
        unsafe { put("name", name, engine.name().as_ptr()) }
    })
}

/// # Safety
/// `op_graph` must be null or describe readable bytes, `ids` be null or valid for writes of `max`
/// ids, `count` null or valid for a write.
pub unsafe fn get_applicable_engine_ids(
    plugin: &'static Plugin,
    raw: RawHandle,
    op_graph: *const ConstData,
    ids: *mut i64,
    max: u32,
    count: *mut u32,
) -> PluginStatus {
    guard("GetApplicableEngineIds", || {
        handle(raw)?;
        present("num_engines", count)?;
        // SAFETY: forwarded.
        let (graph, _) = unsafe { raw_graph(op_graph) }?;
        let sense = check_graph(&graph);
        let applicable: Vec<i64> = plugin
            .engines
            .iter()
            .filter(|engine| takes(**engine, &graph, &sense))
            .map(|engine| engine_id_of(*engine))
            .collect();
        // SAFETY: forwarded.
        unsafe {
            put_ids(&applicable, ids, max)?;
            put("num_engines", count, applicable.len() as u32)
        }
    })
}

/// # Safety
/// `op_graph` must be null or describe readable bytes, `details` be null or valid for a write.
pub unsafe fn get_engine_details(
    plugin: &'static Plugin,
    raw: RawHandle,
    id: i64,
    op_graph: *const ConstData,
    details: *mut ConstData,
) -> PluginStatus {
    guard("GetEngineDetails", || {
        handle(raw)?;
        present("engine_details", details)?;
        let engine = engine(plugin, id)?;
        // SAFETY: forwarded.
        let (graph, generation) = unsafe { graph(op_graph) }?;
        engine.supports(&graph).map_err(Error::not_applicable)?;
        let bytes = write_engine_details(&describe(engine, &graph, generation), generation)
            .map_err(|error| Error::internal(error.to_string()))?;
        // SAFETY: forwarded.
        unsafe { put("engine_details", details, DETAILS.hand_out(bytes)) }
    })
}

/// # Safety
/// `details` must be null or valid for a read and a write.
pub unsafe fn destroy_engine_details(raw: RawHandle, details: *mut ConstData) -> PluginStatus {
    guard("DestroyEngineDetails", || {
        handle(raw)?;
        // SAFETY: forwarded.
        unsafe { DETAILS.take_back(details) }
    })
}

/// What an engine says of itself; a host of the older generation knows ids only.
fn describe(engine: &dyn Engine, graph: &Graph, generation: Generation) -> EngineDetails {
    let engine_id = engine_id_of(engine);
    match generation {
        Generation::Nov2025 => EngineDetails {
            engine_id,
            ..EngineDetails::default()
        },
        Generation::Current => EngineDetails {
            engine_id,
            knobs: engine.knobs(graph),
            behavior_notes: engine.behavior_notes(),
            name: engine.name().to_string_lossy().into_owned(),
        },
    }
}

/// The engine with this id.
pub(super) fn engine(plugin: &'static Plugin, id: i64) -> Result<&'static dyn Engine, Error> {
    plugin
        .engine(id)
        .ok_or_else(|| Error::invalid_value(format!("there is no engine {id}")))
}

/// Whether an engine takes a graph. One that makes no sense is declined, and no error: the host
/// asks every plugin about every graph, and may know more kinds of graphs than this library.
fn takes(engine: &dyn Engine, graph: &Graph, sense: &Result<(), Error>) -> bool {
    let verdict = match sense {
        Ok(()) => engine.supports(graph),
        Err(error) => Err(error.message.clone()),
    };
    if let Err(reason) = &verdict
        && log::wants(Severity::INFO)
    {
        let name = engine.name().to_string_lossy();
        log::line(
            Severity::INFO,
            &format!("{name} declines the graph: {reason}"),
        );
    }
    verdict.is_ok()
}

/// Byte buffers that the host holds until it hands them back.
pub(super) struct Buffers {
    name: &'static str,
    live: Live<Box<[u8]>>,
}

impl Buffers {
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name,
            live: Live::new(name),
        }
    }

    /// Keeps `bytes` and describes them to the host.
    pub(super) fn hand_out(&self, bytes: Vec<u8>) -> ConstData {
        let bytes = bytes.into_boxed_slice();
        let data = ConstData::borrow(&bytes);
        self.live.insert(bytes);
        data
    }

    /// Frees what was handed out, and zeroes the host's description of it.
    ///
    /// # Safety
    /// `data` must be null or valid for a read and a write.
    pub(super) unsafe fn take_back(&self, data: *mut ConstData) -> Result<(), Error> {
        present(self.name, data)?;
        // SAFETY: forwarded, and not null.
        let ptr = unsafe { (*data).ptr };
        self.live
            .remove_where(ptr, |bytes| bytes.as_ptr().cast() == ptr)?;
        // SAFETY: forwarded, and not null.
        unsafe { data.write(ConstData::EMPTY) };
        Ok(())
    }
}
