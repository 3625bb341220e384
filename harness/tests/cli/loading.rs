//! Plugins that load badly: exit code 3, with the host's own text.

use crate::support::{build, run_case, run_fault};
use dnn_assay::exit::Exit;
use rstest::rstest;

#[rstest]
#[case("null-name", "name")]
#[case("name-fails", "Failed to get plugin name")]
#[case("heuristic", "type")]
#[case("type-unspecified", "type")]
#[case("api-unparsable", "one.two")]
#[case("api-major-2", "2.0.0")]
#[case("zero-engines", "No engines found in the plugin")]
#[case("many-engines", "engines reported")]
#[case("counts-differ", "Number of engines returned does not match")]
#[case("duplicate-ids", "Duplicate engine IDs found")]
#[case("create-fails", "Failed to create engine plugin handle")]
#[case("null-handle", "null handle")]
#[case("segv:constructor", "SIGSEGV")]
#[case("exit:Create", "exit code 0")]
#[case("abort:GetAllEngineIds", "SIGABRT")]
fn a_plugin_that_cannot_be_loaded_says_why(#[case] fault: &str, #[case] text: &str) {
    let ran = run_fault(fault, &[]);
    ran.expect(Exit::Plugin, &[text]);
    let junit = ran.file("dnn-assay-out/junit.xml");
    roxmltree::Document::parse(&junit).unwrap();
}

#[test]
fn a_hang_while_loading_names_the_phase() {
    run_fault("hang:GetAllEngineIds", &["--timeout", "load=1s"])
        .expect(Exit::Plugin, &["timeout", "load"]);
}

#[test]
fn major_version_zero_runs_with_a_finding() {
    run_fault("api-major-0", &[]).expect(Exit::Ok, &["0.9.0", "1 verified"]);
}

#[test]
fn an_engine_whose_name_does_not_hash_to_its_id_is_a_finding() {
    run_fault("engine-name-wrong", &["--engine", "*"]).expect(Exit::Ok, &["hipDNN drops"]);
}

#[test]
fn a_heuristic_plugin_is_named() {
    let path = build(
        "cc",
        "mocks/abi/plugin.c",
        "heuristic.so",
        &[
            "-DHEURISTIC_SYMBOLS",
            "-DEXPORT=static __attribute__((unused))",
        ],
    );
    let ran = run_case(&path, crate::support::IDENTITY, &[]);
    assert_eq!(ran.code, 3, "{ran:#?}");
}

#[test]
fn a_plugin_of_2025_11_is_recognised_without_a_flag() {
    let path = build(
        "cc",
        "mocks/abi/plugin.c",
        "old.so",
        &["-DWITHOUT_OPTIONAL"],
    );
    let ran = run_case(&path, crate::support::IDENTITY, &[]);
    // The mock takes any bytes as a graph, so the generation cannot be told; that is said.
    ran.expect(Exit::Ok, &["undetermined", "--wire"]);
}
