//! A journal as reports see it.

use std::collections::{BTreeMap, HashSet};

use super::Summary;
use super::record::{CaseEnd, CaseStart, Infra, PluginRecord, Record, RunEnd, RunStart, UnitKey};
use crate::verdict::Verdict;

/// Everything that a journal says, in the order of writing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// The first record; `None` for an empty journal.
    pub start: Option<RunStart>,
    /// Plugins by index.
    pub plugins: Vec<PluginRecord>,
    /// Attempts that were begun.
    pub starts: Vec<CaseStart>,
    /// Attempts that ended.
    pub ends: Vec<CaseEnd>,
    /// What was no case.
    pub infra: Vec<Infra>,
    /// The last record; `None` when the run was cut.
    pub end: Option<RunEnd>,
    /// The last line was cut.
    pub truncated: bool,
    /// Records of types that this version does not know.
    pub unknown_records: u64,
}

/// A plan unit with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit<'a> {
    /// Which.
    pub key: UnitKey,
    /// The outcome over all attempts; [`Verdict::Missing`] when begun and never ended.
    pub verdict: Verdict,
    /// Attempts in order; empty when none ended.
    pub attempts: Vec<Attempt<'a>>,
}

/// An attempt that ended.
pub type Attempt<'a> = &'a CaseEnd;

impl Journal {
    /// Adds a record.
    pub fn push(&mut self, record: Record) {
        match record {
            Record::RunStart(start) => self.start = Some(*start),
            Record::Plugin(plugin) => self.plugins.push(*plugin),
            Record::CaseStart(start) => self.starts.push(start),
            Record::CaseEnd(end) => self.ends.push(*end),
            Record::Infra(infra) => self.infra.push(infra),
            Record::RunEnd(end) => self.end = Some(end),
        }
    }

    /// The plugin with this index.
    pub fn plugin(&self, index: u32) -> Option<&PluginRecord> {
        self.plugins.iter().find(|plugin| plugin.plugin == index)
    }

    /// Plan units in the order in which they first appear, each with its outcome: the last
    /// attempt's verdict, and `Missing` where an attempt began and none ended.
    pub fn units(&self) -> Vec<Unit<'_>> {
        let mut order: BTreeMap<UnitKey, usize> = BTreeMap::new();
        let mut units: Vec<Unit<'_>> = Vec::new();
        let mut position = |key: UnitKey, units: &mut Vec<Unit<'_>>| {
            *order.entry(key.clone()).or_insert_with(|| {
                units.push(Unit {
                    key,
                    verdict: Verdict::Missing,
                    attempts: Vec::new(),
                });
                units.len() - 1
            })
        };
        for start in &self.starts {
            position(UnitKey::of_start(start), &mut units);
        }
        for end in &self.ends {
            let at = position(UnitKey::of_end(end), &mut units);
            units[at].attempts.push(end);
        }
        for unit in &mut units {
            unit.attempts.sort_by_key(|end| end.attempt);
            if let Some(last) = unit.attempts.last() {
                unit.verdict = last.verdict.clone();
            }
        }
        units
    }

    /// Plan units of a plugin that no record names: planned less those that appear.
    pub fn unnamed_missing(&self, plugin: &PluginRecord) -> u64 {
        let seen: HashSet<(i64, &str)> = self
            .starts
            .iter()
            .filter(|start| start.plugin == plugin.plugin)
            .map(|start| (start.engine_id, start.case.as_str()))
            .chain(
                self.ends
                    .iter()
                    .filter(|end| end.plugin == plugin.plugin)
                    .map(|end| (end.engine_id, end.case.as_str())),
            )
            .collect();
        plugin
            .planned
            .unwrap_or(0)
            .saturating_sub(seen.len() as u64)
    }

    /// Counts and figures over all units.
    pub fn summary(&self) -> Summary {
        Summary::of(self)
    }
}
