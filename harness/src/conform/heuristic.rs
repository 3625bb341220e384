//! Heuristic plugins: they rank engines and execute nothing, so their symbols are all there is to
//! check here.

use dnn_assay_abi::symbols::HEURISTIC_PLUGIN;
use dnn_assay_elf::PluginFile;

use super::check::Level;
use super::links::HOST;
use super::results::{CheckResult, OutcomeKind};

/// Those of every plugin that the host insists on.
const COMMON: [&str; 4] = [
    "hipdnnPluginGetName",
    "hipdnnPluginGetVersion",
    "hipdnnPluginGetType",
    "hipdnnPluginGetLastErrorString",
];
/// A heuristic plugin without it has unnamed policies.
const OPTIONAL: &str = "hipdnnHeuristicPluginGetPolicyName";

/// The symbols of a heuristic plugin.
pub(super) fn symbols(file: &PluginFile) -> Vec<CheckResult> {
    let mandatory = HEURISTIC_PLUGIN
        .iter()
        .copied()
        .filter(|name| *name != OPTIONAL);
    let result = |id: &str, level, why: &str, missing: Vec<&str>| CheckResult {
        id: id.to_owned(),
        level,
        why: why.to_owned(),
        link: HOST.to_owned(),
        outcome: match missing.is_empty() {
            true => OutcomeKind::Passed,
            false => OutcomeKind::Finding,
        },
        text: match missing.is_empty() {
            true => String::new(),
            false => format!("not exported: {}", missing.join(", ")),
        },
        seconds: 0.0,
    };
    let without = |names: &mut dyn Iterator<Item = &'static str>| {
        names.filter(|name| !file.exports(name)).collect::<Vec<_>>()
    };
    vec![
        result(
            "heuristic/symbols",
            Level::Required,
            "a heuristic plugin exports the functions of every plugin and those of policies",
            without(&mut COMMON.into_iter().chain(mandatory)),
        ),
        result(
            "heuristic/policy-name",
            Level::Informational,
            "policies have names",
            without(&mut std::iter::once(OPTIONAL)),
        ),
    ]
}
