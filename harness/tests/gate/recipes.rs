//! The recipes parse, name flags that exist, and the scripts are free of mistakes that a shell sees.

use std::fs;
use std::path::Path;

use crate::support::{PROGRAM, Ran, clean, finish, has, plugin, repository, text_of};

fn yaml(path: &str) -> serde_yaml::Value {
    serde_yaml::from_str(&text_of(path)).unwrap()
}

#[test]
fn the_action_is_a_composite_action() {
    let action = yaml("ci/github/action.yml");
    assert_eq!(action["runs"]["using"], "composite");
    let steps = action["runs"]["steps"].as_sequence().unwrap();
    for step in steps {
        let runs = step.get("run").is_some();
        assert_eq!(
            runs,
            step.get("shell").is_some(),
            "a run step of an action needs a shell: {step:?}"
        );
        assert!(runs != step.get("uses").is_some(), "{step:?}");
    }
    for (name, input) in action["inputs"].as_mapping().unwrap() {
        assert!(
            input.get("description").is_some() && input.get("default").is_some(),
            "{name:?}"
        );
        let used = format!("inputs.{}", name.as_str().unwrap());
        assert!(
            text_of("ci/github/action.yml").contains(&used),
            "{used} is never used"
        );
    }
}

#[test]
fn the_example_matrix_ends_with_a_job_that_misses_what_is_absent() {
    let workflow = yaml("ci/github/matrix-example.yml");
    let jobs = workflow["jobs"].as_mapping().unwrap();
    let last = &workflow["jobs"]["complete"];
    assert_eq!(jobs.len(), 2);
    assert_eq!(last["needs"], "test");
    assert_eq!(last["if"], "always()");
    let script = last["steps"][1]["run"].as_str().unwrap();
    let include = workflow["jobs"]["test"]["strategy"]["matrix"]["include"]
        .as_sequence()
        .unwrap();
    for machine in include {
        let name = machine["name"].as_str().unwrap();
        assert!(script.contains(name), "{name} is not waited for");
    }
}

#[test]
fn gitlab_keeps_the_junit_file_and_tries_the_machines_fault_again_only() {
    let job = &yaml("ci/gitlab-ci.yml")[".dnn-assay"];
    assert_eq!(
        job["artifacts"]["reports"]["junit"],
        "dnn-assay-out/junit.xml"
    );
    assert_eq!(job["retry"]["exit_codes"][0], 5);
    assert_eq!(job["artifacts"]["when"], "always");
}

#[test]
fn flags_in_recipes_exist() {
    let folder = tempfile::tempdir().unwrap();
    let help = crate::support::run(folder.path(), &["check", "--help"]).text;
    for path in [
        "ci/github/action.yml",
        "ci/gitlab-ci.yml",
        "ci/Jenkinsfile",
        "ci/cmake/DnnAssayConfig.cmake",
    ] {
        let text = text_of(path);
        let lines = text
            .lines()
            .filter(|line| line.contains("dnn-assay check") || line.contains("=--"));
        for flag in
            lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-'))
        {
            if flag.starts_with("--") && flag.len() > 2 && flag != "--build" {
                assert!(help.contains(flag), "{path}: {flag}");
            }
        }
    }
}

#[test]
fn the_release_script_has_no_mistake_that_a_shell_sees() {
    let script = repository("ci/release");
    finish(clean("bash", &repository("")).arg("-n").arg(&script)).expect(0, &[]);
    if has("shellcheck") {
        finish(clean("shellcheck", &repository("")).arg(&script)).expect(0, &[]);
    }
}

/// Runs a step's script as GitHub's runner does, with the program on PATH.
fn step(folder: &Path, script: &str, variables: &[(&str, &str)]) -> Ran {
    let bin = Path::new(PROGRAM).parent().unwrap();
    finish(
        clean("bash", folder)
            .args([
                "--noprofile",
                "--norc",
                "-e",
                "-o",
                "pipefail",
                "-c",
                script,
            ])
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"))
            .envs(variables.iter().copied()),
    )
}

/// The script of a step of the action, by the step's name.
fn script_of(name: &str) -> String {
    let action = yaml("ci/github/action.yml");
    let steps = action["runs"]["steps"].as_sequence().unwrap();
    let step = steps.iter().find(|step| step["name"] == name).unwrap();
    step["run"].as_str().unwrap().to_owned()
}

#[test]
fn the_action_is_green_red_or_says_that_there_was_no_device() {
    let folder = tempfile::tempdir().unwrap();
    let script = script_of("Test the plugin");
    let test = |faulty: bool, args: &str, more: &[(&str, &str)]| {
        let plugin = plugin(faulty).to_str().unwrap();
        let given = [("PLUGIN", plugin), ("SUITE", "smoke"), ("ARGS", args)];
        step(folder.path(), &script, &[&given[..], more].concat())
    };
    let quick = "--filter op=pointwise.add";
    test(false, quick, &[]).expect(0, &["as expected"]);
    let red = test(true, quick, &[]);
    red.expect(1, &["::error file=smoke/", "title=fail"]);
    let out = folder.path().join("dnn-assay-out");
    assert!(out.join("report.html").exists() && out.join("junit.xml").exists());
    let summary = fs::read_to_string(folder.path().join("summary.md")).unwrap();
    assert!(
        summary.contains("exit 0") && summary.contains("exit 1"),
        "{summary}"
    );
    if !Path::new("/dev/nvidiactl").exists() {
        let skip = ("DNN_ASSAY_SKIP_IF_NO_DEVICE", "1");
        let none = format!("{quick} --device cuda");
        test(false, &none, &[skip]).expect(0, &["::warning title=DNN Assay::no device"]);
        test(false, &none, &[]).expect(4, &[]);
    }
}

#[test]
fn the_action_takes_a_release_from_its_tarball() {
    let script = script_of("Install DNN Assay");
    let name = "dnn-assay-x86_64-linux.tar.gz";
    assert!(
        script.contains(name) && script.contains("--strip-components=1"),
        "{script}"
    );
    assert!(text_of("ci/release").contains("name=dnn-assay-x86_64-linux"));
}

#[test]
fn the_last_job_is_red_where_an_artefact_is_absent_or_empty() {
    let folder = tempfile::tempdir().unwrap();
    let workflow = yaml("ci/github/matrix-example.yml");
    let steps = workflow["jobs"]["complete"]["steps"].as_sequence().unwrap();
    let script = steps[1]["run"].as_str().unwrap();
    let report = |machine: &str, text: &str| {
        let folder = folder.path().join(format!("dnn-assay-{machine}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("junit.xml"), text).unwrap();
    };
    report("cpu", "<testsuites/>");
    let complete = || step(folder.path(), script, &[]);
    complete().expect(1, &["::error::no report of gfx942"]);
    report("gfx942", "");
    complete().expect(1, &["::error::no report of gfx942"]);
    report("gfx942", "<testsuites/>");
    complete().expect(0, &[]);
}

#[test]
fn the_nextest_profile_keeps_junit_and_tries_nothing_again() {
    let profile: toml::Table = text_of(".config/nextest.toml").parse().unwrap();
    let ci = &profile["profile"]["ci"];
    assert_eq!(ci["retries"].as_integer(), Some(0));
    assert_eq!(ci["fail-fast"].as_bool(), Some(false));
    assert_eq!(ci["junit"]["path"].as_str(), Some("junit.xml"));
}
