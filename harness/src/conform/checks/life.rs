//! The library's life: closing, opening again, and what use leaves behind.

use dnn_assay_device::MemoryKind;

use crate::conform::check::{Check, Level, Outcome, Stop, finding, fine, not_applicable};
use crate::conform::draft::{Draft, HANDLE, Steps, create};
use crate::conform::lab::{DIRT, Lab};
use crate::conform::links::{DLOPEN, HOST};
use crate::worker::script::{Call, Data, Step, Usage, Value};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "life/unload",
        Level::Recommended,
        "after dlclose no mapping of the file is left",
        DLOPEN,
        unload,
    ),
    Check::new(
        "life/reopen",
        Level::Required,
        "the library can be closed after use, opened again and used: eager unloading does that",
        HOST,
        reopen,
    ),
    Check::new(
        "life/growth-of-queries",
        Level::Required,
        "questions without a plan leave no memory, descriptor or thread behind",
        HOST,
        growth_of_queries,
    ),
    Check::new(
        "life/growth-of-plans",
        Level::Required,
        "plans leave nothing behind when they are destroyed",
        HOST,
        growth_of_plans,
    ),
    Check::new(
        "life/growth-of-executions",
        Level::Required,
        "executions of one plan leave nothing behind",
        HOST,
        growth_of_executions,
    ),
    Check::new(
        "life/growth-of-handles",
        Level::Required,
        "handles leave nothing behind when they are destroyed",
        HOST,
        growth_of_handles,
    ),
];

/// Loads, uses and destroys everything; the execution's reads.
fn use_once(lab: &Lab<'_>, draft: &mut Draft) -> Option<Vec<usize>> {
    draft.steps.load(0, lab.engine_count());
    if lab.subject.no_device.is_some() {
        return None;
    }
    draft.steps.create(0);
    let run = lab.first().ok().map(|known| {
        let bench = draft.lay(known.sample);
        draft.steps.details(HANDLE, &bench, 0);
        draft.steps.plan(HANDLE, &bench, 0);
        let run = draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
        draft.steps.destroy_plan(HANDLE, 0);
        draft.steps.destroy_details(HANDLE, 0);
        run
    });
    draft.steps.destroy(0);
    run
}

fn empty_draft(lab: &Lab<'_>) -> Draft {
    Draft::new(&lab.subject.config.plugin, lab.subject.config.load_mode)
}

fn unload(lab: &Lab<'_>) -> Outcome {
    let mut draft = empty_draft(lab);
    use_once(lab, &mut draft);
    let open = draft.steps.push(Step::Mappings { library: 0 });
    let close = draft.steps.push(Step::Close { library: 0 });
    draft.steps.expected.push(close);
    let closed = draft.steps.push(Step::Mappings { library: 0 });
    let seen = lab.run(draft)?;
    match (seen.number(open), seen.number(closed)) {
        (Some(0), _) => Ok("the mapping could not be found by the file's name".to_owned()),
        (_, Some(0)) => fine(),
        _ => finding(
            "the file is still mapped after dlclose: a thread-local with a destructor, a GNU_UNIQUE symbol or NODELETE keeps it",
        ),
    }
}

fn reopen(lab: &Lab<'_>) -> Outcome {
    let mut draft = empty_draft(lab);
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.extend(use_once(lab, &mut draft));
        let close = draft.steps.push(Step::Close { library: 0 });
        draft.steps.expected.push(close);
    }
    let seen = lab.run(draft)?;
    if let Ok(known) = lab.first() {
        for run in runs {
            lab.same(&known, &seen.outputs(&run), "opened again")?;
        }
    }
    fine()
}

/// Rounds before measuring: caches, pools and lazily made things have filled by then.
const WARM_UP: u32 = 20;
/// Rounds measured.
const ROUNDS: u32 = 60;

fn growth_of_queries(lab: &Lab<'_>) -> Outcome {
    growth(lab, |steps, bench| {
        steps.applicable(HANDLE, bench.graph, lab.engine_count());
        steps.details(HANDLE, bench, 0);
        steps.ok(Call::GetWorkspaceSize {
            handle: HANDLE,
            config: Data::Blob(bench.config),
            graph: Data::Blob(bench.graph),
            out: crate::worker::script::Out::Given,
        });
        steps.destroy_details(HANDLE, 0);
    })
}

fn growth_of_plans(lab: &Lab<'_>) -> Outcome {
    growth(lab, |steps, bench| {
        steps.plan(HANDLE, bench, 0);
        steps.destroy_plan(HANDLE, 0);
    })
}

fn growth_of_executions(lab: &Lab<'_>) -> Outcome {
    growth(lab, |steps, bench| {
        steps.execute(HANDLE, bench, 1, DIRT[0]);
    })
}

fn growth_of_handles(lab: &Lab<'_>) -> Outcome {
    let mut draft = lab.loaded();
    let mut round = Steps::default();
    round.ok(create(0));
    round.destroy(0);
    measure(lab, &mut draft, round)
}

fn growth(lab: &Lab<'_>, round: impl Fn(&mut Steps, &crate::conform::draft::Bench)) -> Outcome {
    let known = lab.first()?;
    let mut draft = lab.ready();
    let bench = draft.lay(known.sample);
    draft.steps.plan(HANDLE, &bench, 1);
    let mut steps = Steps::default();
    round(&mut steps, &bench);
    measure(lab, &mut draft, steps)
}

/// Warms up, measures idle rounds of our own, then the plugin's.
fn measure(lab: &Lab<'_>, draft: &mut Draft, round: Steps) -> Outcome {
    let mut rounds = |rounds, steps: &[Step]| {
        draft.steps.push(Step::Repeat {
            rounds,
            steps: steps.to_vec(),
        })
    };
    let warm = rounds(WARM_UP, &round.list);
    let idle = rounds(ROUNDS, &[]);
    let busy = rounds(ROUNDS, &round.list);
    let buffers = draft.script.buffers.clone();
    let seen = lab.run(std::mem::take(draft))?;
    if let Some(status) = seen.status(warm) {
        let status = dnn_assay_abi::PluginStatus(status);
        return not_applicable(format!("the rounds fail: {status}"));
    }
    let (Value::Series(idle), Value::Series(busy)) = (seen.value(idle), seen.value(busy)) else {
        return Err(Stop::Infrastructure("no figures came back".to_owned()));
    };
    match lab.subject.config.memory {
        MemoryKind::Host => judge_growth(&[idle], busy),
        _ => judge_growth(&[idle, &without_plugin(lab, buffers)?], busy),
    }
}

/// What a process uses that initialised the same GPU library and moves the same buffers, round by
/// round, without the plugin: the library's threads, descriptors and memory are its own affair.
fn without_plugin(lab: &Lab<'_>, buffers: Vec<Vec<u8>>) -> Result<Vec<Usage>, Stop> {
    let mut draft = empty_draft(lab);
    draft.script.buffers = buffers;
    let rounds = |rounds| Step::Repeat {
        rounds,
        steps: vec![Step::MoveBuffers],
    };
    draft.steps.push(rounds(WARM_UP));
    let at = draft.steps.push(rounds(ROUNDS));
    let seen = lab.run(draft)?;
    match seen.value(at) {
        Value::Series(series) => Ok(series.clone()),
        _ => Err(Stop::Infrastructure("no figures came back".to_owned())),
    }
}

/// A leak is what grows in nearly every round: a cache that fills or a pool that doubles grows in
/// few. What is not the plugin's, measured in `others`, is taken off.
fn judge_growth(others: &[&[Usage]], busy: &[Usage]) -> Outcome {
    let slope_of_others = |of: &dyn Fn(&Usage) -> i64| {
        let slopes = others.iter().map(|series| slope(series, of));
        slopes.fold(0.0, f64::max)
    };
    let heap = |usage: &Usage| usage.heap as i64;
    let resident = |usage: &Usage| usage.resident as i64;
    let per_round = slope(busy, heap) - slope_of_others(&heap);
    if steadiness(busy, heap) >= 0.9 && per_round >= 8.0 {
        return finding(format!(
            "{per_round:.0} bytes of heap are left behind in each round, over {ROUNDS} rounds after {WARM_UP} of warm-up"
        ));
    }
    let pages = slope(busy, resident) - slope_of_others(&resident);
    if steadiness(busy, resident) >= 0.9 && pages >= 4096.0 {
        return finding(format!(
            "{pages:.0} resident bytes are left behind in each round"
        ));
    }
    for (what, of) in [
        (
            "descriptors",
            (|u: &Usage| u.descriptors as i64) as fn(&Usage) -> i64,
        ),
        ("threads", |u: &Usage| u.threads as i64),
    ] {
        let each = slope(busy, of) - slope_of_others(&of);
        if each >= 0.5 {
            return finding(format!("{each:.1} {what} are left behind in each round"));
        }
    }
    Ok(format!("{per_round:+.1} bytes of heap per round"))
}

/// Change per round from the first figure to the last.
fn slope(series: &[Usage], of: impl Fn(&Usage) -> i64) -> f64 {
    match (series.first(), series.last()) {
        (Some(first), Some(last)) if series.len() > 1 => {
            (of(last) - of(first)) as f64 / (series.len() - 1) as f64
        }
        _ => 0.0,
    }
}

/// The share of rounds in which a figure grew.
fn steadiness(series: &[Usage], of: impl Fn(&Usage) -> i64) -> f64 {
    let steps = series.len().saturating_sub(1).max(1);
    let grew = series.windows(2).filter(|pair| of(&pair[1]) > of(&pair[0]));
    grew.count() as f64 / steps as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(of: impl Fn(u64) -> Usage) -> Vec<Usage> {
        (0..u64::from(ROUNDS)).map(of).collect()
    }

    #[test]
    fn a_steady_leak_is_found_and_a_filling_cache_is_not() {
        let idle = series(|_| Usage::default());
        let leak = |heap: fn(u64) -> u64| {
            series(|i| Usage {
                heap: heap(i),
                ..Usage::default()
            })
        };
        assert!(judge_growth(&[&idle], &leak(|i| 1000 + 48 * i)).is_err());
        assert!(judge_growth(&[&idle], &leak(|i| 1 << (i / 16 + 10))).is_ok());
        assert!(judge_growth(&[&idle], &leak(|i| 1000 + (i % 2) * 500)).is_ok());
        let own = leak(|i| 48 * i);
        assert!(
            judge_growth(&[&own], &own).is_ok(),
            "our own growth is taken off"
        );
        let descriptors = series(|i| Usage {
            descriptors: 5 + i,
            ..Usage::default()
        });
        assert!(judge_growth(&[&idle], &descriptors).is_err());
        assert!(
            judge_growth(&[&idle, &descriptors], &descriptors).is_ok(),
            "what the GPU library alone leaves behind is its own"
        );
    }
}
