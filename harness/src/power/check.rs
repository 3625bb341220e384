//! A check that can catch a fault.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::journal::CaseEnd;
use crate::verdict::{FailKind, Verdict};

/// What notices a fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum Check {
    /// A case fails in this way.
    Fail(FailKind),
    /// The worker ends.
    Crash,
    /// A call does not return.
    Timeout,
    /// The plugin is not loaded.
    Refused,
    /// hipDNN would drop an engine.
    Dropped,
    /// Every graph is declined, so that the run verifies nothing.
    NothingVerified,
    /// A rule of the inspection of files.
    Elf(String),
    /// A check of conformance.
    Conform(String),
}

impl Check {
    /// The check that a case's verdict stands for; `None` where nothing was found.
    pub fn of(end: &CaseEnd) -> Option<Self> {
        match &end.verdict {
            Verdict::Fail(kind) => Some(Self::Fail(*kind)),
            Verdict::Crash(_) => Some(Self::Crash),
            Verdict::Timeout(_) => Some(Self::Timeout),
            _ => None,
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fail(kind) => write!(f, "{kind}"),
            Self::Crash => f.write_str("crash"),
            Self::Timeout => f.write_str("timeout"),
            Self::Refused => f.write_str("refused"),
            Self::Dropped => f.write_str("dropped"),
            Self::NothingVerified => f.write_str("nothing-verified"),
            Self::Elf(rule) => write!(f, "elf {rule}"),
            Self::Conform(check) => write!(f, "conform {check}"),
        }
    }
}

impl FromStr for Check {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((family, id)) = text.split_once(' ') {
            return match family {
                "elf" => Ok(Self::Elf(id.to_owned())),
                "conform" => Ok(Self::Conform(id.to_owned())),
                _ => Err(format!(
                    "no checks are called '{family}'; there are elf and conform"
                )),
            };
        }
        Ok(match text {
            "crash" => Self::Crash,
            "timeout" => Self::Timeout,
            "refused" => Self::Refused,
            "dropped" => Self::Dropped,
            "nothing-verified" => Self::NothingVerified,
            _ => {
                let name = serde_json::Value::String(text.to_owned());
                let kind = serde_json::from_value(name);
                Self::Fail(kind.map_err(|_| format!("no check is called '{text}'"))?)
            }
        })
    }
}

impl TryFrom<String> for Check {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_typos_do_not_pass() {
        for text in [
            "numeric",
            "guard-after",
            "crash",
            "timeout",
            "refused",
            "dropped",
            "nothing-verified",
            "elf export/std",
            "conform life/unload",
        ] {
            let check: Check = text.parse().expect("a check");
            assert_eq!(check.to_string(), text);
        }
        assert!("numerics".parse::<Check>().is_err());
        assert!("self export/std".parse::<Check>().is_err());
    }
}
