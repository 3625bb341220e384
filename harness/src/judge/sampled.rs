//! Outputs judged by some of their elements, and by sums that touch all of them.

use std::time::{Duration, Instant};

use dnn_assay_graph::{Graph, Tensor};
use dnn_assay_reference::sample::{self, Checksum, Sampled, Seen, Source, Sums};
use dnn_assay_reference::{Comparison, Criterion, Mismatch, Trait};

use super::diagnosis::{Named, name_samples};
use super::looked::{Looked, skip};
use super::undeclared::{Failed, convict, explanation};
use super::values::{histogram_of, naive, worst_of};
use super::{Finding, Rules};
use crate::journal::{CaseEnd, SampledRecord, SumsRecord, Worst};
use crate::verdict::{FailKind, Verdict};

/// Said beside a failure: geometry needs every element.
const NO_GEOMETRY: &str = "judged by samples: where the wrong elements lie is not described";
/// Said where sums are wrong and no sample is.
const ONLY_SUMS: &str = "no sampled element is wrong: the fault has no name, and no trait is tried";

/// Traits whose errors go by the largest element of the whole tensor.
const WHOLE: [Trait; 2] = [Trait::Winograd, Trait::Fft];

/// What a case is judged by.
pub struct Sampling<'a> {
    /// Its graph.
    pub graph: &'a Graph,
    /// Its inputs.
    pub source: &'a dyn Source,
    /// What was written, outputs in the order of the graph.
    pub looked: &'a [Looked],
    /// The rules of the unit.
    pub rules: &'a Rules,
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
    diagnosis: Vec<String>,
    notes: Vec<String>,
}

struct Output<'a> {
    tensor: &'a Tensor,
    looked: &'a Looked,
    sampled: Sampled,
    /// Sums by the reference, and what they say.
    sums: Result<(Sums, Checksum), String>,
}

/// Judges every output by samples: each sampled element by the bound, as if the whole were compared,
/// and sums over channels where the operation is linear in them.
pub fn judge_samples(case: &Sampling<'_>) -> SampledValues {
    let start = Instant::now();
    let mut outputs = Vec::new();
    for looked in case.looked {
        match case.judge(looked) {
            Ok(output) => outputs.push(output),
            Err(finding) => return SampledValues::skipped(finding, start.elapsed()),
        }
    }
    let teller = outputs.iter().find(|output| !output.passes());
    let told = |mut worst: Worst| {
        worst.naive = teller.and_then(|_| naive(case.graph, case.source, &worst));
        worst
    };
    let mut finding = verdict(&outputs, teller);
    let Named { ids, notes } = match teller {
        Some(_) => case.look_into(&outputs, &mut finding),
        None => Named::default(),
    };
    SampledValues {
        finding,
        reference: start.elapsed(),
        record: record(case.looked, &outputs),
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
        diagnosis: ids,
        notes,
    }
}

impl<'a> Sampling<'a> {
    fn judge(&self, looked: &'a Looked) -> Result<Output<'a>, Finding> {
        let missing = || skip(format!("the graph has no tensor {}", looked.uid));
        let tensor = self.graph.tensor(looked.uid).ok_or_else(missing)?;
        let sampled = self.sampled(tensor, &looked.seen, self.rules);
        let arithmetic = &self.rules.arithmetic;
        let written = looked.sums.as_ref().map_err(String::clone);
        let sums = written.and_then(|written| {
            let sums = Sums::of(self.graph, self.source, arithmetic, tensor)?;
            let said = sums.compare((self.graph, tensor), arithmetic, written)?;
            Ok((sums, said))
        });
        Ok(Output {
            tensor,
            looked,
            sampled: sampled.map_err(|error| skip(error.to_string()))?,
            sums,
        })
    }

    fn sampled(
        &self,
        tensor: &Tensor,
        seen: &Seen,
        rules: &Rules,
    ) -> Result<Sampled, sample::SampleError> {
        let (arithmetic, bound) = (&rules.arithmetic, Criterion::Bound);
        sample::judge(self.graph, self.source, arithmetic, (tensor, seen), &bound)
    }

    /// Which known faults explain samples that fail, and what an undeclared trait makes of them. Where
    /// only sums are wrong none is tried: the errors of a trait are nearly everywhere, and no sample
    /// has one.
    fn look_into(&self, outputs: &[Output<'_>], finding: &mut Finding) -> Named {
        if outputs
            .iter()
            .all(|output| output.sampled.comparison.passed)
        {
            return Named {
                ids: Vec::new(),
                notes: vec![ONLY_SUMS.to_owned()],
            };
        }
        let rows = outputs.iter().map(|o| (o.tensor.uid, &o.sampled.row));
        let mut named = name_samples(self.graph, self.source, self.rules, rows);
        let failed = Failed {
            graph: self.graph,
            rules: self.rules,
            comparisons: outputs.iter().map(|o| &o.sampled.comparison).collect(),
            named: &named.ids,
            except: &WHOLE,
        };
        let accepts = |rules: &Rules| {
            let accepted = outputs.iter().all(|output| self.accepts(output, rules));
            accepted.then_some(())
        };
        let trials = explanation(&failed, accepts);
        match trials.found {
            Some((which, ())) => convict(finding, which, self.rules),
            None => named.notes.extend(trials.notes()),
        }
        named
    }

    /// Whether other rules accept all samples and sums of an output.
    fn accepts(&self, output: &Output<'_>, rules: &Rules) -> bool {
        let tensor = output.tensor;
        let passes = |seen: &Seen| {
            let sampled = self.sampled(tensor, seen, rules);
            sampled.is_ok_and(|sampled| sampled.comparison.passed)
        };
        // The first wrong elements settle most trials.
        let first = output.sampled.comparison.first.iter();
        let first: Vec<usize> = first.map(|element| element.index).collect();
        let seen = &output.looked.seen;
        let samples = (first.is_empty() || passes(&seen.only(&first))) && passes(seen);
        samples && self.accepts_sums(output, rules)
    }

    /// Wider bounds change nothing where no sum was beyond its own.
    fn accepts_sums(&self, output: &Output<'_>, rules: &Rules) -> bool {
        let (Ok((sums, said)), Ok(written)) = (&output.sums, &output.looked.sums) else {
            return true;
        };
        let arithmetic = &rules.arithmetic;
        said.outside == 0
            || sums
                .compare((self.graph, output.tensor), arithmetic, written)
                .is_ok_and(|said| said.outside == 0)
    }
}

impl Output<'_> {
    fn passes(&self) -> bool {
        let sums = self.said().map_or(0, |said| said.outside);
        self.sampled.comparison.passed && sums == 0
    }

    fn said(&self) -> Option<&Checksum> {
        self.sums.as_ref().ok().map(|(_, said)| said)
    }

    fn margin(&self) -> f64 {
        self.sampled.comparison.margin
    }

    fn failure(&self) -> Finding {
        let c = &self.sampled.comparison;
        let name = &self.tensor.name;
        if c.passed {
            let sums = self.said().map(sums_text).unwrap_or_default();
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
        return skip(why.to_owned());
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

fn record(looked: &[Looked], outputs: &[Output<'_>]) -> SampledRecord {
    let sum = |f: fn(&Sampled) -> usize| outputs.iter().map(|o| f(&o.sampled) as u64).sum();
    let sums = outputs.iter().filter_map(Output::said);
    let sums = sums.map(|sums| SumsRecord {
        sums: sums.sums as u64,
        channels: sums.channels as u64,
        outside: sums.outside as u64,
        unsummed: sums.unsummed as u64,
        margin: sums.margin,
    });
    let random = looked.first().map_or(0, |l| l.seen.choice.random as u64);
    SampledRecord {
        elements: sum(|sampled| sampled.total),
        random,
        left_out: sum(|sampled| sampled.left_out),
        misses: SampledRecord::misses(random),
        sums: sums.max_by(|a, b| a.margin.total_cmp(&b.margin)),
        no_sums: outputs
            .iter()
            .find_map(|output| output.sums.as_ref().err().cloned()),
    }
}

impl SampledValues {
    /// A case that cannot be judged by samples after all.
    pub fn skipped(finding: Finding, reference: Duration) -> Self {
        Self {
            finding,
            reference,
            outputs: Vec::new(),
            record: SampledRecord::default(),
            worst: None,
            diagnosis: Vec::new(),
            notes: Vec::new(),
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
            end.notes.push(NO_GEOMETRY.to_owned());
        }
        end.diagnosis = self.diagnosis;
        end.notes.extend(self.notes);
        end.worst = self.worst;
        end.sampled = Some(self.record);
    }
}
