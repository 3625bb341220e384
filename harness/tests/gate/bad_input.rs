//! Mistakes: each a clear error and exit code 2.

use std::fs;

use rstest::rstest;

use crate::support::{QUICK, plugin, run};

#[rstest]
#[case::a_typo("schema: 1\npluginz: [x.so]\n", &["dnn-assay.yaml:2", "^", "did you mean `plugins`?"])]
#[case::a_plugin_that_is_missing("schema: 1\nplugins: [nothing.so]\n", &["nothing.so"])]
#[case::a_suite_that_is_missing("schema: 1\nsuites: [smok]\n", &["did you mean `smoke`?"])]
#[case::a_filter_that_cannot_match("schema: 1\nwaive: [{filter: dtpye=f16, expect: fail, reason: r, owner: o, link: l, expires: 2027-01-01}]\n", &["dnn-assay.yaml:2", "did you mean 'dtype'?"])]
#[case::claims_that_are_missing("schema: 1\nclaims: [no.yaml]\n", &["no.yaml"])]
fn configurations(#[case] text: &str, #[case] parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("dnn-assay.yaml"), text).unwrap();
    run(folder.path(), &["check"]).expect(2, parts);
}

#[test]
fn two_configurations() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["dnn-assay.yaml", "dnn-assay.yml"] {
        fs::write(folder.path().join(name), "schema: 1\n").unwrap();
    }
    let ran = run(folder.path(), &["check", "--builtin"]);
    ran.expect(2, &["two configurations", "dnn-assay.yml", "--config"]);
    let ran = run(
        folder.path(),
        &[
            "run",
            "--builtin",
            "--config",
            "dnn-assay.yml",
            "--filter",
            QUICK,
        ],
    );
    ran.expect(0, &[]);
}

#[test]
fn places_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let right = plugin(false).to_str().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for (flag, path) in [
        ("--out", "file/below"),
        ("--junit", "missing/junit.xml"),
        ("--html", "missing/report.html"),
        ("--step-summary", "missing/summary.md"),
    ] {
        run(
            folder.path(),
            &["run", right, "--filter", QUICK, flag, path],
        )
        .expect(2, &[path]);
    }
    run(
        folder.path(),
        &["claims", right, "--write", "missing/c.yaml"],
    )
    .expect(2, &["missing"]);
    run(
        folder.path(),
        &["init", right, "--output", "missing/d.yaml"],
    )
    .expect(2, &["missing/d.yaml"]);
    run(folder.path(), &["run", right, "--expect", "none.yaml"]).expect(2, &["none.yaml"]);
}

#[test]
fn a_filter_that_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    run(
        folder.path(),
        &["check", "--builtin", "--filter", "op=conv dtype=i64"],
    )
    .expect(2, &["takes none"]);
}

#[test]
fn init_on_what_is_no_plugin() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.so"), "text").unwrap();
    run(folder.path(), &["init", "x.so"]).expect(3, &["x.so"]);
    assert!(!folder.path().join("dnn-assay.yaml").exists());
}

#[test]
fn a_waiver_that_has_expired() {
    let folder = tempfile::tempdir().unwrap();
    let right = plugin(false).to_str().unwrap();
    let text = "schema: 1\nwaive:\n  - filter: op=pointwise.mul dtype=f16\n    expect: fail\n    \
                reason: r\n    owner: me\n    link: https://example.org/1\n    expires: 2020-01-01\n";
    fs::write(folder.path().join("w.yaml"), text).unwrap();
    let args = ["run", right, "--filter", QUICK, "--expect", "w.yaml"];
    let said = "the waiver at w.yaml:3 expired on 2020-01-01";
    run(folder.path(), &args).expect(0, &[said, "it is void with --nightly (me, https://"]);
    let nightly = [&args[..], &["--nightly"]].concat();
    run(folder.path(), &nightly).expect(6, &[said, "it is void"]);
}

#[test]
fn a_gate_without_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["check"]).expect(2, &["no plugin", "dnn-assay init PLUGIN"]);
    fs::write(folder.path().join("dnn-assay.yaml"), "schema: 1\n").unwrap();
    run(folder.path(), &["check"]).expect(2, &["no plugin"]);
}
