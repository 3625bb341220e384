//! Engines that declined everything: the run says so, with a small graph of each operation to
//! start from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dnn_assay_graph::case::{Case, Op};

use super::failure::engine_argument;
use super::style::ODD;
use super::text::{one_line, plural};
use crate::journal::{Journal, Unit};
use crate::verdict::Verdict;

/// Lines about engines whose every unit was declined; empty when there are none.
pub fn declined_engines(journal: &Journal, units: &[Unit<'_>]) -> String {
    let mut engines: BTreeMap<(u32, i64), (u64, bool)> = BTreeMap::new();
    for unit in units {
        let (asked, all) = engines
            .entry((unit.key.plugin, unit.key.engine_id))
            .or_insert((0, true));
        *asked += 1;
        *all &= unit.verdict == Verdict::Unsupported;
    }
    let mut out = String::new();
    for (engine, (asked, _)) in engines.iter().filter(|(_, (_, all))| *all) {
        let Some(unit) = units
            .iter()
            .find(|unit| (unit.key.plugin, unit.key.engine_id) == *engine)
        else {
            continue;
        };
        let name = one_line(&engine_argument(journal, &unit.key));
        let text = format!("{name} declined all {}", plural(*asked, "case"));
        let _ = writeln!(out, "\n{}", ODD.paint(&text));
    }
    if !out.is_empty() {
        out.push_str("  the smallest graph of each operation that was asked for:\n");
        for case in smallest(units) {
            let _ = writeln!(out, "  dnn-assay explain {case}");
        }
    }
    out
}

/// The smallest case of each operation that occurs, fused ones left out, one pointwise mode for
/// all.
fn smallest(units: &[Unit<'_>]) -> Vec<Case> {
    let mut ops: BTreeMap<String, Op> = BTreeMap::new();
    for unit in units {
        let name = unit.key.case.split('/').next().unwrap_or_default();
        if let Some(op) = Op::from_name(name).filter(|op| !op.is_fused()) {
            let group = match op {
                Op::Pointwise(_) => "pointwise".to_owned(),
                other => other.to_string(),
            };
            ops.entry(group).or_insert(op);
        }
    }
    ops.into_values().map(Case::smallest).collect()
}
