//! Plugins beside each other.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use dnn_assay::conform::{OutcomeKind, PAIR_CHECKS, Report};
use dnn_assay::plan::find_plugins;
use libtest_mimic::Trial;

use crate::plugins::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("pairs::different_plugins", different),
        trial("pairs::copies", copies),
        trial("pairs::one_file", one_file),
        trial("pairs::equal_handles", equal_handles),
        trial("pairs::names_in_other_case", other_case),
        trial("pairs::entry_of_the_other", entry_of_the_other),
        trial("pairs::results_beside_the_other", jealous),
    ]
}

fn pair(first: &Path, second: &Path, arguments: &[&str]) -> Report {
    let mut all = vec!["--check", "pair/*"];
    all.extend(arguments);
    check(&[first, second], &all)
}

fn found(report: &Report) -> Vec<&str> {
    let found = with(report, OutcomeKind::Finding);
    found.iter().map(|result| result.id.as_str()).collect()
}

fn copy(of: &Path, name: &str) -> PathBuf {
    let path = FOLDER.path().join(name);
    fs::copy(of, &path).unwrap();
    path
}

fn different() {
    let builtin = find_plugins(&[], None, true).unwrap().remove(0).path;
    let report = pair(&builtin, &c_example(), &[]);
    let passed = with(&report, OutcomeKind::Passed).len();
    assert_eq!(found(&report), [""; 0], "{report:#?}");
    assert_eq!(passed, PAIR_CHECKS.len());
    assert_eq!(report.exit().code(), 0);
}

fn copies() {
    let other = copy(&c_example(), "copy.so");
    let report = pair(&c_example(), &other, &[]);
    let found = found(&report);
    for id in ["pair/engine-ids", "pair/foreign-handle", "pair/same-file"] {
        assert!(found.contains(&id), "{report:#?}");
    }
    assert!(!found.contains(&"pair/results"), "{report:#?}");
    assert_eq!(report.exit().code(), 1);
}

fn one_file() {
    let link = FOLDER.path().join("link.so");
    symlink(c_example(), &link).unwrap();
    let report = pair(&c_example(), &link, &["--check", "pair/same-file"]);
    let texts = with(&report, OutcomeKind::Finding);
    assert!(texts.iter().any(|result| result.text.contains("one file")));
}

fn equal_handles() {
    let first = faulty();
    let second = copy(&first, "constant.so");
    let fault = ["--env", "DNN_MOCK_FAULT=handle-constant"];
    let report = pair(&first, &second, &fault);
    let handles = with(&report, OutcomeKind::Finding)
        .into_iter()
        .find(|result| result.id == "pair/handles")
        .unwrap_or_else(|| panic!("{report:#?}"));
    let says = "returned a handle that collides with another plugin";
    assert!(handles.text.contains(says), "{}", handles.text);
    assert!(handles.text.contains("-fvisibility=hidden"));
}

fn other_case() {
    let report = pair(
        &c_example(),
        &faulty(),
        &["--env", "DNN_MOCK_FAULT=other-case"],
    );
    assert!(found(&report).contains(&"pair/engine-names"), "{report:#?}");
}

/// A library that lacks an optional function and is linked against one that has it.
fn entry_of_the_other() {
    let first = c_example();
    let arguments = [
        "-std=gnu11",
        "-DNOV2025",
        "-Wl,--no-as-needed",
        first.to_str().unwrap(),
    ];
    let second = build("leaning.so", "cc", "mocks/abi/stub.c", &arguments);
    let report = pair(&second, &first, &[]);
    let entries = with(&report, OutcomeKind::Finding);
    let entries = entries.iter().find(|result| result.id == "pair/entries");
    let text = &entries.unwrap_or_else(|| panic!("{report:#?}")).text;
    assert!(text.contains("c-example.so"), "{text}");
}

fn jealous() {
    let first = faulty();
    let second = cpp_example();
    let copy = copy(&first, "jealous.so");
    let fault = ["--env", "DNN_MOCK_FAULT=jealous"];
    assert!(!found(&pair(&first, &second, &fault)).contains(&"pair/results"));
    let report = pair(&first, &copy, &fault);
    assert!(found(&report).contains(&"pair/results"), "{report:#?}");
}
