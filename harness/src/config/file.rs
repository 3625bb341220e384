//! The form of the file. Editors have the same as a JSON Schema: `schemas/dnn-assay.schema.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::cli::args::DeviceChoice;
use crate::gate::WaiverEntry;
use crate::judge::TraitEntry;

/// A configuration as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Version of the form: 1.
    pub schema: u32,
    /// Plugin files and folders, relative to the file.
    #[serde(default)]
    pub plugins: Vec<String>,
    /// Memory that the plugins work on.
    #[serde(default)]
    pub device: Option<DeviceChoice>,
    /// Variables for the workers.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Suites by name, or files relative to this one.
    #[serde(default)]
    pub suites: Vec<String>,
    /// Arithmetic traits that engines declare, for all of a run or for some of its units.
    #[serde(default)]
    pub traits: Vec<TraitEntry>,
    /// What is known to fail.
    #[serde(default)]
    pub waive: Vec<WaiverEntry>,
    /// Files of claims, relative to this one.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Least numbers.
    #[serde(default)]
    pub floors: Floors,
}

/// Least numbers of verified units, so that a gate cannot go quiet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floors {
    /// Of the whole run.
    #[serde(default)]
    pub verified: Option<u64>,
    /// By engine name.
    #[serde(default)]
    pub engines: BTreeMap<String, u64>,
}
