//! The rule of judgement of a run: criterion, arithmetic, tables, declared traits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dnn_assay_graph::case::Fill;
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::exact::{self, Exactness};
use dnn_assay_reference::{
    Arithmetic, Criterion, Evaluation, Trait, Traits, Values as Inputs, ZeroSign,
};

use super::declared::{Declared, Unit};
use crate::cli::args::CriterionName;
use crate::gate::{Overrides, Validator};
use crate::suite::{Allowances, Tolerances};

/// Begins the note of a weak case that the suites allow to be weak.
pub const WEAK_ALLOWED: &str = "weak is allowed: ";

/// Everything that judging needs beside the case. A run's rules are narrowed to a unit by
/// [`Rules::of_unit`]; the tables are shared.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The criterion by name.
    pub name: CriterionName,
    /// What correct engines may do, the traits included.
    pub arithmetic: Arithmetic,
    /// Whether integer data must agree bit for bit.
    pub exact_required: bool,
    /// The traits that hold.
    pub traits: Traits,
    /// The tables.
    pub tolerances: Arc<Tolerances>,
    /// Cases that are known to be weak.
    pub allowances: Arc<Allowances>,
    /// Criteria for some cases, of hipDNN's own test configuration.
    pub overrides: Arc<Overrides>,
    /// Criteria by the name of the output that overrides asked for when a dump was written.
    recorded: Arc<BTreeMap<String, (Criterion, String)>>,
    /// The unit's case, by which an override is found.
    case: Option<String>,
    /// What is declared for which units.
    declared: Arc<Declared>,
    /// The unit, as an entry under `traits` names it.
    scope: Option<String>,
    /// Failures that have been diagnosed.
    diagnosed: Arc<AtomicUsize>,
}

/// Failures of a run that are diagnosed; after so many the next name helps nobody.
const MOST_DIAGNOSED: usize = 50;

impl Rules {
    /// The rules of a run whose engines all have the same traits.
    pub fn new(
        name: CriterionName,
        declared: &Traits,
        tolerances: Tolerances,
        allowances: Allowances,
    ) -> Self {
        Self::declared(name, Declared::everywhere(declared), tolerances, allowances)
    }

    /// The rules of a run.
    pub fn declared(
        name: CriterionName,
        declared: Declared,
        tolerances: Tolerances,
        allowances: Allowances,
    ) -> Self {
        let traits = declared.unscoped();
        Self {
            name,
            arithmetic: traits.widened(&tolerances.bound.arithmetic()),
            exact_required: traits.promises_exact_sums(),
            traits,
            tolerances: Arc::new(tolerances),
            allowances: Arc::new(allowances),
            overrides: Arc::default(),
            recorded: Arc::default(),
            case: None,
            declared: Arc::new(declared),
            scope: None,
            diagnosed: Arc::new(AtomicUsize::new(0)),
        }
    }

    /// The same rules for runs whose failures need no names.
    #[must_use]
    pub fn without_names(self) -> Self {
        Self {
            diagnosed: Arc::new(AtomicUsize::new(MOST_DIAGNOSED + 1)),
            ..self
        }
    }

    /// The same rules for a dump of a case of which overrides judged these outputs.
    #[must_use]
    pub fn with_recorded(
        self,
        recorded: impl Iterator<Item = (String, (Criterion, String))>,
    ) -> Self {
        Self {
            recorded: Arc::new(recorded.collect()),
            ..self
        }
    }

    /// The rules for one unit: with the traits that are declared for it.
    #[must_use]
    pub fn of_unit(&self, unit: Unit<'_>) -> Self {
        let rules = self.with_traits(self.declared.of(unit));
        let fields = ["op", "dtype"].map(|field| unit.case.values(field).into_iter().next());
        let [op, dtype] = fields.map(Option::unwrap_or_default);
        Self {
            case: Some(unit.case.id().to_owned()),
            scope: Some(format!(
                "engine: '{}', when: {{op: {op}, dtype: {dtype}}}",
                unit.engine.label()
            )),
            ..rules
        }
    }

    /// The same rules for an engine with these traits.
    #[must_use]
    pub fn with_traits(&self, traits: Traits) -> Self {
        Self {
            arithmetic: traits.widened(&self.tolerances.bound.arithmetic()),
            exact_required: traits.promises_exact_sums(),
            traits,
            ..self.clone()
        }
    }

    /// The entry under `traits` of `dnn-assay.yaml` that would declare a trait for this unit.
    pub fn entry(&self, which: Trait) -> String {
        let scope = self.scope.as_ref();
        let scope = scope.map_or_else(String::new, |scope| format!(", {scope}"));
        format!("- {{trait: {which}{scope}, reason: why the engine computes so}}")
    }

    /// Whether failures are still looked into.
    pub fn names_faults(&self) -> bool {
        self.diagnosed.load(Ordering::Relaxed) <= MOST_DIAGNOSED
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

    /// Whether exact arithmetic decides the outputs of a case; `None` where its data are no integers
    /// and something is computed.
    pub fn exactness(
        &self,
        graph: &Graph,
        fill: Fill,
        inputs: &Inputs,
        evaluation: &Evaluation,
    ) -> Option<Exactness> {
        if fill.is_integer() {
            return Some(exact::applies(graph, inputs, evaluation));
        }
        exact::copies(graph).filter(|_| self.traits.keep_copies())
    }

    /// Whether bits that differ inside the bound are a failure: for engines that declare `rn`, and
    /// where nothing is computed.
    pub fn requires_bits(&self, graph: &Graph) -> bool {
        self.exact_required || self.traits.keep_copies() && exact::copies(graph).is_some()
    }

    /// The criterion that an override asks for, and which entry does; `None` where none does, or
    /// where the run asks for another criterion by name.
    pub fn overridden(&self, graph: &Graph, output: &Tensor) -> Option<(Criterion, String)> {
        if !matches!(self.name, CriterionName::Bound | CriterionName::Table) {
            return None;
        }
        if let Some(recorded) = self.recorded.get(&output.name) {
            return Some(recorded.clone());
        }
        let ruling = self.overrides.ruling(self.case.as_deref()?, &output.name)?;
        let dtype = output.data_type;
        let criterion = match ruling.validator {
            Validator::Allclose => {
                let table = self.tolerances.table.value(graph, dtype);
                Criterion::Table {
                    atol: ruling.tolerance.atol.or(table)?,
                    rtol: ruling.tolerance.rtol.or(table)?,
                }
            }
            Validator::Rms(threshold) => Criterion::Rms {
                threshold: threshold.or_else(|| self.tolerances.rms.value(graph, dtype))?,
            },
        };
        Some((criterion, ruling.because))
    }

    /// What is to be said of the outputs of `graph` that overrides have judged; counts them.
    pub fn note_overridden(&self, graph: &Graph) -> Vec<String> {
        let outputs = graph.outputs();
        let overridden = outputs.filter_map(|output| {
            let (criterion, because) = self.overridden(graph, output)?;
            if let Some(case) = &self.case {
                self.overrides.count(case, &output.name);
            }
            Some(format!(
                "{} is judged by {criterion}, because of {because}",
                output.name
            ))
        });
        overridden.collect()
    }

    /// The criterion for an output of `graph`: that of an override; bit equality where integer data allow it.
    /// `None` where a table has no number for it.
    pub fn criterion(
        &self,
        graph: &Graph,
        output: &Tensor,
        exactness: Option<&Exactness>,
    ) -> Option<Criterion> {
        if let Some((criterion, _)) = self.overridden(graph, output) {
            return Some(criterion);
        }
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
            CriterionName::Ulp => Criterion::Ulp {
                limit: self.tolerances.ulp.value(graph, dtype)? as u64,
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
