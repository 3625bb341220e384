//! The list of engines and their names.

use dnn_assay_abi::engine_id;
use dnn_assay_abi::engine_id::{format_engine_id, registered_name};

use crate::conform::check::{Check, Level, Outcome, finding, fine, not_applicable};
use crate::conform::draft::{COUNT_ONLY, HANDLE, room};
use crate::conform::lab::{DIRT, Lab};
use crate::conform::links::{ENGINE_API, ENGINE_NAMES, HOST};
use crate::worker::EngineName;
use crate::worker::script::{Call, Out, Room, Value};

/// An id that no engine has.
pub(super) const UNKNOWN: i64 = 0x0BAD_1D0B_AD1D_0BAD;

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "engines/two-calls",
        Level::Required,
        "GetAllEngineIds counts with NULL and 0, then writes as many distinct ids: the host refuses the plugin otherwise",
        HOST,
        two_calls,
    ),
    Check::new(
        "engines/stable",
        Level::Required,
        "the ids are the same after handles and plans were made: the host asks once and keeps them",
        HOST,
        stable,
    ),
    Check::new(
        "engines/less-room",
        Level::Recommended,
        "with less room than engines only so many ids are written, and the count is the number written",
        ENGINE_API,
        less_room,
    ),
    Check::new(
        "engines/name-hash",
        Level::Required,
        "an engine that has a name has its FNV-1a hash as id: the host drops the engine otherwise",
        ENGINE_NAMES,
        name_hash,
    ),
    Check::new(
        "engines/unknown-name",
        Level::Recommended,
        "GetEngineName of an id that no engine has gives a status other than SUCCESS",
        ENGINE_API,
        unknown_name,
    ),
    Check::new(
        "engines/registered",
        Level::Informational,
        "an engine with a name of hipDNN's own registry is taken for that engine",
        ENGINE_NAMES,
        registered,
    ),
];

fn two_calls(lab: &Lab<'_>) -> Outcome {
    let mut draft = lab.loaded();
    let count = draft.steps.ok(Call::GetAllEngineIds(COUNT_ONLY));
    let all = draft
        .steps
        .ok(Call::GetAllEngineIds(room(lab.engine_count())));
    let seen = lab.run(draft)?;
    let (
        Value::Ids { count: first, .. },
        Value::Ids {
            count, overflow, ..
        },
    ) = (seen.value(count), seen.value(all))
    else {
        return finding("GetAllEngineIds gave no ids");
    };
    if first != count {
        return finding(format!("{first} engines counted, {count} written"));
    }
    if *overflow {
        return finding("more ids are written than there is room for");
    }
    let mut ids = seen.ids(all).unwrap_or_default();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => finding(format!("the id {} stands twice", format_engine_id(pair[0]))),
        None => Ok(format!("{count} engines")),
    }
}

fn stable(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    let mut draft = lab.ready();
    let all = || Call::GetAllEngineIds(room(lab.engine_count()));
    let before = draft.steps.ok(all());
    let bench = draft.lay(known.sample);
    draft.steps.plan(HANDLE, &bench, 0);
    draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
    let during = draft.steps.ok(all());
    draft.steps.destroy_plan(HANDLE, 0);
    draft.steps.destroy(0);
    let after = draft.steps.ok(all());
    let seen = lab.run(draft)?;
    if seen.value(before) != seen.value(during) || seen.value(before) != seen.value(after) {
        return finding("GetAllEngineIds gives other ids after a plan was made");
    }
    fine()
}

fn less_room(lab: &Lab<'_>) -> Outcome {
    let total = lab.engine_count();
    if total < 2 {
        return not_applicable("the plugin has one engine");
    }
    let mut draft = lab.loaded();
    let at = draft.steps.ok(Call::GetAllEngineIds(Room {
        ids: Some(total),
        max: total - 1,
        count: Out::Given,
    }));
    let seen = lab.run(draft)?;
    match seen.value(at) {
        Value::Ids { overflow: true, .. } => finding(format!(
            "{total} ids are written with max_engines {}",
            total - 1
        )),
        Value::Ids { count, .. } if *count != total - 1 => finding(format!(
            "the count is {count} with max_engines {}, not the number written",
            total - 1
        )),
        _ => fine(),
    }
}

fn name_hash(lab: &Lab<'_>) -> Outcome {
    let engines = &lab.subject.info.engines;
    if engines.iter().all(|e| e.name == EngineName::NotExported) {
        return not_applicable("GetEngineName is not exported");
    }
    for engine in engines {
        if let Some(why) = engine.dropped_by_host() {
            return finding(format!("{}: {why}", format_engine_id(engine.id)));
        }
    }
    fine()
}

fn unknown_name(lab: &Lab<'_>) -> Outcome {
    let mut draft = lab.loaded();
    let at = draft.steps.call(Call::GetEngineName {
        id: UNKNOWN,
        out: Out::Given,
    });
    let seen = lab.run(draft)?;
    match (seen.value(at), seen.status(at)) {
        (Value::Absent, _) => not_applicable("GetEngineName is not exported"),
        (Value::Text(Some(text)), Some(0)) if !text.bytes.is_empty() => finding(format!(
            "the id {} is called {:?}",
            format_engine_id(UNKNOWN),
            text.text()
        )),
        _ => fine(),
    }
}

fn registered(lab: &Lab<'_>) -> Outcome {
    for engine in &lab.subject.info.engines {
        if let Some(name) = registered_name(engine.id) {
            return finding(format!(
                "{} is hipDNN's {name}: beside the plugin that ships it, the second to load is dropped",
                format_engine_id(engine.id)
            ));
        }
        if let EngineName::Named(name) = &engine.name
            && let Some(near) = engine_id::REGISTERED_NAMES
                .iter()
                .find(|registered| registered.eq_ignore_ascii_case(name))
        {
            return finding(format!(
                "{name:?} differs from hipDNN's {near} in case only"
            ));
        }
    }
    fine()
}
