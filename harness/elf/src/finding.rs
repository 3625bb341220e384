//! What an inspection says: facts, one outcome per rule, findings.

use crate::closure::{Failure, Place};
use crate::identify::PluginFile;
use crate::memory::MemoryEvidence;
use crate::offload::DeviceCode;
use crate::view::{Constructor, Forgiven, SymbolCounts};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// A fact worth knowing; no fault.
    Info,
    /// Works today, breaks under other conditions.
    Warning,
    /// Wrong, or a danger to others in the same process.
    Error,
}

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// A symbol as stored, or a tag, a library, a path.
    pub name: String,
    /// The readable form of a mangled symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demangled: Option<String>,
}

/// Why a finding does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiver {
    /// The reason given in the policy.
    pub reason: String,
    /// The last day on which it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// One thing that a rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule's id.
    pub rule: &'static str,
    /// How much it matters, after the policy.
    pub severity: Severity,
    /// What it is about; `None` when it is the file as a whole.
    pub subject: Option<Subject>,
    /// What was seen.
    pub detail: String,
    /// The command that shows the same.
    pub command: String,
    /// The exception that makes it not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiver: Option<Waiver>,
}

/// What became of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum RuleState {
    /// Checked.
    Checked {
        /// All that the rule found.
        found: usize,
        /// Those with an exception.
        waived: usize,
        /// Those in the list of findings, which stops at the policy's limit, separately for those
        /// that count and those that are waived.
        listed: usize,
    },
    /// There was nothing to check it on.
    NotApplicable {
        /// Why not.
        reason: String,
    },
    /// Switched off by the policy.
    Off,
}

/// What became of one rule on one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleOutcome {
    /// The rule's id.
    pub rule: &'static str,
    /// Its severity after the policy.
    pub severity: Severity,
    /// What became of it.
    #[serde(flatten)]
    pub state: RuleState,
}

impl RuleOutcome {
    /// How many findings count.
    #[must_use]
    pub fn counting(&self) -> usize {
        match self.state {
            RuleState::Checked { found, waived, .. } => found - waived,
            RuleState::NotApplicable { .. } | RuleState::Off => 0,
        }
    }
}

/// A library of the load closure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClosureFact {
    /// The name by which it is known.
    pub name: String,
    /// The path that the loader opens.
    pub path: PathBuf,
    /// Which step of the search found it.
    pub place: Place,
    /// Whether the host has it before the plugin is loaded.
    pub in_host: bool,
}

/// A symbol version that the file demands, with the symbols that do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VersionDemand {
    /// The library.
    pub library: String,
    /// The version's name.
    pub version: String,
    /// The symbols that demand it, at most eight of them.
    pub symbols: Vec<String>,
    /// How many symbols demand it.
    pub count: usize,
}

/// What `dlopen(RTLD_NOW)` would do here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadPrediction {
    /// Whether it would succeed.
    pub loads: bool,
    /// Everything that would make it fail, in the order in which the loader meets it.
    pub failures: Vec<Failure>,
    /// The text that `dlerror` would give for the first.
    pub loader_text: Option<String>,
}

/// What the file is, without judgement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// Identity, exports, NEEDED, notes.
    pub file: PluginFile,
    /// Bytes of the file.
    pub size: u64,
    /// Symbol counts by table.
    pub symbol_counts: SymbolCounts,
    /// What did not parse.
    pub forgiven: Vec<Forgiven>,
    /// The libraries that it brings along or finds.
    pub closure: Vec<ClosureFact>,
    /// What `dlopen` would do here.
    pub prediction: LoadPrediction,
    /// The symbol versions demanded, highest of each family last.
    pub demands: Vec<VersionDemand>,
    /// Functions that run when the file is loaded.
    pub constructors: Vec<Constructor>,
    /// Device code inside.
    pub device: DeviceCode,
    /// The kind of memory its pointers mean.
    pub memory: MemoryEvidence,
}

/// The result for one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub facts: Facts,
    /// One outcome per rule, in the order of [`crate::rules`].
    pub outcomes: Vec<RuleOutcome>,
    /// What was found: errors first, then by rule and by place in the file.
    pub findings: Vec<Finding>,
}

impl Inspection {
    /// How many findings of this severity count, those beyond the list's limit included.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let of = |outcome: &&RuleOutcome| outcome.severity == severity;
        self.outcomes
            .iter()
            .filter(of)
            .map(RuleOutcome::counting)
            .sum()
    }

    /// The outcome of a rule.
    #[must_use]
    pub fn outcome(&self, rule: &str) -> Option<&RuleOutcome> {
        self.outcomes.iter().find(|outcome| outcome.rule == rule)
    }

    /// The findings of a rule that are in the list.
    pub fn of_rule(&self, rule: &str) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(move |finding| finding.rule == rule)
    }
}
