//! Log lines: which, when, to whom.

use dnn_assay_abi::Severity;

use super::errors::refused;
use crate::conform::check::{Check, Level, Outcome, Stop, finding, fine, not_applicable};
use crate::conform::draft::{At, Draft, HANDLE};
use crate::conform::lab::{DIRT, Lab, Seen};
use crate::conform::links::{HOST, PLUGIN_API};
use crate::worker::script::{Call, LogEntry, Step, Value};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "log/messages",
        Level::Recommended,
        "each message is a NUL-terminated UTF-8 text with a severity from INFO to FATAL",
        PLUGIN_API,
        messages,
    ),
    Check::new(
        "log/level",
        Level::Recommended,
        "SetLogLevel is honoured: nothing below the level, and nothing at OFF",
        PLUGIN_API,
        level,
    ),
    Check::new(
        "log/level-status",
        Level::Recommended,
        "SetLogLevel gives SUCCESS or INVALID_VALUE: the host warns of anything else",
        HOST,
        level_status,
    ),
    Check::new(
        "log/no-callback",
        Level::Recommended,
        "the plugin works before a callback was set and after it was set to NULL",
        PLUGIN_API,
        no_callback,
    ),
    Check::new(
        "log/latest-callback",
        Level::Recommended,
        "messages go to the callback that was set last, and to no other",
        PLUGIN_API,
        latest_callback,
    ),
];

/// A use that gives a plugin reasons to log: a plan, an execution, two refusals. Not more than
/// is possible for a plugin that takes no graph.
fn talk(lab: &Lab<'_>, draft: &mut Draft) -> Result<(), Stop> {
    let known = lab.first()?;
    let bench = draft.lay(known.sample);
    let refusals = refused(lab, draft, &bench);
    draft
        .steps
        .applicable(HANDLE, bench.graph, lab.engine_count());
    draft.steps.details(HANDLE, &bench, 0);
    draft.steps.destroy_details(HANDLE, 0);
    draft.steps.plan(HANDLE, &bench, 0);
    draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
    draft.steps.destroy_plan(HANDLE, 0);
    for call in refusals.into_iter().flatten() {
        draft.steps.call(call);
    }
    Ok(())
}

fn has_logging(lab: &Lab<'_>) -> Result<(), Stop> {
    match lab.exports("hipdnnPluginSetLoggingCallback") {
        true => Ok(()),
        false => not_applicable("SetLoggingCallback is not exported"),
    }
}

fn log(seen: &Seen, at: At) -> &[LogEntry] {
    match seen.value(at) {
        Value::Log(lines) => lines,
        _ => &[],
    }
}

fn messages(lab: &Lab<'_>) -> Outcome {
    has_logging(lab)?;
    let mut draft = lab.ready();
    talk(lab, &mut draft)?;
    let at = draft.steps.push(Step::TakeLog);
    let seen = lab.run(draft)?;
    for line in log(&seen, at) {
        let Some(text) = &line.text else {
            return finding("a message is NULL");
        };
        if !text.terminated || std::str::from_utf8(&text.bytes).is_err() {
            return finding(format!("a message is no UTF-8 text: {:?}", text.text()));
        }
        if !(Severity::INFO.0..=Severity::FATAL.0).contains(&line.severity) {
            return finding(format!(
                "the severity {} of {:?}",
                line.severity,
                text.text()
            ));
        }
    }
    match log(&seen, at).len() {
        0 => Ok("nothing was logged".to_owned()),
        lines => Ok(format!("{lines} messages")),
    }
}

fn level(lab: &Lab<'_>) -> Outcome {
    has_logging(lab)?;
    if !lab.exports("hipdnnPluginSetLogLevel") {
        return not_applicable("SetLogLevel is not exported");
    }
    let mut draft = lab.ready();
    let mut parts = Vec::new();
    for level in [Severity::INFO, Severity::ERROR, Severity::OFF] {
        draft.steps.call(Call::SetLogLevel(level.0));
        draft.steps.push(Step::TakeLog);
        talk(lab, &mut draft)?;
        parts.push((level, draft.steps.push(Step::TakeLog)));
    }
    let seen = lab.run(draft)?;
    for (level, at) in &parts {
        let below = log(&seen, *at).iter().find(|line| line.severity < level.0);
        if let Some(line) = below {
            let text = line.text.as_ref().map(|t| t.text()).unwrap_or_default();
            return finding(format!(
                "at level {level} a message of severity {} comes: {text:?}",
                line.severity
            ));
        }
    }
    match log(&seen, parts[0].1).is_empty() {
        true => Ok("nothing was logged at INFO either".to_owned()),
        false => fine(),
    }
}

fn level_status(lab: &Lab<'_>) -> Outcome {
    if !lab.exports("hipdnnPluginSetLogLevel") {
        return not_applicable("SetLogLevel is not exported");
    }
    let mut draft = lab.loaded();
    let at: Vec<_> = [0, 1, 2, 3, 4, 99, -1]
        .map(|level| (level, draft.steps.call(Call::SetLogLevel(level))))
        .to_vec();
    let seen = lab.run(draft)?;
    for (level, at) in at {
        let known = (0..=4).contains(&level);
        match seen.status(at) {
            Some(0) => {}
            Some(2) if !known => {}
            status => {
                let status = dnn_assay_abi::PluginStatus(status.unwrap_or_default());
                return finding(format!("level {level} gives {status}"));
            }
        }
    }
    fine()
}

fn no_callback(lab: &Lab<'_>) -> Outcome {
    has_logging(lab)?;
    let mut draft = lab.ready();
    draft.steps.ok(Call::SetLoggingCallback(None));
    draft.steps.push(Step::TakeLog);
    talk(lab, &mut draft)?;
    let at = draft.steps.push(Step::TakeLog);
    let seen = lab.run(draft)?;
    match log(&seen, at).is_empty() {
        false => finding("messages still come after the callback was set to NULL"),
        true => fine(),
    }
}

fn latest_callback(lab: &Lab<'_>) -> Outcome {
    has_logging(lab)?;
    let mut draft = lab.ready();
    draft.steps.ok(Call::SetLoggingCallback(Some(1)));
    draft.steps.push(Step::TakeLog);
    talk(lab, &mut draft)?;
    let at = draft.steps.push(Step::TakeLog);
    let seen = lab.run(draft)?;
    match log(&seen, at).iter().any(|line| line.callback == 0) {
        true => finding("messages still go to the callback that was replaced"),
        false => fine(),
    }
}
