//! init, check, claims, waivers, matrix.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::{QUICK, clean, finish, plugin, run};

#[test]
fn init_writes_a_configuration_that_check_takes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::copy(plugin(false), path.join("libmy_plugin.so")).unwrap();
    let start = Instant::now();
    run(path, &["init", "libmy_plugin.so"]).expect(0, &["wrote dnn-assay.yaml"]);
    // Two seconds on a machine of its own; tests share theirs.
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    let text = fs::read_to_string(path.join("dnn-assay.yaml")).unwrap();
    assert!(
        text.contains("DNN_ASSAY_CPP_EXAMPLE_ENGINE") && text.contains("\"libmy_plugin.so\""),
        "{text}"
    );
    run(path, &["init", "libmy_plugin.so"]).expect(2, &["--force"]);
    let below = path.join("a/b");
    fs::create_dir_all(&below).unwrap();
    let ran = run(&below, &["check", "--filter", QUICK, "--junit", "j.xml"]);
    ran.expect(0, &["named in", "conform", "inspect", "as expected"]);
    let xml = fs::read_to_string(below.join("j.xml")).unwrap();
    assert!(roxmltree::Document::parse(&xml).is_ok());
    // Flags beat the file.
    run(&below, &["run", "--builtin", "--filter", QUICK]).expect(0, &["--builtin"]);
}

#[test]
fn a_waiver_makes_a_red_gate_green_and_its_expiry_red_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let faulty = plugin(true).to_str().unwrap();
    let red = run(path, &["run", faulty, "--filter", QUICK]);
    red.expect(
        1,
        &[
            "first failure",
            "fail(numeric)",
            "a waiver, to complete and paste",
            "dnn-assay run",
        ],
    );
    let entry = |expires: &str| {
        format!(
            "schema: 1\nwaive:\n  - filter: op=pointwise.add dtype=f32\n    engine: DNN_ASSAY_CPP_*\n    expect: fail\n    reason: it subtracts\n    owner: me\n    link: https://example.org/1\n    expires: {expires}\n"
        )
    };
    fs::write(path.join("w.yaml"), entry("2999-12-31")).unwrap();
    let args = ["run", faulty, "--filter", QUICK, "--expect", "w.yaml"];
    run(path, &args).expect(0, &["expected-fail", "as expected"]);
    fs::write(path.join("w.yaml"), entry("2020-01-01")).unwrap();
    run(path, &args).expect(0, &["w.yaml:3 expired on 2020-01-01"]);
    let nightly = [&args[..], &["--nightly"]].concat();
    run(path, &nightly).expect(1, &["fail(numeric)", "expired on 2020-01-01"]);
    // Against a plugin that is right, the entry is wrong.
    fs::write(path.join("w.yaml"), entry("2999-12-31")).unwrap();
    let right = plugin(false).to_str().unwrap();
    run(
        path,
        &["run", right, "--filter", QUICK, "--expect", "w.yaml"],
    )
    .expect(1, &["unexpected-pass"]);
}

#[test]
fn a_claim_holds_a_plugin_to_what_it_once_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let right = plugin(false).to_str().unwrap();
    run(
        path,
        &["claims", right, "--filter", QUICK, "--write", "c.yaml"],
    )
    .expect(0, &[]);
    let claims = fs::read_to_string(path.join("c.yaml")).unwrap();
    assert!(
        claims.contains("arch: \"host\"") && claims.contains("- pointwise.add/f32/"),
        "{claims}"
    );
    run(
        path,
        &["run", right, "--filter", QUICK, "--claims", "c.yaml"],
    )
    .expect(0, &[]);
    // It never took f16.
    let more = claims.replace(
        "cases:\n",
        "filters: [op=pointwise.add dtype=f16]\n    cases:\n",
    );
    fs::write(path.join("d.yaml"), more).unwrap();
    let ran = run(
        path,
        &[
            "run",
            right,
            "--filter",
            "op=pointwise.add dtype=f16",
            "--claims",
            "d.yaml",
        ],
    );
    ran.expect(1, &["fail(over-claim)", "claimed at d.yaml:"]);
    let gone = claims.replace("CPP_EXAMPLE", "GONE");
    fs::write(path.join("e.yaml"), gone).unwrap();
    let ran = run(
        path,
        &["run", right, "--filter", QUICK, "--claims", "e.yaml"],
    );
    ran.expect(
        2,
        &[
            "DNN_ASSAY_GONE_ENGINE",
            "e.yaml:",
            "DNN_ASSAY_CPP_EXAMPLE_ENGINE",
        ],
    );
}

#[test]
fn the_matrix_in_three_forms() {
    let folder = tempfile::tempdir().unwrap();
    let right = plugin(false).to_str().unwrap();
    let form = |name: &str| {
        let ran = run(
            folder.path(),
            &[
                "matrix",
                right,
                "--until",
                "applicable",
                "--format",
                name,
                "--filter",
                "op=pointwise.add",
            ],
        );
        ran.expect(0, &["pointwise.add"]);
        ran.text
    };
    let json: serde_json::Value = serde_json::from_str(form("json").trim()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let cell = |dtype: &str, layout: &str| {
        let row = rows
            .iter()
            .find(|row| row["dtype"] == dtype && row["layout"] == layout)
            .unwrap();
        row["engines"]["DNN_ASSAY_CPP_EXAMPLE_ENGINE"].clone()
    };
    assert!(cell("f32", "nchw")["accepted"].as_u64() > Some(0));
    assert_eq!(cell("f16", "nchw")["accepted"], 0);
    assert!(form("table").contains("declined"));
    assert!(form("markdown").contains("| pointwise.add | f32 | nchw |"));
}

#[test]
fn the_help_has_two_groups_and_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["--help"]);
    ran.expect(0, &["Everyday:", "More:", "Exit codes:"]);
    let (everyday, more) = ran.text.split_once("More:").unwrap();
    for name in ["check", "run", "list", "explain", "report", "init"] {
        assert!(
            everyday.contains(&format!("\n  {name} ")),
            "{name}\n{}",
            ran.text
        );
    }
    for name in ["claims", "matrix", "schema", "completions", "man"] {
        assert!(
            more.contains(&format!("\n  {name} ")),
            "{name}\n{}",
            ran.text
        );
    }
}

#[test]
fn a_summary_for_github_stays_small_and_names_ten() {
    let folder = tempfile::tempdir().unwrap();
    let faulty = plugin(true).to_str().unwrap();
    let summary = folder.path().join("summary.md");
    fs::write(&summary, "before\n").unwrap();
    let ran = finish(
        clean(crate::support::PROGRAM, folder.path())
            .env("GITHUB_STEP_SUMMARY", &summary)
            .args(["run", faulty, "--filter", "op=pointwise.add"]),
    );
    assert_eq!(ran.code, Some(1), "{}", ran.text);
    let text = fs::read_to_string(&summary).unwrap();
    assert!(
        text.starts_with("before\n") && text.contains("## ❌ DNN Assay: exit 1"),
        "{text}"
    );
    assert!(text.len() <= dnn_assay::report::MOST_BYTES + 7);
    let annotations = ran
        .text
        .lines()
        .filter(|line| line.starts_with("::error "))
        .count();
    assert!(
        (1..=dnn_assay::report::MOST_ANNOTATIONS).contains(&annotations),
        "{annotations}"
    );
    assert!(ran.text.contains("::error file=smoke/"), "{}", ran.text);
}

#[test]
fn a_finding_is_waived_like_a_case() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let open = crate::support::open_plugin().to_str().unwrap();
    let args = ["check", open, "--filter", QUICK];
    let red = run(path, &args);
    red.expect(
        1,
        &[
            "finding",
            "a waiver, to complete and paste",
            "- finding: inspect/",
        ],
    );
    let xml = fs::read_to_string(path.join("dnn-assay-out/junit.xml")).unwrap();
    assert!(xml.contains("- finding: inspect/export/"), "{xml}");
    // Every finding has its rule in the JUnit file.
    let document = roxmltree::Document::parse(&xml).unwrap();
    let cases = document
        .descendants()
        .filter(|n| n.has_tag_name("testcase"));
    let failed = cases.filter(|n| n.attribute("classname") == Some("check"));
    let mut rules: Vec<&str> = failed
        .filter_map(|n| n.attribute("name")?.split(' ').next())
        .collect();
    rules.dedup();
    let entry = |rule: &str| {
        format!(
            "  - {{finding: {rule}, expect: finding, reason: r, owner: o, link: l, expires: 2999-12-31}}\n"
        )
    };
    let all: String = rules.iter().map(|rule| entry(rule)).collect();
    fs::write(path.join("w.yaml"), format!("schema: 1\nwaive:\n{all}")).unwrap();
    let waived = [&args[..], &["--expect", "w.yaml"]].concat();
    run(path, &waived).expect(0, &["waived at w.yaml:3", "as expected"]);
    // Against a plugin without the finding the entry is wrong.
    let right = plugin(false).to_str().unwrap();
    let ran = run(
        path,
        &["check", right, "--filter", QUICK, "--expect", "w.yaml"],
    );
    ran.expect(1, &["unexpected pass", "w.yaml:3"]);
}

#[test]
fn hipdnns_own_configuration_changes_the_criterion_and_the_run_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let faulty = plugin(true).to_str().unwrap();
    let text = "[meta]\nversion = 1\n\n[[tolerance_overrides]]\nfilters = ['pointwise.add/*']\n\
                atol = 10.0\nrtol = 0.0\n\n[[validator_overrides]]\n\
                filters = ['pointwise.mul/*']\nvalidator = 'rms'\nrms_threshold = 1e-5\n";
    fs::write(path.join("engine.toml"), text).unwrap();
    // A table of tolerances has no place for infinities.
    let filter = format!("{QUICK} fill=uni");
    let args = [
        "run",
        faulty,
        "--filter",
        &filter,
        "--expect",
        "engine.toml",
    ];
    // So loose a tolerance accepts decoys too: the cases are weak and count for nothing.
    run(path, &args).expect(
        0,
        &[
            "weak",
            "the tolerance override at engine.toml:4 judged",
            "the validator override at engine.toml:9 judged",
        ],
    );
    let strict = text.replace("10.0", "1e-6");
    fs::write(path.join("engine.toml"), strict).unwrap();
    run(path, &args).expect(
        1,
        &[
            "table: the worst error",
            "because of engine.toml:4",
            "--expect engine.toml",
        ],
    );
    // The same file says nothing of other cases.
    fs::write(
        path.join("engine.toml"),
        text.replace("pointwise.", "Pointwise"),
    )
    .unwrap();
    run(path, &args).expect(1, &["bound: the worst error"]);
}

#[test]
fn a_ragged_image_is_declined_or_right_and_never_taken_for_a_packed_one() {
    let folder = tempfile::tempdir().unwrap();
    let filter = "op=conv.fprop dtype=f32 layout=nchw ~ragged";
    let right = plugin(false).to_str().unwrap();
    let args = |plugin: &str| {
        run(
            folder.path(),
            &["run", plugin, "--filter", filter, "--min-verified", "0"],
        )
    };
    args(right).expect(0, &["1 unsupported"]);
    // The field that says ragged is not looked at.
    let blind = crate::support::source(false).replace(" && !tensor.has(9)", "");
    assert_ne!(blind, crate::support::source(false));
    let (_folder, blind) = crate::support::build(&blind, true);
    args(blind.to_str().unwrap()).expect(1, &["fail(over-claim)", "could have declined"]);
}
