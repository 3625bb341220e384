//! Three commands that help on from here.

use std::collections::BTreeSet;

use super::failure::{is_failure, plugin_argument, quoted, reproduction};
use crate::journal::{Journal, Summary, Unit};
use crate::verdict::Verdict;

/// Three commands, each with what it is for.
pub fn next_commands(journal: &Journal, units: &[Unit<'_>], summary: &Summary) -> [String; 3] {
    let plugins: BTreeSet<String> = journal.plugins.iter().map(plugin_argument).collect();
    let plugin = match plugins.len() {
        1 => plugins.into_iter().next().unwrap_or_default(),
        _ => "PLUGIN".to_owned(),
    };
    let out = journal
        .start
        .as_ref()
        .and_then(|start| start.out.as_deref())
        .map_or_else(|| "dnn-assay-out".to_owned(), quoted);
    let report = commented(&format!("dnn-assay report {out}"), "these figures again");
    if summary.plugin_errors > 0 && units.is_empty() {
        return [
            commented(
                &format!("dnn-assay run {plugin} --until loaded"),
                "load it, nothing else",
            ),
            commented("dnn-assay run --builtin", "the same on a plugin that works"),
            report,
        ];
    }
    let failed = units
        .iter()
        .find(|unit| is_failure(&unit.verdict) || unit.verdict == Verdict::Missing);
    if let Some(unit) = failed {
        let case = quoted(&unit.key.case);
        return [
            commented(
                &reproduction(journal, &unit.key, unit.attempts.last().copied()),
                "this case alone",
            ),
            commented(
                &format!("dnn-assay explain {case}"),
                "its graph and its bound",
            ),
            report,
        ];
    }
    if summary.verified == 0 {
        return [
            commented("dnn-assay list", "what was asked for"),
            commented(
                "dnn-assay run --builtin",
                "the same on a plugin that accepts it",
            ),
            report,
        ];
    }
    let ran_all = journal
        .start
        .as_ref()
        .is_some_and(|start| start.suites.iter().any(|suite| suite == "full"));
    let (more, what) = if ran_all {
        (format!("conform {plugin}"), "the contracts of the ABI")
    } else {
        (format!("run {plugin} --suite full"), "the full tier")
    };
    [
        commented(&format!("dnn-assay {more}"), what),
        commented(
            &format!("dnn-assay run {plugin} --junit junit.xml"),
            "for a pipeline",
        ),
        report,
    ]
}

fn commented(command: &str, what: &str) -> String {
    format!("{command}   # {what}")
}
