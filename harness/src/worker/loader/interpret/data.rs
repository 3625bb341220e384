//! Bytes that go to a plugin and come from it.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;

use dnn_assay_abi::engine_plugin::functions as f;
use dnn_assay_abi::{ConstData, PluginStatus};

use super::{Objects, status};
use crate::worker::script::{Data, StepResult, Value};

/// Buffers of a plugin longer than this are not read.
const MAX_DATA: usize = 64 << 20;
/// What an output argument holds before the call.
pub(super) const PRESET: u64 = 0xDDDD_DDDD_DDDD_DDD8;

/// A `hipdnnPluginConstData_t` for the time of a call. The bytes are the script's own blobs, which
/// stay where they are until the call is over.
pub(super) struct Argument {
    data: Option<ConstData>,
}

impl Argument {
    pub(super) fn new(objects: &Objects, data: Data) -> Self {
        let bytes = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| ConstData::borrow(bytes));
        let data = match data {
            Data::Null => None,
            Data::NullBytes => Some(ConstData::EMPTY),
            Data::NoBytes => Some(ConstData {
                ptr: ptr::NonNull::<u64>::dangling().as_ptr() as *const c_void,
                size: 0,
            }),
            Data::Blob(index) => bytes(objects.blobs.get(usize::from(index))),
            Data::Saved(slot) => bytes(objects.saved.get(&slot)),
        };
        Self { data }
    }

    pub(super) fn pointer(&self) -> *const ConstData {
        self.data.as_ref().map_or(ptr::null(), ptr::from_ref)
    }
}

pub(super) fn preset_data(preset: bool) -> ConstData {
    match preset {
        true => ConstData {
            ptr: PRESET as *const c_void,
            size: 77,
        },
        false => ConstData::EMPTY,
    }
}

/// A buffer that a plugin handed out: kept in its slot, copied unless it is a preset or absurd.
pub(super) fn handed_out(
    s: PluginStatus,
    data: ConstData,
    slot: u8,
    slots: &mut BTreeMap<u8, (usize, usize)>,
) -> StepResult {
    if s != PluginStatus::SUCCESS {
        return status(s, Value::Nothing);
    }
    slots.insert(slot, (data.ptr as usize, data.size));
    status(s, look(data))
}

/// A live buffer of the plugin's.
pub(super) fn look(data: ConstData) -> Value {
    let wild = data.ptr.is_null() || data.ptr as u64 == PRESET || data.size > MAX_DATA;
    let bytes = match wild {
        true => Vec::new(),
        // SAFETY: ABI: the plugin owns `size` readable bytes until they are destroyed.
        false => unsafe { std::slice::from_raw_parts(data.ptr.cast::<u8>(), data.size) }.to_vec(),
    };
    Value::Data {
        address: data.ptr as u64,
        size: data.size as u64,
        bytes,
    }
}

/// Gives a buffer back; the value is the struct afterwards.
pub(super) fn take_back(
    function: f::DestroyData,
    handle: *mut c_void,
    slot: Option<u8>,
    slots: &mut BTreeMap<u8, (usize, usize)>,
) -> StepResult {
    let Some(slot) = slot else {
        // SAFETY: ABI: NULL must be refused.
        return status(unsafe { function(handle, ptr::null_mut()) }, Value::Nothing);
    };
    let (address, size) = slots.get(&slot).copied().unwrap_or((0, 0));
    let mut data = ConstData {
        ptr: address as *const c_void,
        size,
    };
    // SAFETY: ABI: a buffer of this handle, given back once by a well-written script.
    let s = unsafe { function(handle, &mut data) };
    if s == PluginStatus::SUCCESS {
        slots.insert(slot, (data.ptr as usize, data.size));
    }
    let value = Value::Data {
        address: data.ptr as u64,
        size: data.size as u64,
        bytes: Vec::new(),
    };
    status(s, value)
}
