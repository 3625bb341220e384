//! What every entry does: contain panics, leave a last-error text, refuse null.

use crate::engine::Error;
use crate::{last_error, log, panic_text};
use dnn_assay_abi::{ConstData, PluginStatus, Severity};
use dnn_assay_graph::Graph;
use dnn_assay_graph::validate::validate;
use dnn_assay_graph::wire::{EngineConfig, Generation, read_engine_config, read_graph};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; an error or a panic becomes a status, a last-error text and a log line.
pub(super) fn guard(what: &str, body: impl FnOnce() -> Result<(), Error>) -> PluginStatus {
    panic_text::install_hook();
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return PluginStatus::SUCCESS,
        Ok(Err(error)) => error,
        Err(_) => Error::internal(panic_text::take()),
    };
    let text = format!("{what}: {}", error.message);
    last_error::set(&text);
    log::line(Severity::ERROR, &text);
    error.status
}

/// Writes through an out argument.
///
/// # Safety
/// `to` must be null or valid for a write.
pub(super) unsafe fn put<T>(name: &str, to: *mut T, value: T) -> Result<(), Error> {
    present(name, to)?;
    // SAFETY: forwarded, and not null.
    unsafe { to.write(value) };
    Ok(())
}

/// Refuses null.
pub(super) fn present<T>(name: &str, pointer: *const T) -> Result<(), Error> {
    if pointer.is_null() {
        return Err(Error::bad_param(format!("{name} is null")));
    }
    Ok(())
}

/// The bytes of a host's buffer.
///
/// # Safety
/// `data` must be null or valid for a read, and what it describes must be null or readable for
/// the time of `'a`.
pub(super) unsafe fn bytes<'a>(name: &str, data: *const ConstData) -> Result<&'a [u8], Error> {
    present(name, data)?;
    // SAFETY: forwarded, and not null.
    let ConstData { ptr, size } = unsafe { data.read() };
    present(name, ptr)?;
    if size == 0 || isize::try_from(size).is_err() {
        return Err(Error::bad_param(format!("{name} has {size} bytes")));
    }
    // SAFETY: forwarded; not null, and no larger than an object can be.
    Ok(unsafe { std::slice::from_raw_parts(ptr.cast(), size) })
}

/// Reads a graph of either wire generation. Whether it makes sense, [`check_graph`] says.
///
/// # Safety
/// As [`bytes`].
pub(super) unsafe fn raw_graph(data: *const ConstData) -> Result<(Graph, Generation), Error> {
    // SAFETY: forwarded.
    let bytes = unsafe { bytes("op_graph", data) }?;
    read_graph(bytes).map_err(|error| Error::bad_param(format!("op_graph: {error}")))
}

/// Reads and validates a graph of either wire generation.
///
/// # Safety
/// As [`bytes`].
pub(super) unsafe fn graph(data: *const ConstData) -> Result<(Graph, Generation), Error> {
    // SAFETY: forwarded.
    let (graph, generation) = unsafe { raw_graph(data) }?;
    check_graph(&graph)?;
    Ok((graph, generation))
}

/// Refuses a graph that contradicts itself, so that engines need not look for that.
pub(super) fn check_graph(graph: &Graph) -> Result<(), Error> {
    validate(graph).map_err(|problems| {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Error::bad_param(format!("op_graph: {}", texts.join("; ")))
    })
}

/// Reads an engine configuration.
///
/// # Safety
/// As [`bytes`].
pub(super) unsafe fn config(data: *const ConstData) -> Result<EngineConfig, Error> {
    // SAFETY: forwarded.
    let bytes = unsafe { bytes("engine_config", data) }?;
    read_engine_config(bytes).map_err(|error| Error::bad_param(format!("engine_config: {error}")))
}

/// Writes as many of `ids` as fit, and returns how many that were.
///
/// # Safety
/// `to` must be null or valid for writes of `max` ids.
pub(super) unsafe fn put_ids(ids: &[i64], to: *mut i64, max: u32) -> Result<usize, Error> {
    if max > 0 {
        present("engine_ids", to)?;
    }
    let count = ids.len().min(max as usize);
    for (i, &id) in ids[..count].iter().enumerate() {
        // SAFETY: i < max, and not null where max > 0.
        unsafe { to.add(i).write(id) };
    }
    Ok(count)
}
