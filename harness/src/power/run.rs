//! Trying all mutants, and the libraries without a fault.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::check::Check;
use super::library::{Libraries, LibraryError};
use super::result::{Names, Power, Tried};
use super::table::{Build, Kind, Mutant, Table};
use super::trial::{self, Subject};

/// Why mutants cannot be tried.
#[derive(Debug, thiserror::Error)]
pub enum PowerError {
    /// A library cannot be had.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A case of the table is none.
    #[error("{0}")]
    Case(String),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] crate::run::BatchError),
    /// The checks of conformance failed.
    #[error(transparent)]
    Conform(#[from] crate::conform::ConformError),
    /// A library cannot be read.
    #[error(transparent)]
    Inspect(#[from] crate::inspect::InspectError),
    /// A defect of this program or its data.
    #[error("{0}")]
    Options(String),
    /// A pattern that no mutant's name matches.
    #[error("--mutant: none is called {0}; mocks/mutants/mutants.yaml has the names")]
    NoMutant(String),
}

/// Tries the mutants whose names `takes`, `jobs` at a time, and the libraries that they are made
/// of on the union of their cases.
///
/// # Errors
/// [`PowerError`]: nothing that a mutant does is one.
pub fn power(
    table: &Table,
    takes: &dyn Fn(&str) -> bool,
    jobs: usize,
    progress: &(dyn Fn(&Tried) + Sync),
) -> Result<Power, PowerError> {
    let began = Instant::now();
    let mutants: Vec<&Mutant> = table.mutants.iter().filter(|m| takes(&m.name)).collect();
    let ready = |m: &Mutant| m.requires.is_none() || m.launches.is_some();
    let wanted: Vec<&Mutant> = mutants.iter().copied().filter(|m| ready(m)).collect();
    let libraries = Libraries::of(&wanted)?;
    let library = |m: &Mutant| libraries.path(m).filter(|_| ready(m));
    let active: Vec<&Mutant> = wanted
        .into_iter()
        .filter(|m| library(m).is_some())
        .collect();
    let tried = in_parallel(&mutants, jobs, |mutant| {
        let tried = match library(mutant) {
            Some(path) => trial::try_mutant(mutant, path, libraries.beside(mutant))?,
            None => waiting(mutant),
        };
        progress(&tried);
        Ok(tried)
    })?;
    let (clean_findings, clean_passed) = clean(&active, &libraries)?;
    Ok(Power {
        tried,
        clean_findings,
        clean_passed,
        upstream: table.upstream.clone(),
        time: began.elapsed(),
    })
}

/// How the faults of numbers are named, `jobs` of them at a time. Quicker than [`power`]: each case is
/// run once and judged by the bound alone.
///
/// # Errors
/// [`PowerError`]: nothing that a mutant does is one.
pub fn names(table: &Table, jobs: usize) -> Result<Names, PowerError> {
    let takes = |mutant: &&Mutant| mutant.kind == Kind::Numerics && mutant.requires.is_none();
    let mutants: Vec<&Mutant> = table.mutants.iter().filter(takes).collect();
    let libraries = Libraries::of(&mutants)?;
    let tried = in_parallel(&mutants, jobs, |mutant| match libraries.path(mutant) {
        Some(library) => trial::name_mutant(mutant, library),
        None => Ok(waiting(mutant)),
    })?;
    Ok(Names::of(&tried))
}

fn waiting(mutant: &Mutant) -> Tried {
    Tried {
        note: mutant.requires.clone().unwrap_or_default(),
        ..Tried::new(mutant)
    }
}

/// Maps in several threads; results in order, the first error wins.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    f: impl Fn(&T) -> Result<R, PowerError> + Sync,
) -> Result<Vec<R>, PowerError> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    let result = f(item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    let mut results = results.lock().unwrap_or_else(|e| e.into_inner());
                    results.push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Each library without a fault, on all cases and against all checks of its mutants.
fn clean(mutants: &[&Mutant], libraries: &Libraries) -> Result<(Vec<String>, usize), PowerError> {
    let mut subjects = Vec::new();
    if let Some(path) = libraries.clean_engine() {
        let own = |mutant: &&&Mutant| mutant.is_in_library();
        subjects.push((
            path,
            "DNN_ASSAY_MUTANT",
            mutants.iter().filter(own).collect(),
        ));
    }
    if let Some(path) = libraries.device() {
        let own = |mutant: &&&Mutant| mutant.launches.is_some();
        subjects.push((path, trial::LAUNCHES, mutants.iter().filter(own).collect()));
    }
    for (build, path) in libraries.clean_mocks() {
        let own = |mutant: &&&Mutant| {
            let compiler = mutant.build.as_ref().map(|build| build.compiler);
            mutant.mock() == Some(build.source) && compiler.unwrap_or_default() == build.compiler
        };
        let own: Vec<&&Mutant> = mutants.iter().filter(own).collect();
        subjects.push((path, "DNN_MOCK_FAULT", own));
    }
    // Beside the mock that none of the others is.
    let plain = libraries.clean_mocks().into_iter();
    let plain = plain.filter(|(build, _)| **build == Build::default());
    let plain = plain.map(|(_, path)| path).next();
    let (mut findings, mut passed) = (Vec::new(), 0);
    for (library, variable, mutants) in subjects {
        let subject = Subject {
            library,
            beside: plain.filter(|plain| *plain != library),
            fault: (variable, ""),
        };
        let (found, n) = clean_library(subject, &mutants)?;
        let name = name_of(library);
        findings.extend(found.into_iter().map(|text| format!("{name}: {text}")));
        passed += n;
    }
    Ok((findings, passed))
}

fn clean_library(
    subject: Subject<'_>,
    mutants: &[&&Mutant],
) -> Result<(Vec<String>, usize), PowerError> {
    let cases: BTreeSet<&String> = mutants.iter().flat_map(|mutant| &mutant.cases).collect();
    let cases: Vec<String> = cases.into_iter().cloned().collect();
    let (mut findings, mut passed) = (Vec::new(), 0);
    if !cases.is_empty() {
        let journal = subject.run(&cases, &["--repeat", "2"])?;
        (findings, passed) = trial::clean_findings(&journal);
    }
    let checks: BTreeSet<&String> = mutants
        .iter()
        .flat_map(|mutant| &mutant.catch)
        .filter_map(|check| match check {
            Check::Conform(id) => Some(id),
            _ => None,
        })
        .collect();
    for id in checks {
        let alone = Subject {
            beside: subject.beside.filter(|_| id.starts_with("pair/")),
            ..subject
        };
        if let Some(text) = alone.conform(id)? {
            findings.push(format!("{id}: {text}"));
        }
    }
    if mutants.iter().any(|mutant| mutant.kind == Kind::Elf) {
        let found = subject.inspect()?;
        let texts = found
            .into_iter()
            .map(|(rule, text)| format!("{rule}: {text}"));
        findings.extend(texts);
    }
    Ok((findings, passed))
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
