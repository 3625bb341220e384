//! Accesses outside of buffers, and writes where none belong.

use dnn_assay::worker::{CaseOutcome, CaseResult, Exit, GuardHit, Phase, Worker};
use dnn_assay_device::{
    BufferSpec, Element, ElementView, Placement, Role, Run, Snapshot, WORKSPACE_UID,
};
use libtest_mimic::Trial;

use crate::mock::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("memory::guard_faults", guards),
        trial("memory::reads_past_the_end_fault", reads),
        trial("memory::canaries", canaries),
        trial("memory::workspace", workspace),
        trial("memory::changed_input", changed_input),
        trial("memory::unwritten_output", unwritten),
        trial("memory::written_gaps", gaps),
    ]
}

fn run_with(fault: &str, bytes: u64, placement: Placement) -> (Worker, CaseOutcome) {
    let mut worker = loaded(fault);
    prepare(&mut worker, bytes, placement);
    worker.begin(request(bytes));
    let outcome = worker.finish();
    (worker, outcome)
}

fn intact_but(fault: &str, bytes: u64, placement: Placement) -> Snapshot {
    let (worker, outcome) = run_with(fault, bytes, placement);
    assert_eq!(outcome.result, CaseResult::Ok, "{fault}");
    let snapshot = worker.snapshot(&outcome, 256).unwrap();
    assert!(!snapshot.is_intact(), "{fault}");
    snapshot
}

/// One byte past a flush end, one before a start, and thousands: each faults at its buffer.
fn guards() {
    for (fault, placement, offset) in [
        ("past-end-1", Placement::End, 64),
        ("past-end-far", Placement::End, 5064),
        ("past-end-far", Placement::Start, 5064),
        ("before-start-1", Placement::Start, -1),
        ("before-start-far", Placement::Start, -5000),
        ("before-start-far", Placement::End, -5000),
    ] {
        let (worker, outcome) = run_with(fault, 64, placement);
        let hit = GuardHit {
            uid: OUT,
            offset,
            size: 64,
        };
        let snapshot = worker.snapshot(&outcome, 256).unwrap();
        let crash = crash(outcome.result);
        assert_eq!(
            (crash.exit, crash.phase),
            (Exit::Signal(11), Phase::Execute),
            "{fault}"
        );
        assert_eq!(crash.guard, Some(hit), "{fault} {placement:?}");
        assert_eq!(hit.is_before(), offset < 0);
        assert!(snapshot.is_intact());
    }
}

fn reads() {
    let (_, outcome) = run_with("read-past-end", 4096, Placement::End);
    let hit = crash(outcome.result).guard.unwrap();
    assert_eq!((hit.uid, hit.offset), (IN, 8192));
}

fn canaries() {
    let snapshot = intact_but("past-end-1", 68, Placement::End);
    let after = snapshot.buffer(OUT).unwrap().canary_after.clone().unwrap();
    assert_eq!((after.first, after.count), (68, 1));

    let snapshot = intact_but("past-end-1", 64, Placement::Start);
    let after = snapshot.buffer(OUT).unwrap().canary_after.clone().unwrap();
    assert_eq!((after.first, after.count), (64, 1));

    let snapshot = intact_but("before-start-1", 64, Placement::End);
    let before = snapshot.buffer(OUT).unwrap().canary_before.clone().unwrap();
    assert_eq!((before.first, before.last), (-1, -1));
}

fn workspace() {
    let (_, outcome) = run_with("workspace-past-end-far", 64, Placement::End);
    let hit = crash(outcome.result).guard.unwrap();
    assert_eq!((hit.uid, hit.offset, hit.size), (WORKSPACE_UID, 6000, 1000));

    let snapshot = intact_but("workspace-past-end-1", 64, Placement::End);
    let workspace = snapshot.workspace.unwrap();
    assert_eq!(workspace.canary_after.unwrap().first, 1000);
    assert!(workspace.canary_before.is_none());
    assert!(snapshot.buffers.iter().all(|buffer| buffer.is_intact()));
}

fn changed_input() {
    let snapshot = intact_but("change-input", 64, Placement::End);
    let changed = snapshot.buffer(IN).unwrap().changed.clone().unwrap();
    assert_eq!(
        (changed.first, changed.count, changed.found),
        (63, 1, vec![62])
    );
}

fn unwritten() {
    for run in [Run::First, Run::Second] {
        let mut worker = loaded("write-half");
        prepare(&mut worker, 64, Placement::End);
        let view = ElementView::packed(Element::F32, 16);
        worker.arena_mut().poison(OUT, view, run).unwrap();
        worker.begin(request(64));
        let outcome = worker.finish();
        let snapshot = worker.snapshot(&outcome, 256).unwrap();
        assert!(snapshot.is_intact());
        let output = snapshot.buffer(OUT).unwrap();
        assert_eq!((output.unwritten, output.first_unwritten), (8, Some(8)));
    }
    let (worker, outcome) = run_with("write-nothing", 64, Placement::End);
    let snapshot = worker.snapshot(&outcome, 256).unwrap();
    assert_eq!(snapshot.buffer(OUT).unwrap().unwritten, 16);
}

/// The mock copies the whole buffer; with a strided view that writes the gaps too.
fn gaps() {
    let mut worker = loaded("");
    let specs = [
        BufferSpec::new(IN, 64, Role::Input),
        BufferSpec::new(OUT, 64, Role::Output),
    ];
    let view = ElementView {
        element: Element::F32,
        dims: vec![2, 6],
        strides: vec![8, 1],
    };
    let arena = worker.arena_mut();
    arena.prepare(&specs).unwrap();
    arena.write(IN, input(64)).unwrap();
    arena.poison(OUT, view, Run::First).unwrap();
    worker.begin(request(64));
    let outcome = worker.finish();
    let snapshot = worker.snapshot(&outcome, 256).unwrap();
    let output = snapshot.buffer(OUT).unwrap();
    assert_eq!(output.unwritten, 0);
    let gaps = output.gaps.clone().unwrap();
    assert_eq!((gaps.first, gaps.last), (24, 63));
    assert_eq!(gaps.count, 16);
}
