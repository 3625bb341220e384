//! Loading what was found, each file in a worker, and the host's admission of engines.

use std::path::PathBuf;

use dnn_assay_abi::engine_id::{engine_id, format_engine_id};
use serde::Serialize;

use super::paths::{Found, Ignored, Search, find, prefix};
use crate::worker::{EngineName, LoadMode, PluginInfo, SpawnError, Worker, WorkerConfig};

/// What hipDNN would have after loading.
#[derive(Clone, Debug, Serialize)]
pub struct Discovered {
    /// Places searched and where each comes from.
    pub places: Vec<(PathBuf, String)>,
    /// Files in the order of loading.
    pub plugins: Vec<PluginFate>,
    /// What is not tried, or refused by its name.
    pub ignored: Vec<Ignored>,
}

/// What becomes of a file.
#[derive(Clone, Debug, Serialize)]
pub struct PluginFate {
    /// The file.
    pub path: PathBuf,
    /// The plugin's name, where it was loaded.
    pub name: Option<String>,
    /// The host's message, where it drops the file.
    pub dropped: Option<String>,
    /// What the host of November 2025 would do otherwise.
    pub before_2026: Option<String>,
    /// Its engines in the order of admission.
    pub engines: Vec<EngineFate>,
}

/// What becomes of an engine.
#[derive(Clone, Debug, Serialize)]
pub struct EngineFate {
    /// The id as the host prints it.
    pub id: String,
    /// The name that the host would show.
    pub name: String,
    /// The host's message, where it drops the engine.
    pub dropped: Option<String>,
}

/// Why nothing could be found out.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// No worker.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Scratch space.
    #[error("scratch space: {0}")]
    Scratch(#[from] std::io::Error),
}

/// An engine that was admitted: id, plugin.
type Admitted = Vec<(i64, String)>;

/// Searches, loads, admits.
///
/// # Errors
/// [`DiscoverError`] where no worker can be started.
pub fn discover(search: &Search, load_mode: LoadMode) -> Result<Discovered, DiscoverError> {
    let Found {
        places,
        files,
        ignored,
    } = find(search);
    let scratch = tempfile::tempdir()?;
    let mut admitted = Admitted::new();
    let mut plugins = Vec::new();
    for path in files {
        let mut config = WorkerConfig::new(&path, scratch.path());
        config.load_mode = load_mode;
        let mut worker = Worker::spawn(&config)?;
        let loaded = worker.load();
        // A handle that cannot be made is the affair of the application's first call.
        let info = worker.info().cloned();
        plugins.push(match (info, loaded) {
            (Some(info), _) => admit(path, &info, &mut admitted),
            (None, Err(failure)) => PluginFate {
                dropped: Some(format!("{}{failure}", prefix(&path))),
                path,
                name: None,
                before_2026: None,
                engines: Vec::new(),
            },
            (None, Ok(info)) => admit(path, &info, &mut admitted),
        });
    }
    Ok(Discovered {
        places,
        plugins,
        ignored,
    })
}

/// Engine by engine in ascending order of ids: names, hashes, duplicates.
fn admit(path: PathBuf, info: &PluginInfo, admitted: &mut Admitted) -> PluginFate {
    let mut engines: Vec<_> = info.engines.iter().collect();
    engines.sort_by_key(|engine| engine.id);
    let mut before_2026 = None;
    let mut fates = Vec::new();
    for engine in engines {
        let id = format_engine_id(engine.id);
        let holder = admitted.iter().find(|(known, _)| *known == engine.id);
        if holder.is_some() && before_2026.is_none() {
            before_2026 = Some(format!(
                "{}Engine ID {} already exists in the list: the whole plugin is dropped",
                prefix(&path),
                engine.id
            ));
        }
        let dropped = match (&engine.name, holder) {
            (EngineName::Named(name), _) if engine_id(name) != engine.id => Some(format!(
                "Plugin '{}' reports the name '{name}' for engine {id}, which hashes to {}{}; dropping the engine.",
                info.name,
                format_engine_id(engine_id(name)),
                holder.map_or_else(String::new, |(_, other)| format!(" (held by '{other}')")),
            )),
            (EngineName::Failed { .. }, _) => engine.dropped_by_host(),
            (_, Some((_, other))) => Some(format!(
                "Plugin '{}' declares engine {id}, which plugin '{other}' already provides. The first plugin to \
                 declare an engine keeps it; dropping the duplicate.",
                info.name
            )),
            _ => None,
        };
        if dropped.is_none() {
            admitted.push((engine.id, info.name.clone()));
        }
        fates.push(EngineFate {
            id,
            name: engine.display_name(),
            dropped,
        });
    }
    PluginFate {
        path,
        name: Some(info.name.clone()),
        dropped: None,
        before_2026,
        engines: fates,
    }
}

impl Discovered {
    /// 3 where a file or an engine is dropped, 4 where no plugin is left.
    pub fn exit(&self) -> crate::exit::Exit {
        use crate::exit::Exit;
        let drops = |plugin: &PluginFate| {
            plugin.dropped.is_some() || plugin.engines.iter().any(|e| e.dropped.is_some())
        };
        let refused = self.ignored.iter().any(|ignored| ignored.is_error);
        if refused || self.plugins.iter().any(drops) {
            return Exit::Plugin;
        }
        match self.plugins.is_empty() {
            true => Exit::NothingVerified,
            false => Exit::Ok,
        }
    }
}
