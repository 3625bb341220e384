//! What a run leaves behind.

use std::collections::HashSet;

use crate::support::run;
use dnn_assay::exit::Exit;

#[test]
fn the_core_of_the_smoke_suite_leaves_a_journal_and_a_strict_junit() {
    let ran = run(&[
        "run",
        "--builtin",
        "--filter",
        "tier=core",
        "--junit",
        "extra.xml",
    ]);
    ran.expect(Exit::Ok, &["0 declined", "worst margin", "result"]);
    let junit = ran.file("dnn-assay-out/junit.xml");
    assert_eq!(
        junit,
        ran.file("extra.xml"),
        "both are functions of the journal"
    );
    let document = roxmltree::Document::parse(&junit).unwrap();
    let cases: Vec<_> = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"))
        .map(|node| {
            let get = |name| node.attribute(name).unwrap().to_owned();
            (get("classname"), get("name"))
        })
        .collect();
    assert!(cases.len() >= 250, "{} cases", cases.len());
    let unique: HashSet<_> = cases.iter().collect();
    assert_eq!(unique.len(), cases.len());
    assert!(cases.iter().all(|(class, _)| class.split('.').count() >= 4));
    for part in [
        "seed=1",
        "build-id",
        "libdnn_assay_cpu_plugin.so",
        "DNN_ASSAY_CPU_ENGINE",
    ] {
        assert!(junit.contains(part), "{part}");
    }
}

#[test]
fn the_same_run_gives_the_same_figures() {
    let figures = || {
        let ran = run(&["run", "--builtin", "--filter", "op=conv.fprop tier=core"]);
        let mut lines: Vec<String> = ran
            .file("dnn-assay-out/journal.jsonl")
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|record| record["record"] == "case-end")
            .map(|r| {
                format!(
                    "{} {} {} {}",
                    r["case"], r["verdict"], r["margin"], r["determinism_hash"]
                )
            })
            .collect();
        lines.sort();
        lines
    };
    let first = figures();
    assert!(first.len() > 10);
    assert_eq!(first, figures());
}

#[test]
fn a_report_can_be_written_again_from_the_journal() {
    let ran = run(&["run", "--builtin", "--filter", "op=pointwise.add"]);
    let folder = ran.folder.path().join("dnn-assay-out");
    let again = run(&["report", folder.to_str().unwrap(), "--junit", "again.xml"]);
    again.expect(Exit::Ok, &["verified"]);
    assert_eq!(again.file("again.xml"), ran.file("dnn-assay-out/junit.xml"));
    assert_eq!(
        again.out, ran.out,
        "the terminal report is a function of the journal"
    );
}

#[test]
fn criteria_by_name_judge_the_same_outputs() {
    for criterion in ["bound", "table", "rms"] {
        run(&[
            "run",
            "--builtin",
            "--filter",
            "op=conv.fprop tier=core",
            "--criterion",
            criterion,
        ])
        .expect(Exit::Ok, &["verified"]);
    }
}

#[test]
fn the_commands_that_help_on_are_about_this_run() {
    let one = ["--filter", "op=conv.fprop tier=core dtype=f32"];
    let smoke = [&["run", "--builtin", "--out", "some where"], &one[..]].concat();
    let more = "dnn-assay run --builtin --suite full ";
    run(&smoke).expect(Exit::Ok, &["dnn-assay report 'some where' ", more]);
    let full = [&["run", "--builtin", "--suite", "full"], &one[..]].concat();
    let ran = run(&full);
    ran.expect(
        Exit::Ok,
        &[
            "dnn-assay report dnn-assay-out ",
            "dnn-assay conform --builtin ",
        ],
    );
    assert!(!ran.out.contains(more), "it was just run: {ran:#?}");
}
