//! Knobs: what is declared, what is taken, what it does to results and workspaces.

use dnn_assay_graph::Graph;
use dnn_assay_graph::schema::Attributes;
use dnn_assay_graph::wire::{Knob, KnobConstraint, KnobSetting, KnobValue, read_engine_details};

use crate::conform::check::{Check, Level, Outcome, Stop, finding, fine, not_applicable};
use crate::conform::draft::{HANDLE, plan};
use crate::conform::knob::{breach, inside, outside, show};
use crate::conform::lab::{DIRT, Known, Lab};
use crate::conform::links::{KNOBS, SCHEMAS};
use crate::conform::sample::Sample;
use crate::worker::script::{Call, Object, Out};

/// Kernel selection by measurement.
const BENCHMARKING: &str = "global.benchmarking";
/// The most workspace that a plan may want, bytes.
const WORKSPACE_LIMIT: &str = "global.workspace_size_limit";

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "knob/defaults",
        Level::Required,
        "each knob's default has the type of its constraint and lies inside it",
        SCHEMAS,
        defaults,
    ),
    Check::new(
        "knob/in-range",
        Level::Required,
        "least, greatest and neighbouring values of each knob make a plan",
        SCHEMAS,
        in_range,
    ),
    Check::new(
        "knob/out-of-range",
        Level::Recommended,
        "values outside a knob's constraint get a status and a text",
        SCHEMAS,
        out_of_range,
    ),
    Check::new(
        "knob/results",
        Level::Required,
        "results are right at each value (with --knob-sweep)",
        SCHEMAS,
        results,
    ),
    Check::new(
        "knob/benchmarking",
        Level::Recommended,
        "global.benchmarking is an integer from 0 to 1 with default 0, and 1 gives the same results",
        KNOBS,
        benchmarking,
    ),
    Check::new(
        "knob/workspace-limit",
        Level::Recommended,
        "global.workspace_size_limit is for convolutions, its default is its greatest value, plans stay within it, and less than the least value is refused",
        KNOBS,
        workspace_limit,
    ),
];

/// A sample's knobs.
fn knobs(known: &Known<'_>) -> Vec<Knob> {
    read_engine_details(&known.alone.details).map_or_else(|_| Vec::new(), |details| details.knobs)
}

/// Calls `act` for each knob of each sample; not applicable where there are none.
fn each(
    lab: &Lab<'_>,
    mut act: impl FnMut(&Known<'_>, &Knob) -> Result<(), Stop>,
) -> Result<usize, Stop> {
    let mut count = 0;
    for known in lab.samples()? {
        for knob in knobs(&known) {
            act(&known, &knob)?;
            count += 1;
        }
    }
    match count {
        0 => not_applicable("the engines declare no knobs for these graphs"),
        count => Ok(count),
    }
}

fn setting(knob: &Knob, value: KnobValue) -> KnobSetting {
    KnobSetting {
        knob_id: knob.knob_id.clone(),
        value,
    }
}

fn defaults(lab: &Lab<'_>) -> Outcome {
    let count = each(lab, |known, knob| {
        let broken = knob
            .constraint
            .as_ref()
            .and_then(|constraint| breach(&knob.default_value, constraint));
        match broken {
            Some(why) => finding(format!(
                "{}: the default {} of {}: {why}",
                known.sample.id,
                show(&knob.default_value),
                knob.knob_id
            )),
            None => Ok(()),
        }
    })?;
    Ok(format!("{count} knobs"))
}

/// The sample with one knob set.
fn set(lab: &Lab<'_>, known: &Known<'_>, knob: &Knob, value: &KnobValue) -> Result<Sample, Stop> {
    let setting = setting(knob, value.clone());
    known
        .sample
        .with_knobs(lab.generation(), &[setting])
        .ok_or_else(|| Stop::NotApplicable("the wire's generation has no knobs".to_owned()))
}

fn in_range(lab: &Lab<'_>) -> Outcome {
    each(lab, |known, knob| {
        for value in inside(knob) {
            let sample = set(lab, known, knob, &value)?;
            let mut draft = lab.ready();
            let bench = draft.lay(&sample);
            draft.steps.plan(HANDLE, &bench, 0);
            draft.steps.destroy_plan(HANDLE, 0);
            lab.run(draft)
                .map_err(|stop| at_value(stop, known, knob, &value))?;
        }
        Ok(())
    })?;
    fine()
}

fn at_value(stop: Stop, known: &Known<'_>, knob: &Knob, value: &KnobValue) -> Stop {
    match stop {
        Stop::Finding(text) => Stop::Finding(format!(
            "{}: {} = {}: {text}",
            known.sample.id,
            knob.knob_id,
            show(value)
        )),
        other => other,
    }
}

fn out_of_range(lab: &Lab<'_>) -> Outcome {
    each(lab, |known, knob| {
        for value in outside(knob) {
            refused(lab, known, knob, &value)?;
        }
        Ok(())
    })?;
    fine()
}

fn refused(lab: &Lab<'_>, known: &Known<'_>, knob: &Knob, value: &KnobValue) -> Result<(), Stop> {
    let sample = set(lab, known, knob, value)?;
    let mut draft = lab.ready();
    let bench = draft.lay(&sample);
    let at = draft.steps.call(plan(HANDLE, &bench, 0));
    let seen = lab.run(draft)?;
    let what = format!("{}: {} = {}", known.sample.id, knob.knob_id, show(value));
    if seen.status(at) == Some(0) {
        return finding(format!("{what} makes a plan"));
    }
    let text = seen.error(at).and_then(Option::as_ref);
    match text.is_none_or(|text| text.bytes.is_empty()) {
        true => finding(format!("{what} is refused without a text")),
        false => Ok(()),
    }
}

/// The outputs at a value are within the bound: another way may give other bits.
fn right_at(lab: &Lab<'_>, known: &Known<'_>, knob: &Knob, value: &KnobValue) -> Result<(), Stop> {
    let sample = set(lab, known, knob, value)?;
    let mut draft = lab.ready();
    let bench = draft.lay(&sample);
    draft.steps.plan(HANDLE, &bench, 0);
    let run = draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
    draft.steps.destroy_plan(HANDLE, 0);
    let seen = lab
        .run(draft)
        .map_err(|stop| at_value(stop, known, knob, value))?;
    let when = format!("{} = {}", knob.knob_id, show(value));
    lab.within(known, &seen.outputs(&run), &when)
}

fn results(lab: &Lab<'_>) -> Outcome {
    if !lab.sweep {
        return not_applicable("asked for with --knob-sweep only");
    }
    each(lab, |known, knob| {
        inside(knob)
            .iter()
            .try_for_each(|value| right_at(lab, known, knob, value))
    })?;
    fine()
}

/// The knob of this name of each sample that has it.
fn named(
    lab: &Lab<'_>,
    name: &str,
    mut act: impl FnMut(&Known<'_>, &Knob) -> Result<(), Stop>,
) -> Outcome {
    let mut found = false;
    each(lab, |known, knob| {
        if knob.knob_id != name {
            return Ok(());
        }
        found = true;
        act(known, knob)
    })?;
    match found {
        true => fine(),
        false => not_applicable(format!("no engine declares {name}")),
    }
}

fn benchmarking(lab: &Lab<'_>) -> Outcome {
    named(lab, BENCHMARKING, |known, knob| {
        let as_agreed = matches!(
            (&knob.default_value, &knob.constraint),
            (
                KnobValue::Int(0),
                Some(KnobConstraint::Int { min: 0, max: 1, .. })
            )
        );
        if !as_agreed {
            return finding(format!(
                "{BENCHMARKING} is not an integer from 0 to 1, default 0"
            ));
        }
        right_at(lab, known, knob, &KnobValue::Int(1))
    })
}

fn is_convolution(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| {
        matches!(
            node.attributes,
            Attributes::ConvolutionFwd(_)
                | Attributes::ConvolutionBwd(_)
                | Attributes::ConvolutionWrw(_)
        )
    })
}

fn workspace_limit(lab: &Lab<'_>) -> Outcome {
    named(lab, WORKSPACE_LIMIT, |known, knob| {
        if !is_convolution(&known.sample.graph) {
            return finding(format!(
                "{}: declared for a graph without convolution",
                known.sample.id
            ));
        }
        let (KnobValue::Int(default), Some(KnobConstraint::Int { min, max, .. })) =
            (&knob.default_value, &knob.constraint)
        else {
            return finding(format!("{WORKSPACE_LIMIT} is not an integer in a range"));
        };
        if default != max {
            return finding(format!(
                "the default {default} is not the greatest value {max}"
            ));
        }
        for limit in [*min, *max] {
            within_limit(lab, known, knob, limit)?;
        }
        match min.checked_sub(1) {
            Some(less) if *min > 0 => refused(lab, known, knob, &KnobValue::Int(less)),
            _ => Ok(()),
        }
    })
}

fn within_limit(lab: &Lab<'_>, known: &Known<'_>, knob: &Knob, limit: i64) -> Result<(), Stop> {
    let value = KnobValue::Int(limit);
    let sample = set(lab, known, knob, &value)?;
    let mut draft = lab.ready();
    let bench = draft.lay(&sample);
    draft.steps.ok(plan(HANDLE, &bench, 0));
    let at = draft.steps.ok(Call::GetWorkspaceSizeFromExecutionContext {
        handle: HANDLE,
        context: Object::Slot(0),
        out: Out::Given,
    });
    let seen = lab
        .run(draft)
        .map_err(|stop| at_value(stop, known, knob, &value))?;
    match seen.number(at) {
        Some(size) if size > limit.max(0) as u64 => finding(format!(
            "{}: the plan wants {size} bytes with a limit of {limit}",
            known.sample.id
        )),
        _ => right_at(lab, known, knob, &value),
    }
}
