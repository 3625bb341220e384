//! What is said of failures, and arguments that are NULL, one at a time.

use std::collections::BTreeSet;

use dnn_assay_abi::ERROR_STRING_MAX_LENGTH;
use dnn_assay_graph::wire::{EngineConfig, write_engine_config};

use super::engines::UNKNOWN;
use crate::conform::check::{Check, Level, Outcome, Stop, finding, fine, not_applicable};
use crate::conform::draft::{Bench, Draft, HANDLE, Steps, room};
use crate::conform::lab::{Lab, Seen};
use crate::conform::links::{ENGINE_API, HOST, PLUGIN_API};
use crate::conform::sample::{GRAPHS, Sample, graph_of};
use crate::worker::script::{Call, Data, Object, Out, RawText, Room, Step, Workspace};

const NULLS: &str =
    "each pointer argument that is NULL gets a status other than SUCCESS, not a crash";

macro_rules! null_checks {
    ($($id:literal, $function:ident, $symbol:literal, $link:expr;)*) => {
        pub(super) const CHECKS: &[Check] = &[
            Check::new(
                "error/text",
                Level::Required,
                "after a failure the last-error text is not NULL: the host builds a string from it unchecked",
                HOST,
                text,
            ),
            Check::new(
                "error/useful",
                Level::Recommended,
                "the text is not empty, UTF-8, ended, and at most 2047 bytes long",
                PLUGIN_API,
                useful,
            ),
            Check::new(
                "error/per-thread",
                Level::Required,
                "each thread has its own text: the host asks on the thread of the failure",
                PLUGIN_API,
                per_thread,
            ),
            Check::new(
                "error/own",
                Level::Recommended,
                "the text is that of the last failure, not of one before",
                PLUGIN_API,
                own,
            ),
            Check::new(
                "error/before-any",
                Level::Recommended,
                "before any failure the text is there too, and a NULL argument does nothing",
                PLUGIN_API,
                before_any,
            ),
            $(Check::new($id, Level::Recommended, NULLS, $link, $function),)*
        ];

        $(fn $function(lab: &Lab<'_>) -> Outcome {
            nulls(lab, $symbol)
        })*
    };
}

null_checks! {
    "null/get-name", null_name, "hipdnnPluginGetName", PLUGIN_API;
    "null/get-version", null_version, "hipdnnPluginGetVersion", PLUGIN_API;
    "null/get-api-version", null_api_version, "hipdnnPluginGetApiVersion", PLUGIN_API;
    "null/get-type", null_type, "hipdnnPluginGetType", PLUGIN_API;
    "null/get-all-engine-ids", null_ids, "hipdnnEnginePluginGetAllEngineIds", ENGINE_API;
    "null/get-engine-name", null_engine_name, "hipdnnEnginePluginGetEngineName", ENGINE_API;
    "null/create", null_create, "hipdnnEnginePluginCreate", ENGINE_API;
    "null/destroy", null_destroy, "hipdnnEnginePluginDestroy", ENGINE_API;
    "null/set-stream", null_stream, "hipdnnEnginePluginSetStream", ENGINE_API;
    "null/get-applicable-engine-ids", null_applicable, "hipdnnEnginePluginGetApplicableEngineIds", ENGINE_API;
    "null/get-engine-details", null_details, "hipdnnEnginePluginGetEngineDetails", ENGINE_API;
    "null/destroy-engine-details", null_destroy_details, "hipdnnEnginePluginDestroyEngineDetails", ENGINE_API;
    "null/get-workspace-size", null_workspace, "hipdnnEnginePluginGetWorkspaceSize", ENGINE_API;
    "null/create-execution-context", null_context, "hipdnnEnginePluginCreateExecutionContext", ENGINE_API;
    "null/destroy-execution-context", null_destroy_context, "hipdnnEnginePluginDestroyExecutionContext", ENGINE_API;
    "null/get-workspace-size-from-execution-context", null_context_workspace, "hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext", ENGINE_API;
    "null/execute-op-graph", null_execute, "hipdnnEnginePluginExecuteOpGraph", ENGINE_API;
}

/// Two calls that a plugin refuses without being fed anything malformed: details, and a plan, of
/// an engine that does not exist.
pub(super) fn refused(lab: &Lab<'_>, draft: &mut Draft, bench: &Bench) -> Option<[Call; 2]> {
    let config = EngineConfig {
        engine_id: UNKNOWN,
        knobs: Vec::new(),
    };
    let config = write_engine_config(&config, lab.generation()).ok()?;
    let config = draft.blob(&config);
    let graph = Data::Blob(bench.graph);
    let details = Call::GetEngineDetails {
        handle: HANDLE,
        id: UNKNOWN,
        graph,
        slot: 200,
        out: Out::Given,
        preset: false,
    };
    let plan = Call::CreateExecutionContext {
        handle: HANDLE,
        config: Data::Blob(config),
        graph,
        slot: 200,
        out: Out::Given,
    };
    Some([details, plan])
}

/// A graph for calls that never get to see whether it is taken.
fn any_bench(lab: &Lab<'_>, draft: &mut Draft) -> Result<Bench, Stop> {
    if let Some(sample) = lab.unproven().first() {
        return Ok(draft.lay(sample));
    }
    let engine = lab.subject.info.engines.first().map_or(0, |e| e.id);
    let sample = graph_of(GRAPHS[0])
        .and_then(|graph| Sample::new(GRAPHS[0], graph, engine, lab.generation(), &[]));
    match sample {
        Some(sample) => Ok(draft.lay(&sample)),
        None => not_applicable("no graph can be written"),
    }
}

/// Failures of a fresh process in this order, by index into [`refused`]; the texts after each.
fn failures(lab: &Lab<'_>, which: &[usize]) -> Result<Vec<Option<RawText>>, Stop> {
    let mut draft = lab.ready();
    let bench = any_bench(lab, &mut draft)?;
    let Some(calls) = refused(lab, &mut draft, &bench) else {
        return not_applicable("the configuration cannot be written");
    };
    let at: Vec<_> = which
        .iter()
        .map(|&i| draft.steps.call(calls[i].clone()))
        .collect();
    match lab.attempt(draft)? {
        (_, Some(text)) => not_applicable(format!("the process ended, see other findings: {text}")),
        (seen, None) => {
            let texts = at.iter().filter_map(|&at| seen.error(at).cloned());
            let texts: Vec<_> = texts.collect();
            match texts.len() == which.len() {
                true => Ok(texts),
                false => not_applicable("no call could be made to fail with valid arguments"),
            }
        }
    }
}

fn text(lab: &Lab<'_>) -> Outcome {
    let mut asked = 0;
    for which in 0..2 {
        match failures(lab, &[which]) {
            Ok(texts) if texts.iter().any(Option::is_none) => {
                return finding("GetLastErrorString sets NULL after a failure");
            }
            Ok(_) => asked += 1,
            Err(Stop::NotApplicable(_)) => {}
            Err(other) => return Err(other),
        }
    }
    match asked {
        0 => not_applicable("no call could be made to fail with valid arguments"),
        _ => fine(),
    }
}

fn useful(lab: &Lab<'_>) -> Outcome {
    let mut texts = Vec::new();
    for which in 0..2 {
        match failures(lab, &[which]) {
            Ok(seen) => texts.extend(seen.into_iter().flatten()),
            Err(Stop::NotApplicable(_)) => {}
            Err(other) => return Err(other),
        }
    }
    for text in &texts {
        if text.bytes.is_empty() {
            return finding("a failure leaves an empty text");
        }
        if !text.terminated || text.bytes.len() >= ERROR_STRING_MAX_LENGTH {
            return finding(format!(
                "the text has {} bytes; with its NUL it may have {ERROR_STRING_MAX_LENGTH}",
                text.bytes.len()
            ));
        }
        if std::str::from_utf8(&text.bytes).is_err() {
            return finding(format!("the text is not UTF-8: {:?}", text.text()));
        }
    }
    match texts.first() {
        Some(text) => Ok(format!("{:?}", text.text())),
        None => not_applicable("no call could be made to fail with valid arguments"),
    }
}

fn per_thread(lab: &Lab<'_>) -> Outcome {
    let first = failures(lab, &[0])?.remove(0);
    let Some(first) = first.filter(|text| !text.bytes.is_empty()) else {
        return not_applicable("failures leave no text");
    };
    let mut draft = lab.ready();
    let bench = any_bench(lab, &mut draft)?;
    let Some([details, plan]) = refused(lab, &mut draft, &bench) else {
        return not_applicable("the configuration cannot be written");
    };
    draft.steps.call(details);
    let mut other = Steps::default();
    let there = other.call(Call::GetLastErrorString(Out::Given));
    let failed = other.call(plan);
    let at = draft.steps.push(Step::Threads(vec![other.list]));
    let here = draft.steps.call(Call::GetLastErrorString(Out::Given));
    let seen = lab.run(draft)?;
    let text_of = |results: &[_], at| {
        Seen {
            results: results.to_vec(),
        }
        .text(at)
        .cloned()
    };
    if text_of(seen.thread(at, 0), there).as_ref() == Some(&first) {
        return finding(format!(
            "another thread reads this thread's text {:?}: it is not per thread",
            first.text()
        ));
    }
    let theirs = Seen {
        results: seen.thread(at, 0).to_vec(),
    };
    let theirs = theirs.error(failed).cloned().flatten();
    let ours = seen.text(here);
    if ours != Some(&first) && ours.is_some() && ours == theirs.as_ref() {
        return finding("a failure on another thread replaces this thread's text");
    }
    fine()
}

fn own(lab: &Lab<'_>) -> Outcome {
    let alone = [
        failures(lab, &[0])?.remove(0),
        failures(lab, &[1])?.remove(0),
    ];
    if alone[0] == alone[1] {
        return Ok("both failures that could be made have the same text".to_owned());
    }
    for order in [[0, 1], [1, 0]] {
        let texts = failures(lab, &order)?;
        if texts[1] == texts[0] {
            let stale = texts[1].as_ref().map(RawText::text).unwrap_or_default();
            return finding(format!(
                "a second failure still has the text of the first: {stale:?}"
            ));
        }
    }
    fine()
}

fn before_any(lab: &Lab<'_>) -> Outcome {
    let mut draft = lab.loaded();
    let at = draft.steps.call(Call::GetLastErrorString(Out::Given));
    draft.steps.call(Call::GetLastErrorString(Out::Null));
    let seen = lab.run(draft)?;
    match seen.text(at) {
        None => finding("GetLastErrorString sets NULL before any failure"),
        Some(_) => fine(),
    }
}

/// The calls of `symbol` with one argument NULL each, and which.
fn calls(bench: &Bench, with_plan: bool) -> Vec<(&'static str, Call)> {
    let graph = Data::Blob(bench.graph);
    let config = Data::Blob(bench.config);
    let handle = HANDLE;
    let null = Object::Null;
    let context = Object::Slot(0);
    let id = bench.engine;
    let wide = room(8);
    let ids = |ids: Option<u32>, max, count| Room { ids, max, count };
    let applicable = |handle, graph, room| Call::GetApplicableEngineIds {
        handle,
        graph,
        room,
    };
    let details = |handle, graph, out| Call::GetEngineDetails {
        handle,
        id,
        graph,
        slot: 9,
        out,
        preset: false,
    };
    let workspace = |handle, config, graph, out| Call::GetWorkspaceSize {
        handle,
        config,
        graph,
        out,
    };
    let plan = |handle, config, graph, out| Call::CreateExecutionContext {
        handle,
        config,
        graph,
        slot: 9,
        out,
    };
    let size = |handle, context, out| Call::GetWorkspaceSizeFromExecutionContext {
        handle,
        context,
        out,
    };
    let execute = |handle, context, buffers| Call::ExecuteOpGraph {
        handle,
        context,
        workspace: Workspace::Filled(0),
        buffers,
        overrides: Vec::new(),
    };
    let (given, gone) = (Out::Given, Out::Null);
    let mut calls = vec![
        ("name", Call::GetName(gone)),
        ("version", Call::GetVersion(gone)),
        ("version", Call::GetApiVersion(gone)),
        ("type", Call::GetType(gone)),
        ("num_engines", Call::GetAllEngineIds(ids(None, 0, gone))),
        (
            "engine_ids, with max_engines 8",
            Call::GetAllEngineIds(ids(None, 8, given)),
        ),
        ("name", Call::GetEngineName { id, out: gone }),
        ("handle", Call::Create { slot: 9, out: gone }),
        ("handle", Call::Destroy(null)),
        ("handle", Call::SetStream(null)),
        ("handle", applicable(null, graph, wide)),
        ("op_graph", applicable(handle, Data::Null, wide)),
        ("op_graph->ptr", applicable(handle, Data::NullBytes, wide)),
        (
            "num_engines",
            applicable(handle, graph, ids(Some(8), 8, gone)),
        ),
        ("handle", details(null, graph, given)),
        ("op_graph", details(handle, Data::Null, given)),
        ("op_graph->ptr", details(handle, Data::NullBytes, given)),
        ("engine_details", details(handle, graph, gone)),
        (
            "engine_details",
            Call::DestroyEngineDetails { handle, slot: None },
        ),
        ("handle", workspace(null, config, graph, given)),
        ("engine_config", workspace(handle, Data::Null, graph, given)),
        (
            "engine_config->ptr",
            workspace(handle, Data::NullBytes, graph, given),
        ),
        ("op_graph", workspace(handle, config, Data::Null, given)),
        (
            "op_graph->ptr",
            workspace(handle, config, Data::NullBytes, given),
        ),
        ("workspace_size", workspace(handle, config, graph, gone)),
        ("handle", plan(null, config, graph, given)),
        ("engine_config", plan(handle, Data::Null, graph, given)),
        (
            "engine_config->ptr",
            plan(handle, Data::NullBytes, graph, given),
        ),
        ("op_graph", plan(handle, config, Data::Null, given)),
        (
            "op_graph->ptr",
            plan(handle, config, Data::NullBytes, given),
        ),
        ("execution_context", plan(handle, config, graph, gone)),
        (
            "execution_context",
            Call::DestroyExecutionContext {
                handle,
                context: null,
            },
        ),
        ("execution_context", size(handle, null, given)),
        (
            "execution_context",
            execute(handle, null, Some(bench.bound.clone())),
        ),
    ];
    if with_plan {
        calls.extend([
            (
                "handle",
                Call::DestroyExecutionContext {
                    handle: null,
                    context,
                },
            ),
            ("handle", size(null, context, given)),
            ("workspace_size", size(handle, context, gone)),
            ("handle", execute(null, context, Some(bench.bound.clone()))),
            ("device_buffers", execute(handle, context, None)),
        ]);
    }
    calls
}

fn nulls(lab: &Lab<'_>, symbol: &str) -> Outcome {
    let with_plan = lab.samples().is_ok();
    let mut done: BTreeSet<&'static str> = BTreeSet::new();
    let mut findings = Vec::new();
    // A crash ends the process; the arguments after it are tried in a new one.
    loop {
        let mut draft = lab.loaded();
        let bench = any_bench(lab, &mut draft)?;
        let wanted = calls(&bench, with_plan).into_iter();
        let wanted: Vec<_> = wanted
            .filter(|(name, call)| call.symbol() == symbol && !done.contains(name))
            .collect();
        if wanted.is_empty() {
            break;
        }
        if symbol.starts_with("hipdnnEnginePlugin") && !symbol.contains("GetAll") {
            draft.steps.create(0);
        }
        if with_plan {
            draft.steps.plan(HANDLE, &bench, 0);
        }
        let first = draft.steps.list.len();
        for (_, call) in &wanted {
            draft.steps.call(call.clone());
        }
        let (seen, end) = lab.attempt(draft)?;
        for (i, (name, _)) in wanted.iter().enumerate() {
            match seen.results.get(first + i) {
                None => {
                    let how = end.clone().unwrap_or_default();
                    findings.push(format!("{name} NULL: {how}"));
                    done.insert(name);
                    break;
                }
                Some(result) => {
                    if result.value == crate::worker::script::Value::Absent {
                        return not_applicable("the function is not exported");
                    }
                    if result.status == Some(0) {
                        findings.push(format!("{name} NULL: SUCCESS"));
                    }
                    done.insert(name);
                }
            }
        }
    }
    match findings.is_empty() {
        true => fine(),
        false => finding(findings.join("; ")),
    }
}
