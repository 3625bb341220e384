//! What a plugin may offer: contexts as bytes, overridden shapes, scalars at run time.

use dnn_assay_abi::version;
use dnn_assay_graph::{Graph, model::packed_strides};

use crate::conform::check::{Check, Level, Outcome, Stop, finding, fine, not_applicable};
use crate::conform::draft::{Bench, Draft, HANDLE};
use crate::conform::lab::{DIRT, Lab};
use crate::conform::links::{ENGINE_API, HOST};
use crate::conform::sample::{GRAPHS, Sample, graph_of};
use crate::worker::script::{Call, Data, Object, Out, Override, Step, Value, Workspace};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "serialize/round-trip",
        Level::Required,
        "a plan made from bytes, in another process, computes what the plan did",
        HOST,
        round_trip,
    ),
    Check::new(
        "serialize/own-bytes",
        Level::Required,
        "the bytes are the plan's own: they stay after it is destroyed, and are given back once",
        HOST,
        own_bytes,
    ),
    Check::new(
        "serialize/again",
        Level::Recommended,
        "a plan made from bytes can be turned into bytes again",
        HOST,
        serialize_again,
    ),
    Check::new(
        "serialize/foreign-bytes",
        Level::Recommended,
        "bytes that are cut or not the plugin's are refused",
        ENGINE_API,
        foreign_bytes,
    ),
    Check::new(
        "override/shapes",
        Level::Required,
        "overridden shapes give what a plan of those shapes gives",
        ENGINE_API,
        override_shapes,
    ),
    Check::new(
        "scalar/runtime",
        Level::Required,
        "a run-time scalar is read from its host pointer at each execution",
        ENGINE_API,
        runtime_scalar,
    ),
];

fn has_serialization(lab: &Lab<'_>) -> Result<(), Stop> {
    let all = [
        "hipdnnEnginePluginSerializeExecutionContextWithEngineId",
        "hipdnnEnginePluginDestroySerializedExecutionContext",
        "hipdnnEnginePluginCreateExecutionContextFromSerialized",
    ];
    match all.iter().all(|symbol| lab.exports(symbol)) {
        true => Ok(()),
        false => not_applicable("the functions of serialization are not exported"),
    }
}

fn serialize(bench: &Bench, context: u8) -> Call {
    Call::Serialize {
        handle: HANDLE,
        id: bench.engine,
        context: Object::Slot(context),
        slot: context,
        out: Out::Given,
    }
}

fn restore(data: Data, context: u8) -> Call {
    Call::Restore {
        handle: HANDLE,
        data,
        slot: context,
        out: Out::Given,
    }
}

fn size_of(draft: &mut Draft, context: u8) {
    draft.steps.ok(Call::GetWorkspaceSizeFromExecutionContext {
        handle: HANDLE,
        context: Object::Slot(context),
        out: Out::Given,
    });
}

/// The bytes of each sample's plan.
fn saved(lab: &Lab<'_>, sample: &Sample) -> Result<Vec<u8>, Stop> {
    let mut draft = lab.ready();
    let bench = draft.lay(sample);
    draft.steps.plan(HANDLE, &bench, 0);
    let at = draft.steps.ok(serialize(&bench, 0));
    draft.steps.ok(Call::DestroySerialized {
        handle: HANDLE,
        slot: Some(0),
    });
    draft.steps.destroy_plan(HANDLE, 0);
    draft.steps.destroy(0);
    let seen = lab.run(draft)?;
    match seen.data(at) {
        Some(bytes) if !bytes.is_empty() => Ok(bytes),
        _ => finding("serialization succeeds with NULL or no bytes"),
    }
}

fn round_trip(lab: &Lab<'_>) -> Outcome {
    has_serialization(lab)?;
    for known in lab.samples()? {
        let bytes = saved(lab, known.sample)?;
        let mut draft = lab.ready();
        let bench = draft.lay(known.sample);
        let blob = draft.blob(&bytes);
        draft.steps.ok(restore(Data::Blob(blob), 0));
        draft.steps.push(Step::Spoil { blob });
        size_of(&mut draft, 0);
        let run = draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
        draft.steps.destroy_plan(HANDLE, 0);
        draft.steps.destroy(0);
        let seen = lab.run(draft)?;
        lab.same(&known, &seen.outputs(&run), "restored in another process")?;
    }
    fine()
}

fn own_bytes(lab: &Lab<'_>) -> Outcome {
    has_serialization(lab)?;
    for known in lab.samples()? {
        let mut draft = lab.ready();
        let bench = draft.lay(known.sample);
        draft.steps.plan(HANDLE, &bench, 0);
        let at = draft.steps.ok(serialize(&bench, 0));
        draft.steps.destroy_plan(HANDLE, 0);
        draft.steps.ok(restore(Data::Saved(0), 1));
        let back = draft.steps.ok(Call::DestroySerialized {
            handle: HANDLE,
            slot: Some(0),
        });
        size_of(&mut draft, 1);
        let run = draft.steps.execute(HANDLE, &bench, 1, DIRT[0]);
        draft.steps.destroy_plan(HANDLE, 1);
        let seen = lab.run(draft)?;
        lab.same(&known, &seen.outputs(&run), "restored in the same process")?;
        let zeroed = matches!(
            seen.value(back),
            Value::Data {
                address: 0,
                size: 0,
                ..
            }
        );
        if !zeroed && seen.data(at).is_some() {
            return Ok("DestroySerialized leaves the struct as it was".to_owned());
        }
    }
    fine()
}

fn serialize_again(lab: &Lab<'_>) -> Outcome {
    has_serialization(lab)?;
    let known = lab.first()?;
    let bytes = saved(lab, known.sample)?;
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    let blob = draft.blob(&bytes);
    draft.steps.ok(restore(Data::Blob(blob), 0));
    draft.steps.ok(serialize(&bench, 0));
    draft.steps.ok(restore(Data::Saved(0), 1));
    size_of(&mut draft, 1);
    let run = draft.steps.execute(HANDLE, &bench, 1, DIRT[0]);
    let seen = lab.run(draft)?;
    lab.same(&known, &seen.outputs(&run), "restored twice")?;
    fine()
}

fn foreign_bytes(lab: &Lab<'_>) -> Outcome {
    has_serialization(lab)?;
    let known = lab.first()?;
    let bytes = saved(lab, known.sample)?;
    let mut draft = lab.ready();
    let mut asked = Vec::new();
    for (what, bytes) in [
        ("the first half", bytes[..bytes.len() / 2].to_vec()),
        ("the first byte", bytes[..1].to_vec()),
        ("64 bytes 0xEE", vec![0xEE; 64]),
    ] {
        let blob = draft.blob(&bytes);
        asked.push((what, draft.steps.call(restore(Data::Blob(blob), 0))));
    }
    let seen = lab.run(draft)?;
    match asked.iter().find(|(_, at)| seen.status(*at) == Some(0)) {
        Some((what, _)) => finding(format!("a plan is made from {what}")),
        None => fine(),
    }
}

/// An engine that takes `graph`, if there is one.
pub(super) fn taker(lab: &Lab<'_>, graph: &Graph) -> Result<Option<i64>, Stop> {
    let Some(sample) = Sample::new("", graph.clone(), 0, lab.generation(), &[]) else {
        return Ok(None);
    };
    let mut draft = lab.ready();
    let blob = draft.blob(&sample.bytes);
    let at = draft.steps.applicable(HANDLE, blob, lab.engine_count());
    let seen = lab.run(draft)?;
    let ids = seen.ids(at).map_err(Stop::Finding)?;
    Ok(ids.first().copied())
}

/// Outputs that still hold the first dirt.
fn is_untouched(outputs: &[Vec<u8>]) -> bool {
    is_untouched_by(outputs, DIRT[0])
}

fn is_untouched_by(outputs: &[Vec<u8>], dirt: u8) -> bool {
    outputs.iter().flatten().all(|byte| *byte == dirt)
}

fn writes_nothing() -> Outcome {
    not_applicable("the engine writes no output, so there is nothing to compare")
}

fn override_shapes(lab: &Lab<'_>) -> Outcome {
    let symbol = "hipdnnEnginePluginExecuteOpGraphWithOverrides";
    if !lab.exports(symbol) || lab.subject.info.api_version() < version::OVERRIDES {
        return not_applicable(format!(
            "{symbol} is not exported, or the API version is below 1.1.0"
        ));
    }
    let Some(mut graph) = graph_of(GRAPHS[0]) else {
        return not_applicable("the graph cannot be made");
    };
    graph.override_shapes = true;
    let Some(engine) = taker(lab, &graph)? else {
        return not_applicable("no engine takes the graph with overridable shapes");
    };
    let mut small = graph.clone();
    for tensor in &mut small.tensors {
        tensor.dims[0] = 1;
        if let Some(last) = tensor.dims.last_mut() {
            *last -= 1;
        }
        tensor.strides = packed_strides(&tensor.dims);
    }
    let make = |graph: &Graph| Sample::new(GRAPHS[0], graph.clone(), engine, lab.generation(), &[]);
    let (Some(large), Some(small)) = (make(&graph), make(&small)) else {
        return not_applicable("the graph cannot be written");
    };
    let mut draft = lab.ready();
    let plan_of = draft.lay(&large);
    let shaped = draft.lay(&small);
    draft.steps.plan(HANDLE, &plan_of, 0);
    for &buffer in &shaped.outputs {
        let byte = DIRT[0];
        draft.steps.push(Step::Fill { buffer, byte });
    }
    let overrides = small.graph.tensors.iter().map(|tensor| Override {
        uid: tensor.uid,
        dims: tensor.dims.clone(),
        strides: tensor.strides.clone(),
    });
    draft.steps.ok(Call::ExecuteOpGraph {
        handle: HANDLE,
        context: Object::Slot(0),
        workspace: Workspace::Filled(DIRT[0]),
        buffers: Some(shaped.bound.clone()),
        overrides: overrides.collect(),
    });
    let overridden = draft.steps.read(&shaped);
    let plain = draft.steps.execute(HANDLE, &plan_of, 0, DIRT[1]);
    let seen = lab.run(draft)?;
    if is_untouched(&seen.outputs(&overridden)) && is_untouched_by(&seen.outputs(&plain), DIRT[1]) {
        return writes_nothing();
    }
    small.judge(&lab.judge, &seen.outputs(&overridden))?;
    large
        .judge(&lab.judge, &seen.outputs(&plain))
        .map_err(|stop| match stop {
            Stop::Finding(text) => Stop::Finding(format!("without overrides afterwards: {text}")),
            other => other,
        })?;
    fine()
}

fn runtime_scalar(lab: &Lab<'_>) -> Outcome {
    if lab.subject.info.api_version() < version::RUNTIME_PASS_BY_VALUE {
        return not_applicable("the API version is below 1.2.0: the host sends no such graph");
    }
    let Some(mut graph) = graph_of(GRAPHS[0]) else {
        return not_applicable("the graph cannot be made");
    };
    let scalar = graph.tensors[1].uid;
    let tensor = &mut graph.tensors[1];
    tensor.runtime_pass_by_value = true;
    tensor.dims = vec![1; tensor.dims.len()];
    tensor.strides = packed_strides(&tensor.dims);
    let Some(engine) = taker(lab, &graph)? else {
        return not_applicable("no engine takes a graph with a run-time scalar");
    };
    let generation = lab.generation();
    let Some(first) = Sample::new(GRAPHS[0], graph.clone(), engine, generation, &[]) else {
        return not_applicable("the graph cannot be filled");
    };
    let mut values = first.values.clone();
    values.insert(scalar, [-3.25].into());
    let Some(second) = Sample::with_values(GRAPHS[0], graph, values, engine, generation, &[])
    else {
        return not_applicable("the graph cannot be filled");
    };
    let mut draft = lab.ready();
    let benches = [&first, &second].map(|sample| draft.lay(sample));
    draft.steps.plan(HANDLE, &benches[0], 0);
    let runs = benches.map(|bench| draft.steps.execute(HANDLE, &bench, 0, DIRT[0]));
    let seen = lab.run(draft)?;
    if runs.iter().all(|run| is_untouched(&seen.outputs(run))) {
        return writes_nothing();
    }
    for (sample, run) in [first, second].iter().zip(runs) {
        sample.judge(&lab.judge, &seen.outputs(&run))?;
    }
    fine()
}
