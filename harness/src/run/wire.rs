//! Which generation of the graph's wire format a plugin reads.

use dnn_assay_graph::case::Case;
use dnn_assay_graph::wire::{Generation, write_graph};

use crate::cli::args::WireChoice;
use crate::worker::{PluginInfo, Reply, Worker, WorkerConfig};

/// A generation and why it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireDecision {
    /// The generation.
    pub generation: Generation,
    /// The reason, in one phrase.
    pub why: String,
}

/// The generation's name in journals and on the command line.
pub fn name(generation: Generation) -> &'static str {
    match generation {
        Generation::Current => "current",
        Generation::Nov2025 => "2025-11",
    }
}

/// What a plugin is asked about: small graphs that both generations can express.
const PROBES: [&str; 4] = [
    "pointwise.add/f32/nchw/n1-c4-i4x4/uni",
    "pointwise.relu_fwd/f32/nchw/n1-c4-i4x4/uni",
    "conv.fprop/f32/nchw/n1-c4-k4-i4x4-f1x1/uni",
    "batchnorm.inference/f32/nchw/n1-c4-i4x4/uni",
];

/// Decides: `--wire`, then `GetApiVersion` (only newer plugins have it), then a throw-away worker
/// per generation that asks for the applicability of four small graphs. What a probe does is no
/// finding.
pub fn decide(choice: WireChoice, config: &WorkerConfig, info: &PluginInfo) -> WireDecision {
    let of = |generation, why: &str| WireDecision {
        generation,
        why: why.to_owned(),
    };
    match choice {
        WireChoice::Current => return of(Generation::Current, "--wire current"),
        WireChoice::Nov2025 => return of(Generation::Nov2025, "--wire 2025-11"),
        WireChoice::Auto => {}
    }
    if info.api_version_text.is_some() {
        return of(
            Generation::Current,
            "the plugin exports hipdnnPluginGetApiVersion",
        );
    }
    let current = takes_a_probe(config, Generation::Current);
    let nov2025 = takes_a_probe(config, Generation::Nov2025);
    match (current, nov2025) {
        (true, false) => of(
            Generation::Current,
            "the plugin takes small graphs of this generation and none of the other",
        ),
        (false, true) => of(
            Generation::Nov2025,
            "the plugin takes small graphs of this generation and none of the other",
        ),
        (true, true) => of(
            Generation::Current,
            "undetermined: the plugin takes small graphs of both generations; --wire decides",
        ),
        (false, false) => of(
            Generation::Current,
            "undetermined: the plugin takes no small graph of either generation; --wire decides",
        ),
    }
}

fn takes_a_probe(config: &WorkerConfig, generation: Generation) -> bool {
    let Ok(mut worker) = Worker::spawn(config) else {
        return false;
    };
    if worker.load().is_err() {
        return false;
    }
    PROBES.iter().any(|id| {
        let graph = Case::parse_short(id)
            .ok()
            .and_then(|case| case.graph().ok())
            .and_then(|graph| write_graph(&graph, generation).ok());
        let Some(graph) = graph else { return false };
        matches!(worker.applicable(&graph), Reply::Ok(ids) if !ids.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_can_express_every_probe() {
        for id in PROBES {
            let case = Case::parse_short(id).expect("a probe is a case");
            let graph = case.graph().expect("a case has a graph");
            for generation in [Generation::Current, Generation::Nov2025] {
                write_graph(&graph, generation).expect("the probe can be written");
            }
        }
    }
}
