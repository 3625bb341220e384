//! The kill table: that a sample of the mutants is caught, that the page of the documentation
//! speaks of all of them, and, with `--ignored`, that every fault is caught.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::ExitCode;

use dnn_assay::power::{Fate, Table, power};
use libtest_mimic::{Arguments, Failed, Trial};

/// One or more of each kind, none that waits for a time limit for long.
const SAMPLE: [&str; 12] = [
    "conv-last-tap",
    "conv-dilation-ignored",
    "fused-bias-last-axis",
    "bn-unbiased-variance",
    "output-truncated",
    "later-images-unwritten",
    "past-end-1",
    "input-changed",
    "unsteady-element",
    "segv-ExecuteOpGraph",
    "abi-null-handle",
    "elf-exported-helper",
];

fn main() -> ExitCode {
    dnn_assay::worker::worker_entry();
    let arguments = Arguments::from_args();
    let trials = vec![
        Trial::test("the_documented_table_holds_every_mutant", documented),
        Trial::test("a_sample_is_caught", || {
            caught(&|name| SAMPLE.contains(&name))
        }),
        Trial::test("every_fault_is_caught", || caught(&|_| true)).with_ignored_flag(true),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn table() -> Result<Table, Failed> {
    Table::embedded().map_err(|problem| problem.render(false).into())
}

/// Tries mutants: every one that does not wait must be caught by the check that must, and the
/// libraries without a fault must pass.
fn caught(takes: &dyn Fn(&str) -> bool) -> Result<(), Failed> {
    let power = power(&table()?, takes, 2, &|_| ())?;
    let mut text = String::new();
    for tried in &power.tried {
        if matches!(tried.fate(), Fate::Survived | Fate::CaughtByAnother) {
            let by: Vec<_> = tried.by.keys().map(ToString::to_string).collect();
            let (name, fate, note) = (&tried.mutant.name, tried.fate(), &tried.note);
            text.push_str(&format!("{name}: {fate:?} ({}) {note}\n", by.join(", ")));
        }
    }
    for finding in &power.clean_findings {
        text.push_str(&format!("without a fault: {finding}\n"));
    }
    if power.clean_passed == 0 {
        text.push_str("nothing passes without a fault\n");
    }
    if text.is_empty() {
        return Ok(());
    }
    Err(text.into())
}

/// Names in the first column of the page's tables, in its order.
fn documented() -> Result<(), Failed> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/kill-table.md");
    let page = std::fs::read_to_string(page)?;
    let written: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    let table = table()?;
    let mut known: Vec<(_, &str)> = table
        .mutants
        .iter()
        .map(|m| (m.kind, m.name.as_str()))
        .collect();
    known.sort_by_key(|(kind, _)| *kind);
    let known: Vec<&str> = known.into_iter().map(|(_, name)| name).collect();
    if written == known {
        return Ok(());
    }
    Err(
        "docs/kill-table.md is not of these mutants; write it anew with \
         `dnn-assay dev power --format markdown`"
            .into(),
    )
}
