//! Target ids, and whether code for one runs on another ("User Guide for AMDGPU Backend", target
//! id and generic processors).

use serde::Serialize;

/// A feature of a target id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// Not mentioned: code that runs with it on or off, or a device that did not say.
    Any,
    /// `+`
    On,
    /// `-`
    Off,
}

/// A parsed target id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The processor, such as `gfx942` or `gfx9-4-generic`.
    pub processor: String,
    /// Whether page faults can be replayed.
    pub xnack: Feature,
    /// Whether on-chip memory has error correction.
    pub sramecc: Feature,
}

/// Whether code for one target runs on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Match {
    /// It does not.
    No,
    /// It does if the device is set up so; the architecture asked for does not say.
    IfFeaturesAgree,
    /// It does.
    Yes,
}

impl Target {
    /// Parses `gfx942:sramecc+:xnack-`. `None` for text that is no target id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let processor = parts.next().filter(|name| is_processor(name))?;
        let mut target = Self {
            processor: processor.to_owned(),
            xnack: Feature::Any,
            sramecc: Feature::Any,
        };
        for part in parts {
            let (name, feature) = match part.strip_suffix('+') {
                Some(name) => (name, Feature::On),
                None => (part.strip_suffix('-')?, Feature::Off),
            };
            match name {
                "xnack" => target.xnack = feature,
                "sramecc" => target.sramecc = feature,
                _ => return None,
            }
        }
        Some(target)
    }

    /// Whether code built for `self` runs on the device `on`.
    #[must_use]
    pub fn runs_on(&self, on: &Self) -> Match {
        if !processor_runs_on(&self.processor, &on.processor) {
            return Match::No;
        }
        feature_runs_on(self.xnack, on.xnack).min(feature_runs_on(self.sramecc, on.sramecc))
    }
}

fn is_processor(name: &str) -> bool {
    let rest = name.strip_prefix("gfx");
    let generic = rest.map(|rest| rest.strip_suffix("-generic").unwrap_or(rest));
    let digits = |rest: &str| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
    };
    generic.is_some_and(digits) || name == SPIRV
}

/// Portable device code, which the runtime compiles for any device.
const SPIRV: &str = "amdgcnspirv";

/// Generic targets and the processors that run them.
const GENERIC: [(&str, &[&str]); 6] = [
    (
        "gfx9-generic",
        &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"],
    ),
    ("gfx9-4-generic", &["gfx940", "gfx941", "gfx942", "gfx950"]),
    (
        "gfx10-1-generic",
        &["gfx1010", "gfx1011", "gfx1012", "gfx1013"],
    ),
    (
        "gfx10-3-generic",
        &[
            "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036",
        ],
    ),
    (
        "gfx11-generic",
        &[
            "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
        ],
    ),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

fn processor_runs_on(code: &str, device: &str) -> bool {
    let generic = GENERIC.iter().find(|(name, _)| *name == code);
    code == device || code == SPIRV || generic.is_some_and(|(_, members)| members.contains(&device))
}

fn feature_runs_on(code: Feature, device: Feature) -> Match {
    match (code, device) {
        (Feature::Any, _) => Match::Yes,
        (_, Feature::Any) => Match::IfFeaturesAgree,
        (code, device) if code == device => Match::Yes,
        _ => Match::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("gfx942", "gfx942:sramecc+:xnack-", Match::Yes)]
    #[case("gfx942:xnack-", "gfx942:sramecc+:xnack-", Match::Yes)]
    #[case("gfx942:xnack+", "gfx942:sramecc+:xnack-", Match::No)]
    #[case("gfx942:sramecc-:xnack-", "gfx942:sramecc+:xnack-", Match::No)]
    #[case("gfx942:xnack+", "gfx942", Match::IfFeaturesAgree)]
    #[case("gfx90a", "gfx942", Match::No)]
    #[case("gfx9-4-generic", "gfx942", Match::Yes)]
    #[case("gfx9-4-generic:xnack+", "gfx942:xnack-", Match::No)]
    #[case("gfx9-generic", "gfx942", Match::No)]
    #[case("amdgcnspirv", "gfx1201", Match::Yes)]
    fn code_runs_where_it_should(#[case] code: &str, #[case] on: &str, #[case] expected: Match) {
        let parse = |text| Target::parse(text).unwrap();
        assert_eq!(parse(code).runs_on(&parse(on)), expected);
    }

    #[rstest]
    #[case("")]
    #[case("mi300")]
    #[case("gfx")]
    #[case("gfx942:xnack")]
    #[case("gfx942:tgsplit+")]
    fn what_is_no_target_is_refused(#[case] text: &str) {
        assert_eq!(Target::parse(text), None);
    }
}
