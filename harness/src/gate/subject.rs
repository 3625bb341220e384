//! A plan unit as claims and waivers see it.

use dnn_assay_graph::case::Case;

use crate::journal::{CaseEnd, PluginRecord};
use crate::plan::{self, Engine, Fields};

/// A unit: case, engine, plugin, device.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Case id.
    pub id: String,
    /// The case, where the id is one.
    pub case: Option<Case>,
    /// Tags of the case.
    pub tags: Vec<String>,
    /// Tier of the case.
    pub tier: Option<String>,
    /// The engine.
    pub engine: Engine,
    /// Version that the plugin gives itself.
    pub plugin_version: Option<String>,
    /// `host` for plugins in host memory, else the architecture of the device.
    pub arch: Option<String>,
    /// Version of ROCm.
    pub rocm: Option<String>,
}

impl Subject {
    /// The unit of an attempt.
    pub fn new(
        end: &CaseEnd,
        plugin: Option<&PluginRecord>,
        arch: Option<&str>,
        rocm: Option<&str>,
    ) -> Self {
        Self {
            id: end.case.clone(),
            case: Case::parse(&end.case).ok(),
            tags: end.tags.clone(),
            tier: end.tier.clone(),
            engine: Engine {
                id: end.engine_id,
                name: end.engine.clone(),
            },
            plugin_version: plugin.and_then(|p| p.version.clone()),
            arch: plugin
                .and_then(|plugin| arch_of(plugin, arch))
                .map(str::to_owned),
            rocm: rocm.map(str::to_owned),
        }
    }
}

/// `host` for a plugin in host memory; else the device's architecture, where it is known.
pub fn arch_of<'a>(plugin: &PluginRecord, device: Option<&'a str>) -> Option<&'a str> {
    if plugin.memory.as_deref() == Some("host") {
        Some("host")
    } else {
        device
    }
}

/// Whether an architecture is meant: by its whole name, or by the part before the features.
pub fn is_arch(arch: &str, meant: &str) -> bool {
    arch == meant || arch.split(':').next() == Some(meant)
}

impl Fields for Subject {
    fn id(&self) -> &str {
        &self.id
    }

    fn values(&self, field: &str) -> Vec<String> {
        match (&self.case, field) {
            (_, "tag") => self.tags.clone(),
            (_, "tier") => self.tier.clone().into_iter().collect(),
            (Some(case), field) => plan::case_values(case, field),
            (None, _) => Vec::new(),
        }
    }
}
