//! Host memory as a device: the plugin works in the arena itself.

use std::ffi::c_void;
use std::ptr;

use crate::backend::{DeviceBackend, DeviceError};
use crate::layout::Slot;
use crate::map::ArenaMap;
use crate::memory_kind::MemoryKind;
use crate::snapshot::{DeviceCheck, Fill};

/// The backend of [`MemoryKind::Host`]. Copies nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostBackend;

impl DeviceBackend for HostBackend {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    fn stream(&self) -> *mut c_void {
        ptr::null_mut()
    }

    fn place(
        &mut self,
        map: &ArenaMap,
        slot: &Slot,
        _fill: &Fill,
    ) -> Result<*mut c_void, DeviceError> {
        Ok(map.pointer(slot))
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn collect(&mut self, _map: &ArenaMap) -> Result<Vec<DeviceCheck>, DeviceError> {
        Ok(Vec::new())
    }

    fn release(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Element;
    use crate::arena::Arena;
    use crate::layout::{BufferSpec, MAX_ALIGNMENT, Role, WORKSPACE_UID};
    use crate::poison::Run;
    use crate::view::ElementView;

    #[test]
    fn both_sides_see_the_same_bytes() {
        let mut arena = Arena::new().unwrap();
        let mut specs = [
            BufferSpec::new(1, 5000, Role::Input),
            BufferSpec::new(2, 8, Role::Output),
        ];
        specs[1].align = MAX_ALIGNMENT;
        let layout = arena.prepare(&specs).unwrap().clone();
        arena.write(1, vec![7; 5000]).unwrap();
        let view = ElementView::packed(Element::F32, 2);
        arena.poison(2, view, Run::First).unwrap();

        let with = layout.with_workspace(100, 256).unwrap();
        let mut map = ArenaMap::new(arena.descriptor(), with).unwrap();
        let workspace = map.layout().slot(WORKSPACE_UID).unwrap().clone();
        map.poison_workspace(&workspace, true);
        let mut host = HostBackend;
        let slots = map.layout().slots.clone();
        let input = host
            .place(&map, &slots[0], &Fill::Bytes)
            .unwrap()
            .cast::<u8>();
        let output = host
            .place(&map, &slots[1], &Fill::Bytes)
            .unwrap()
            .cast::<[u8; 8]>();
        assert_eq!(output.addr() % MAX_ALIGNMENT as usize, 0);
        // SAFETY: both slots are mapped, aligned and at least as long as what is accessed.
        unsafe {
            assert_eq!(input.add(4999).read(), 7);
            output.write([1; 8]);
        }
        drop(map);
        let snapshot = arena.snapshot(Some((100, 256))).unwrap();
        assert!(snapshot.is_intact());
        assert_eq!(snapshot.buffer(2).unwrap().bytes, [1; 8]);
        assert_eq!(snapshot.workspace.unwrap().uid, WORKSPACE_UID);
    }
}
