//! Questions before a plan: applicability, details, workspace.

use dnn_assay_graph::wire::read_engine_details;

use super::engines::UNKNOWN;
use crate::conform::check::{Check, Level, Outcome, finding, fine, not_applicable};
use crate::conform::draft::{COUNT_ONLY, HANDLE};
use crate::conform::lab::Lab;
use crate::conform::links::{ENGINE_API, HOST};
use crate::worker::EngineName;
use crate::worker::script::{Call, Data, Out, Room, Step, Value};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "applicable/answers",
        Level::Required,
        "every valid graph gets SUCCESS, taken or not: an error ends the application's whole query",
        HOST,
        answers,
    ),
    Check::new(
        "applicable/ids",
        Level::Required,
        "the ids are distinct, the plugin's own and no more than it has: the host refuses them otherwise",
        HOST,
        ids,
    ),
    Check::new(
        "applicable/repeat",
        Level::Required,
        "the same graph gets the same answer: the host asks at least twice",
        HOST,
        repeat,
    ),
    Check::new(
        "applicable/count-only",
        Level::Recommended,
        "with NULL and 0 the number of applicable engines is counted",
        ENGINE_API,
        count_only,
    ),
    Check::new(
        "applicable/less-room",
        Level::Recommended,
        "with less room than applicable engines nothing is written behind it",
        ENGINE_API,
        less_room,
    ),
    Check::new(
        "details/valid",
        Level::Required,
        "details are a verifiable EngineDetails of the engine that was asked for",
        HOST,
        details_valid,
    ),
    Check::new(
        "details/overwrites",
        Level::Required,
        "both fields of the struct are set, whatever it held: the host of November 2025 passes garbage",
        HOST,
        details_overwrites,
    ),
    Check::new(
        "details/outlive-graph",
        Level::Required,
        "details stay as they are when the graph's buffer is overwritten",
        ENGINE_API,
        details_outlive,
    ),
    Check::new(
        "details/many",
        Level::Required,
        "several details live at the same time and are destroyed in any order, after the plan too",
        HOST,
        details_many,
    ),
    Check::new(
        "details/zeroed",
        Level::Recommended,
        "DestroyEngineDetails sets pointer and size to zero",
        ENGINE_API,
        details_zeroed,
    ),
    Check::new(
        "details/unknown-engine",
        Level::Recommended,
        "details of an engine that does not exist are refused",
        ENGINE_API,
        details_unknown,
    ),
    Check::new(
        "details/name",
        Level::Recommended,
        "the name in the details agrees with GetEngineName: the host warns otherwise",
        HOST,
        details_name,
    ),
    Check::new(
        "workspace/representable",
        Level::Required,
        "both workspace sizes are not negative as int64: the host refuses them otherwise",
        HOST,
        workspace_representable,
    ),
    Check::new(
        "workspace/before-and-after",
        Level::Recommended,
        "the size before the plan is the size of the plan",
        ENGINE_API,
        workspace_before_after,
    ),
];

fn answers(lab: &Lab<'_>) -> Outcome {
    let mut taken = 0;
    for answer in &lab.answers {
        match &answer.result {
            Err(text) => return finding(format!("{}: {text}", answer.id)),
            Ok(ids) => taken += usize::from(!ids.is_empty()),
        }
    }
    match lab.answers.len() {
        0 => not_applicable("no graph could be asked about"),
        asked => Ok(format!("{taken} of {asked} graphs are taken")),
    }
}

fn ids(lab: &Lab<'_>) -> Outcome {
    if lab.answers.is_empty() {
        return not_applicable("no graph could be asked about");
    }
    for answer in &lab.answers {
        let Ok(ids) = &answer.result else { continue };
        for (i, id) in ids.iter().enumerate() {
            if ids[..i].contains(id) {
                return finding(format!("{}: Duplicate engine IDs found: {id}", answer.id));
            }
            if !lab.subject.info.engines.iter().any(|e| e.id == *id) {
                return finding(format!(
                    "{}: Engine ID not found in the plugin's known IDs: {id}",
                    answer.id
                ));
            }
        }
    }
    fine()
}

fn repeat(lab: &Lab<'_>) -> Outcome {
    for sample in lab.unproven() {
        let mut draft = lab.ready();
        let bench = draft.lay(sample);
        let first = draft
            .steps
            .applicable(HANDLE, bench.graph, lab.engine_count());
        draft.steps.details(HANDLE, &bench, 0);
        let second = draft
            .steps
            .applicable(HANDLE, bench.graph, lab.engine_count());
        let seen = lab.run(draft)?;
        if seen.value(first) != seen.value(second) {
            return finding(format!("{}: another answer the second time", sample.id));
        }
    }
    fine()
}

fn count_only(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    let all = draft
        .steps
        .applicable(HANDLE, bench.graph, lab.engine_count());
    let count = draft.steps.ok(Call::GetApplicableEngineIds {
        handle: HANDLE,
        graph: Data::Blob(bench.graph),
        room: COUNT_ONLY,
    });
    let seen = lab.run(draft)?;
    match (seen.value(all), seen.value(count)) {
        (Value::Ids { count: all, .. }, Value::Ids { count, .. }) if all != count => {
            finding(format!("{count} counted, {all} given"))
        }
        _ => fine(),
    }
}

fn less_room(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    let all = draft
        .steps
        .applicable(HANDLE, bench.graph, lab.engine_count());
    let at = draft.steps.call(Call::GetApplicableEngineIds {
        handle: HANDLE,
        graph: Data::Blob(bench.graph),
        room: Room {
            ids: Some(lab.engine_count()),
            max: 0,
            count: Out::Given,
        },
    });
    let seen = lab.run(draft)?;
    if matches!(seen.value(at), Value::Ids { overflow: true, .. }) {
        return finding("ids are written although max_engines is 0");
    }
    let total = seen.ids(all).map_or(0, |ids| ids.len());
    Ok(format!("{total} applicable"))
}

fn details_valid(lab: &Lab<'_>) -> Outcome {
    for known in lab.samples()? {
        let id = &known.sample.id;
        if known.alone.details.is_empty() {
            return finding(format!("{id}: engine details are empty or NULL"));
        }
        match read_engine_details(&known.alone.details) {
            Err(error) => return finding(format!("{id}: {error}")),
            Ok(details) if details.engine_id != known.sample.engine => {
                return finding(format!(
                    "{id}: details of engine {} for engine {}",
                    details.engine_id, known.sample.engine
                ));
            }
            Ok(_) => {}
        }
    }
    fine()
}

fn details_overwrites(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    let at = draft.steps.ok(Call::GetEngineDetails {
        handle: HANDLE,
        id: bench.engine,
        graph: Data::Blob(bench.graph),
        slot: 0,
        out: Out::Given,
        preset: true,
    });
    let seen = lab.run(draft)?;
    match seen.data(at) {
        Some(bytes) if read_engine_details(&bytes).is_ok() => fine(),
        _ => finding("a struct that held garbage holds no details afterwards"),
    }
}

fn details_outlive(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    let first = draft.steps.details(HANDLE, &bench, 0);
    draft.steps.push(Step::Spoil { blob: bench.graph });
    let later = draft.steps.push(Step::Look { details: 0 });
    draft.steps.destroy_details(HANDLE, 0);
    let seen = lab.run(draft)?;
    if seen.data(first) != seen.data(later) {
        return finding("the details change when the graph's buffer is overwritten");
    }
    fine()
}

fn details_many(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let mut draft = lab.ready();
        let bench = draft.lay(known.sample);
        for slot in 0..4 {
            draft.steps.details(HANDLE, &bench, slot);
        }
        draft.steps.plan(HANDLE, &bench, 0);
        draft.steps.destroy_details(HANDLE, order[0]);
        draft.steps.destroy_plan(HANDLE, 0);
        for &slot in &order[1..] {
            draft.steps.destroy_details(HANDLE, slot);
        }
        draft.steps.destroy(0);
        lab.run(draft)?;
    }
    fine()
}

fn details_zeroed(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    draft.steps.details(HANDLE, &bench, 0);
    let at = draft.steps.destroy_details(HANDLE, 0);
    let seen = lab.run(draft)?;
    match seen.value(at) {
        Value::Data {
            address: 0,
            size: 0,
            ..
        } => fine(),
        _ => finding("the struct still holds a pointer or a size after DestroyEngineDetails"),
    }
}

fn details_unknown(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    let at = draft.steps.call(Call::GetEngineDetails {
        handle: HANDLE,
        id: UNKNOWN,
        graph: Data::Blob(bench.graph),
        slot: 0,
        out: Out::Given,
        preset: false,
    });
    let seen = lab.run(draft)?;
    match seen.status(at) {
        Some(0) => finding("GetEngineDetails of an unknown engine succeeds"),
        _ => fine(),
    }
}

fn details_name(lab: &Lab<'_>) -> Outcome {
    for known in lab.samples()? {
        let Ok(details) = read_engine_details(&known.alone.details) else {
            continue;
        };
        let engine = lab.subject.info.engines.iter();
        let name = engine
            .filter(|engine| engine.id == known.sample.engine)
            .find_map(|engine| match &engine.name {
                EngineName::Named(name) => Some(name.as_str()),
                _ => None,
            });
        if !details.name.is_empty() && name != Some(details.name.as_str()) {
            let given = name.unwrap_or("no name");
            return finding(format!(
                "the details say {:?}, GetEngineName gives {given}",
                details.name
            ));
        }
    }
    fine()
}

/// The two sizes of each sample.
fn sizes(lab: &Lab<'_>) -> Result<Vec<(String, u64, u64)>, crate::conform::check::Stop> {
    let mut sizes = Vec::new();
    for known in lab.samples()? {
        let mut draft = lab.ready();
        let bench = draft.lay(known.sample);
        let before = draft.steps.ok(Call::GetWorkspaceSize {
            handle: HANDLE,
            config: Data::Blob(bench.config),
            graph: Data::Blob(bench.graph),
            out: Out::Given,
        });
        let after = draft.steps.plan(HANDLE, &bench, 0);
        let seen = lab.run(draft)?;
        if let (Some(before), Some(after)) = (seen.number(before), seen.number(after)) {
            sizes.push((known.sample.id.clone(), before, after));
        }
    }
    Ok(sizes)
}

fn workspace_representable(lab: &Lab<'_>) -> Outcome {
    for (id, before, after) in sizes(lab)? {
        for size in [before, after] {
            if i64::try_from(size).is_err() {
                return finding(format!("{id}: {size} bytes, {} as int64", size as i64));
            }
        }
    }
    fine()
}

fn workspace_before_after(lab: &Lab<'_>) -> Outcome {
    for (id, before, after) in sizes(lab)? {
        if before != after {
            return finding(format!(
                "{id}: {before} bytes before the plan, {after} of the plan"
            ));
        }
    }
    fine()
}
