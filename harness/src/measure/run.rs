//! Asking an engine.

use dnn_assay_graph::case::Case;
use dnn_assay_reference::fill;

use super::entry::{Measured, Reply};
use super::probe::{Answer, Fact, Probe};
use super::probes::{DETERMINISM, PROBES};
use crate::plan::Engine;
use crate::run::{Single, SlotError, Subject, execute_once};

/// Asks an engine all questions, each in two processes of their own.
///
/// # Errors
/// [`SlotError`] for a failure of the machine. What the plugin does wrong is part of the answer.
pub fn measure(subject: &Subject, engine: &Engine) -> Result<Measured, SlotError> {
    let replies = PROBES
        .iter()
        .map(|probe| Ok((*probe, ask(subject, engine, probe)?)));
    Ok(Measured {
        engine: engine.clone(),
        replies: replies.collect::<Result<_, SlotError>>()?,
    })
}

fn ask(subject: &Subject, engine: &Engine, probe: &Probe) -> Result<Reply, SlotError> {
    let case = Case::parse_short(probe.id).expect("a probe's id is one");
    let graph = case.graph().expect("a parsed case has a graph");
    let mut inputs =
        fill::generate(&graph, case.fill(), SEED).expect("a probe's graph can be filled");
    (probe.inputs)(&graph, &mut inputs);
    let mut answers = Vec::new();
    for _ in 0..2 {
        match execute_once(subject, engine.id, &graph, &inputs)? {
            Single::Outputs(outputs) => answers.push(outputs),
            Single::Declined => return Ok(Reply::Declined),
            Single::Failed(text) => return Ok(Reply::Failed(text)),
        }
    }
    let [outputs, again] = [&answers[0], &answers[1]];
    if probe.about != DETERMINISM && outputs != again {
        // What differs from run to run says nothing of the arithmetic.
        return Ok(Reply::Says(Fact::odd("two executions give different bits")));
    }
    Ok(Reply::Says((probe.read)(&Answer {
        graph: &graph,
        inputs: &inputs,
        outputs,
        again,
    })))
}

/// Of what probes do not set themselves.
const SEED: u64 = 1;
