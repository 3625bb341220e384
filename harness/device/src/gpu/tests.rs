//! The device's own look at guards against the look at copies, on the mock HIP runtime, whose
//! device memory is this process's.

use std::sync::{Mutex, PoisonError};

use dnn_assay_abi::gpu::Flavor;
use proptest::prelude::*;

use super::GpuBackend;
use crate::{
    Arena, ArenaMap, BufferSpec, DeviceBackend, Element, ElementView, Fill, Held, Placement, Role,
    Run, Snapshot, WORKSPACE_UID,
};

const X: i64 = 1;
const Y: i64 = 2;
const INPUT: u64 = 1003;
const WORKSPACE: (u64, u64) = (300, 256);

/// The mock's devices are the process's.
static ONE: Mutex<()> = Mutex::new(());

/// `None` where the build had no compiler.
fn open() -> Option<GpuBackend> {
    let folder = std::env::current_exe().unwrap();
    let library = folder.parent().unwrap().join("libdnn_assay_mock_hip.so");
    let backend = GpuBackend::open(Flavor::Hip, 0, Some(&library)).unwrap();
    let Err(why) = &backend.guards else {
        return Some(backend);
    };
    let built = !env!("DNN_ASSAY_KERNELS_BY").is_empty();
    assert!(!built, "kernels are there and did not load: {why}");
    eprintln!("not checked: {why}");
    None
}

/// Bytes that a plugin inverts: the buffer, the first byte relative to it, how many.
type Poke = (i64, i64, usize);

fn view(element: Element, dims: &[i64], strides: &[i64]) -> ElementView {
    ElementView {
        element,
        dims: dims.to_vec(),
        strides: strides.to_vec(),
    }
}

/// An arena with an input, an output of `size` bytes under `view`, both aligned to `align`.
fn arena(view: &ElementView, size: u64, align: u64, run: Run) -> Arena {
    let mut arena = Arena::new().unwrap();
    let mut specs = [
        BufferSpec::new(X, INPUT, Role::Input),
        BufferSpec::new(Y, size, Role::Output),
    ];
    for spec in &mut specs {
        (spec.align, spec.placement) = (align, Placement::Middle);
    }
    arena.prepare(&specs).unwrap();
    arena
        .write(X, (0..INPUT).map(|i| i as u8).collect())
        .unwrap();
    arena.poison(Y, view.clone(), run).unwrap();
    arena
}

fn map(arena: &Arena, backend: &GpuBackend) -> ArenaMap {
    let layout = arena.layout().with_workspace(WORKSPACE.0, WORKSPACE.1);
    let mut map = ArenaMap::new(arena.descriptor(), layout.unwrap()).unwrap();
    let slot = map.layout().slot(WORKSPACE_UID).unwrap().clone();
    map.poison_workspace(&slot, !backend.fills_itself());
    map
}

/// Places everything and returns the addresses by uid.
fn place(backend: &mut GpuBackend, arena: &Arena, map: &ArenaMap) -> Vec<(i64, *mut u8)> {
    let mut fills = arena.fills();
    fills.push(Fill::Scratch);
    let slots = map.layout().slots.iter().zip(&fills);
    let placed = slots
        .map(|(slot, fill)| {
            let at = backend.place(map, slot, fill).unwrap();
            (
                slot.spec.uid,
                std::ptr::with_exposed_provenance_mut(at.addr()),
            )
        })
        .collect();
    backend.seal().unwrap();
    backend.synchronize().unwrap();
    placed
}

fn invert(placed: &[(i64, *mut u8)], pokes: &[Poke]) {
    for &(uid, offset, count) in pokes {
        let base = placed.iter().find(|(of, _)| *of == uid).unwrap().1;
        for i in 0..count {
            let at = base.wrapping_offset(offset as isize + i as isize);
            // SAFETY: device memory of the mock is this process's, and the region reaches a page
            // beyond the buffer on both sides.
            unsafe { at.write(!at.read()) };
        }
    }
}

fn snapshot(backend: &mut GpuBackend, arena: &Arena, pokes: &[Poke]) -> Snapshot {
    let map = map(arena, backend);
    let placed = place(backend, arena, &map);
    invert(&placed, pokes);
    let checks = backend.collect(&map).unwrap();
    assert_eq!(checks.len(), if backend.guards.is_ok() { 3 } else { 0 });
    backend.release().unwrap();
    let mut snapshot = arena.snapshot(Some(WORKSPACE)).unwrap();
    snapshot.add(&checks);
    snapshot
}

/// What both ways say of the same case, which must be the same.
fn both(view: &ElementView, size: u64, align: u64, run: Run, pokes: &[Poke]) -> Option<Snapshot> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut backend = open()?;
    let device = snapshot(&mut backend, &arena(view, size, align, run), pokes);
    let guards = std::mem::replace(&mut backend.guards, Err("a test".to_owned()));
    let copies = snapshot(&mut backend, &arena(view, size, align, run), pokes);
    backend.guards = guards;
    assert_eq!(device, copies);
    Some(device)
}

fn packed(count: i64) -> ElementView {
    ElementView::packed(Element::F32, count)
}

#[test]
fn the_objects_are_what_the_drivers_want() {
    use super::guards::{GFX942, SM_90};
    use goblin::elf::Elf;
    if env!("DNN_ASSAY_KERNELS_BY").is_empty() {
        eprintln!("not checked: no clang for AMDGPU here");
        return;
    }
    let elf = Elf::parse(GFX942).unwrap();
    // gfx942, XNACK any, SRAMECC any (LLVM's AMDGPU usage guide, code object V5).
    assert_eq!((elf.header.e_machine, elf.header.e_flags), (224, 0x54C));
    let name_of = |symbol: &goblin::elf::Sym| elf.dynstrtab.get_at(symbol.st_name).unwrap_or("");
    let kernels: Vec<_> = elf
        .dynsyms
        .iter()
        .filter(|s| name_of(s).ends_with(".kd"))
        .collect();
    assert_eq!(kernels.len(), 2);
    for kernel in kernels {
        let holds = |range: std::ops::Range<usize>| range.contains(&(kernel.st_value as usize));
        let segment = elf
            .program_headers
            .iter()
            .find(|s| holds(s.vm_range()))
            .unwrap();
        let at = (kernel.st_value - segment.p_vaddr + segment.p_offset) as usize;
        let word = |i: usize| u32::from_le_bytes(*GFX942[at + 4 * i..].first_chunk().unwrap());
        // Bytes of LDS, of scratch, of arguments: two pointers and nothing hidden.
        let [lds, scratch, arguments] = [word(0), word(1), word(2)];
        assert!(lds <= 16 << 10, "{}: {lds}", name_of(&kernel));
        assert_eq!((scratch, arguments), (0, 16), "{}", name_of(&kernel));
    }
    assert!(SM_90.contains(".target sm_90") && SM_90.ends_with('\0'));
    for line in SM_90.lines().map(str::trim) {
        let outside = ["call", ".extern .func", ".local"];
        assert!(!outside.iter().any(|word| line.starts_with(word)), "{line}");
    }
}

#[test]
fn an_untouched_case_is_intact_and_unwritten() {
    let Some(snapshot) = both(&packed(500), 2000, 16, Run::First, &[]) else {
        return;
    };
    assert!(snapshot.is_intact());
    let output = snapshot.buffer(Y).unwrap();
    assert_eq!((output.unwritten, output.first_unwritten), (500, Some(0)));
}

#[test]
fn writes_past_either_end_are_counted_to_the_byte() {
    for count in [1, 16, 4096] {
        for uid in [X, Y, WORKSPACE_UID] {
            let size = match uid {
                X => INPUT as i64,
                Y => 2000,
                _ => WORKSPACE.0 as i64,
            };
            let pokes = [(uid, size, count), (uid, -(count as i64), count)];
            let Some(snapshot) = both(&packed(500), 2000, 16, Run::First, &pokes) else {
                return;
            };
            let hurt = match uid {
                WORKSPACE_UID => snapshot.workspace.as_ref().unwrap(),
                _ => snapshot.buffer(uid).unwrap(),
            };
            let after = hurt.canary_after.as_ref().unwrap();
            let place = (after.first, after.last, after.count);
            assert_eq!(place, (size, size + count as i64 - 1, count as u64));
            let before = hurt.canary_before.as_ref().unwrap();
            let place = (before.first, before.last, before.count);
            assert_eq!(place, (-(count as i64), -1, count as u64));
            assert!(snapshot.notes.is_empty(), "{:?}", snapshot.notes);
        }
    }
}

#[test]
fn gaps_and_inputs_and_single_elements_are_found() {
    // Rows of three in a stride of five: elements 3 and 4 of each are gaps.
    let strided = view(Element::F32, &[4, 3], &[5, 1]);
    let pokes = [(Y, 12, 2), (Y, 20, 4), (X, 1002, 1)];
    let Some(snapshot) = both(&strided, 4 * 19, 4, Run::Second, &pokes) else {
        return;
    };
    let output = snapshot.buffer(Y).unwrap();
    let gaps = output.gaps.as_ref().unwrap();
    assert_eq!((gaps.first, gaps.last, gaps.count), (12, 13, 2));
    assert_eq!((output.unwritten, output.first_unwritten), (11, Some(0)));
    let changed = snapshot.buffer(X).unwrap().changed.as_ref().unwrap();
    assert_eq!((changed.first, changed.count), (1002, 1));
}

#[test]
fn what_the_device_fills_is_what_the_arena_holds() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut backend) = open() else {
        return;
    };
    for (element, align) in [
        (Element::F32, 4),
        (Element::F16, 2),
        (Element::Sentinel(1), 1),
    ] {
        let size = 777 * u64::from(element.size());
        let arena = arena(&ElementView::packed(element, 777), size, align, Run::First);
        let map = map(&arena, &backend);
        let placed = place(&mut backend, &arena, &map);
        for (slot, (_, at)) in map.layout().slots.iter().zip(&placed) {
            let before = (slot.bytes.start - slot.region.start) as usize;
            let len = (slot.region.end - slot.region.start) as usize;
            // SAFETY: the mock's device memory of this slot, which nobody writes.
            let region = unsafe { std::slice::from_raw_parts(at.sub(before), len) };
            if slot.spec.role == Role::Workspace {
                let body = &region[before..before + slot.spec.size as usize];
                assert!(body.iter().all(|byte| *byte == 0xFF));
            } else {
                assert!(map.region_equals(slot, region), "{element:?}");
            }
        }
        backend.release().unwrap();
    }
}

#[test]
fn an_output_that_changes_while_the_stream_is_held_was_overtaken() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut backend) = open() else {
        return;
    };
    for (pokes, expected) in [
        (vec![], Held::InOrder),
        (vec![(Y, 1996, 4)], Held::Overtaken { uid: Y }),
        (vec![(Y, 2000, 1)], Held::Overtaken { uid: Y }),
    ] {
        let arena = arena(&packed(500), 2000, 16, Run::First);
        let map = map(&arena, &backend);
        let placed = place(&mut backend, &arena, &map);
        assert!(backend.hold().unwrap());
        invert(&placed, &pokes);
        assert_eq!(backend.let_go(&map).unwrap(), expected);
        backend.synchronize().unwrap();
        backend.release().unwrap();
    }
}

/// Views of every kind, with the bytes of their buffers.
fn views() -> impl Strategy<Value = (ElementView, u64)> {
    let element = prop::sample::select(vec![
        Element::F64,
        Element::F32,
        Element::F16,
        Element::Bf16,
        Element::Sentinel(1),
        Element::Sentinel(8),
    ]);
    let shape = prop::collection::vec((1i64..5, 0i64..3), 1..5);
    (element, shape, any::<bool>(), 0u64..20).prop_map(|(element, shape, turned, tail)| {
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        if turned {
            axes.reverse();
        }
        // Strides in the order of `axes`, each with some room; an axis may have none at all, so
        // that its elements share a place.
        let (mut strides, mut next) = (vec![0; shape.len()], 1);
        for &axis in axes.iter().rev() {
            let (dim, room) = shape[axis];
            strides[axis] = if room == 2 && tail == 0 { 0 } else { next };
            next += (dim - 1) * next + i64::from(room == 1);
        }
        let dims: Vec<i64> = shape.iter().map(|axis| axis.0).collect();
        let last: i64 = dims.iter().zip(&strides).map(|(d, s)| (d - 1) * s).sum();
        let size = (last as u64 + 1) * u64::from(element.size()) + tail;
        (view(element, &dims, &strides), size)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_device_and_the_copies_say_the_same(
        (view, size) in views(),
        align in prop::sample::select(vec![1u64, 2, 4, 16, 256]),
        second in any::<bool>(),
        pokes in prop::collection::vec((any::<bool>(), any::<u16>(), 1usize..40), 0..4),
    ) {
        let align = align.max(u64::from(view.element.size()).min(4));
        let pokes: Vec<Poke> = pokes.into_iter().map(|(input, at, count)| {
            let (uid, len) = if input { (X, INPUT) } else { (Y, size) };
            (uid, i64::from(at) % (len as i64 + 128) - 64, count)
        }).collect();
        let run = if second { Run::Second } else { Run::First };
        both(&view, size, align, run, &pokes);
    }
}
