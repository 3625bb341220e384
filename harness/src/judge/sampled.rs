//! Outputs judged by some of their elements, and by sums that touch all of them.

use std::time::{Duration, Instant};

use dnn_assay_device::Snapshot;
use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::sample::{self, Checksum, Sampled, Source};
use dnn_assay_reference::{Comparison, Criterion, Mismatch};

use super::values::{histogram_of, naive, worst_of};
use super::{Finding, Rules};
use crate::journal::{CaseEnd, SampledRecord, SumsRecord, Worst};
use crate::verdict::{FailKind, SkipReason, Verdict};

/// Said beside a failure: names and geometry need every element.
const NO_NAMES: &str = "judged by samples: the fault is not named, and its geometry not described";

/// What a case is judged by.
pub struct Sampling<'a> {
    /// Its graph.
    pub graph: &'a Graph,
    /// Its inputs.
    pub source: &'a dyn Source,
    /// What was written.
    pub snapshot: &'a Snapshot,
    /// The rules of the unit.
    pub rules: &'a Rules,
    /// Elements drawn at random from each output.
    pub random: u32,
    /// Seed of the draws.
    pub seed: u64,
}

/// The judgement of a case by samples.
#[derive(Clone, Debug)]
pub struct SampledValues {
    /// Pass, fail, weak, or skipped where no element can be computed by itself.
    pub finding: Finding,
    /// Time in the reference: sampled elements and sums.
    pub reference: Duration,
    outputs: Vec<(String, Sampled)>,
    record: SampledRecord,
    worst: Option<Worst>,
}

struct Output<'a> {
    tensor: &'a Tensor,
    sampled: Sampled,
    sums: Result<Checksum, String>,
}

/// Judges every output by samples: each sampled element by the bound, as if the whole were compared,
/// and sums over channels where the operation is linear in them.
pub fn judge_samples(case: &Sampling<'_>) -> SampledValues {
    let start = Instant::now();
    let mut outputs = Vec::new();
    for tensor in case.graph.outputs() {
        match judge(case, tensor) {
            Ok(output) => outputs.push(output),
            Err(finding) => return SampledValues::skipped(finding, start.elapsed()),
        }
    }
    let teller = outputs.iter().find(|output| !output.passes());
    let told = |mut worst: Worst| {
        worst.naive = teller.and_then(|_| naive(case.graph, case.source, &worst));
        worst
    };
    SampledValues {
        finding: verdict(&outputs, teller),
        reference: start.elapsed(),
        record: record(case, &outputs),
        worst: teller
            .or_else(|| {
                outputs
                    .iter()
                    .max_by(|a, b| a.margin().total_cmp(&b.margin()))
            })
            // Where only sums are wrong, no element is known to be.
            .filter(|output| output.passes() || !output.sampled.comparison.passed)
            .and_then(|output| worst_of(output.tensor, &output.sampled.comparison))
            .map(told),
        outputs: outputs
            .into_iter()
            .map(|output| (output.tensor.name.clone(), output.sampled))
            .collect(),
    }
}

fn judge<'a>(case: &Sampling<'a>, tensor: &'a Tensor) -> Result<Output<'a>, Finding> {
    let skip = |why: String| Finding::new(Verdict::Skipped(SkipReason::NoReference), why);
    let check = case.snapshot.buffer(tensor.uid);
    let check = check.ok_or_else(|| skip(format!("there is no buffer of {}", tensor.name)))?;
    let draws = case.random as usize;
    let choice = sample::choose(tensor, groups(case.graph), draws, case.seed);
    let arithmetic = &case.rules.arithmetic;
    let sampled = sample::judge(
        case.graph,
        case.source,
        arithmetic,
        (tensor, &check.bytes),
        &Criterion::Bound,
        &choice,
    );
    Ok(Output {
        tensor,
        sampled: sampled.map_err(|error| skip(error.to_string()))?,
        sums: sample::checksum(case.graph, case.source, arithmetic, tensor, &check.bytes),
    })
}

/// Groups of the graph's convolution; 1 where there is none.
fn groups(graph: &Graph) -> usize {
    let of = |x: i64, w: i64| {
        let channels = |uid: i64| graph.tensor(uid)?.dims.get(1).copied();
        let groups = channels(x)? / channels(w)?.max(1);
        usize::try_from(groups).ok()
    };
    let mut nodes = graph.nodes.iter().map(|node| &node.attributes);
    let groups = nodes.find_map(|attributes| {
        let conv = attributes.convolution()?;
        of(conv.x, conv.w)
    });
    groups.unwrap_or(1).max(1)
}

impl Output<'_> {
    fn passes(&self) -> bool {
        let sums = self.sums.as_ref().map_or(0, |sums| sums.outside);
        self.sampled.comparison.passed && sums == 0
    }

    fn margin(&self) -> f64 {
        self.sampled.comparison.margin
    }

    fn failure(&self) -> Finding {
        let c = &self.sampled.comparison;
        let name = &self.tensor.name;
        if c.passed {
            let sums = self.sums.as_ref().map(sums_text).unwrap_or_default();
            return Finding::new(Verdict::Fail(FailKind::Numeric), format!("{name}: {sums}"));
        }
        let kind = match c.kind {
            Some(Mismatch::NotFinite) => FailKind::NotFinite,
            _ => FailKind::Numeric,
        };
        let worst = c
            .worst
            .as_ref()
            .map_or_else(String::new, |w| format!("; worst {w}"));
        let text = format!(
            "{name}: {} of {} sampled elements differ by more than bound allows{worst}",
            c.mismatched, c.compared
        );
        Finding::new(Verdict::Fail(kind), text)
    }
}

fn sums_text(sums: &Checksum) -> String {
    let worst = sums.worst.as_ref().map_or_else(String::new, |worst| {
        format!(
            "; worst at {:?}: {} for {}, {} allowed",
            worst.coordinates, worst.got, worst.expected, worst.bound
        )
    });
    format!(
        "no sampled element is wrong, but {} of {} sums of {} channels are beyond their bound{worst}",
        sums.outside, sums.sums, sums.channels
    )
}

fn verdict(outputs: &[Output<'_>], teller: Option<&Output<'_>>) -> Finding {
    if let Some(teller) = teller {
        return teller.failure();
    }
    if outputs.is_empty() {
        let why = "the graph has no output with a buffer";
        return Finding::new(Verdict::Skipped(SkipReason::NoReference), why);
    }
    let accepted = outputs
        .iter()
        .flat_map(|output| &output.sampled.decoys.accepted);
    let accepted: Vec<String> = accepted.map(ToString::to_string).collect();
    if !accepted.is_empty() {
        let reason = format!("decoys would pass: {}", accepted.join(", "));
        return Finding::new(Verdict::Weak, reason);
    }
    if outputs
        .iter()
        .all(|output| output.sampled.decoys.applicable.is_empty())
    {
        let reason = "no decoy differs from the reference: the data cannot tell right from wrong";
        return Finding::new(Verdict::Weak, reason);
    }
    Finding::new(Verdict::Pass, String::new())
}

fn record(case: &Sampling<'_>, outputs: &[Output<'_>]) -> SampledRecord {
    let sum = |f: fn(&Sampled) -> usize| outputs.iter().map(|o| f(&o.sampled) as u64).sum();
    let sums = outputs
        .iter()
        .filter_map(|output| output.sums.as_ref().ok());
    let sums = sums.map(|sums| SumsRecord {
        sums: sums.sums as u64,
        channels: sums.channels as u64,
        outside: sums.outside as u64,
        unsummed: sums.unsummed as u64,
        margin: sums.margin,
    });
    SampledRecord {
        elements: sum(|sampled| sampled.total),
        random: u64::from(case.random),
        left_out: sum(|sampled| sampled.left_out),
        misses: SampledRecord::misses(u64::from(case.random)),
        sums: sums.max_by(|a, b| a.margin.total_cmp(&b.margin)),
        no_sums: outputs
            .iter()
            .find_map(|output| output.sums.as_ref().err().cloned()),
    }
}

impl SampledValues {
    fn skipped(finding: Finding, reference: Duration) -> Self {
        Self {
            finding,
            reference,
            outputs: Vec::new(),
            record: SampledRecord::default(),
            worst: None,
        }
    }

    /// Puts the figures into a record, which says that they are samples'.
    pub fn record(self, end: &mut CaseEnd) {
        if self.outputs.is_empty() {
            return;
        }
        let of = || self.outputs.iter().map(|(_, sampled)| sampled);
        let comparisons = || of().map(|sampled| &sampled.comparison);
        let sum = |f: fn(&Comparison) -> usize| comparisons().map(|c| f(c) as u64).sum();
        let largest = |f: fn(&Comparison) -> f64| comparisons().map(f).fold(0.0, f64::max);
        end.criterion = Some(Criterion::Bound.name().to_owned());
        end.margin = Some(largest(|c| c.margin));
        end.rms_margin = Some(largest(|c| c.rms_margin));
        end.compared = Some(sum(|c| c.compared));
        end.mismatched = Some(sum(|c| c.mismatched));
        end.decoys = Some(
            of().map(|sampled| sampled.decoys.applicable.len() as u64)
                .sum(),
        );
        let accepted = of().flat_map(|sampled| &sampled.decoys.accepted);
        end.decoys_accepted = accepted.map(ToString::to_string).collect();
        end.ulps = histogram_of(comparisons());
        let several = self.outputs.len() > 1;
        for (name, sampled) in &self.outputs {
            let notes = sampled.comparison.notes.iter();
            end.notes.extend(notes.map(|note| match several {
                true => format!("{name}: {note}"),
                false => note.to_string(),
            }));
        }
        if matches!(end.verdict, Verdict::Fail(_)) {
            end.notes.push(NO_NAMES.to_owned());
        }
        end.worst = self.worst;
        end.sampled = Some(self.record);
    }
}
