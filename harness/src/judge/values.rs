//! What the output tensors hold: every element against its bound, then the same rule against
//! decoys.

use dnn_assay_device::Snapshot;
use dnn_assay_graph::case::Fill;
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::dtype::LayoutError;
use dnn_assay_reference::exact::Exactness;
use dnn_assay_reference::sample::Source;
use dnn_assay_reference::{
    Comparison, Criterion, Element, Estimate, Evaluation, Mismatch, Trait, UlpHistogram,
    Values as Inputs, compare, decoys, last_terms, naive_f32,
};

use super::diagnosis::{self, Named, Suspicious};
use super::undeclared::{Failed, accepts_whole, convict, explanation, too_large};
use super::{Finding, Rules, bias, exactness_note, geometry};
use crate::cli::args::CriterionName;
use crate::journal::{CaseEnd, MismatchGeometry, Worst};
use crate::verdict::{FailKind, SkipReason, Verdict};

/// The note of a case whose last products vanish in the rounding of its sums: a twin with the fill
/// `edges` shows whether they are there.
const BLIND: &str = "blind: last-tap";

/// The judgement of all outputs of a case.
#[derive(Clone, Debug)]
pub struct Values {
    /// Pass, fail or weak.
    pub finding: Finding,
    criterion: &'static str,
    margin: f64,
    rms_margin: f64,
    bias_z: f64,
    compared: u64,
    mismatched: u64,
    worst: Option<Worst>,
    geometry: Option<MismatchGeometry>,
    decoys: u64,
    decoys_accepted: Vec<String>,
    ulps: Vec<u64>,
    diagnosis: Vec<String>,
    notes: Vec<String>,
}

struct Output<'a> {
    tensor: &'a Tensor,
    estimate: &'a Estimate,
    bytes: &'a [u8],
    comparison: Comparison,
    accepted: Vec<String>,
    applicable: usize,
    /// No decoy can show whether the last tap is there.
    blind: bool,
    /// Inside the bound everywhere, but drifting.
    is_biased: bool,
}

/// Judges the outputs in `snapshot` by `rules`. Values that fail are judged again under every trait
/// that the engine does not declare; one that explains them becomes part of the verdict.
///
/// # Errors
/// A finding where the rule has no number for an output: the case is skipped.
pub fn judge_values(
    graph: &Graph,
    inputs: &Inputs,
    evaluation: &Evaluation,
    snapshot: &Snapshot,
    fill: Fill,
    rules: &Rules,
) -> Result<Values, Finding> {
    let case = Judged {
        graph,
        inputs,
        snapshot,
        fill,
        rules,
    };
    let exactness = rules.exactness(graph, fill, inputs, evaluation);
    let outputs = case.outputs(evaluation, exactness.as_ref())?;
    let mut values = combine(&outputs, exactness.as_ref());
    values.notes.extend(rules.note_overridden(graph));
    if !matches!(values.finding.verdict, Verdict::Fail(_)) {
        return Ok(values);
    }
    let suspicious = Suspicious {
        graph,
        inputs,
        evaluation,
        rules,
    };
    if let Some(worst) = &mut values.worst {
        worst.naive = naive(graph, inputs, worst);
    }
    let seen = outputs
        .iter()
        .map(|o| (o.tensor.uid, o.bytes, o.comparison.criterion));
    let Named { ids, notes } = diagnosis::name(&suspicious, seen);
    values.diagnosis = ids;
    values.notes.extend(notes);
    // Traits widen the bound: they say nothing of what another criterion rejects.
    let by_bound = |output: &Output<'_>| rules.overridden(graph, output.tensor).is_none();
    if rules.name == CriterionName::Bound && outputs.iter().all(by_bound) {
        case.under_traits(values, &outputs)
    } else {
        Ok(values)
    }
}

/// A case with what it wrote.
struct Judged<'a> {
    graph: &'a Graph,
    inputs: &'a Inputs,
    snapshot: &'a Snapshot,
    fill: Fill,
    rules: &'a Rules,
}

impl<'a> Judged<'a> {
    fn outputs<'e>(
        &self,
        evaluation: &'e Evaluation,
        exactness: Option<&Exactness>,
    ) -> Result<Vec<Output<'e>>, Finding>
    where
        'a: 'e,
    {
        let (graph, rules) = (self.graph, self.rules);
        let mut outputs = Vec::new();
        for tensor in graph.outputs() {
            let missing = || skip(format!("there is no reference for {}", tensor.name));
            let estimate = evaluation.tensors.get(&tensor.uid).ok_or_else(missing)?;
            let check = self.snapshot.buffer(tensor.uid).ok_or_else(missing)?;
            let criterion = rules.criterion(graph, tensor, exactness).ok_or_else(|| {
                skip(format!(
                    "the table has no tolerance for {} of type {}",
                    tensor.name,
                    tensor.data_type.short_name()
                ))
            })?;
            let last_terms = last_terms(graph, self.inputs, tensor.uid);
            let output = Output::judge(tensor, estimate, &check.bytes, &criterion, last_terms);
            let mut output = output.map_err(|error| skip(error.to_string()))?;
            if !rules.requires_bits(graph) {
                output.comparison = output.comparison.allow_inexact();
            }
            output.is_biased = self.fill == Fill::Uniform
                && rules.name == CriterionName::Bound
                && rules.overridden(graph, tensor).is_none()
                && bias::convicts(graph, tensor, &output.comparison, &rules.traits);
            outputs.push(output);
        }
        Ok(outputs)
    }

    /// What an undeclared trait makes of values that fail.
    fn under_traits(&self, mut values: Values, outputs: &[Output<'_>]) -> Result<Values, Finding> {
        if too_large(self.graph) {
            return Ok(values);
        }
        let failed = Failed {
            graph: self.graph,
            rules: self.rules,
            comparisons: outputs.iter().map(|output| &output.comparison).collect(),
            named: &values.diagnosis,
            except: &[],
        };
        let accepts = |rules: &Rules| accepts_whole(self.graph, self.inputs, self.snapshot, rules);
        let trials = explanation(&failed, accepts);
        let Some((which, evaluation)) = trials.found else {
            values.notes.extend(trials.notes());
            return Ok(values);
        };
        if which == Trait::FlushDenormals && self.fill == Fill::Special {
            // Every engine may do so; that it does is worth saying.
            let rules = self.rules.with_traits(self.rules.traits.with(which));
            let case = Judged {
                rules: &rules,
                ..*self
            };
            let outputs = case.outputs(&evaluation, None)?;
            let mut flushed = combine(&outputs, None);
            flushed
                .notes
                .push("denormals are flushed to zero".to_owned());
            return Ok(flushed);
        }
        convict(&mut values.finding, which, self.rules);
        Ok(values)
    }
}

fn skip(reason: String) -> Finding {
    Finding::new(Verdict::Skipped(SkipReason::NoReference), reason)
}

impl<'a> Output<'a> {
    fn judge(
        tensor: &'a Tensor,
        estimate: &'a Estimate,
        got: &'a [u8],
        criterion: &Criterion,
        last_terms: Option<Vec<f64>>,
    ) -> Result<Self, LayoutError> {
        let comparison = compare(tensor, estimate, got, criterion)?;
        assert_eq!(
            Some(comparison.compared),
            tensor.element_count(),
            "every element is compared"
        );
        let report = decoys::check_with_terms(tensor, estimate, criterion, last_terms.as_deref())?;
        Ok(Self {
            tensor,
            estimate,
            bytes: got,
            comparison,
            accepted: report.accepted.iter().map(ToString::to_string).collect(),
            applicable: report.applicable.len(),
            blind: report.blind_to_last_tap,
            is_biased: false,
        })
    }

    fn passed(&self) -> bool {
        self.comparison.passed && !self.is_biased
    }
}

fn combine(outputs: &[Output<'_>], exactness: Option<&Exactness>) -> Values {
    let sum = |f: fn(&Comparison) -> usize| outputs.iter().map(|o| f(&o.comparison) as u64).sum();
    // The first failing output tells the story; without one, the output nearest to its bound.
    let teller = outputs.iter().find(|o| !o.passed()).or_else(|| {
        outputs.iter().max_by(|a, b| {
            let (a, b) = (a.comparison.margin, b.comparison.margin);
            a.total_cmp(&b)
        })
    });
    let decoys_accepted = named(outputs, |output| output.accepted.clone());
    let mut notes = named(outputs, |output| {
        let notes = output.comparison.notes.iter();
        notes.map(ToString::to_string).collect()
    });
    notes.extend(exactness.and_then(exactness_note));
    if outputs.iter().any(|output| output.blind) {
        notes.push(BLIND.to_owned());
    }
    let largest = |f: fn(&Comparison) -> f64| {
        let values = outputs.iter().map(|o| f(&o.comparison));
        values.max_by(f64::total_cmp).unwrap_or(0.0)
    };
    Values {
        finding: verdict(outputs, teller),
        criterion: teller.map_or("bound", |o| o.comparison.criterion.name()),
        margin: largest(|c| c.margin),
        rms_margin: largest(|c| c.rms_margin),
        bias_z: teller.map_or(0.0, |o| o.comparison.bias_z),
        compared: sum(|c| c.compared),
        mismatched: sum(|c| c.mismatched),
        worst: teller.and_then(worst),
        geometry: teller
            .filter(|o| !o.comparison.passed)
            .map(shape_of_mismatch),
        decoys: outputs.iter().map(|o| o.applicable as u64).sum(),
        decoys_accepted,
        ulps: histogram(outputs),
        diagnosis: Vec::new(),
        notes,
    }
}

/// Elements of all outputs by distance in units in the last place, up to the last bin that is not
/// empty.
fn histogram(outputs: &[Output<'_>]) -> Vec<u64> {
    histogram_of(outputs.iter().map(|output| &output.comparison))
}

/// As [`histogram`], of comparisons.
pub(super) fn histogram_of<'c>(comparisons: impl Iterator<Item = &'c Comparison>) -> Vec<u64> {
    let mut all = UlpHistogram::default();
    for comparison in comparisons {
        all.merge(&comparison.ulps);
    }
    let used = all.counts.iter().rposition(|&n| n > 0).map_or(0, |i| i + 1);
    all.counts[..used].to_vec()
}

/// Texts of several outputs, each with its tensor's name where there is more than one.
fn named(outputs: &[Output<'_>], texts: impl Fn(&Output<'_>) -> Vec<String>) -> Vec<String> {
    let several = outputs.len() > 1;
    let of_one = |output: &Output<'_>| -> Vec<String> {
        let name = &output.tensor.name;
        let texts = texts(output).into_iter();
        texts
            .map(|text| {
                if several {
                    format!("{name}: {text}")
                } else {
                    text
                }
            })
            .collect()
    };
    outputs.iter().flat_map(of_one).collect()
}

fn verdict(outputs: &[Output<'_>], teller: Option<&Output<'_>>) -> Finding {
    let Some(teller) = teller else {
        return skip("the graph has no output with a buffer".to_owned());
    };
    if !teller.comparison.passed {
        let kind = match teller.comparison.kind {
            Some(Mismatch::NotFinite) => FailKind::NotFinite,
            Some(Mismatch::Inexact) => FailKind::Inexact,
            Some(Mismatch::Numeric) | None => FailKind::Numeric,
        };
        return Finding::new(Verdict::Fail(kind), failure_text(teller));
    }
    if teller.is_biased {
        let reason = bias::text(&teller.tensor.name, &teller.comparison);
        return Finding::new(Verdict::Fail(FailKind::Numeric), reason);
    }
    if outputs.iter().all(|output| output.applicable == 0) {
        let reason = "no decoy differs from the reference: the data cannot tell right from wrong";
        return Finding::new(Verdict::Weak, reason);
    }
    if outputs.iter().any(|output| !output.accepted.is_empty()) {
        let decoys = named(outputs, |output| output.accepted.clone()).join(", ");
        return Finding::new(Verdict::Weak, format!("decoys would pass: {decoys}"));
    }
    Finding::new(Verdict::Pass, String::new())
}

fn failure_text(output: &Output<'_>) -> String {
    let c = &output.comparison;
    let worst = c
        .worst
        .as_ref()
        .map_or_else(String::new, |w| format!("; worst {w}"));
    format!(
        "{}: {} of {} elements differ by more than {} allows{worst}",
        output.tensor.name, c.mismatched, c.compared, c.criterion
    )
}

fn worst(output: &Output<'_>) -> Option<Worst> {
    worst_of(output.tensor, &output.comparison)
}

/// The element nearest to its bound, or farthest beyond it.
pub(super) fn worst_of(tensor: &Tensor, comparison: &Comparison) -> Option<Worst> {
    let Element {
        index,
        coordinates,
        expected,
        got,
        bound,
        ulps,
        ..
    } = comparison.worst.clone()?;
    Some(Worst {
        tensor: tensor.name.clone(),
        uid: tensor.uid,
        dims: tensor.dims.clone(),
        dtype: tensor.data_type.short_name().to_owned(),
        index: index as u64,
        coordinates,
        expected,
        naive: None,
        got,
        bound,
        ulps: ulps.map(|ulps| ulps as f64),
    })
}

/// What a plain f32 loop gives for the worst element.
pub(super) fn naive(graph: &Graph, source: &dyn Source, worst: &Worst) -> Option<f64> {
    let index = usize::try_from(worst.index).ok()?;
    naive_f32(graph, source, worst.uid, index).map(f64::from)
}

fn shape_of_mismatch(output: &Output<'_>) -> MismatchGeometry {
    geometry::describe(
        output.tensor,
        output.estimate,
        output.bytes,
        &output.comparison,
    )
}

impl Values {
    /// Ids of the hypotheses that explain a failure.
    pub fn diagnosis(&self) -> &[String] {
        &self.diagnosis
    }

    /// Puts the figures into a record: they are recorded on a pass too.
    pub fn record(self, end: &mut CaseEnd) {
        end.criterion = Some(self.criterion.to_owned());
        end.margin = Some(self.margin);
        end.rms_margin = Some(self.rms_margin);
        end.bias_z = Some(self.bias_z);
        end.compared = Some(self.compared);
        end.mismatched = Some(self.mismatched);
        end.worst = self.worst;
        end.geometry = self.geometry;
        end.decoys = Some(self.decoys);
        end.decoys_accepted = self.decoys_accepted;
        end.ulps = self.ulps;
        end.diagnosis = self.diagnosis;
        end.notes.extend(self.notes);
    }
}
