//! A check as data: what it is called, how much it matters, why, where that is written.

use serde::Serialize;

use super::lab::Lab;

/// How much a contract matters to today's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The host does it or relies on it.
    Required,
    /// A sentence of the headers that the host never exercises.
    Recommended,
    /// Ours: worth knowing.
    Informational,
}

impl Level {
    /// From the strictest demand to the mildest.
    pub const ALL: [Self; 3] = [Self::Required, Self::Recommended, Self::Informational];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Recommended => "recommended",
            Self::Informational => "informational",
        }
    }
}

/// Why a check ends without having passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The contract is broken: what was expected, what was seen.
    Finding(String),
    /// There is nothing to check here, and why.
    NotApplicable(String),
    /// The machine failed.
    Infrastructure(String),
}

/// How a check ends; the text is a note, which may be empty.
pub type Outcome = Result<String, Stop>;

/// A contract of the plugin ABI.
#[derive(Clone, Copy)]
pub struct Check {
    /// `group/name`.
    pub id: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What must hold and why, in one line.
    pub why: &'static str,
    /// Where that is written.
    pub link: &'static str,
    /// Does it.
    pub(super) run: fn(&Lab<'_>) -> Outcome,
}

impl Check {
    pub(super) const fn new(
        id: &'static str,
        level: Level,
        why: &'static str,
        link: &'static str,
        run: fn(&Lab<'_>) -> Outcome,
    ) -> Self {
        Self {
            id,
            level,
            why,
            link,
            run,
        }
    }
}

/// No finding and nothing to add.
pub(super) fn fine() -> Outcome {
    Ok(String::new())
}

/// A finding.
pub(super) fn finding<T>(text: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Finding(text.into()))
}

/// Nothing to check.
pub(super) fn not_applicable<T>(text: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::NotApplicable(text.into()))
}
