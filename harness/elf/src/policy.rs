//! What a project allows: plain data, for the harness to read from a file.

use crate::finding::Severity;
use globset::{Glob, GlobSet, GlobSetBuilder};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// What the file is meant to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contract {
    /// A hipDNN engine plugin.
    #[default]
    EnginePlugin,
    /// A hipDNN heuristic plugin.
    HeuristicPlugin,
    /// Any shared library: no entry point is expected, and only what the policy lists is checked
    /// against the exports.
    Library,
}

/// A rule's severity in the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The rule is not checked.
    Off,
    /// Reported, no fault.
    Info,
    /// Reported as a warning.
    Warning,
    /// Reported as an error.
    Error,
}

impl Level {
    /// The severity, `None` when the rule is off.
    #[must_use]
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Off => None,
            Self::Info => Some(Severity::Info),
            Self::Warning => Some(Severity::Warning),
            Self::Error => Some(Severity::Error),
        }
    }
}

/// Which symbols the file may and must export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExportPolicy {
    /// Exports that are fine besides the contract's: exact names or globs, mangled or readable.
    pub allow: Vec<String>,
    /// Exports that must be there: the reviewed list of an earlier build, exact mangled names.
    pub expect: Vec<String>,
}

/// Which libraries the file may need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NeededPolicy {
    /// If there are any, the only libraries that it may need directly: names or globs.
    pub allow: Vec<String>,
    /// Libraries that may not be in the closure: names or globs.
    pub forbid: Vec<String>,
}

impl Default for NeededPolicy {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            // A plugin host is no Python process, and a plugin that loads the backend loads its
            // own host a second time.
            forbid: vec!["libpython*".into(), "libhipdnn_backend*".into()],
        }
    }
}

/// A finding that is known and accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Exception {
    /// The rule's id.
    pub rule: String,
    /// The subject: an exact name or a glob, mangled or readable. Without it: any subject.
    #[serde(default)]
    pub subject: Option<String>,
    /// Why it is accepted.
    pub reason: String,
    /// The last day on which it holds, as `2027-01-31`.
    #[serde(default)]
    pub expires: Option<String>,
}

/// What a project allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Policy {
    /// What the file is meant to be.
    pub contract: Contract,
    /// Which symbols it may and must export.
    pub exports: ExportPolicy,
    /// Which libraries it may need.
    pub needed: NeededPolicy,
    /// The highest symbol version it may demand, by family: `GLIBC: "2.31"`.
    pub max_versions: BTreeMap<String, String>,
    /// The device architecture that its code must run on, such as `gfx942:sramecc+:xnack-`.
    pub arch: Option<String>,
    /// Severities that differ from the rules' own, by rule id.
    pub severities: BTreeMap<String, Level>,
    /// Findings that are known and accepted.
    pub exceptions: Vec<Exception>,
    /// How many findings of one rule are listed; the rest is counted.
    pub listed_per_rule: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            contract: Contract::default(),
            exports: ExportPolicy::default(),
            needed: NeededPolicy::default(),
            max_versions: BTreeMap::new(),
            arch: None,
            severities: BTreeMap::new(),
            exceptions: Vec::new(),
            listed_per_rule: 100,
        }
    }
}

/// What is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A rule id that does not exist.
    #[error("no rule is called `{name}`{}", hint(.nearest))]
    UnknownRule {
        /// The id as written.
        name: String,
        /// The nearest id that exists.
        nearest: Option<&'static str>,
    },
    /// A pattern that is no glob.
    #[error("`{pattern}` is no pattern: {problem}")]
    Pattern {
        /// The pattern as written.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A date that is none.
    #[error("`{text}` is no date, expected a form like 2027-01-31")]
    Date {
        /// The date as written.
        text: String,
    },
    /// A version that is no sequence of numbers.
    #[error("`{text}` is no version for {family}, expected a form like 2.31")]
    Version {
        /// The family as written.
        family: String,
        /// The version as written.
        text: String,
    },
    /// An architecture that is no target id.
    #[error("`{text}` is no device architecture, expected a form like gfx942:sramecc+:xnack-")]
    Arch {
        /// The architecture as written.
        text: String,
    },
}

fn hint(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Names and globs, ready to match.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns {
    exact: HashSet<String>,
    globs: GlobSet,
}

impl Patterns {
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a String>) -> Result<Self, PolicyError> {
        let mut exact = HashSet::new();
        let mut globs = GlobSetBuilder::new();
        for pattern in patterns {
            exact.insert(pattern.clone());
            // A readable C++ name such as `operator[](int)` is a name before it is a glob.
            if pattern.contains(['*', '?']) {
                let glob = Glob::new(pattern).map_err(|error| PolicyError::Pattern {
                    pattern: pattern.clone(),
                    problem: error.kind().to_string(),
                })?;
                globs.add(glob);
            }
        }
        let globs = globs.build().map_err(|error| PolicyError::Pattern {
            pattern: error.glob().unwrap_or_default().to_owned(),
            problem: error.kind().to_string(),
        })?;
        Ok(Self { exact, globs })
    }

    pub fn is_empty(&self) -> bool {
        self.exact.is_empty()
    }

    pub fn matches(&self, name: &str) -> bool {
        self.exact.contains(name) || self.globs.is_match(name)
    }
}

/// An exception, ready to match.
#[derive(Clone, Debug)]
pub(crate) struct ReadyException {
    pub subject: Option<Patterns>,
    pub source: Exception,
    expires: Option<Date>,
}

impl ReadyException {
    pub fn holds_on(&self, today: Date) -> bool {
        self.expires.is_none_or(|last| today <= last)
    }
}

/// A policy that has been checked and is ready to match.
#[derive(Clone, Debug)]
pub struct ReadyPolicy {
    pub(crate) policy: Policy,
    pub(crate) allow: Patterns,
    pub(crate) needed_allow: Patterns,
    pub(crate) needed_forbid: Patterns,
    pub(crate) ceilings: BTreeMap<String, Vec<u64>>,
    pub(crate) exceptions: Vec<ReadyException>,
    pub(crate) arch: Option<crate::offload::Target>,
}

impl Policy {
    /// Checks the policy and makes it ready to match.
    ///
    /// # Errors
    /// Every [`PolicyError`] of the policy, not only the first.
    pub fn ready(&self) -> Result<ReadyPolicy, Vec<PolicyError>> {
        let mut errors = self.unknown_rules();
        let mut patterns = |list: &[String]| {
            Patterns::new(list).unwrap_or_else(|error| {
                errors.push(error);
                Patterns::default()
            })
        };
        let allow = patterns(&self.exports.allow);
        let needed_allow = patterns(&self.needed.allow);
        let needed_forbid = patterns(&self.needed.forbid);
        let exceptions = self
            .exceptions
            .iter()
            .filter_map(|exception| {
                ready_exception(exception)
                    .map_err(|error| errors.push(error))
                    .ok()
            })
            .collect();
        let ceilings = self.ceilings(&mut errors);
        let arch = self.arch.as_ref().and_then(|text| {
            let target = crate::offload::Target::parse(text);
            if target.is_none() {
                errors.push(PolicyError::Arch { text: text.clone() });
            }
            target
        });
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(ReadyPolicy {
            policy: self.clone(),
            allow,
            needed_allow,
            needed_forbid,
            ceilings,
            exceptions,
            arch,
        })
    }

    fn unknown_rules(&self) -> Vec<PolicyError> {
        let excepted = self.exceptions.iter().map(|exception| &exception.rule);
        self.severities
            .keys()
            .chain(excepted)
            .filter(|name| crate::rules::find(name).is_none())
            .map(|name| PolicyError::UnknownRule {
                name: name.clone(),
                nearest: crate::rules::nearest(name),
            })
            .collect()
    }

    fn ceilings(&self, errors: &mut Vec<PolicyError>) -> BTreeMap<String, Vec<u64>> {
        let mut ceilings = BTreeMap::new();
        for (family, text) in &self.max_versions {
            match version_numbers(text) {
                Some(numbers) => {
                    ceilings.insert(family.clone(), numbers);
                }
                None => errors.push(PolicyError::Version {
                    family: family.clone(),
                    text: text.clone(),
                }),
            }
        }
        ceilings
    }
}

fn ready_exception(exception: &Exception) -> Result<ReadyException, PolicyError> {
    let expires = match &exception.expires {
        Some(text) => Some(
            text.parse()
                .map_err(|_| PolicyError::Date { text: text.clone() })?,
        ),
        None => None,
    };
    Ok(ReadyException {
        subject: exception
            .subject
            .as_ref()
            .map(|s| Patterns::new([s]))
            .transpose()?,
        source: exception.clone(),
        expires,
    })
}

/// The numbers of a dotted version: `2.3.4` is `[2, 3, 4]`.
pub(crate) fn version_numbers(text: &str) -> Option<Vec<u64>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}
