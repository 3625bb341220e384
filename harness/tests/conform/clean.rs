//! Plugins that keep the contracts have no findings.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dnn_assay::conform::{Level, OutcomeKind};
use libtest_mimic::Trial;

use crate::plugins::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("clean::cpu_plugin", cpu),
        trial("clean::c_example", || nothing_found(c_example(), &[])),
        trial("clean::cpp_example", || nothing_found(cpp_example(), &[])),
        trial("clean::c_example_with_everything", || {
            nothing_found(faulty(), &[]);
        }),
        trial("clean::its_2025_generation", || {
            let old = faulty_with("faulty-2025.so", &["-DNOV2025"]);
            nothing_found(old, &["--wire", "2025-11"]);
        }),
        trial("clean::mutants_without_a_fault", || {
            nothing_found(mutants(), &["--knob-sweep"]);
        }),
        trial("clean::stub", || nothing_required(&stub())),
        trial("clean::stub_2025", || nothing_required(&stub_2025())),
    ]
}

fn cpu() {
    let began = Instant::now();
    let report = check(&[], &[]);
    let found = with(&report, OutcomeKind::Finding);
    assert!(found.is_empty(), "{found:#?}");
    assert!(with(&report, OutcomeKind::Error).is_empty());
    assert_eq!(report.subjects[0].reached(), Some(Level::Informational));
    // 2 s on an idle machine; the limit of the documentation is 10 s.
    assert!(began.elapsed() < Duration::from_secs(60));
}

fn nothing_found(plugin: PathBuf, arguments: &[&str]) {
    let report = check(&[&plugin], arguments);
    assert!(report.subjects[0].refused.is_none(), "{report:#?}");
    let found = with(&report, OutcomeKind::Finding);
    assert!(found.is_empty(), "{found:#?}");
    assert!(with(&report, OutcomeKind::Passed).len() > 40);
}

/// As hipDNN's own test plugins: the workspace differs before and after the plan.
fn nothing_required(plugin: &Path) {
    let report = check(&[plugin], &[]);
    let found = with(&report, OutcomeKind::Finding);
    let ids: Vec<_> = found.iter().map(|result| result.id.as_str()).collect();
    assert!(
        found.iter().all(|result| result.level != Level::Required),
        "{found:#?}"
    );
    assert!(ids.contains(&"workspace/before-and-after"), "{ids:?}");
    assert_eq!(report.subjects[0].reached(), Some(Level::Required));
    assert_eq!(report.exit().code(), 0);
}
