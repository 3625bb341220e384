//! Libraries that everyone loads every day: the rules about loading and importing have nothing to
//! say about them, apart from what is true and listed here with its reason.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::*;
use dnn_assay_elf::{Contract, Policy, Severity};
use std::path::{Path, PathBuf};

/// C libraries of a Debian system.
const LIBRARIES: [&str; 24] = [
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libresolv.so.2",
    "libutil.so.1",
    "libcrypt.so.1",
    "libz.so.1",
    "libbz2.so.1.0",
    "liblzma.so.5",
    "libzstd.so.1",
    "liblz4.so.1",
    "libpcre2-8.so.0",
    "libselinux.so.1",
    "libacl.so.1",
    "libattr.so.1",
    "libcap.so.2",
    "libblkid.so.1",
    "libmount.so.1",
    "libuuid.so.1",
    "libgmp.so.10",
    "libmpfr.so.6",
    "libtinfo.so.6",
    "libgcrypt.so.20",
];

/// True findings, `(library, rule, reason)`.
const TRUE_FINDINGS: &[(&str, &str, &str)] = &[
    (
        "libm.so.6",
        "load/static-tls",
        "errno is read through the static block",
    ),
    (
        "libresolv.so.2",
        "load/static-tls",
        "its state is read through the static block",
    ),
    (
        "librt.so.1",
        "load/nodelete",
        "glibc keeps it for timers that outlive it",
    ),
];

fn find(name: &str) -> Option<PathBuf> {
    let folders = [
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
    ];
    let paths = folders.iter().map(|folder| Path::new(folder).join(name));
    paths.into_iter().find(|path| path.exists())
}

#[test]
fn loading_and_importing_have_no_false_finding() {
    let policy = Policy {
        contract: Contract::Library,
        ..Policy::default()
    };
    let mut inspected = Vec::new();
    let mut unexpected = Vec::new();
    for path in LIBRARIES.iter().filter_map(|name| find(name)) {
        let inspection = inspect_file(&path, &policy);
        assert!(inspection.facts.prediction.loads, "{}", path.display());
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        for finding in &inspection.findings {
            let group = finding.rule.starts_with("load/")
                || finding.rule.starts_with("import/")
                || finding.rule.starts_with("elf/");
            let known = TRUE_FINDINGS
                .iter()
                .any(|(l, r, _)| *l == name && *r == finding.rule);
            if group && finding.severity > Severity::Info && !known {
                unexpected.push((name.clone(), finding.clone()));
            }
        }
        inspected.push(name);
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    if cfg!(target_arch = "x86_64") && Path::new("/etc/debian_version").exists() {
        assert!(inspected.len() >= 20, "only these are there: {inspected:?}");
    }
    println!("{} libraries: {}", inspected.len(), inspected.join(", "));
}
