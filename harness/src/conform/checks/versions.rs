//! The API version against what is exported.

use dnn_assay_abi::symbols::{ENGINE_PLUGIN, Group, Symbol};
use dnn_assay_abi::version;

use super::optional::taker;
use crate::conform::check::{Check, Level, Outcome, Stop, finding, fine};
use crate::conform::lab::Lab;
use crate::conform::links::{ENGINE_API, HOST};
use crate::conform::sample::{GRAPHS, graph_of};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "version/floors",
        Level::Informational,
        "a graph feature reaches the plugin only if its API version is high enough and the function is there",
        HOST,
        floors,
    ),
    Check::new(
        "version/serialization-group",
        Level::Recommended,
        "the three functions of serialization are exported together: the host takes fewer for none",
        ENGINE_API,
        serialization_group,
    ),
    Check::new(
        "version/major",
        Level::Informational,
        "the API version's major number is 1: major 0 is taken by a transitional shim only",
        HOST,
        major,
    ),
];

const OVERRIDES: &str = "hipdnnEnginePluginExecuteOpGraphWithOverrides";

fn floors(lab: &Lab<'_>) -> Outcome {
    let api = lab.subject.info.api_version();
    match (api >= version::OVERRIDES, lab.exports(OVERRIDES)) {
        (false, true) => finding(format!(
            "{OVERRIDES} is exported, but API version {api} is below {}: the host never calls it",
            version::OVERRIDES
        )),
        (true, false) if takes_overrides(lab)? => finding(format!(
            "API version {api} and graphs with overridable shapes are taken, but {OVERRIDES} is not \
             exported: the host leaves the plugin out for such graphs"
        )),
        (true, false) => Ok(format!(
            "API version {api} without {OVERRIDES}: graphs with overridable shapes are never offered"
        )),
        (false, false) => Ok(format!("API version {api}")),
        (true, true) => fine(),
    }
}

/// Whether an engine takes a graph whose shapes may be overridden.
fn takes_overrides(lab: &Lab<'_>) -> Result<bool, Stop> {
    let Some(mut graph) = graph_of(GRAPHS[0]) else {
        return Ok(false);
    };
    graph.override_shapes = true;
    match taker(lab, &graph) {
        Ok(engine) => Ok(engine.is_some()),
        // What goes wrong there is the affair of other checks.
        Err(Stop::Finding(_) | Stop::NotApplicable(_)) => Ok(false),
        Err(other) => Err(other),
    }
}

fn serialization_group(lab: &Lab<'_>) -> Outcome {
    let group = ENGINE_PLUGIN
        .iter()
        .filter(|symbol| symbol.group == Group::Serialization);
    let (there, missing): (Vec<&Symbol>, Vec<&Symbol>) =
        group.partition(|symbol: &&dnn_assay_abi::symbols::Symbol| lab.exports(symbol.name));
    if !there.is_empty() && !missing.is_empty() {
        let retired = lab.exports("hipdnnEnginePluginSerializeExecutionContext");
        let why = match retired {
            true => "; the older SerializeExecutionContext is no longer resolved",
            false => "",
        };
        return finding(format!("{} is not exported{why}", missing[0].name));
    }
    fine()
}

fn major(lab: &Lab<'_>) -> Outcome {
    match lab.subject.info.needs_major_zero_shim() {
        true => finding(format!("API version {}", lab.subject.info.api_version())),
        false => fine(),
    }
}
