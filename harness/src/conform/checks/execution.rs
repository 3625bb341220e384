//! Executions: again, into dirty memory, with buffers in another order, from several threads.

use crate::conform::check::{Check, Level, Outcome, Stop, finding, fine};
use crate::conform::draft::{Bench, HANDLE, Steps, bytes, create};
use crate::conform::lab::{DIRT, Known, Lab, expect};
use crate::conform::links::{ENGINE_API, HOST};
use crate::worker::script::{Bound, Call, Object, Step, Workspace};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "execute/again",
        Level::Required,
        "each execution of a plan overwrites its outputs, whatever outputs and workspace held",
        HOST,
        again,
    ),
    Check::new(
        "execute/reordered",
        Level::Required,
        "buffers are found by uid: they come in the application's order",
        HOST,
        reordered,
    ),
    Check::new(
        "execute/other-buffers",
        Level::Required,
        "the same plan runs on other addresses: the buffers are the call's, not the plan's",
        HOST,
        other_buffers,
    ),
    Check::new(
        "execute/more-buffers",
        Level::Recommended,
        "buffers with uids that the graph does not have are ignored: the host passes on what it is given",
        HOST,
        more_buffers,
    ),
    Check::new(
        "execute/missing-buffer",
        Level::Recommended,
        "a tensor without a buffer gets a status and a text: the host does not check",
        HOST,
        missing_buffer,
    ),
    Check::new(
        "execute/null-buffer",
        Level::Recommended,
        "a required tensor with a NULL pointer gets a status and a text",
        HOST,
        null_buffer,
    ),
    Check::new(
        "thread/two-handles",
        Level::Required,
        "two handles work in two threads at the same time, logging included",
        ENGINE_API,
        two_handles,
    ),
    Check::new(
        "thread/migration",
        Level::Recommended,
        "a plan that was made on one thread runs on another",
        ENGINE_API,
        migration,
    ),
];

/// Plans each sample, lets `act` add executions, and compares all of them with the sample alone.
fn each(
    lab: &Lab<'_>,
    when: &str,
    act: impl Fn(&mut crate::conform::draft::Draft, &Bench) -> Vec<Vec<usize>>,
) -> Outcome {
    let samples = lab.samples()?;
    for known in &samples {
        let mut draft = lab.ready();
        let bench = draft.lay(known.sample);
        draft.steps.plan(HANDLE, &bench, 0);
        let runs = act(&mut draft, &bench);
        draft.steps.destroy_plan(HANDLE, 0);
        draft.steps.destroy(0);
        let seen = lab.run(draft)?;
        for run in runs {
            lab.same(known, &seen.outputs(&run), when)?;
        }
    }
    note_of(&samples)
}

fn note_of(samples: &[Known<'_>]) -> Outcome {
    match samples.iter().all(|known| known.alone.writes_nothing) {
        true => Ok("the engines write no output: only the statuses were checked".to_owned()),
        false => fine(),
    }
}

fn again(lab: &Lab<'_>) -> Outcome {
    each(lab, "executed again into dirty memory", |draft, bench| {
        [DIRT[0], DIRT[1], 0xFF, 0x00]
            .map(|dirt| draft.steps.execute(HANDLE, bench, 0, dirt))
            .to_vec()
    })
}

fn reordered(lab: &Lab<'_>) -> Outcome {
    each(lab, "with the buffers in another order", |draft, bench| {
        let mut reversed = bench.bound.clone();
        reversed.reverse();
        let mut rotated = bench.bound.clone();
        rotated.rotate_left(1);
        [reversed, rotated]
            .map(|bound| draft.steps.execute_with(HANDLE, bench, 0, DIRT[0], bound))
            .to_vec()
    })
}

fn other_buffers(lab: &Lab<'_>) -> Outcome {
    each(lab, "on other addresses", |draft, bench| {
        let first = draft.steps.execute(HANDLE, bench, 0, DIRT[0]);
        let mut moved = bench.clone();
        for bound in &mut moved.bound {
            let Some(old) = bound.buffer else { continue };
            let contents = draft.script.buffers[usize::from(old)].clone();
            let new = draft.buffer(&contents);
            bound.buffer = Some(new);
            for output in &mut moved.outputs {
                if *output == old {
                    *output = new;
                }
            }
        }
        let second = draft.steps.execute(HANDLE, &moved, 0, DIRT[1]);
        let third = draft.steps.execute(HANDLE, bench, 0, DIRT[1]);
        vec![first, second, third]
    })
}

fn more_buffers(lab: &Lab<'_>) -> Outcome {
    each(
        lab,
        "with buffers that the graph does not have",
        |draft, bench| {
            let extra = draft.buffer(&[0x77; 64]);
            let mut bound = bench.bound.clone();
            for (i, uid) in [987_654_321, -17].into_iter().enumerate() {
                let buffer = Some(extra);
                bound.insert(
                    i,
                    Bound {
                        uid,
                        buffer,
                        host: false,
                    },
                );
            }
            vec![draft.steps.execute_with(HANDLE, bench, 0, DIRT[0], bound)]
        },
    )
}

fn missing_buffer(lab: &Lab<'_>) -> Outcome {
    incomplete(lab, "without a buffer for tensor", |bound, i| {
        bound.remove(i);
    })
}

fn null_buffer(lab: &Lab<'_>) -> Outcome {
    incomplete(lab, "with NULL for tensor", |bound, i| {
        bound[i].buffer = None
    })
}

/// Takes one buffer away at a time; each execution must give a status and a text.
fn incomplete(lab: &Lab<'_>, how: &str, spoil: impl Fn(&mut Vec<Bound>, usize)) -> Outcome {
    for known in lab.computing()? {
        for i in 0..known.sample.inputs.len() + known.sample.outputs.len() {
            let mut draft = lab.ready();
            let bench = draft.lay(known.sample);
            draft.steps.plan(HANDLE, &bench, 0);
            let mut bound = bench.bound.clone();
            let uid = bound[i].uid;
            spoil(&mut bound, i);
            let at = draft.steps.call(Call::ExecuteOpGraph {
                handle: HANDLE,
                context: Object::Slot(0),
                workspace: Workspace::Filled(0),
                buffers: Some(bound),
                overrides: Vec::new(),
            });
            let seen = lab.run(draft)?;
            let what = format!("{}: execution {how} {uid}", known.sample.id);
            if seen.status(at) == Some(0) {
                return finding(format!("{what} succeeds"));
            }
            let text = seen.error(at).and_then(Option::as_ref);
            if text.is_none_or(|text| text.bytes.is_empty()) {
                return finding(format!("{what} fails without a text"));
            }
        }
    }
    fine()
}

fn two_handles(lab: &Lab<'_>) -> Outcome {
    const ROUNDS: usize = 8;
    for known in lab.samples()? {
        let mut draft = lab.loaded();
        let bench = draft.lay(known.sample);
        let mut own = Steps::default();
        let mut runs = Vec::new();
        own.ok(create(0));
        for round in 0..ROUNDS {
            own.applicable(HANDLE, bench.graph, lab.engine_count());
            own.details(HANDLE, &bench, 0);
            own.plan(HANDLE, &bench, 0);
            runs.push(own.execute(HANDLE, &bench, 0, DIRT[round % 2]));
            runs.push(own.execute(HANDLE, &bench, 0, DIRT[0]));
            own.destroy_plan(HANDLE, 0);
            own.destroy_details(HANDLE, 0);
        }
        own.destroy(0);
        let lists = vec![own.list.clone(), own.list.clone()];
        let at = draft.steps.push(Step::Threads(lists));
        let seen = lab.run(draft)?;
        for thread in 0..2 {
            let results = seen.thread(at, thread);
            expect(&own, results)
                .map_err(|text| Stop::Finding(format!("two threads at the same time: {text}")))?;
            for run in &runs {
                lab.same(
                    &known,
                    &bytes(results, run),
                    "in two threads at the same time",
                )?;
            }
        }
    }
    fine()
}

fn migration(lab: &Lab<'_>) -> Outcome {
    for known in lab.samples()? {
        let mut draft = lab.ready();
        let bench = draft.lay(known.sample);
        draft.steps.plan(HANDLE, &bench, 0);
        let mut own = Steps::default();
        let run = own.execute(HANDLE, &bench, 0, DIRT[0]);
        own.destroy_plan(HANDLE, 0);
        let at = draft.steps.push(Step::Threads(vec![own.list.clone()]));
        draft.steps.destroy(0);
        let seen = lab.run(draft)?;
        let results = seen.thread(at, 0);
        expect(&own, results).map_err(Stop::Finding)?;
        lab.same(&known, &bytes(results, &run), "on another thread")?;
    }
    fine()
}
