//! The policy that a project writes, and the baseline that is written for it.

use std::fs;

use dnn_assay::exit::Exit;
use rstest::rstest;

use crate::plugins::{path, plain, with_helper, write};
use crate::support::run;

#[rstest]
#[case("exports:\n  alow: [helper]\n", &["policy.yaml:2:3", "alow", "did you mean `allow`"])]
#[case("severities:\n  export/unlsited: off\n", &["policy.yaml:2:3", "did you mean `export/unlisted`"])]
#[case("exceptions:\n  - {rule: export/std, reason: x, expires: 2026-02-30}\n", &["policy.yaml:2:", "no date"])]
#[case("exceptions:\n  - {rule: export/std}\n", &["policy.yaml:2:", "reason"])]
fn a_mistake_is_shown_with_its_line(#[case] text: &str, #[case] parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    fs::write(&policy, text).unwrap();
    let arguments = ["inspect", "--policy", policy.to_str().unwrap()];
    run(&[&arguments[..], &[plain().to_str().unwrap()]].concat()).expect(Exit::Usage, parts);
}

#[test]
fn an_exception_holds_until_its_last_day() {
    let plugin = with_helper("waived", "waived_helper", 7);
    let ran = |expires: &str| {
        let text = format!(
            "exceptions:\n  - rule: export/unlisted\n    subject: waived_*\n    \
             reason: hidden in the next release\n    expires: {expires}\n"
        );
        let policy = write(&format!("until-{expires}.yaml"), text);
        let arguments = ["inspect", "--policy", policy.to_str().unwrap()];
        run(&[&arguments[..], &[plugin.to_str().unwrap()]].concat())
    };
    ran("2999-12-31").expect(
        Exit::Ok,
        &[
            "accepted export/unlisted",
            "hidden in the next release",
            "until 2999-12-31",
        ],
    );
    ran("2020-01-31").expect(
        Exit::Failed,
        &[
            "policy/expired-exception",
            "export/unlisted",
            "waived_helper",
        ],
    );
}

#[test]
fn severities_and_allow_lists_change_what_is_red() {
    let plugin = with_helper("allowed", "vendor_helper", 8);
    for text in [
        "exports:\n  allow: ['vendor_*']\n",
        "severities:\n  export/unlisted: info\n",
        "severities:\n  export/unlisted: off\n",
    ] {
        let policy = write("allowing.yaml", text);
        let arguments = ["inspect", "--policy", policy.to_str().unwrap()];
        run(&[&arguments[..], &[plugin.to_str().unwrap()]].concat()).expect(Exit::Ok, &[]);
    }
}

/// Written, given back, nothing counts; then something new counts.
#[test]
fn a_baseline_accepts_what_was_there_and_nothing_else() {
    let plugin = with_helper("baseline", "known_helper", 9);
    let policy = path("baseline.yaml");
    let (plugin, policy_text) = (plugin.to_str().unwrap(), policy.to_str().unwrap());
    run(&["inspect", plugin, "--write-baseline", policy_text]).expect(Exit::Ok, &[]);
    let written = fs::read_to_string(&policy).unwrap();
    assert!(
        written.contains("known_helper") && written.contains("export/unlisted"),
        "{written}"
    );
    run(&["inspect", plugin, "--policy", policy_text]).expect(Exit::Ok, &["accepted"]);
    let newer = with_helper("newer", "new_helper", 10);
    run(&["inspect", newer.to_str().unwrap(), "--policy", policy_text])
        .expect(Exit::Failed, &["new_helper"]);
    // The file that was given is not written over.
    run(&[
        "inspect",
        plugin,
        "--policy",
        policy_text,
        "--write-baseline",
        policy_text,
    ])
    .expect(Exit::Usage, &["--write-baseline would write over"]);
    // A new baseline on top of the old one keeps its exceptions.
    let second = path("second.yaml");
    let arguments = [
        "--policy",
        policy_text,
        "--write-baseline",
        second.to_str().unwrap(),
    ];
    run(&[&["inspect", newer.to_str().unwrap()][..], &arguments[..]].concat())
        .expect(Exit::Ok, &[]);
    let both = fs::read_to_string(second).unwrap();
    assert!(
        both.contains("known_helper") && both.contains("new_helper"),
        "{both}"
    );
}
