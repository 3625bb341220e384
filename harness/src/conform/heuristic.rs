//! Heuristic plugins: they rank engines and execute nothing, so their symbols are all there is to
//! check here.

use dnn_assay_abi::symbols::HEURISTIC_PLUGIN;
use dnn_assay_elf::PluginFile;

use super::check::Level;
use super::links::HOST;
use super::results::{CheckResult, OutcomeKind};

/// A contract of a heuristic plugin's file.
pub struct HeuristicCheck {
    /// `heuristic/name`.
    pub id: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What must hold, in one line.
    pub why: &'static str,
    /// Where that is written.
    pub link: &'static str,
    /// The functions that it asks for.
    symbols: fn() -> Vec<&'static str>,
}

/// The checks, in the order of a report.
pub const CHECKS: &[HeuristicCheck] = &[
    HeuristicCheck {
        id: "heuristic/symbols",
        level: Level::Required,
        why: "a heuristic plugin exports the functions of every plugin and those of policies",
        link: HOST,
        symbols: mandatory,
    },
    HeuristicCheck {
        id: "heuristic/policy-name",
        level: Level::Informational,
        why: "policies have names",
        link: HOST,
        symbols: || vec![POLICY_NAME],
    },
];

/// Those of every plugin that the host insists on.
const COMMON: [&str; 4] = [
    "hipdnnPluginGetName",
    "hipdnnPluginGetVersion",
    "hipdnnPluginGetType",
    "hipdnnPluginGetLastErrorString",
];
/// A heuristic plugin without it has unnamed policies.
const POLICY_NAME: &str = "hipdnnHeuristicPluginGetPolicyName";

fn mandatory() -> Vec<&'static str> {
    let policies = HEURISTIC_PLUGIN.iter().copied();
    let policies = policies.filter(|name| *name != POLICY_NAME);
    COMMON.into_iter().chain(policies).collect()
}

/// Checks a heuristic plugin's file.
pub(super) fn examine(file: &PluginFile, takes: impl Fn(&str) -> bool) -> Vec<CheckResult> {
    let taken = CHECKS.iter().filter(|check| takes(check.id));
    taken.map(|check| result(file, check)).collect()
}

fn result(file: &PluginFile, check: &HeuristicCheck) -> CheckResult {
    let mut missing = (check.symbols)();
    missing.retain(|name| !file.exports(name));
    let (outcome, text) = match missing.is_empty() {
        true => (OutcomeKind::Passed, String::new()),
        false => (
            OutcomeKind::Finding,
            format!("not exported: {}", missing.join(", ")),
        ),
    };
    CheckResult {
        id: check.id.to_owned(),
        level: check.level,
        why: check.why.to_owned(),
        link: check.link.to_owned(),
        outcome,
        text,
        seconds: 0.0,
    }
}
