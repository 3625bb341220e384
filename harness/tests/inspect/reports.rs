//! What is found, and how it is told.

use std::collections::BTreeSet;

use dnn_assay::exit::Exit;
use dnn_assay::plan::{BUILTIN_CPU, built_in_file};
use roxmltree::{Document, Node};

use crate::plugins::{as_told, compile, plain, scripted, with_helper};
use crate::support::run;

/// The first two lines below the verdict say what to write and with what to link.
#[test]
fn a_plain_cxx_plugin_is_told_what_to_do_first() {
    let ran = run(&["inspect", plain().to_str().unwrap()]);
    ran.expect(Exit::Failed, &["export/std", "loads   yes"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].contains("plain.so: ") && lines[0].contains(" errors"));
    assert!(lines[1].trim_start().starts_with("do 1"), "{}", lines[1]);
    for part in [
        "exports.map",
        "{ global: hipdnn*; local: *; };",
        "-Wl,--version-script=exports.map",
    ] {
        assert!(lines[1].contains(part), "{part} is missing: {}", lines[1]);
    }
    assert!(lines[2].contains("ends ") && lines[2].contains("export/std"));
    // Mangled names are for linkers.
    assert!(ran.out.contains("std::") && !lines[..4].join("").contains("_ZN"));
}

/// Doing as the first line says ends every error.
#[test]
fn what_the_first_line_says_works() {
    let path = as_told("{ global: hipdnn*; local: *; };");
    let ran = run(&["inspect", path.to_str().unwrap()]);
    ran.expect(Exit::Ok, &["no error"]);
    assert!(!ran.out.contains("do 1") && !ran.out.contains("warning"));
}

#[test]
fn a_plugin_with_a_version_script_has_no_finding() {
    let ran = run(&["inspect", scripted().to_str().unwrap()]);
    ran.expect(Exit::Ok, &["exit 0: no error"]);
    assert!(
        !ran.out.contains("ERROR") && !ran.out.contains("warning"),
        "{}",
        ran.out
    );
}

#[test]
fn two_plugins_with_one_helper_collide() {
    let first = with_helper("first", "shared_helper", 1);
    let second = with_helper("second", "shared_helper", 222);
    let files = [first.to_str().unwrap(), second.to_str().unwrap()];
    let ran = run(&["inspect", files[0], files[1]]);
    ran.expect(
        Exit::Failed,
        &[
            "first.so beside ",
            "pair/export-collision",
            "shared_helper",
            "do 1",
        ],
    );
    let third = with_helper("third", "another_helper", 3);
    let ran = run(&["inspect", files[0], third.to_str().unwrap()]);
    assert!(!ran.out.contains("ERROR    pair/"), "{}", ran.out);
}

#[test]
fn the_same_file_under_two_paths_is_named() {
    let link = crate::plugins::path("link.so");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(scripted(), &link).unwrap();
    run(&[
        "inspect",
        scripted().to_str().unwrap(),
        link.to_str().unwrap(),
    ])
    .expect(Exit::Failed, &["pair/same-file", "lead to one file"]);
}

#[test]
fn json_holds_rules_findings_and_the_exit_code() {
    let ran = run(&["inspect", "--format", "json", plain().to_str().unwrap()]);
    ran.expect(Exit::Failed, &[]);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["exit"], 1);
    let file = &document["files"][0];
    assert_eq!(file["facts"]["prediction"]["loads"], true);
    let findings = file["findings"].as_array().unwrap();
    let std = findings.iter().find(|f| f["rule"] == "export/std").unwrap();
    assert!(
        std["subject"]["demangled"]
            .as_str()
            .unwrap()
            .contains("std::")
    );
    assert!(std["command"].as_str().unwrap().starts_with("nm -DC"));
    let outcomes = file["outcomes"].as_array().unwrap();
    assert!(outcomes.iter().any(|o| o["rule"] == "load/textrel"));
}

/// What strict readers ask of a JUnit file: counts that are right, names that are unique, one
/// case for each rule.
#[test]
fn junit_has_a_case_for_every_rule_and_counts_that_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("junit.xml");
    let files = [plain(), scripted()];
    let files = [&files[0], &files[1]].map(|p| p.to_str().unwrap());
    let arguments = ["inspect", "--junit", path.to_str().unwrap()];
    run(&[&arguments[..], &files[..]].concat()).expect(Exit::Failed, &[]);
    let xml = std::fs::read_to_string(&path).unwrap();
    let document = Document::parse(&xml).unwrap();
    let suites: Vec<Node<'_, '_>> = of(document.root_element(), "testsuite");
    assert_eq!(suites.len(), 3, "two files and one pair");
    let rules: serde_json::Value =
        serde_json::from_str(&run(&["inspect", "--list", "--format", "json"]).out).unwrap();
    let rules = rules.as_array().unwrap();
    let of_pairs = |rule: &&serde_json::Value| rule["id"].as_str().unwrap().starts_with("pair/");
    let pairs = rules.iter().filter(of_pairs).count();
    let expected = [rules.len() - pairs, rules.len() - pairs, pairs];
    for (suite, expected) in suites.iter().zip(expected) {
        let cases = of(*suite, "testcase");
        assert_eq!(cases.len(), expected);
        let name = |case: &Node<'_, '_>| {
            let of = |attribute| case.attribute(attribute).unwrap().to_owned();
            (of("classname"), of("name"))
        };
        let names: BTreeSet<_> = cases.iter().map(name).collect();
        assert_eq!(names.len(), cases.len(), "a name stands twice");
        for (attribute, child) in [
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ] {
            let counted = cases.iter().filter(|c| !of(**c, child).is_empty()).count();
            if let Some(said) = suite.attribute(attribute) {
                assert_eq!(said, counted.to_string(), "{attribute}");
            }
        }
        assert_eq!(
            suite.attribute("tests"),
            Some(cases.len().to_string().as_str())
        );
    }
    let failed = of(suites[0], "failure");
    assert!(failed.iter().any(|f| {
        f.text()
            .unwrap_or_default()
            .contains("fix: write a file exports.map")
    }));
}

fn of<'a, 'b>(node: Node<'a, 'b>, tag: &str) -> Vec<Node<'a, 'b>> {
    node.descendants().filter(|n| n.has_tag_name(tag)).collect()
}

#[test]
fn folders_mean_every_plugin_in_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(scripted(), folder.path().join("one.so")).unwrap();
    std::fs::copy(scripted(), folder.path().join("two.so")).unwrap();
    std::fs::write(folder.path().join("README"), "text").unwrap();
    run(&["inspect", folder.path().to_str().unwrap()]).expect(
        Exit::Failed,
        &["one.so: ", "two.so: ", "have the same content"],
    );
}

/// What the documentation counts as files without a fault, as far as they are plugins of this
/// repository.
#[test]
fn plugins_of_this_repository_have_no_finding() {
    let builtin = built_in_file(BUILTIN_CPU).unwrap();
    let source = "{}/plugins-under-test/c-example/c_plugin.c";
    let flags = format!("-std=c11 -O2 -fPIC -shared -fvisibility=hidden {source}");
    let example = compile("cc", "c_plugin.so", &flags);
    for plugin in [builtin, example, scripted()] {
        let ran = run(&["inspect", plugin.to_str().unwrap()]);
        ran.expect(Exit::Ok, &["exit 0: no error"]);
        let quiet = !ran.out.contains("ERROR") && !ran.out.contains("warning");
        assert!(quiet, "{}", ran.out);
    }
}
