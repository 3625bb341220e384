//! Where a case's buffers and its workspace lie, in the arena and on the device.

use std::os::fd::OwnedFd;

use dnn_assay_abi::DeviceBuffer;
use dnn_assay_device::{
    ArenaMap, BufferSpec, DeviceBackend, DeviceError, Fill, Layout, Role, Shortage, WORKSPACE_UID,
};

use crate::worker::outcome::CaseResult;

/// Where a case's memory comes from.
pub(super) struct Place<'a> {
    pub(super) arena: &'a OwnedFd,
    pub(super) buffers: &'a [BufferSpec],
    /// What they hold, in the same order.
    pub(super) fills: &'a [Fill],
    /// Size and alignment.
    pub(super) workspace: (u64, u64),
    pub(super) cap: u64,
}

impl Place<'_> {
    /// `with_workspace`: a workspace's first contents travel from here.
    pub(super) fn map(&self, with_workspace: bool) -> Result<ArenaMap, CaseResult> {
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
    pub(super) fn check_room(
        &self,
        backend: &dyn DeviceBackend,
        map: &ArenaMap,
    ) -> Result<(), CaseResult> {
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
pub(super) fn placed(
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
pub(super) fn device(error: DeviceError) -> CaseResult {
    if error.is_out_of_memory() {
        return CaseResult::NoMemory {
            bytes: 0,
            text: error.to_string(),
        };
    }
    CaseResult::Device(error.to_string())
}
