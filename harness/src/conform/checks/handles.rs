//! Handles: one per application handle, many at a time, in any order.

use crate::conform::check::{Check, Level, Outcome, finding, fine, not_applicable};
use crate::conform::draft::HANDLE;
use crate::conform::lab::{DIRT, Lab};
use crate::conform::links::{ENGINE_API, HOST};
use crate::worker::script::{Call, Object};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "handle/distinct",
        Level::Recommended,
        "two handles that live at the same time are different",
        ENGINE_API,
        distinct,
    ),
    Check::new(
        "handle/many",
        Level::Required,
        "many handles live at the same time and are destroyed in any order, as application handles are",
        HOST,
        many,
    ),
    Check::new(
        "handle/again",
        Level::Required,
        "a handle can be made after all were destroyed: an application may begin again",
        HOST,
        again,
    ),
    Check::new(
        "handle/independent",
        Level::Required,
        "destroying one handle leaves the plans of another as they are",
        HOST,
        independent,
    ),
    Check::new(
        "stream/before-and-after",
        Level::Required,
        "SetStream is taken before the first plan, between plan and execution, and after",
        HOST,
        stream,
    ),
];

fn distinct(lab: &Lab<'_>) -> Outcome {
    let mut draft = lab.ready();
    let second = draft.steps.create(1);
    let first = second - 1;
    draft.steps.destroy(1);
    draft.steps.destroy(0);
    let seen = lab.run(draft)?;
    match (seen.pointer(first), seen.pointer(second)) {
        (Some(a), Some(b)) if a == b => {
            finding("two live handles are the same pointer, so they cannot hold different streams")
        }
        _ => fine(),
    }
}

fn many(lab: &Lab<'_>) -> Outcome {
    let slots: Vec<u8> = (0..16).collect();
    let forward = slots.clone();
    let backward: Vec<u8> = slots.iter().rev().copied().collect();
    let mixed: Vec<u8> = (0..16).map(|i| i * 5 % 16).collect();
    for order in [forward, backward, mixed] {
        let mut draft = lab.loaded();
        for &slot in &slots {
            draft.steps.create(slot);
        }
        for slot in order {
            draft.steps.destroy(slot);
        }
        lab.run(draft)?;
    }
    fine()
}

fn again(lab: &Lab<'_>) -> Outcome {
    let Ok(known) = lab.first() else {
        let mut draft = lab.ready();
        draft.steps.destroy(0);
        draft.steps.create(1);
        draft.steps.destroy(1);
        return lab.run(draft).map(|_| String::new());
    };
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    let mut runs = Vec::new();
    for slot in 1..4 {
        draft.steps.destroy(slot - 1);
        draft.steps.create(slot);
        let handle = Object::Slot(slot);
        draft.steps.plan(handle, &bench, slot);
        runs.push(draft.steps.execute(handle, &bench, slot, DIRT[0]));
        draft.steps.destroy_plan(handle, slot);
    }
    let seen = lab.run(draft)?;
    for run in runs {
        lab.same(&known, &seen.outputs(&run), "on a later handle")?;
    }
    fine()
}

fn independent(lab: &Lab<'_>) -> Outcome {
    for known in lab.samples()? {
        let mut draft = lab.ready();
        draft.steps.create(1);
        let bench = draft.lay(known.sample);
        let other = Object::Slot(1);
        draft.steps.plan(HANDLE, &bench, 0);
        draft.steps.plan(other, &bench, 1);
        draft.steps.execute(other, &bench, 1, DIRT[0]);
        draft.steps.destroy_plan(other, 1);
        draft.steps.destroy(1);
        let run = draft.steps.execute(HANDLE, &bench, 0, DIRT[1]);
        draft.steps.destroy_plan(HANDLE, 0);
        draft.steps.destroy(0);
        let seen = lab.run(draft)?;
        lab.same(
            &known,
            &seen.outputs(&run),
            "after another handle was destroyed",
        )?;
    }
    fine()
}

fn stream(lab: &Lab<'_>) -> Outcome {
    if lab.subject.no_device.is_some() {
        return not_applicable("there is no device");
    }
    let Ok(known) = lab.first() else {
        let mut draft = lab.ready();
        draft.steps.ok(Call::SetStream(HANDLE));
        return lab.run(draft).map(|_| String::new());
    };
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    let steps = &mut draft.steps;
    steps.ok(Call::SetStream(HANDLE));
    steps.plan(HANDLE, &bench, 0);
    steps.ok(Call::SetStream(HANDLE));
    let run = steps.execute(HANDLE, &bench, 0, DIRT[0]);
    steps.ok(Call::SetStream(HANDLE));
    steps.destroy_plan(HANDLE, 0);
    steps.ok(Call::SetStream(HANDLE));
    steps.destroy(0);
    let seen = lab.run(draft)?;
    lab.same(&known, &seen.outputs(&run), "after SetStream")?;
    fine()
}
