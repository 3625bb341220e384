//! The page of the rules.

use dnn_assay::exit::Exit;

use crate::plugins::plain;
use crate::support::{repository, run};

#[test]
fn the_page_is_what_the_program_prints() {
    let made = run(&["inspect", "--list", "--format", "markdown"]);
    made.expect(Exit::Ok, &[]);
    let page = std::fs::read_to_string(repository("docs/inspection.md")).unwrap_or_default();
    assert!(
        page == made.out,
        "docs/inspection.md is not what `dnn-assay inspect --list --format markdown` prints"
    );
}

/// Markdown is a form of the list; the arguments say so before anything is read.
#[test]
fn markdown_needs_the_list() {
    let plugin = plain();
    let plugin = plugin.to_str().unwrap();
    run(&["inspect", "--format", "markdown", plugin]).expect(Exit::Usage, &["--list"]);
    run(&["conform", "--format", "markdown"]).expect(Exit::Usage, &["--list"]);
}

#[test]
fn the_list_has_every_rule_once() {
    let ran = run(&["inspect", "--list"]);
    for rule in [
        "abi/entry-missing",
        "export/hip-generated",
        "load/execstack",
        "pair/same-file",
    ] {
        assert_eq!(ran.out.matches(&format!("{rule} ")).count(), 1, "{rule}");
    }
}
