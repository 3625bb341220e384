//! The load sequence of the real host: what it calls, in its order, and what it refuses.

use std::path::Path;
use std::time::Instant;

use dnn_assay_abi::version::{ASSUMED, HOST_MAJOR};
use dnn_assay_abi::{ApiVersion, PluginType};

use super::config::LoadMode;
use super::loader::{Failed, Opened, Plugin};
use super::outcome::{EngineInfo, LoadFailure, PluginInfo};

/// More engines than this are taken for garbage.
const MAX_ENGINES: u32 = 1 << 16;

/// Loads `path` up to admission. No handle is created.
pub(super) fn load(path: &Path, mode: LoadMode) -> Result<(Plugin, PluginInfo), LoadFailure> {
    let began = Instant::now();
    let library = Opened::open(path, mode)?;
    let mut plugin = Plugin::resolve_common(&library)?;
    let name = name(&plugin)?;
    check_kind(&plugin, &library)?;
    plugin.resolve_engine(&library)?;
    // The host asks again once the engine symbols are there.
    plugin.name().map_err(call("get plugin name"))?;
    let version = plugin.version().map_err(call("get plugin version"))?;
    let version = version.ok_or_else(|| null("hipdnnPluginGetVersion"))?;
    check_kind(&plugin, &library)?;
    plugin.set_logging();
    let (api_version_text, api) = api_version(&plugin, &name)?;
    let ids = engine_ids(&plugin)?;
    let mut engines: Vec<_> = ids
        .iter()
        .map(|&id| EngineInfo {
            id,
            name: super::outcome::EngineName::NotExported,
        })
        .collect();
    name_engines(&plugin, &mut engines);
    let info = PluginInfo {
        name,
        version,
        api_version_text,
        api: (api.major, api.minor, api.patch),
        engines,
        optional_symbols: library.optional_symbols(),
        load_time: began.elapsed(),
    };
    Ok((plugin, info))
}

fn name(plugin: &Plugin) -> Result<String, LoadFailure> {
    let name = plugin.name().map_err(call("get plugin name"))?;
    name.ok_or_else(|| null("hipdnnPluginGetName"))
}

fn check_kind(plugin: &Plugin, library: &Opened) -> Result<(), LoadFailure> {
    let kind = plugin.kind().map_err(call("get plugin type"))?;
    if kind == PluginType::ENGINE {
        return Ok(());
    }
    Err(LoadFailure::WrongType {
        kind: kind.0,
        heuristic: kind == PluginType::HEURISTIC || library.is_heuristic(),
    })
}

fn api_version(plugin: &Plugin, name: &str) -> Result<(Option<String>, ApiVersion), LoadFailure> {
    let Some(answer) = plugin.api_version() else {
        return Ok((None, ASSUMED));
    };
    let text = answer
        .map_err(call("get plugin api version"))?
        .ok_or_else(|| null("hipdnnPluginGetApiVersion"))?;
    let Some(version) = ApiVersion::parse(&text) else {
        return Err(LoadFailure::ApiVersionUnparsable {
            name: name.to_owned(),
            version: text,
        });
    };
    // Major 0 is accepted by the host's transitional shim.
    if version.major != HOST_MAJOR && version.major != 0 {
        return Err(LoadFailure::ApiMajor {
            name: name.to_owned(),
            version: text,
        });
    }
    Ok((Some(text), version))
}

fn engine_ids(plugin: &Plugin) -> Result<Vec<i64>, LoadFailure> {
    let first = plugin
        .engine_count()
        .map_err(call("get number of engines"))?;
    if first == 0 {
        return Err(LoadFailure::NoEngines);
    }
    if first > MAX_ENGINES {
        return Err(LoadFailure::TooManyEngines {
            count: first,
            limit: MAX_ENGINES,
        });
    }
    let written = plugin
        .engine_ids(first)
        .map_err(call("get all engine IDs"))?;
    if written.overflow {
        return Err(LoadFailure::IdsOverflow { max: first });
    }
    if written.count != first {
        return Err(LoadFailure::CountsDiffer {
            first,
            second: written.count,
        });
    }
    let mut sorted = written.ids.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(LoadFailure::DuplicateIds { id: pair[0] }),
        None => Ok(written.ids),
    }
}

/// Asks for names in ascending order of ids, as the host admits engines.
fn name_engines(plugin: &Plugin, engines: &mut [EngineInfo]) {
    let mut order: Vec<usize> = (0..engines.len()).collect();
    order.sort_by_key(|&i| engines[i].id);
    for i in order {
        engines[i].name = plugin.engine_name(engines[i].id);
    }
}

/// For `map_err`: the host's words for the call.
fn call(what: &'static str) -> impl FnOnce(Failed) -> LoadFailure {
    move |Failed { status, text }| LoadFailure::Call {
        what: what.to_owned(),
        status,
        text,
    }
}

fn null(symbol: &str) -> LoadFailure {
    LoadFailure::Null {
        call: symbol.to_owned(),
    }
}
