//! Two plugins in one process.

#![expect(clippy::unwrap_used, reason = "a test may unwrap")]

mod common;

use common::*;
use dnn_assay_elf::closure::DirectorySource;
use dnn_assay_elf::{PairInspection, Policy, RuleState, inspect_pairs, pairs};
use std::path::PathBuf;
use std::sync::Arc;

fn pair(first: PathBuf, second: PathBuf) -> PairInspection {
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        (path, Arc::new(bytes))
    };
    let files = [read(first), read(second)];
    let policy = Policy::default().ready().unwrap();
    let today = "2026-12-01".parse().unwrap();
    let mut found = inspect_pairs(&files, &DirectorySource, &policy, today).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn hits(inspection: &PairInspection) -> Vec<(&str, usize)> {
    let counting = inspection.outcomes.iter().map(|o| (o.rule, o.counting()));
    counting.filter(|(_, count)| *count > 0).collect()
}

const TEMPLATE: &str = "template <class T> struct Counter { static int value; };
template <class T> int Counter<T>::value = 1;
int *touch() { return &Counter<int>::value; }";

/// A plugin with device code whose only kernel is `kern`, and with the kernel's handle.
fn with_kernel(shop: &Workshop, name: &str) -> PathBuf {
    let kernel = "__asm__(\".globl kern.kd\\n .type kern.kd,@object\\n .data\\n kern.kd: .quad 0\\n .size kern.kd,8\");";
    let mut object = shop.c(kernel, "-nostdlib");
    // A code object is a shared object for machine 224.
    object[18..20].copy_from_slice(&224_u16.to_le_bytes());
    let id = "hipv4-amdgcn-amd-amdhsa--gfx942";
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    for word in [1, 56 + id.len(), object.len(), id.len()] {
        bundle.extend((word as u64).to_le_bytes());
    }
    bundle.extend(id.bytes());
    bundle.extend(object);
    shop.write("fatbin", bundle);
    let own = "__asm__(\".pushsection .hip_fatbin,\\\"a\\\"\\n .balign 4096\\n .incbin \\\"fatbin\\\"\\n .popsection\");
        static void stub(void) {} void *const kern = stub; char __hip_cuid_7;";
    let source = format!("{own}\n{}", engine_source());
    shop.c_file(name, &source, &format!("-Wl,-soname,{name}"))
}

#[test]
fn two_plugins_as_they_should_be_get_along() {
    let shop = Workshop::new();
    let script = shop.version_script();
    let first = shop.c_file("a.so", &engine_source(), "-Wl,-soname,a.so");
    let second = shop.cxx_file(
        "b.so",
        &cxx_engine_source(TEMPLATE),
        &format!("{script} -Wl,-soname,b.so"),
    );
    let found = pair(first, second);
    assert_eq!(hits(&found), []);
    assert_eq!(found.outcomes.len(), pairs::RULES.len());
    let checked = |o: &dnn_assay_elf::RuleOutcome| matches!(o.state, RuleState::Checked { .. });
    assert!(found.outcomes.iter().all(checked));
}

/// A rule with a builder of two files that break it.
type Sample = (&'static str, fn(&Workshop) -> [PathBuf; 2]);

/// What breaks no rule stands above: two plugins as they should be.
const SAMPLES: &[Sample] = &[
    ("pair/same-file", one_file_twice),
    ("pair/export-collision", one_helper),
    ("pair/unique-collision", one_unique_symbol),
    ("pair/same-soname", one_soname),
    ("pair/duplicate-kernel", one_kernel),
];

#[test]
fn every_rule_has_files_that_break_it() {
    let sampled: Vec<_> = SAMPLES.iter().map(|(rule, _)| *rule).collect();
    let all: Vec<_> = pairs::RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(sampled, all);
    for (rule, files) in SAMPLES {
        let shop = Workshop::new();
        let [first, second] = files(&shop);
        let found = pair(first, second);
        assert!(hits(&found).iter().any(|(id, _)| id == rule), "{rule}");
    }
}

fn one_file_twice(shop: &Workshop) -> [PathBuf; 2] {
    let original = shop.c_file("a.so", &engine_source(), "");
    std::fs::copy(&original, shop.path("copy.so")).unwrap();
    [original, shop.path("copy.so")]
}

fn one_helper(shop: &Workshop) -> [PathBuf; 2] {
    let source = format!("int helper(void) {{ return 1; }}\n{}", engine_source());
    let first = shop.c_file("a.so", &source, "");
    let second = shop.c_file("b.so", &source.replace("return 1", "return 22 + 0 * 7"), "");
    [first, second]
}

#[test]
fn a_common_name_is_a_collision() {
    let shop = Workshop::new();
    let [first, second] = one_helper(&shop);
    let found = pair(first, second);
    assert_eq!(hits(&found), [("pair/export-collision", 1)]);
    assert_eq!(found.findings[0].subject.as_ref().unwrap().name, "helper");
}

fn one_unique_symbol(shop: &Workshop) -> [PathBuf; 2] {
    let first = shop.cxx_file("a.so", &cxx_engine_source(TEMPLATE), "");
    let other = TEMPLATE.replace("touch", "reach");
    [first, shop.cxx_file("b.so", &cxx_engine_source(&other), "")]
}

#[test]
fn a_common_unique_symbol_is_worse() {
    let shop = Workshop::new();
    let [first, second] = one_unique_symbol(&shop);
    let found = pair(first, second);
    assert_eq!(hits(&found), [("pair/unique-collision", 1)]);
    let subject = found.findings[0].subject.as_ref().unwrap();
    assert_eq!(subject.demangled.as_deref(), Some("Counter<int>::value"));
}

#[test]
fn a_link_a_copy_and_a_stripped_copy_are_the_same_file() {
    let shop = Workshop::new();
    let original = shop.c_file("a.so", &engine_source(), "-Wl,--build-id=sha1");
    std::os::unix::fs::symlink("a.so", shop.path("link.so")).unwrap();
    std::fs::copy(&original, shop.path("copy.so")).unwrap();
    shop.run("strip", "-o stripped.so a.so");
    for (other, reason) in [
        ("link.so", "lead to one file"),
        ("copy.so", "same content"),
        ("stripped.so", "build id"),
    ] {
        let found = pair(original.clone(), shop.path(other));
        assert_eq!(hits(&found), [("pair/same-file", 1)], "{other}");
        assert!(
            found.findings[0].detail.contains(reason),
            "{}",
            found.findings[0].detail
        );
        assert!(found.first_build_id.is_some());
    }
    let another = shop.c_file("b.so", &engine_source(), "-O2 -Wl,--build-id=sha1");
    assert_eq!(hits(&pair(original, another)), []);
}

fn one_soname(shop: &Workshop) -> [PathBuf; 2] {
    let first = shop.c_file("a.so", &engine_source(), "-Wl,-soname,plugin.so");
    let second = shop.c_file("b.so", &engine_source(), "-O2 -Wl,-soname,plugin.so");
    [first, second]
}

#[test]
fn a_common_soname_is_a_warning() {
    let shop = Workshop::new();
    let [first, second] = one_soname(&shop);
    assert_eq!(hits(&pair(first, second)), [("pair/same-soname", 1)]);
}

fn one_kernel(shop: &Workshop) -> [PathBuf; 2] {
    [with_kernel(shop, "a.so"), with_kernel(shop, "b.so")]
}

#[test]
fn kernels_of_one_name_are_information_and_their_handles_no_collision() {
    let shop = Workshop::new();
    let [first, second] = one_kernel(&shop);
    let found = pair(first, second);
    assert_eq!(hits(&found), [("pair/duplicate-kernel", 1)]);
    assert_eq!(found.findings[0].subject.as_ref().unwrap().name, "kern");
    let plain = shop.c_file("c.so", &engine_source(), "");
    assert_eq!(hits(&pair(with_kernel(&shop, "a.so"), plain)), []);
}

#[test]
fn three_files_make_three_pairs_and_a_foreign_file_is_named() {
    let shop = Workshop::new();
    let policy = Policy::default().ready().unwrap();
    let today = "2026-12-01".parse().unwrap();
    let mut files: Vec<_> = ["-O0", "-O1", "-Os"]
        .iter()
        .enumerate()
        .map(|(index, flags)| {
            let path = shop.c_file(&format!("{index}.so"), &engine_source(), flags);
            let bytes = Arc::new(std::fs::read(&path).unwrap());
            (path, bytes)
        })
        .collect();
    let found = inspect_pairs(&files, &DirectorySource, &policy, today).unwrap();
    let names: Vec<_> = found
        .iter()
        .map(|pair| [&pair.first, &pair.second].map(|p| p.file_stem().unwrap().to_str().unwrap()))
        .collect();
    assert_eq!(names, [["0", "1"], ["0", "2"], ["1", "2"]]);
    files.push((shop.path("notes.txt"), Arc::new(b"text".to_vec())));
    let (path, error) = inspect_pairs(&files, &DirectorySource, &policy, today).unwrap_err();
    assert!(path.ends_with("notes.txt"));
    assert!(error.to_string().contains("text"));
}
