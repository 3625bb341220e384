//! Plans: what they keep, how many there may be, in which order they end.

use super::engines::UNKNOWN;
use crate::conform::check::{Check, Level, Outcome, finding, fine, not_applicable};
use crate::conform::draft::{HANDLE, plan};
use crate::conform::lab::{DIRT, Lab};
use crate::conform::links::{ENGINE_API, HOST};
use crate::worker::script::{Call, Data, Object, Out, Step};
use dnn_assay_graph::wire::{EngineConfig, write_engine_config};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "context/outlives-buffers",
        Level::Required,
        "a plan keeps what it needs: the host frees graph and configuration right after",
        ENGINE_API,
        outlives,
    ),
    Check::new(
        "context/many",
        Level::Required,
        "many plans live at the same time and do not disturb each other",
        HOST,
        many,
    ),
    Check::new(
        "context/orders",
        Level::Required,
        "plans are destroyed in any order, executed or not, while others live on",
        HOST,
        orders,
    ),
    Check::new(
        "context/different-graphs",
        Level::Required,
        "plans of different graphs live on one handle",
        HOST,
        different_graphs,
    ),
    Check::new(
        "context/unknown-engine",
        Level::Recommended,
        "a configuration that names an unknown engine is refused",
        ENGINE_API,
        unknown_engine,
    ),
];

fn outlives(lab: &Lab<'_>) -> Outcome {
    for known in lab.samples()? {
        let mut draft = lab.ready();
        let bench = draft.lay(known.sample);
        draft.steps.ok(plan(HANDLE, &bench, 0));
        draft.steps.push(Step::Spoil { blob: bench.graph });
        draft.steps.push(Step::Spoil { blob: bench.config });
        draft.steps.ok(Call::GetWorkspaceSizeFromExecutionContext {
            handle: HANDLE,
            context: Object::Slot(0),
            out: Out::Given,
        });
        let run = draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
        draft.steps.destroy_plan(HANDLE, 0);
        let seen = lab.run(draft)?;
        let when = "after graph and configuration were overwritten";
        lab.same(&known, &seen.outputs(&run), when)?;
    }
    fine()
}

fn many(lab: &Lab<'_>) -> Outcome {
    for known in lab.samples()? {
        let mut draft = lab.ready();
        let bench = draft.lay(known.sample);
        for slot in 0..12 {
            draft.steps.plan(HANDLE, &bench, slot);
        }
        let mut runs = Vec::new();
        for slot in [3, 11, 0, 7, 3] {
            runs.push(draft.steps.execute(HANDLE, &bench, slot, DIRT[1]));
        }
        for slot in 0..12 {
            draft.steps.destroy_plan(HANDLE, slot);
        }
        let seen = lab.run(draft)?;
        for run in runs {
            lab.same(&known, &seen.outputs(&run), "with 12 plans alive")?;
        }
    }
    fine()
}

fn orders(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut draft = lab.ready();
        let bench = draft.lay(known.sample);
        for slot in 0..3 {
            draft.steps.plan(HANDLE, &bench, slot);
        }
        // Slot 1 is never executed.
        draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
        draft.steps.destroy_plan(HANDLE, order[0]);
        let left = order[1];
        let run = draft.steps.execute(HANDLE, &bench, left, DIRT[1]);
        draft.steps.destroy_plan(HANDLE, order[1]);
        draft.steps.destroy_plan(HANDLE, order[2]);
        draft.steps.destroy(0);
        let seen = lab.run(draft)?;
        lab.same(
            &known,
            &seen.outputs(&run),
            "after another plan was destroyed",
        )?;
    }
    fine()
}

fn different_graphs(lab: &Lab<'_>) -> Outcome {
    let samples = lab.samples()?;
    if samples.len() < 2 {
        return not_applicable("the plugin takes one of the graphs only");
    }
    let mut draft = lab.ready();
    let benches: Vec<_> = samples
        .iter()
        .map(|known| draft.lay(known.sample))
        .collect();
    for (slot, bench) in benches.iter().enumerate() {
        draft.steps.plan(HANDLE, bench, slot as u8);
    }
    let mut runs = Vec::new();
    for _ in 0..2 {
        for (slot, bench) in benches.iter().enumerate() {
            runs.push(draft.steps.execute(HANDLE, bench, slot as u8, DIRT[0]));
        }
    }
    let seen = lab.run(draft)?;
    for (known, run) in samples.iter().cycle().zip(runs) {
        lab.same(known, &seen.outputs(&run), "beside plans of other graphs")?;
    }
    fine()
}

fn unknown_engine(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    let config = EngineConfig {
        engine_id: UNKNOWN,
        knobs: Vec::new(),
    };
    let Ok(config) = write_engine_config(&config, lab.generation()) else {
        return not_applicable("the configuration cannot be written");
    };
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    let config = draft.blob(&config);
    let at = draft.steps.call(Call::CreateExecutionContext {
        handle: HANDLE,
        config: Data::Blob(config),
        graph: Data::Blob(bench.graph),
        slot: 0,
        out: Out::Given,
    });
    let seen = lab.run(draft)?;
    match seen.status(at) {
        Some(0) => finding("a plan for an engine that does not exist is made"),
        _ => fine(),
    }
}
