//! A plugin under test: what its file says, what it says when loaded, how it will be run.

use std::path::Path;
use std::sync::Arc;

use dnn_assay_device::DeviceReport;
use dnn_assay_elf::{PluginFile, identify};
use dnn_assay_graph::wire::Generation;
use sha2::{Digest, Sha256};

use super::memory;
use super::options::RunOptions;
use super::wire::{self, WireDecision};
use crate::journal::{EngineRecord, PluginError, PluginRecord};
use crate::plan::{Engine, PluginSource, select_engines};
use crate::worker::{LoadFailure, PluginInfo, Worker, WorkerConfig};

/// A plugin that can be tested.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Position in the run, from 0.
    pub index: u32,
    /// How its workers are started.
    pub config: WorkerConfig,
    /// The engines to test, in the plugin's order.
    pub engines: Vec<Engine>,
    /// Generation of the wire that it reads.
    pub generation: Generation,
    /// What it says of itself.
    pub info: Arc<PluginInfo>,
    /// Why its device is not there, if it needs one.
    pub no_device: Option<String>,
    /// The devices that its workers can have; none for host memory.
    pub devices: Vec<DeviceReport>,
}

impl Subject {
    /// How the workers of slot `number` are started: each on one device, in turn.
    pub fn config_on(&self, number: usize) -> WorkerConfig {
        let device = number.checked_rem(self.devices.len());
        WorkerConfig {
            only_device: device.map(|device| device as u32),
            ..self.config.clone()
        }
    }
}

/// What became of examining a plugin.
pub struct Examined {
    /// For the journal.
    pub record: PluginRecord,
    /// For the run; `None` where the record holds an error.
    pub subject: Option<Subject>,
}

/// A failure of the harness or the machine, not of the plugin.
#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    /// No worker could be started.
    #[error(transparent)]
    Spawn(#[from] crate::worker::SpawnError),
}

/// Reads the file, loads it once in a worker, chooses engines and the wire's generation.
///
/// # Errors
/// [`ExamineError`] where no worker can be started. Whatever is wrong with the plugin stands in
/// the record.
pub fn examine(
    index: u32,
    source: &PluginSource,
    options: &RunOptions,
) -> Result<Examined, ExamineError> {
    let mut record = PluginRecord {
        plugin: index,
        path: source.path.display().to_string(),
        source: Some(source.why.clone()),
        ..PluginRecord::default()
    };
    let file = match read_file(&source.path, &mut record) {
        Ok(file) => file,
        Err(error) => return Ok(refused(record, error)),
    };
    let decision = memory::decide(options.device, &file);
    record.memory = Some(decision.kind.name().to_owned());
    record.memory_reason = Some(decision.why.clone());
    let config = options.worker_config(&source.path, index, &decision);
    let devices = memory::devices(&decision, &config.lib_path, &config.env);
    let devices = devices.map(|report| report.devices);
    let mut first = config.clone();
    first.only_device = devices.as_ref().is_ok_and(|d| !d.is_empty()).then_some(0);
    match load(&first, devices.is_err(), &mut record)? {
        Ok(info) => admit(index, config, info, devices, options, record),
        Err(error) => Ok(refused(record, error)),
    }
}

fn refused(mut record: PluginRecord, error: PluginError) -> Examined {
    record.error = Some(error);
    Examined {
        record,
        subject: None,
    }
}

fn plugin_error(kind: &str, message: String) -> PluginError {
    PluginError {
        kind: kind.to_owned(),
        message,
    }
}

fn read_file(path: &Path, record: &mut PluginRecord) -> Result<PluginFile, PluginError> {
    let bytes = std::fs::read(path)
        .map_err(|error| plugin_error("unreadable", format!("{}: {error}", path.display())))?;
    record.sha256 = Some(hex(&Sha256::digest(&bytes)));
    let file = identify(&bytes).map_err(|what| plugin_error("not-a-plugin", what.to_string()))?;
    record.build_id = file.build_id.clone();
    if file.looks_heuristic() {
        let message = "this is a heuristic plugin (it ranks engines and executes nothing); \
                       name an engine plugin";
        return Err(plugin_error("heuristic", message.to_owned()));
    }
    if let Some(first) = file.missing.first() {
        let message = format!(
            "{first} is not exported, nor {} more of the 16 mandatory symbols; \
             hipDNN refuses the file. `nm -D --defined-only` shows what it exports",
            file.missing.count() - 1
        );
        return Err(plugin_error("missing-symbols", message));
    }
    Ok(file)
}

/// Lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Loads the plugin once. Without its device a handle that cannot be created is no defect.
fn load(
    config: &WorkerConfig,
    without_device: bool,
    record: &mut PluginRecord,
) -> Result<Result<PluginInfo, PluginError>, ExamineError> {
    let mut worker = Worker::spawn(config)?;
    let result = match worker.load() {
        Ok(info) => Ok(info),
        Err(failure) if failure.is_after_load() && without_device => {
            worker.info().cloned().ok_or_else(|| load_error(&failure))
        }
        Err(failure) => Err(load_error(&failure)),
    };
    if let Ok(info) = &result {
        describe(info, record);
    }
    Ok(result)
}

fn load_error(failure: &LoadFailure) -> PluginError {
    plugin_error("load", failure.to_string())
}

fn describe(info: &PluginInfo, record: &mut PluginRecord) {
    record.name = Some(info.name.clone());
    record.version = Some(info.version.clone());
    record.api_version = Some(info.api_version().to_string());
    record.load_ms = Some(info.load_time.as_secs_f64() * 1e3);
    if info.needs_major_zero_shim() {
        record.findings.push(format!(
            "engine API version {}: accepted by hipDNN's transitional shim for major version 0 only",
            info.api_version()
        ));
    }
    for engine in &info.engines {
        if let Some(why) = engine.dropped_by_host() {
            let name = engine.display_name();
            record
                .findings
                .push(format!("hipDNN drops the engine {name}: {why}"));
        }
    }
}

fn admit(
    index: u32,
    config: WorkerConfig,
    info: PluginInfo,
    devices: Result<Vec<DeviceReport>, String>,
    options: &RunOptions,
    mut record: PluginRecord,
) -> Result<Examined, ExamineError> {
    let all: Vec<Engine> = info
        .engines
        .iter()
        .map(|engine| Engine {
            id: engine.id,
            name: Some(engine.display_name()),
        })
        .collect();
    let engines = match select_engines(&options.engines, &all) {
        Ok(engines) => engines,
        Err(error) => return Ok(refused(record, plugin_error("engine", error.to_string()))),
    };
    let WireDecision { generation, why } = wire::decide(options.wire, &config, &info);
    record.wire = Some(wire::name(generation).to_owned());
    record.wire_reason = Some(why);
    record.engines = engines
        .iter()
        .map(|engine| EngineRecord {
            id: engine.id,
            name: engine.name.clone(),
            traits: options.traits.clone(),
        })
        .collect();
    Ok(Examined {
        record,
        subject: Some(Subject {
            index,
            config,
            engines,
            generation,
            info: Arc::new(info),
            no_device: devices.as_ref().err().cloned(),
            devices: devices.unwrap_or_default(),
        }),
    })
}
