//! `dnn-assay discover`: what hipDNN would load and drop, in its order and words.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use dnn_assay::exit::Exit;

use crate::support::{Ran, build, run, run_with};

const C_EXAMPLE: &str = "plugins-under-test/c-example/c_plugin.c";
const FAULTY: &str = "mocks/abi/faulty.c";
const OF_EXAMPLE: &str = r#"-DEXAMPLE="../../plugins-under-test/c-example/c_plugin.c""#;

fn discover(folder: &Path, more: &[&str]) -> Ran {
    let folder = folder.to_str().unwrap();
    run(&[&["discover", folder, "--mode", "absolute"], more].concat())
}

/// A folder with the C example as `a.so`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let plugin = build("cc", C_EXAMPLE, "a.so", &[]);
    fs::copy(plugin, folder.path().join("a.so")).unwrap();
    folder
}

#[test]
fn files_are_loaded_in_order_and_the_second_of_one_engine_is_dropped() {
    let folder = folder();
    let other = build("cc", C_EXAMPLE, "b.so", &["-O2"]);
    fs::copy(other, folder.path().join("b.so")).unwrap();
    let ran = discover(folder.path(), &[]);
    ran.expect(
        Exit::Plugin,
        &[
            "declares engine 0x",
            "The first plugin to declare an engine keeps it; dropping the duplicate.",
            "the host of November 2025",
            "already exists in the list",
            "hipDNN would have 2 of 2 plugins and 1 engines",
        ],
    );
    let (a, b) = (
        ran.out.find("/a.so").unwrap(),
        ran.out.find("/b.so").unwrap(),
    );
    assert!(a < b, "{}", ran.out);
}

#[test]
fn a_name_that_does_not_hash_to_its_id_drops_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-std=gnu11", OF_EXAMPLE, r#"-DFAULT="engine-name-wrong""#];
    let plugin = build("cc", FAULTY, "wrong.so", &flags);
    fs::copy(plugin, folder.path().join("wrong.so")).unwrap();
    discover(folder.path(), &[]).expect(
        Exit::Plugin,
        &[
            "reports the name 'ANOTHER_NAME'",
            "which hashes to 0x",
            "dropping the engine",
            "0 engines",
        ],
    );
}

#[test]
fn what_is_no_plugin_is_dropped_with_the_hosts_message() {
    let folder = folder();
    fs::write(folder.path().join("text.so"), "text").unwrap();
    fs::write(folder.path().join("libold.so.1.2"), "x").unwrap();
    symlink("libold.so.1.2", folder.path().join("libold.so")).unwrap();
    fs::create_dir(folder.path().join("deeper")).unwrap();
    discover(folder.path(), &[]).expect(
        Exit::Plugin,
        &[
            "Failed to load library: ",
            "Invalid file extension. Expected .so (the link leads to",
            "not recursive",
            "hipDNN would have 1 of 2 plugins and 1 engines",
        ],
    );
}

#[test]
fn the_variable_replaces_the_default_and_absolute_ignores_it() {
    let (variable, given, lib) = (folder(), folder(), tempfile::tempdir().unwrap());
    let default = lib.path().join("hipdnn_plugins/engines");
    fs::create_dir_all(&default).unwrap();
    fs::copy(given.path().join("a.so"), default.join("default.so")).unwrap();
    let backend = lib.path().join("libhipdnn_backend.so");
    fs::write(&backend, "").unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (variable, given, backend) = (text(variable.path()), text(given.path()), text(&backend));
    let ran = |mode: &str, variables: &[(&str, &str)]| {
        let arguments = ["discover", &given, "--mode", mode, "--backend", &backend];
        run_with(&arguments, variables).out
    };
    let plain = ran("additive", &[]);
    assert!(
        plain.contains("default.so") && plain.contains(&given),
        "{plain}"
    );
    let set = [("HIPDNN_PLUGIN_DIR", variable.as_str())];
    let replaced = ran("additive", &set);
    assert!(
        replaced.contains(&variable) && !replaced.contains("default.so"),
        "{replaced}"
    );
    let absolute = ran("absolute", &set);
    assert!(
        !absolute.contains(&variable) && !absolute.contains("default.so"),
        "{absolute}"
    );
}

#[test]
fn json_has_places_fates_and_what_is_ignored() {
    let folder = folder();
    let ran = discover(folder.path(), &["--format", "json"]);
    ran.expect(Exit::Ok, &[]);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["plugins"][0]["name"], "c-example");
    let engine = &document["plugins"][0]["engines"][0];
    assert_eq!(engine["name"], "DNN_ASSAY_C_EXAMPLE_ENGINE");
    assert_eq!(engine["dropped"], serde_json::Value::Null);
}

#[test]
fn nothing_found_is_said_with_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    discover(empty.path(), &[]).expect(Exit::NothingVerified, &["0 of 0 plugins"]);
    run(&["discover", "relative"]).expect(
        Exit::NothingVerified,
        &[
            "not from here",
            "--backend FILE names it, or give an absolute path",
        ],
    );
}
