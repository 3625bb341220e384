//! Findings that are no case's, of inspection and conformance, under waivers.

use std::collections::BTreeMap;

use super::{Gate, Waiver};
use crate::journal::{Infra, InfraKind, PluginRecord};

/// A rule or contract, as a stage before the cases found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// `inspect/export/std`, `conform/handle/distinct`.
    pub rule: String,
    /// Positions in the run of the plugins that it was held against.
    pub plugins: Vec<u32>,
    /// One text for each time that it is broken; empty where it holds.
    pub broken: Vec<String>,
}

/// Names under which waivers know rules and contracts.
pub fn known_rules() -> impl Iterator<Item = String> {
    let rules = dnn_assay_elf::rules::all().map(|rule| format!("inspect/{}", rule.id));
    let checks = crate::conform::all_checks().map(|check| check.id);
    let pairs = crate::conform::PAIR_CHECKS.iter().map(|check| check.id);
    rules.chain(checks.chain(pairs).map(|id| format!("conform/{id}")))
}

impl Gate {
    /// What is to be written of what a stage found: findings, waived ones, and rules that hold
    /// although an entry says that they are broken. Plugins are to be seen before.
    pub fn judge_findings(&self, observed: &[Observed]) -> Vec<Infra> {
        let mut records = Vec::new();
        let mut by_rule: BTreeMap<&str, Vec<&Observed>> = BTreeMap::new();
        for one in observed {
            by_rule.entry(&one.rule).or_default().push(one);
        }
        for (rule, all) in by_rule {
            self.judge_rule(rule, &all, &mut records);
        }
        records
    }

    fn judge_rule(&self, rule: &str, all: &[&Observed], records: &mut Vec<Infra>) {
        // Of an entry: whether it met a finding, and whether it met anything at all.
        let mut met: BTreeMap<usize, bool> = BTreeMap::new();
        for one in all {
            let mut expired = None;
            let mut holder = None;
            for (index, waiver) in self.waivers.iter().enumerate() {
                if !waiver.is_for_rule(rule) || !self.concerns(waiver, &one.plugins) {
                    continue;
                }
                self.lock().waivers[index] = true;
                if self.nightly && waiver.is_expired(self.today) {
                    expired = Some(waiver);
                    continue;
                }
                *met.entry(index).or_default() |= !one.broken.is_empty();
                holder = holder.or(Some(waiver));
            }
            for text in &one.broken {
                records.push(match (holder, expired) {
                    (Some(waiver), _) => {
                        let text = format!("{text}; {}", waiver.waived());
                        record(InfraKind::WaivedFinding, rule, text, &one.plugins)
                    }
                    (None, Some(waiver)) => {
                        let (at, last) = (&waiver.origin, waiver.expiry());
                        let text = format!("{text} (the waiver at {at} expired on {last})");
                        record(InfraKind::Finding, rule, text, &one.plugins)
                    }
                    (None, None) => record(InfraKind::Finding, rule, text.clone(), &one.plugins),
                });
            }
        }
        let surprises = met.into_iter().filter(|(_, broken)| !broken);
        for waiver in surprises.filter_map(|(index, _)| self.waivers.iter().nth(index)) {
            let text = format!(
                "{rule}: unexpected pass: it holds, and the waiver at {} says that it is broken; \
                 remove the entry",
                waiver.origin
            );
            records.push(record(InfraKind::Finding, rule, text, &[]));
        }
    }

    /// Whether an entry can mean one of these plugins on this device.
    fn concerns(&self, waiver: &Waiver, plugins: &[u32]) -> bool {
        let seen = self.lock();
        let concerned = |record: &&PluginRecord| plugins.contains(&record.plugin);
        seen.plugins
            .iter()
            .filter(concerned)
            .any(|record| waiver.is_for_plugin(record, self.arch.as_deref(), self.rocm.as_deref()))
    }
}

fn record(kind: InfraKind, rule: &str, message: String, plugins: &[u32]) -> Infra {
    Infra {
        rule: Some(rule.to_owned()),
        plugin: plugins.first().copied(),
        ..Infra::now(kind, message)
    }
}
