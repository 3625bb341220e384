//! hipDNN's own engine configuration (TOML, version 1): `test_skips`, `tolerance_overrides`,
//! `validator_overrides`. Filters are globs; here they are held against case ids, for the names of
//! hipDNN's own tests have no counterpart that is sure.

use serde::Deserialize;
use toml::Spanned;

use super::document::Origin;
use super::globs::Globs;
use super::overrides::{Choice, Overrides, Tolerance, Validator};
use super::waiver::{Waiver, Waivers};
use crate::yaml::{self, Problem, Source};

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    meta: Meta,
    /// Other tolerances for some tests; the last that matches wins.
    #[serde(default)]
    tolerance_overrides: Vec<Spanned<ToleranceOverride>>,
    /// Other criteria for some tests; the last that matches wins.
    #[serde(default)]
    validator_overrides: Vec<Spanned<ValidatorOverride>>,
    #[serde(default)]
    test_skips: Vec<Spanned<Skip>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    version: Spanned<i64>,
}

/// Another tolerance.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToleranceOverride {
    filters: Vec<String>,
    atol: Option<f64>,
    rtol: Option<f64>,
}

/// Another criterion.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ValidatorOverride {
    filters: Vec<String>,
    /// Names of tensors; all where empty.
    #[serde(default)]
    tensors: Vec<String>,
    validator: UpstreamValidator,
    rms_threshold: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UpstreamValidator {
    Allclose,
    Rms,
    AllcloseMatchingInfinities,
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
            let origin = origin(source, at);
            let globs = globs(source, at, &skip.filters)?;
            let waiver = Waiver::skip(origin, globs, &skip.reason, skip.archs.clone());
            waivers.push(waiver);
        }
        Ok(waivers)
    }

    /// The criteria for some cases.
    ///
    /// # Errors
    /// A [`Problem`] at a filter that is no glob, and at a number that is no tolerance.
    pub fn overrides(&self, source: &Source) -> Result<Overrides, Box<Problem>> {
        let mut overrides = Overrides::default();
        for entry in &self.tolerance_overrides {
            let (at, entry) = (entry.span().start, entry.get_ref());
            for number in [entry.atol, entry.rtol] {
                check_tolerance(source, at, number)?;
            }
            overrides.push_tolerance(
                origin(source, at),
                globs(source, at, &entry.filters)?,
                Tolerance {
                    atol: entry.atol,
                    rtol: entry.rtol,
                },
            );
        }
        for entry in &self.validator_overrides {
            let (at, entry) = (entry.span().start, entry.get_ref());
            check_tolerance(source, at, entry.rms_threshold)?;
            let validator = match entry.validator {
                UpstreamValidator::Allclose => Validator::Allclose,
                UpstreamValidator::Rms => Validator::Rms(entry.rms_threshold),
                UpstreamValidator::AllcloseMatchingInfinities => continue,
            };
            let choice = Choice {
                validator,
                tensors: entry.tensors.clone(),
            };
            overrides.push_choice(
                origin(source, at),
                globs(source, at, &entry.filters)?,
                choice,
            );
        }
        Ok(overrides)
    }

    /// What is read and not done, one remark an entry.
    pub fn remarks(&self, source: &Source) -> Vec<String> {
        let undone = self.validator_overrides.iter().filter(|entry| {
            entry.get_ref().validator == UpstreamValidator::AllcloseMatchingInfinities
        });
        undone
            .map(|entry| {
                format!(
                    "the validator override at {} is not honoured: allclose_matching_infinities \
                     has no counterpart here, and its cases are judged as all others",
                    origin(source, entry.span().start)
                )
            })
            .collect()
    }
}

fn origin(source: &Source, at: usize) -> Origin {
    Origin {
        file: source.name.clone(),
        line: yaml::line_of(&source.text, at),
    }
}

fn globs(source: &Source, at: usize, texts: &[String]) -> Result<Globs, Box<Problem>> {
    Globs::new(texts)
        .map_err(|e| Box::new(Problem::new(e.to_string(), source.place(at, "this entry"))))
}

fn check_tolerance(source: &Source, at: usize, number: Option<f64>) -> Result<(), Box<Problem>> {
    match number {
        Some(number) if !(number.is_finite() && number >= 0.0) => {
            let title = format!("{number} is no tolerance: it must be finite and not negative");
            Err(Box::new(Problem::new(
                title,
                source.place(at, "this entry"),
            )))
        }
        _ => Ok(()),
    }
}

fn explain(source: &Source, error: &toml::de::Error) -> Problem {
    let at = error.span().map_or(0, |span| span.start);
    let message = error.message();
    let problem = Problem::new(message, source.place(at, "here"));
    let mut words = message.split('`').skip(1).step_by(2);
    let named = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let Some(word) = words.next().filter(|_| named) else {
        return problem;
    };
    match yaml::nearest(word, words) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem,
    }
}
