//! Knobs that were set and that no engine declares: most likely a slip of the pen, which an engine
//! that ignores what it does not know would hide.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use dnn_assay_graph::wire::{KnobSetting, read_engine_details};

use crate::yaml::nearest;

/// What the engines declared so far; `None` until the first details are read.
#[derive(Debug, Default)]
pub struct DeclaredKnobs(Mutex<Option<BTreeSet<String>>>);

impl DeclaredKnobs {
    /// Notes the knobs of an engine's details, given as their FlatBuffer. Details that cannot be
    /// read are a finding elsewhere and say nothing here.
    pub fn note(&self, details: &[u8]) {
        let Ok(details) = read_engine_details(details) else {
            return;
        };
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let names = details.knobs.into_iter().map(|knob| knob.knob_id);
        seen.get_or_insert_default().extend(names);
    }

    /// One remark for each knob of `set` that no engine declared in any plan of the run.
    pub fn remarks(&self, set: &[KnobSetting]) -> Vec<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(declared) = seen.as_ref() else {
            return Vec::new();
        };
        let unknown = set.iter().map(|knob| knob.knob_id.as_str());
        unknown
            .filter(|id| !declared.contains(*id))
            .map(|id| remark(id, declared))
            .collect()
    }
}

fn remark(id: &str, declared: &BTreeSet<String>) -> String {
    let names = || declared.iter().map(String::as_str);
    let hint = match nearest(id, names()) {
        Some(near) => format!("did you mean '{near}'?"),
        None if declared.is_empty() => "the engines declare none".to_owned(),
        None => format!("declared: {}", names().collect::<Vec<_>>().join(", ")),
    };
    format!("--knob {id} had no effect that can be known: no engine declares it; {hint}")
}
