//! The search: the first simpler case that fails in the same way is taken, until none does.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use dnn_assay_graph::case::Case;

use super::candidates::candidates;
use crate::journal::CaseEnd;
use crate::suite::{Draft, SuiteCase, of_ids};
use crate::verdict::{FailKind, Verdict};

/// How a case fails: two cases fail in the same way if these are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The verdict with its kind.
    pub verdict: Verdict,
    /// The rule that judged.
    pub criterion: Option<String>,
}

impl Way {
    /// The way of an attempt. Whether an undeclared trait explains wrong values depends on the
    /// other names for them, which a search does not look for: both are one way.
    pub fn of(end: &CaseEnd) -> Self {
        let verdict = match &end.verdict {
            Verdict::Fail(FailKind::UndeclaredTrait) => Verdict::Fail(FailKind::Numeric),
            verdict => verdict.clone(),
        };
        Self {
            verdict,
            criterion: end.criterion.clone(),
        }
    }
}

/// When to be content with what there is.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Cases tried at most.
    pub tries: usize,
    /// Time spent at most.
    pub time: Duration,
}

/// The smallest case that was found.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The case.
    pub case: SuiteCase,
    /// How it ended; `None` where it is the case that the search began with.
    pub end: Option<CaseEnd>,
    /// Cases tried.
    pub tries: usize,
    /// How many of them failed in the same way, and so took the place of the one before.
    pub steps: usize,
    /// No simpler case fails; else a limit was reached.
    pub is_smallest: bool,
}

/// Shrinks `case`, which is known to fail in this way. `probe` runs a case.
///
/// # Errors
/// What `probe` says.
pub fn shrink<E>(
    case: &SuiteCase,
    way: &Way,
    limits: Limits,
    probe: &mut dyn FnMut(&SuiteCase) -> Result<Option<CaseEnd>, E>,
) -> Result<Shrunk, E> {
    let began = Instant::now();
    let mut shrunk = Shrunk {
        case: case.clone(),
        end: None,
        tries: 0,
        steps: 0,
        is_smallest: false,
    };
    let mut seen = HashSet::from([case.id.clone()]);
    'smaller: loop {
        for candidate in simpler(&shrunk.case.case) {
            let id = candidate.to_string();
            if !seen.insert(id.clone()) {
                continue;
            }
            if shrunk.tries >= limits.tries || began.elapsed() >= limits.time {
                return Ok(shrunk);
            }
            shrunk.tries += 1;
            let suite = of_ids(&[id]).expect("the id of a case is one");
            let end = probe(&suite.cases[0])?;
            if let Some(end) = end.filter(|end| Way::of(end) == *way) {
                shrunk.steps += 1;
                shrunk.end = Some(end);
                shrunk.case = suite.cases[0].clone();
                continue 'smaller;
            }
        }
        shrunk.is_smallest = true;
        return Ok(shrunk);
    }
}

/// Simpler cases: the drafts that are cases.
fn simpler(case: &Case) -> impl Iterator<Item = Case> + use<> {
    let drafts = candidates(&Draft::of(case)).into_iter();
    drafts.filter_map(|draft| draft.case().ok())
}
