//! Opening the library and one plain use, as the host makes it.

use crate::conform::check::{Check, Level, Outcome, Stop, finding, fine};
use crate::conform::draft::{COUNT_ONLY, Draft, HANDLE, room};
use crate::conform::lab::{DIRT, Lab};
use crate::conform::links::{ENGINE_API, HOST, PLUGIN_API};
use crate::worker::LoadMode;
use crate::worker::script::{Call, Out, Step, Value};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "load/local",
        Level::Required,
        "the library opens under RTLD_NOW | RTLD_LOCAL and answers the load sequence, as today's host makes it",
        HOST,
        local,
    ),
    Check::new(
        "load/deepbind",
        Level::Recommended,
        "the same under RTLD_DEEPBIND, as the host of November 2025 opened it",
        HOST,
        deepbind,
    ),
    Check::new(
        "load/answers-repeat",
        Level::Required,
        "name, version and type are the same each time: the host asks for them twice",
        HOST,
        answers_repeat,
    ),
    Check::new(
        "load/texts-last",
        Level::Required,
        "texts given out stay as they are until the library is closed: the host keeps the pointers",
        PLUGIN_API,
        texts_last,
    ),
    Check::new(
        "load/texts-utf8",
        Level::Recommended,
        "name, version and engine names are not empty and are UTF-8: they go into logs",
        PLUGIN_API,
        texts_utf8,
    ),
    Check::new(
        "use/plain",
        Level::Required,
        "applicability, details, workspace, plan, two executions and every destruction succeed in the host's order",
        HOST,
        plain,
    ),
    Check::new(
        "use/plan-without-questions",
        Level::Recommended,
        "a plan needs no GetApplicableEngineIds, GetEngineDetails or GetWorkspaceSize before it",
        ENGINE_API,
        plan_without_questions,
    ),
];

fn local(lab: &Lab<'_>) -> Outcome {
    load_and_create(lab, LoadMode::Local)
}

fn deepbind(lab: &Lab<'_>) -> Outcome {
    load_and_create(lab, LoadMode::Deepbind)?;
    for known in lab.samples()? {
        let mut draft = lab.loaded_as(LoadMode::Deepbind);
        draft.steps.create(0);
        let bench = draft.lay(known.sample);
        draft.steps.plan(HANDLE, &bench, 0);
        let run = draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
        let seen = lab.run(draft)?;
        lab.same(&known, &seen.outputs(&run), "under RTLD_DEEPBIND")?;
    }
    fine()
}

fn load_and_create(lab: &Lab<'_>, mode: LoadMode) -> Outcome {
    lab.run(lab.loaded_as(mode))?;
    let mut draft = lab.loaded_as(mode);
    draft.steps.create(0);
    draft.steps.destroy(0);
    match lab.run(draft) {
        Err(Stop::NotApplicable(why)) => Ok(format!("no handle was created: {why}")),
        other => other.map(|_| String::new()),
    }
}

fn answers_repeat(lab: &Lab<'_>) -> Outcome {
    let mut draft = lab.loaded();
    let steps = &mut draft.steps;
    let calls = [
        Call::GetName(Out::Given),
        Call::GetVersion(Out::Given),
        Call::GetType(Out::Given),
    ];
    let rounds = [0, 1].map(|_| calls.clone().map(|call| steps.ok(call)));
    let ids = steps.ok(Call::GetAllEngineIds(COUNT_ONLY));
    let seen = lab.run(draft)?;
    for (call, (a, b)) in calls.iter().zip(rounds[0].iter().zip(&rounds[1])) {
        if seen.value(*a) != seen.value(*b) {
            return finding(format!(
                "{} gives another answer the second time",
                call.symbol()
            ));
        }
    }
    match seen.value(ids) {
        Value::Ids { count, .. } if *count == lab.engine_count() => fine(),
        _ => finding("GetAllEngineIds counts differently the third time"),
    }
}

fn texts_last(lab: &Lab<'_>) -> Outcome {
    let sample = lab.samples().ok().and_then(|known| known.first().copied());
    let mut draft = match lab.subject.no_device {
        Some(_) => lab.loaded(),
        None => lab.ready(),
    };
    draft.steps.call(Call::GetApiVersion(Out::Given));
    for engine in &lab.subject.info.engines {
        draft.steps.call(Call::GetEngineName {
            id: engine.id,
            out: Out::Given,
        });
    }
    if let Some(known) = sample {
        let bench = draft.lay(known.sample);
        draft.steps.plan(HANDLE, &bench, 0);
        draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
        draft.steps.destroy_plan(HANDLE, 0);
    }
    let at = draft.steps.push(Step::Reread);
    let seen = lab.run(draft)?;
    match seen.value(at) {
        Value::Changed(functions) if !functions.is_empty() => finding(format!(
            "the text of {} is not what it was",
            functions.join(", ")
        )),
        _ => fine(),
    }
}

fn texts_utf8(lab: &Lab<'_>) -> Outcome {
    let mut draft: Draft = lab.loaded();
    let mut asked = vec![
        ("the name", draft.steps.ok(Call::GetName(Out::Given))),
        ("the version", draft.steps.ok(Call::GetVersion(Out::Given))),
    ];
    for engine in &lab.subject.info.engines {
        let call = Call::GetEngineName {
            id: engine.id,
            out: Out::Given,
        };
        asked.push(("an engine's name", draft.steps.call(call)));
    }
    let seen = lab.run(draft)?;
    for (what, at) in asked {
        let Some(text) = seen.text(at) else { continue };
        if text.bytes.is_empty() && what != "an engine's name" {
            return finding(format!("{what} is empty"));
        }
        if std::str::from_utf8(&text.bytes).is_err() || !text.terminated {
            return finding(format!("{what} is no UTF-8 text: {:?}", text.text()));
        }
    }
    fine()
}

fn plain(lab: &Lab<'_>) -> Outcome {
    if let Some(why) = &lab.subject.no_device {
        return Err(Stop::NotApplicable(why.clone()));
    }
    if lab.unproven().is_empty() {
        let why = "the plugin takes none of the graphs that it was asked about";
        return Err(Stop::NotApplicable(why.to_owned()));
    }
    for sample in lab.unproven() {
        lab.use_alone(sample).map_err(|stop| match stop {
            Stop::Finding(text) => Stop::Finding(format!("{}: {text}", sample.id)),
            other => other,
        })?;
    }
    let ids: Vec<_> = lab.unproven().iter().map(|s| s.id.as_str()).collect();
    Ok(ids.join(", "))
}

fn plan_without_questions(lab: &Lab<'_>) -> Outcome {
    for known in lab.samples()? {
        let mut draft = Draft::new(&lab.subject.config.plugin, LoadMode::Local);
        draft.steps.push(Step::Open { library: 0 });
        draft
            .steps
            .ok(Call::GetAllEngineIds(room(lab.engine_count())));
        draft.steps.create(0);
        let bench = draft.lay(known.sample);
        draft.steps.plan(HANDLE, &bench, 0);
        let run = draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
        let seen = lab.run(draft)?;
        lab.same(&known, &seen.outputs(&run), "without questions before")?;
    }
    fine()
}
