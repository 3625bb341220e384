//! hipDNN's own engine configuration (TOML, version 1): `test_skips`, `tolerance_overrides`,
//! `validator_overrides`. Filters are globs; here they are held against case ids.

use serde::Deserialize;

use super::document::Origin;
use super::waiver::{Waiver, Waivers};
use crate::yaml::{self, Problem, Source};

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    meta: Meta,
    /// Other tolerances for some tests; the last that matches wins.
    #[serde(default)]
    pub tolerance_overrides: Vec<ToleranceOverride>,
    /// Other criteria for some tests; the last that matches wins.
    #[serde(default)]
    pub validator_overrides: Vec<ValidatorOverride>,
    #[serde(default)]
    test_skips: Vec<toml::Spanned<Skip>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    version: toml::Spanned<i64>,
}

/// Another tolerance.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToleranceOverride {
    /// Globs.
    pub filters: Vec<String>,
    /// Absolute.
    pub atol: Option<f64>,
    /// Relative.
    pub rtol: Option<f64>,
}

/// Another criterion.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidatorOverride {
    /// Globs.
    pub filters: Vec<String>,
    /// Names of tensors; all where empty.
    #[serde(default)]
    pub tensors: Vec<String>,
    /// `allclose`, `rms`, `allclose_matching_infinities`.
    pub validator: String,
    /// Of `rms`.
    pub rms_threshold: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Skip {
    filters: Vec<String>,
    reason: String,
    #[serde(default)]
    archs: Vec<String>,
    #[serde(default)]
    platforms: Vec<String>,
}

/// The platform that this program runs on, as hipDNN names it.
const PLATFORM: &str = "linux";

impl UpstreamConfig {
    /// Reads the file.
    ///
    /// # Errors
    /// A [`Problem`] at the place: no TOML, an unknown key with the nearest known one, another
    /// version.
    pub fn read(source: &Source) -> Result<Self, Box<Problem>> {
        let config: Self =
            toml::from_str(&source.text).map_err(|e| Box::new(explain(source, &e)))?;
        let version = &config.meta.version;
        if *version.get_ref() != 1 {
            let place = source.place(version.span().start, "here");
            let title = format!(
                "this file has version {}, and version 1 is read",
                version.get_ref()
            );
            return Err(Box::new(Problem::new(title, place)));
        }
        Ok(config)
    }

    /// The skips of this platform, as waivers that any failure fulfils and no pass contradicts.
    ///
    /// # Errors
    /// A [`Problem`] at a filter that is no glob.
    pub fn waivers(&self, source: &Source) -> Result<Waivers, Box<Problem>> {
        let mut waivers = Waivers::default();
        for skip in &self.test_skips {
            let at = skip.span().start;
            let skip = skip.get_ref();
            if !skip.platforms.is_empty() && !skip.platforms.iter().any(|p| p == PLATFORM) {
                continue;
            }
            let origin = Origin {
                file: source.name.clone(),
                line: yaml::line_of(&source.text, at),
            };
            let waiver = Waiver::skip(origin, &skip.filters, &skip.reason, skip.archs.clone())
                .map_err(|e| Problem::new(e.to_string(), source.place(at, "this entry")))?;
            waivers.push(waiver);
        }
        Ok(waivers)
    }

    /// What is read and not done, one remark a sort.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for (count, name) in [
            (self.tolerance_overrides.len(), "tolerance_overrides"),
            (self.validator_overrides.len(), "validator_overrides"),
        ] {
            if count > 0 {
                remarks.push(format!(
                    "{count} {name} are read and not applied: bounds come from the data, and a \
                     failure that is known is waived, not allowed for"
                ));
            }
        }
        remarks
    }
}

fn explain(source: &Source, error: &toml::de::Error) -> Problem {
    let at = error.span().map_or(0, |span| span.start);
    let message = error.message();
    let problem = Problem::new(message, source.place(at, "here"));
    let mut words = message.split('`').skip(1).step_by(2);
    let Some(word) = words
        .next()
        .filter(|_| message.starts_with("unknown field"))
    else {
        return problem;
    };
    match yaml::nearest(word, words) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem,
    }
}
