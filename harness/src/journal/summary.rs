//! Figures over a journal.

use std::collections::BTreeMap;

use super::{CaseEnd, Journal, UnitKey};
use crate::verdict::{Depth, Verdict};

/// How many of the slowest units a summary names.
const SLOWEST: usize = 5;

/// What a run amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Plan units over all plugins that were loaded.
    pub planned: u64,
    /// Units with a verdict other than `Missing`.
    pub reported: u64,
    /// Judged, and found right or wrong.
    pub verified: u64,
    /// Of those, judged by samples: not every element was compared.
    pub sampled: u64,
    /// Units that are planned and have no verdict.
    pub missing: u64,
    /// Units by verdict name.
    pub by_verdict: BTreeMap<&'static str, u64>,
    /// Failed units by kind.
    pub by_fail_kind: BTreeMap<&'static str, u64>,
    /// Skipped units by reason.
    pub by_skip_reason: BTreeMap<&'static str, u64>,
    /// Units that were not reached, by reason.
    pub by_not_run: BTreeMap<&'static str, u64>,
    /// Units by the depth that they reached.
    pub by_depth: BTreeMap<Depth, u64>,
    /// The slowest units, slowest first.
    pub slowest: Vec<Slow>,
    /// What each criterion said of decoys.
    pub decoys: BTreeMap<String, DecoyCount>,
    /// The largest margin of a passed unit.
    pub worst_margin: Option<WorstMargin>,
    /// Milliseconds in the plugins: planning and execution.
    pub plugin_ms: f64,
    /// Milliseconds of the plugins' load sequences and of first executions beyond later ones.
    pub cold_ms: f64,
    /// Milliseconds in our reference.
    pub reference_ms: f64,
    /// Milliseconds in our comparison.
    pub comparison_ms: f64,
    /// Plugins that could not be used.
    pub plugin_errors: u64,
}

/// Decoys that differ from their reference, and those of them that a criterion accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecoyCount {
    /// All.
    pub differing: u64,
    /// Accepted ones.
    pub accepted: u64,
}

/// A slow unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow {
    /// Which.
    pub key: UnitKey,
    /// Milliseconds over all attempts.
    pub ms: f64,
}

/// The largest margin of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstMargin {
    /// Which unit.
    pub key: UnitKey,
    /// Error over bound.
    pub margin: f64,
}

impl Summary {
    /// Of a journal.
    pub fn of(journal: &Journal) -> Self {
        let mut summary = Self {
            planned: journal.plugins.iter().filter_map(|p| p.planned).sum(),
            missing: journal
                .plugins
                .iter()
                .map(|plugin| journal.unnamed_missing(plugin))
                .sum(),
            // A sum of nothing is −0, which would print as such.
            cold_ms: journal
                .plugins
                .iter()
                .filter_map(|p| p.load_ms)
                .sum::<f64>()
                + 0.0,
            plugin_errors: journal.plugins.iter().filter(|p| p.error.is_some()).count() as u64,
            ..Self::default()
        };
        for unit in journal.units() {
            summary.count(&unit.verdict);
            let last = unit.attempts.last();
            *summary
                .by_depth
                .entry(last.map_or(Depth::None, |end| end.depth))
                .or_default() += 1;
            for end in &unit.attempts {
                summary.add_times(end);
            }
            let ms: f64 = unit.attempts.iter().map(|end| total_ms(end)).sum();
            summary.note_slow(&unit.key, ms);
            if let Some(end) = last {
                let by_samples = unit.verdict.is_verified() && end.sampled.is_some();
                summary.sampled += u64::from(by_samples);
                summary.note_decoys(end);
            }
            if let (Verdict::Pass, Some(end)) = (&unit.verdict, last) {
                summary.note_margin(&unit.key, end);
            }
        }
        if summary.missing > 0 {
            summary
                .by_verdict
                .insert(Verdict::Missing.name(), summary.missing);
        }
        summary
    }

    /// Units with this verdict, by [`Verdict::name`].
    pub fn count_of(&self, name: &str) -> u64 {
        self.by_verdict.get(name).copied().unwrap_or(0)
    }

    fn count(&mut self, verdict: &Verdict) {
        if *verdict == Verdict::Missing {
            self.missing += 1;
            return;
        }
        self.reported += 1;
        self.verified += u64::from(verdict.is_verified());
        *self.by_verdict.entry(verdict.name()).or_default() += 1;
        match verdict {
            Verdict::Fail(kind) => *self.by_fail_kind.entry(kind.name()).or_default() += 1,
            Verdict::Skipped(why) => *self.by_skip_reason.entry(why.name()).or_default() += 1,
            Verdict::NotRun(why) => *self.by_not_run.entry(why.name()).or_default() += 1,
            _ => {}
        }
    }

    fn add_times(&mut self, end: &CaseEnd) {
        let times = &end.times;
        let first = times.first_ms.unwrap_or(0.0);
        self.plugin_ms += times.plan_ms.unwrap_or(0.0) + first + times.later_ms.iter().sum::<f64>();
        if let Some(fastest) = times.later_ms.iter().copied().reduce(f64::min) {
            self.cold_ms += (first - fastest).max(0.0);
        }
        self.reference_ms += times.reference_ms.unwrap_or(0.0);
        self.comparison_ms += times.comparison_ms.unwrap_or(0.0);
    }

    fn note_slow(&mut self, key: &UnitKey, ms: f64) {
        let at = self.slowest.partition_point(|slow| slow.ms >= ms);
        if ms > 0.0 && at < SLOWEST {
            self.slowest.insert(
                at,
                Slow {
                    key: key.clone(),
                    ms,
                },
            );
            self.slowest.truncate(SLOWEST);
        }
    }

    fn note_decoys(&mut self, end: &CaseEnd) {
        let (Some(criterion), Some(differing)) = (&end.criterion, end.decoys) else {
            return;
        };
        let count = self.decoys.entry(criterion.clone()).or_default();
        count.differing += differing;
        count.accepted += end.decoys_accepted.len() as u64;
    }

    fn note_margin(&mut self, key: &UnitKey, end: &CaseEnd) {
        let Some(margin) = end.margin else { return };
        if self.worst_margin.as_ref().is_none_or(|w| margin > w.margin) {
            self.worst_margin = Some(WorstMargin {
                key: key.clone(),
                margin,
            });
        }
    }
}

/// Wall time of an attempt; where it was not measured as a whole, the sum of its parts.
fn total_ms(end: &CaseEnd) -> f64 {
    let times = &end.times;
    times.total_ms.unwrap_or_else(|| {
        times.plan_ms.unwrap_or(0.0)
            + times.first_ms.unwrap_or(0.0)
            + times.later_ms.iter().sum::<f64>()
            + times.comparison_ms.unwrap_or(0.0)
    })
}
