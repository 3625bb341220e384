//! How early a case is run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The tiers, from the smallest to everything. A tier holds the ones before it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// At most 300 cases that touch every operation, type and layout.
    Core,
    /// Seconds on two cores.
    #[default]
    Smoke,
    /// Minutes.
    Standard,
    /// Everything.
    Full,
}

impl Tier {
    /// Every tier, smallest first.
    pub const ALL: [Self; 4] = [Self::Core, Self::Smoke, Self::Standard, Self::Full];

    /// The name in suite files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Smoke => "smoke",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|tier| tier.name() == text)
            .ok_or_else(|| format!("`{text}` is no tier: core, smoke, standard, full"))
    }
}
