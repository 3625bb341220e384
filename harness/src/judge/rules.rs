//! The rule of judgement of a run: criterion, arithmetic, tables, declared traits.

use std::sync::atomic::{AtomicUsize, Ordering};

use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::exact::Exactness;
use dnn_assay_reference::{Arithmetic, Criterion, Traits, ZeroSign};

use crate::cli::args::CriterionName;
use crate::suite::{Allowances, Tolerances};

/// Begins the note of a weak case that the suites allow to be weak.
pub const WEAK_ALLOWED: &str = "weak is allowed: ";

/// Everything that judging needs and that no case changes.
#[derive(Debug)]
pub struct Rules {
    /// The criterion by name.
    pub name: CriterionName,
    /// What correct engines may do, declared traits included.
    pub arithmetic: Arithmetic,
    /// Whether integer data must agree bit for bit.
    pub exact_required: bool,
    /// The tables.
    pub tolerances: Tolerances,
    /// Cases that are known to be weak.
    pub allowances: Allowances,
    /// Failures that have been diagnosed.
    diagnosed: AtomicUsize,
}

/// Failures of a run that are diagnosed; after so many the next name helps nobody.
const MOST_DIAGNOSED: usize = 50;

impl Rules {
    /// The rules of a run.
    pub fn new(
        name: CriterionName,
        declared: &Traits,
        tolerances: Tolerances,
        allowances: Allowances,
    ) -> Self {
        let constants = tolerances.bound.arithmetic();
        Self {
            name,
            arithmetic: Arithmetic {
                sum_factor: constants.sum_factor,
                functions: constants.functions,
                ..declared.arithmetic()
            },
            exact_required: declared.promises_exact_sums(),
            tolerances,
            allowances,
            diagnosed: AtomicUsize::new(0),
        }
    }

    /// Whether one more failure is diagnosed.
    pub(super) fn may_diagnose(&self) -> bool {
        self.diagnosed.fetch_add(1, Ordering::Relaxed) < MOST_DIAGNOSED
    }

    /// Why a case may be weak, where the suites allow it on this day.
    pub fn weak_allowance(&self, case: &str) -> Option<String> {
        let today = crate::suite::today();
        let allowance = self.allowances.find(case, today)?;
        Some(format!(
            "{WEAK_ALLOWED}{} ({}, until {}; see {})",
            allowance.reason, allowance.owner, allowance.expires, allowance.link
        ))
    }

    /// The criterion for an output of `graph`: bit equality where integer data allow it.
    /// `None` where a table has no number for it.
    pub fn criterion(
        &self,
        graph: &Graph,
        output: &Tensor,
        exactness: Option<&Exactness>,
    ) -> Option<Criterion> {
        let dtype = output.data_type;
        Some(match self.name {
            CriterionName::Bound => exactness
                .and_then(|exact| exact_criterion(exact, output))
                .unwrap_or(Criterion::Bound),
            CriterionName::Exact => exactness
                .and_then(|exact| exact_criterion(exact, output))
                .unwrap_or(Criterion::Exact(ZeroSign::Ignored)),
            CriterionName::Table => {
                let value = self.tolerances.table.value(graph, dtype)?;
                Criterion::Table {
                    atol: value,
                    rtol: value,
                }
            }
            CriterionName::Rms => Criterion::Rms {
                threshold: self.tolerances.rms.value(graph, dtype)?,
            },
        })
    }
}

/// Bit equality, where exact arithmetic decides the output.
fn exact_criterion(exactness: &Exactness, output: &Tensor) -> Option<Criterion> {
    let Exactness::Applies(outputs) = exactness else {
        return None;
    };
    let judged = outputs.iter().find(|judged| judged.uid == output.uid)?;
    Some(Criterion::Exact(judged.zero_sign))
}

/// What is worth saying of integer data: that they do not allow bit equality after all, and why;
/// or that no element had to be rounded.
pub fn exactness_note(exactness: &Exactness) -> Option<String> {
    match exactness {
        Exactness::Applies(outputs) if outputs.iter().all(|output| output.rounding_exercised) => {
            None
        }
        Exactness::Applies(_) => Some("rounding not exercised".to_owned()),
        Exactness::Not(reason) => Some(format!("not judged bit for bit: {reason}")),
    }
}
