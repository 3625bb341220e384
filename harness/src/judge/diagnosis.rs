//! Which known faults explain a failed case.

use std::collections::BTreeMap;

use dnn_assay_graph::Graph;
use dnn_assay_reference::diagnose::{BUDGET, Diagnosis, Observed, diagnose, diagnose_samples};
use dnn_assay_reference::sample::{Row, Source};
use dnn_assay_reference::{Criterion, Evaluation, Values as Inputs};

use super::Rules;

/// A case that failed.
pub struct Suspicious<'a> {
    /// Its graph.
    pub graph: &'a Graph,
    /// Its inputs.
    pub inputs: &'a Inputs,
    /// The reference.
    pub evaluation: &'a Evaluation,
    /// The rules by which it failed.
    pub rules: &'a Rules,
}

/// Names for what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Ids of hypotheses that explain all outputs.
    pub ids: Vec<String>,
    /// What was found beside the names, or why none was looked for.
    pub notes: Vec<String>,
}

/// Looks for names; `outputs`: uid, bytes and criterion of each.
pub fn name<'a>(
    case: &Suspicious<'_>,
    outputs: impl Iterator<Item = (i64, &'a [u8], Criterion)>,
) -> Named {
    if !case.rules.may_diagnose() {
        return Named::none();
    }
    let observed: BTreeMap<i64, Observed<'_>> = outputs
        .map(|(uid, bytes, criterion)| (uid, Observed { bytes, criterion }))
        .collect();
    let found = diagnose(
        case.graph,
        case.inputs,
        case.evaluation,
        &case.rules.arithmetic,
        &observed,
        BUDGET,
    );
    // Outputs that could be compared have the layout that a diagnosis needs.
    Named::of(&found.unwrap_or_default())
}

/// Looks for names by the rows of samples of each output, by uid.
pub fn name_samples<'a>(
    graph: &'a Graph,
    source: &'a dyn Source,
    rules: &'a Rules,
    rows: impl Iterator<Item = (i64, &'a Row)>,
) -> Named {
    if !rules.may_diagnose() {
        return Named::none();
    }
    let found = diagnose_samples(graph, source, &rules.arithmetic, rows);
    let found = found.unwrap_or_default();
    let mut named = Named::of(&found);
    if !found.left_out.is_empty() {
        named.notes.push(format!(
            "by samples, faults that need the whole tensor are not looked for: {}",
            found.left_out.join(", ")
        ));
    }
    named
}

impl Named {
    fn none() -> Self {
        Self {
            ids: Vec::new(),
            notes: vec!["not diagnosed: enough failures of this run were".to_owned()],
        }
    }

    fn of(found: &Diagnosis) -> Self {
        let details = found.named.iter().filter(|named| !named.detail.is_empty());
        let mut notes: Vec<String> = details
            .map(|named| format!("{}: {}", named.id, named.detail))
            .collect();
        if found.named.is_empty() && found.skipped > 0 {
            notes.push(format!(
                "{} possible explanations were too costly to try",
                found.skipped
            ));
        }
        Self {
            ids: found
                .named
                .iter()
                .map(|named| named.id.to_owned())
                .collect(),
            notes,
        }
    }
}
