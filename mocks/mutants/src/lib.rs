//! The baseline CPU engine with one fault at a time, named by `DNN_ASSAY_MUTANT` in the
//! environment of the process that loads it. Without a name it computes as the baseline does.
//!
//! What each fault is, which check must catch it and on which cases, stands in `mutants.yaml`;
//! `dnn-assay dev power` runs them all. Here is only how each goes wrong: at one seam of the
//! baseline's own kernels, so that everything else about the plugin is right.

mod arithmetic;
mod batchnorm;
mod behaviour;
mod fault;
mod graphs;
mod inputs;
mod knobs;
mod memory;
mod outputs;
mod storage;
mod table;

use std::ffi::CStr;
use std::sync::LazyLock;

use dnn_assay_cpu_kernels::check;
use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::{Knob, KnobSetting};
use dnn_assay_plugin_sdk::{Engine, Error, Plan, Plugin, c_str, export_plugin};
use fault::{Effect, Fault};
use knobs::KnobFault;
use storage::MutantPlan;

/// The variable that names the fault.
pub const VARIABLE: &str = "DNN_ASSAY_MUTANT";

/// Names of all faults of this library, sorted.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = table::FAULTS.iter().map(|fault| fault.name).collect();
    names.sort_unstable();
    names
}

/// What the environment asked for when it was first looked at.
enum Choice {
    Clean,
    Fault(&'static Fault),
    Unknown(String),
}

static CHOICE: LazyLock<Choice> = LazyLock::new(|| match std::env::var(VARIABLE) {
    Err(_) => Choice::Clean,
    Ok(name) if name.is_empty() => Choice::Clean,
    Ok(name) => match table::FAULTS.iter().find(|fault| fault.name == name) {
        Some(fault) => Choice::Fault(fault),
        None => Choice::Unknown(name),
    },
});

fn fault() -> Option<&'static Fault> {
    match &*CHOICE {
        Choice::Fault(fault) => Some(*fault),
        Choice::Clean | Choice::Unknown(_) => None,
    }
}

fn knob_fault() -> Option<KnobFault> {
    match fault()?.effect {
        Effect::Knob(fault) => Some(fault),
        _ => None,
    }
}

struct MutantEngine;

impl Engine for MutantEngine {
    fn name(&self) -> &'static CStr {
        c"DNN_ASSAY_MUTANT_ENGINE"
    }

    fn supports(&self, graph: &Graph) -> Result<(), String> {
        match &*CHOICE {
            Choice::Unknown(name) => Err(format!("{VARIABLE}={name}: there is no such mutant")),
            Choice::Fault(Fault {
                effect: Effect::Claim(edit),
                ..
            }) => {
                let mut graph = graph.clone();
                edit(&mut graph);
                check(&graph)
            }
            Choice::Clean | Choice::Fault(_) => check(graph),
        }
    }

    fn plan(&self, graph: &Graph, knobs: &[KnobSetting]) -> Result<Box<dyn Plan>, Error> {
        let chosen = knobs::choose(graph, knobs, knob_fault())?;
        Ok(Box::new(MutantPlan::new(graph, fault(), chosen)))
    }

    fn knobs(&self, graph: &Graph) -> Vec<Knob> {
        knobs::declared(graph, knob_fault())
    }
}

export_plugin! {
    plugin: Plugin {
        name: c"DNN Assay mutants",
        version: c_str!(env!("CARGO_PKG_VERSION")),
        engines: &[&MutantEngine],
    },
    memory: "host",
    with: [overrides, serialization],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_one_is_in_the_table() {
        let table = include_str!("../mutants.yaml");
        let names = names();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[i + 1..].contains(name), "{name} twice");
            assert!(table.contains(&format!("{{name: {name},")), "{name}");
        }
    }
}
