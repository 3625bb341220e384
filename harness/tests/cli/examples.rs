//! Plugins in C and C++ without our SDK, judged as a user would judge them.

use crate::support::{build, repository, run};
use dnn_assay::exit::Exit;

fn script(example: &str) -> String {
    let map = repository(&format!("plugins-under-test/{example}/exports.map"));
    format!("-Wl,--version-script={}", map.display())
}

fn verified(ran: &crate::support::Ran) -> u64 {
    let end = ran
        .file("dnn-assay-out/journal.jsonl")
        .lines()
        .last()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .unwrap();
    assert_eq!(end["record"], "run-end");
    end["counts"]["pass"].as_u64().unwrap_or(0)
}

#[test]
fn the_c_example_passes_what_it_takes() {
    let source = "plugins-under-test/c-example/c_plugin.c";
    let path = build(
        "cc",
        source,
        "c_example.so",
        &["-std=c11", &script("c-example")],
    );
    let ran = run(&["run", path.to_str().unwrap(), "--filter", "op=pointwise"]);
    ran.expect(Exit::Ok, &["DNN_ASSAY_C_EXAMPLE_ENGINE", "declined"]);
    assert!(verified(&ran) >= 2, "{ran:#?}");
}

#[test]
fn the_cpp_example_passes_what_it_takes() {
    let source = "plugins-under-test/cpp-example/cpp_plugin.cpp";
    let path = build(
        "g++",
        source,
        "cpp_example.so",
        &["-std=c++17", &script("cpp-example")],
    );
    let ran = run(&["run", path.to_str().unwrap(), "--filter", "dtype=f32"]);
    ran.expect(Exit::Ok, &["DNN_ASSAY_CPP_EXAMPLE_ENGINE", "declined"]);
    assert!(verified(&ran) >= 40, "{ran:#?}");
}
