//! Plugins on device memory: the mock HIP runtime stands in for the GPU.

use std::path::PathBuf;

use dnn_assay::conform::{Level, OutcomeKind};
use dnn_assay::plan::built_in_file;
use libtest_mimic::Trial;

use crate::plugins::*;

pub fn trials() -> Vec<Trial> {
    let kernels = has_kernels(&gfx942());
    let trials = [
        trial("device::every_check_is_made", every_check),
        trial("device::growth_without_the_plugin", growth),
    ];
    let why = "the gfx942 plugin was built without kernels: no clang-19 or ROCm clang here";
    let marked = trials.map(|trial| match kernels {
        true => trial,
        false => trial.with_kind(why).with_ignored_flag(true),
    });
    marked.into()
}

fn gfx942() -> PathBuf {
    built_in_file("libdnn_assay_gfx942_plugin.so").expect("a dev-dependency of these tests")
}

/// Whether its build had a compiler for the device.
fn has_kernels(path: &PathBuf) -> bool {
    let symbol = b"dnn_pointwise.kd";
    std::fs::read(path).is_ok_and(|bytes| bytes.windows(symbol.len()).any(|w| w == symbol))
}

const MOCK: [&str; 2] = ["--device", "mock-hip"];

fn every_check() {
    let report = check(&[&gfx942()], &MOCK);
    let found = with(&report, OutcomeKind::Finding);
    assert!(found.is_empty(), "{found:#?}");
    assert!(with(&report, OutcomeKind::Error).is_empty(), "{report:#?}");
    assert_eq!(report.subjects[0].reached(), Some(Level::Informational));
    let passed = with(&report, OutcomeKind::Passed);
    let ids: Vec<_> = passed.iter().map(|result| result.id.as_str()).collect();
    for executed in [
        "execute/again",
        "execute/other-buffers",
        "thread/two-handles",
        "serialize/round-trip",
    ] {
        assert!(
            ids.contains(&executed),
            "{executed} was not made: {report:#?}"
        );
    }
}

/// What the GPU's library leaves behind by itself is no finding.
fn growth() {
    let report = check(&[&gfx942()], &[&MOCK[..], &["--check", "life/*"]].concat());
    assert_eq!(with(&report, OutcomeKind::Passed).len(), 6, "{report:#?}");
}
