//! The configuration: found, read, merged, and the same as its schema.

use std::fs;

use rstest::rstest;

use super::*;

fn read(text: &str) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FILE_NAME);
    fs::write(&path, text).expect("a file");
    load(&path)
}

const WHOLE: &str = "schema: 1\nplugins: [build/libp.so]\ndevice: mock-hip\nenvironment: {A: b}\n\
    suites: [smoke, mine/suite.yaml]\ntraits: [xf32]\nclaims: [claims.yaml]\n\
    floors: {verified: 10, engines: {E: 5}}\nwaive:\n  - filter: op=conv\n    engine: E\n    \
    plugin: '>=1'\n    arch: host\n    rocm: '>=7'\n    expect: fail\n    reason: r\n    owner: o\n    link: l\n    expires: 2027-06-30\n";

#[test]
fn a_whole_file() {
    let config = read(WHOLE).expect("a configuration");
    assert_eq!(config.waivers.len(), 1);
    assert!(config.suites()[1].ends_with("/mine/suite.yaml"));
    assert_eq!(config.suites()[0], "smoke");
    assert!(config.beside("build/libp.so").is_absolute());
    assert_eq!(config.file.floors.verified, Some(10));
}

#[rstest]
#[case("schema: 1\nplugin: [x]\n", "did you mean `plugins`?")]
#[case("schema: 1\ndevice: gpu\n", "host, hip, cuda, mock-hip")]
#[case("schema: 1\ntraits: [nonsense]\n", "nonsense")]
#[case("schema: 2\n", "schema 2")]
#[case("schema: 1\nfloors: {verifed: 1}\n", "did you mean `verified`?")]
fn mistakes_have_a_line_and_a_caret(#[case] text: &str, #[case] part: &str) {
    let problem = read(text).expect_err("a mistake").to_string();
    assert!(
        problem.contains(part) && problem.contains('^') && problem.contains(FILE_NAME),
        "{problem}"
    );
}

#[test]
fn the_nearest_file_above_is_found_and_two_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let deep = folder.path().join("a/b");
    fs::create_dir_all(&deep).expect("folders");
    let outer = folder.path().join(FILE_NAME);
    fs::write(&outer, "schema: 1\n").expect("a file");
    assert_eq!(find(&deep).expect("one"), Some(outer));
    let inner = folder.path().join("a").join("dnn-assay.yml");
    fs::write(&inner, "schema: 1\n").expect("a file");
    assert_eq!(find(&deep).expect("the nearer"), Some(inner));
    fs::write(folder.path().join("a").join(FILE_NAME), "schema: 1\n").expect("a file");
    assert!(matches!(find(&deep), Err(ConfigError::Two(_, _))));
}

#[test]
fn what_init_writes_is_read() {
    let plan = Plan {
        plugin: "build/lib \"p\".so".to_owned(),
        memory: ("host".to_owned(), "no GPU\nlibrary".to_owned()),
        engines: vec!["E".to_owned()],
        wire: ("current".to_owned(), "why".to_owned()),
    };
    let config = read(&commented(&plan))
        .map_err(|e| e.to_string())
        .expect("a configuration");
    assert_eq!(config.file.plugins, ["build/lib \"p\".so"]);
    assert_eq!(config.suites(), ["smoke"]);
}

#[test]
fn the_schema_has_every_key_of_the_reader_and_no_other() {
    let text = dnn_assay_suites::file("schemas/dnn-assay.schema.json").expect("embedded");
    let schema: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let keys_of = |value: &serde_json::Value| -> Vec<String> {
        let object = value["properties"].as_object().expect("an object");
        object.keys().cloned().collect()
    };
    // The reader names its keys where it meets one that it does not know.
    let known = |text: &str| -> Vec<String> {
        let message = read(text).expect_err("no such key").to_string();
        let list = message.split_once("known here: ").expect("a list").1;
        let list = list.lines().next().unwrap_or_default();
        list.split(", ").map(str::to_owned).collect()
    };
    assert_eq!(keys_of(&schema), known("schema: 1\nno-such-key: 1\n"));
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["$defs"]["waiver"]["additionalProperties"], false);
    let entry = "schema: 1\nwaive: [{no-such-key: 1}]\n";
    assert_eq!(keys_of(&schema["$defs"]["waiver"]), known(entry));
}
