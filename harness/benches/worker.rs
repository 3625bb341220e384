//! What a case costs beyond the plugin's work: begin to finish, with and without the arena.

#![allow(clippy::unwrap_used, reason = "a bench may panic, as tests may")]

#[path = "../tests/worker/mock.rs"]
#[allow(unused, reason = "shared with the tests, which use all of it")]
mod mock;

use divan::Bencher;
use dnn_assay::worker::{CaseResult, Until};
use dnn_assay_device::Placement;

fn main() {
    dnn_assay::worker::worker_entry();
    divan::main();
}

/// Prepare, write, poison, execute (a copy of 64 bytes), check: all of a small case.
#[divan::bench]
fn small_case(bencher: Bencher<'_, '_>) {
    let mut worker = mock::loaded("");
    bencher.bench_local(|| {
        mock::prepare(&mut worker, 64, Placement::End);
        worker.begin(mock::request(64));
        let outcome = worker.finish();
        assert_eq!(outcome.result, CaseResult::Ok);
        worker.snapshot(&outcome, 256).expect("the arena is ours")
    });
}

/// The round trip alone: begin to finish of an executed case.
#[divan::bench]
fn round_trip(bencher: Bencher<'_, '_>) {
    let mut worker = mock::loaded("");
    mock::prepare(&mut worker, 64, Placement::End);
    bencher.bench_local(|| {
        worker.begin(mock::request(64));
        worker.finish()
    });
}

/// The round trip of a question.
#[divan::bench]
fn applicable_only(bencher: Bencher<'_, '_>) {
    let mut worker = mock::loaded("");
    bencher.bench_local(|| {
        let mut request = mock::request(64);
        request.until = Until::Applicable;
        worker.begin(request);
        worker.finish()
    });
}

/// A worker from start to end: spawn, load, shut down.
#[divan::bench]
fn spawn_load_shutdown(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| mock::loaded("").shutdown());
}

/// A mebibyte in and out.
#[divan::bench]
fn mebibyte_case(bencher: Bencher<'_, '_>) {
    let mut worker = mock::loaded("");
    bencher.bench_local(|| {
        mock::prepare(&mut worker, 1 << 20, Placement::End);
        worker.begin(mock::request(1 << 20));
        let outcome = worker.finish();
        assert_eq!(outcome.result, CaseResult::Ok);
        worker.snapshot(&outcome, 256).expect("the arena is ours")
    });
}
