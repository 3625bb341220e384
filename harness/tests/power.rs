//! The kill table: that one mutant for each check is caught by it, that the page of the documentation
//! speaks of all of them, and, with `--ignored`, that every fault is caught.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use dnn_assay::power::{Check, Fate, Mutant, Names, Table, names, power};
use libtest_mimic::{Arguments, Failed, Trial};

/// Of the faults that checks of conformance must catch, these stand for all: each has its trial in
/// the tests of conformance too.
const OF_CONFORMANCE: [&str; 6] = [
    "leak",
    "contract-accumulates",
    "contract-leak-fd",
    "pair-handles",
    "knob-limit-exceeded",
    "upstream-incomplete-heuristic",
];

/// One mutant for every other check: the first of the table that it must catch.
fn sample(table: &Table) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut is_first = |mutant: &&Mutant| match &mutant.catch[0] {
        Check::Conform(_) => OF_CONFORMANCE.contains(&mutant.name.as_str()),
        check => seen.insert(check.clone()),
    };
    let active = table
        .mutants
        .iter()
        .filter(|mutant| mutant.requires.is_none());
    let taken = active.filter(|mutant| is_first(mutant));
    taken.map(|mutant| mutant.name.clone()).collect()
}

fn main() -> ExitCode {
    dnn_assay::worker::worker_entry();
    let arguments = Arguments::from_args();
    let trials = vec![
        Trial::test("the_documented_table_holds_every_mutant", documented),
        Trial::test("one_fault_per_check_is_caught", || {
            let sample = sample(&table()?);
            caught(&|name| sample.contains(name))
        }),
        Trial::test("faults_of_numbers_are_named", || {
            named(&names(&table()?, 2)?)
        }),
        Trial::test("a_wrong_name_and_too_few_right_ones_are_noticed", noticed),
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

/// The share of faults of numbers that must be named rightly.
const NAMED: f64 = 0.9;

/// No fault of numbers in a graph of one or two nodes may have a wrong name, and nine in ten must have
/// a right one.
fn named(names: &Names) -> Result<(), Failed> {
    if !names.wrong.is_empty() {
        return Err(format!("named wrongly: {}", names.wrong.join(", ")).into());
    }
    // A table that lost its mutants proves nothing.
    if names.count() < 70 || names.share() < NAMED {
        let (right, all) = (names.right.len(), names.count());
        let unnamed = names.unnamed.join(", ");
        return Err(format!("{right} of {all} are named rightly; unnamed: {unnamed}").into());
    }
    Ok(())
}

/// What [`named`] is there for.
fn noticed() -> Result<(), Failed> {
    let of = |right: usize, wrong: usize, unnamed: usize| Names {
        right: vec!["r".to_owned(); right],
        wrong: vec!["w".to_owned(); wrong],
        unnamed: vec!["u".to_owned(); unnamed],
    };
    assert!(named(&of(72, 0, 8)).is_ok());
    assert!(named(&of(79, 1, 0)).is_err(), "a wrong name");
    assert!(named(&of(71, 0, 9)).is_err(), "too few right ones");
    assert!(named(&of(20, 0, 0)).is_err(), "too few mutants");
    Ok(())
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
