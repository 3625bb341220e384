//! The recipes parse, name flags that exist, and the scripts are free of mistakes that a shell sees.

use crate::support::{clean, finish, has, repository, text_of};

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
