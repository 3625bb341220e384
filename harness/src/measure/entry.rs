//! What was measured, in words and as entries for `dnn-assay.yaml`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use dnn_assay_graph::case::Case;
use dnn_assay_reference::Trait;

use super::probe::{Fact, Probe};
use crate::plan::Engine;

/// All answers of an engine.
pub struct Measured {
    /// The engine.
    pub engine: Engine,
    /// What it answered, in the order of the probes.
    pub replies: Vec<(Probe, Reply)>,
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// It was answered.
    Says(Fact),
    /// The engine does not take the graph.
    Declined,
    /// It takes the graph and does not compute it.
    Failed(String),
}

/// An entry under `traits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The trait.
    pub which: Trait,
    /// Operation and type, where it was seen.
    pub scope: (String, String),
    /// What was seen.
    pub reason: String,
}

impl Measured {
    /// The traits that the answers show, each with where it was seen. `rn` only where sums of some
    /// type were measured to be those of f32 and nothing speaks against it.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut sums: BTreeMap<(String, String), (usize, bool)> = BTreeMap::new();
        for (probe, reply) in &self.replies {
            let Reply::Says(fact) = reply else { continue };
            let scope = scope(probe);
            if scope.0.starts_with("conv") {
                let (asked, against) = sums.entry(scope.clone()).or_default();
                *asked += usize::from(matches!(probe.about, "accumulator" | "integers"));
                *against |= fact.against_rn;
            }
            if let Some(which) = fact.which
                && !entries.iter().any(|e| e.which == which && e.scope == scope)
            {
                entries.push(Entry {
                    which,
                    scope,
                    reason: fact.text.clone(),
                });
            }
        }
        // In a narrow accumulator everything else is lost as well.
        let narrow: Vec<_> = entries
            .iter()
            .filter(|e| matches!(e.which, Trait::F16 | Trait::Bf16Partials))
            .map(|e| e.scope.clone())
            .collect();
        entries.retain(|e| {
            matches!(e.which, Trait::F16 | Trait::Bf16Partials) || !narrow.contains(&e.scope)
        });
        let rounded = sums
            .into_iter()
            .filter(|(_, (asked, against))| *asked >= 2 && !against);
        entries.extend(rounded.map(|(scope, _)| Entry {
            which: Trait::Rn,
            scope,
            reason: "sums keep f32's digits, and those of integers are exact".to_owned(),
        }));
        entries
    }
}

/// The operation and the first type of a probe's case.
fn scope(probe: &Probe) -> (String, String) {
    let mut parts = probe.id.split('/');
    let op = parts.next().unwrap_or_default().to_owned();
    let dtype = parts.next().unwrap_or_default();
    (op, dtype.split('+').next().unwrap_or_default().to_owned())
}

/// Writes the answers of an engine, then the entries that they amount to.
///
/// # Errors
/// What `out` says.
pub fn write_text(measured: &Measured, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", measured.engine.label())?;
    for (probe, reply) in &measured.replies {
        let types =
            Case::parse_short(probe.id).map_or_else(|_| String::new(), |case| case.dtype_name());
        let what = format!("{}, {} {types}", probe.about, scope(probe).0);
        let (mark, text) = match reply {
            Reply::Says(fact) => {
                let mark = match (fact.which, fact.against_rn) {
                    (Some(which), _) => which.name(),
                    (None, true) => "odd",
                    (None, false) => "",
                };
                (mark, fact.text.as_str())
            }
            Reply::Declined => ("", "the engine does not take the graph"),
            Reply::Failed(text) => ("failed", text.as_str()),
        };
        writeln!(out, "  {what:<44} {mark:<18} {text}")?;
    }
    let entries = measured.entries();
    if entries.is_empty() {
        return writeln!(out, "\n# no trait to declare");
    }
    writeln!(out, "\ntraits:")?;
    for entry in entries {
        let (op, dtype) = &entry.scope;
        writeln!(
            out,
            "  - trait: {}\n    engine: '{}'\n    when: {{op: {op}, dtype: {dtype}}}\n    reason: \"measured: {}\"",
            entry.which,
            measured.engine.label(),
            entry.reason.replace('"', "'"),
        )?;
    }
    Ok(())
}
