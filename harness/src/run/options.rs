//! What a run is asked for: the command line, checked.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use dnn_assay_reference::{Traits, UnknownTrait};

use super::memory::MemoryDecision;
use crate::cli::args::{
    CriterionName, DeviceChoice, FailOn, LimitArgs, LoadModeChoice, LoadingArgs, RunArgs,
    WireChoice,
};
use crate::judge::Declared;
use crate::pattern::PatternError;
use crate::plan::EnginePattern;
use crate::verdict::Depth;
use crate::worker::{Limits, LoadMode, WorkerConfig};

/// A checked request.
#[derive(Debug)]
pub struct RunOptions {
    /// Engines to take; all where empty.
    pub engines: Vec<EnginePattern>,
    /// Rule of judgement.
    pub criterion: CriterionName,
    /// `--range`: inputs by name, uniform between two numbers.
    pub ranges: Vec<(String, [f64; 2])>,
    /// `--sample`: elements at random, for cases that are judged by samples.
    pub sample: Option<NonZeroU32>,
    /// Traits that engines are taken to declare, by name.
    pub traits: Vec<String>,
    /// The same, or what the configuration declares, engine by engine.
    pub declared: Declared,
    /// `--knob`.
    pub knobs: Vec<dnn_assay_graph::wire::KnobSetting>,
    /// `--knob-sweep`.
    pub knob_sweep: bool,
    /// `--wire`.
    pub wire: WireChoice,
    /// `--device`.
    pub device: Option<DeviceChoice>,
    /// Seed of all data.
    pub seed: u64,
    /// Depth at which cases stop.
    pub until: Depth,
    jobs: Jobs,
    /// `--min-verified`.
    pub min_verified: u64,
    /// `--repeat`: further executions of each case that passed.
    pub repeat: u32,
    /// `--fail-on`.
    pub fail_on: Vec<FailOn>,
    /// `--allow-flaky`.
    pub allow_flaky: bool,
    /// Folder of the journal and of scratch space.
    pub out: PathBuf,
    loading: Loading,
    limits: Limits,
}

#[derive(Debug)]
struct Loading {
    load_mode: LoadMode,
    lib_path: Vec<PathBuf>,
    env: Vec<(String, String)>,
    clean_env: bool,
    preload: Vec<PathBuf>,
    wrap: Option<String>,
    plugin_cache: Option<PathBuf>,
}

/// What is wrong with the command line beyond its grammar.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    /// An engine pattern.
    #[error("--engine: {0}")]
    Engine(#[from] PatternError),
    /// Samples of a rule that is not the bound.
    #[error("--sample judges by the bound alone; leave out --criterion, or --sample")]
    Sample,
    /// A trait.
    #[error("--trait: {0}")]
    Trait(#[from] UnknownTrait),
}

impl RunOptions {
    /// Checks `args`.
    ///
    /// # Errors
    /// [`OptionError`] for a pattern or trait that cannot be understood.
    pub fn new(args: &RunArgs) -> Result<Self, OptionError> {
        if args.sample.is_some() && args.criterion != CriterionName::Bound {
            return Err(OptionError::Sample);
        }
        let engines = args
            .engine
            .iter()
            .map(|text| EnginePattern::parse(text))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            engines,
            criterion: args.criterion,
            ranges: args.range.clone(),
            sample: args.sample,
            declared: match &args.declared {
                Some(declared) => declared.clone(),
                None => Declared::everywhere(&parse_traits(&args.traits)?),
            },
            traits: args.traits.clone(),
            knobs: args.knob.clone(),
            knob_sweep: args.knob_sweep,
            wire: args.wire,
            device: args.loading.device,
            seed: args.seed,
            until: args.until.map_or(Depth::Judged, Depth::from),
            jobs: Jobs::new(&args.limits, args.loading.wrap.is_some()),
            min_verified: args.limits.min_verified.unwrap_or(1),
            repeat: args.limits.repeat,
            fail_on: args.limits.fail_on.clone(),
            allow_flaky: args.limits.allow_flaky,
            out: args.output.out.clone(),
            loading: Loading::new(&args.loading),
            limits: Limits {
                load: args.limits.timeout.load,
                plan: args.limits.timeout.plan,
                execute: args.limits.timeout.execute,
            },
        })
    }

    /// Worker processes at the same time: what was asked for; else one per device, or on host
    /// memory half the cores, because the other half computes the reference.
    pub fn jobs(&self, devices: usize) -> usize {
        match self.jobs {
            Jobs::Asked(jobs) => jobs,
            Jobs::Default(cores) if devices == 0 => (cores / 2).max(1),
            Jobs::Default(_) => devices,
        }
    }

    /// `--lib-path` and what belongs to it.
    pub fn lib_path(&self) -> &[PathBuf] {
        &self.loading.lib_path
    }

    /// `--env`.
    pub fn env(&self) -> &[(String, String)] {
        &self.loading.env
    }

    /// How the workers of plugin `index` are started.
    pub fn worker_config(
        &self,
        plugin: &Path,
        index: u32,
        memory: &MemoryDecision,
    ) -> WorkerConfig {
        let scratch = match &self.loading.plugin_cache {
            Some(folder) => folder.clone(),
            None => self.out.join(format!("plugin-{index}")),
        };
        WorkerConfig {
            load_mode: self.loading.load_mode,
            memory: memory.kind,
            device_library: memory.library.clone(),
            env: self.loading.env.clone(),
            clean_env: self.loading.clean_env,
            lib_path: self.loading.lib_path.clone(),
            preload: self.loading.preload.clone(),
            wrap: self.loading.wrap.clone(),
            limits: self.limits,
            ..WorkerConfig::new(plugin, scratch)
        }
    }

    /// Whether each case gets a worker of its own: under a debugger or profiler.
    pub fn one_case_per_worker(&self) -> bool {
        self.loading.wrap.is_some()
    }
}

impl Loading {
    fn new(args: &LoadingArgs) -> Self {
        let rocm = args
            .rocm
            .clone()
            .or_else(|| std::env::var_os("ROCM_PATH").map(PathBuf::from))
            .unwrap_or_else(|| PathBuf::from("/opt/rocm"))
            .join("lib");
        let mut lib_path = args.lib_path.clone();
        if rocm.is_dir() {
            lib_path.push(rocm);
        }
        Self {
            load_mode: match args.load_mode {
                LoadModeChoice::Local => LoadMode::Local,
                LoadModeChoice::Deepbind => LoadMode::Deepbind,
            },
            lib_path,
            env: args.env.clone(),
            clean_env: args.clean_env,
            preload: args.preload.clone(),
            wrap: args.wrap.clone(),
            plugin_cache: args.plugin_cache.clone(),
        }
    }
}

/// Traits by name.
///
/// # Errors
/// [`OptionError::Trait`] for one that is not known.
pub fn parse_traits(names: &[String]) -> Result<Traits, OptionError> {
    Ok(names.join(",").parse()?)
}

/// How many workers.
#[derive(Clone, Copy, Debug)]
enum Jobs {
    Asked(usize),
    /// Of this many cores.
    Default(usize),
}

impl Jobs {
    /// One worker under a debugger.
    fn new(args: &LimitArgs, wrapped: bool) -> Self {
        if wrapped {
            return Self::Asked(1);
        }
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let asked = args.jobs.map(usize::from);
        asked.map_or_else(|| Self::Default(cores()), Self::Asked)
    }
}
