//! `--engine`: which of a plugin's engines a run takes.

use dnn_assay_abi::engine_id::{engine_id, format_engine_id};
use globset::GlobMatcher;

use crate::pattern::{PatternError, glob};

/// An engine of a loaded plugin, as far as choosing it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// Its id.
    pub id: i64,
    /// Its name, where one is known.
    pub name: Option<String>,
}

impl Engine {
    /// The name, or the id as the host prints it.
    pub fn label(&self) -> String {
        self.name
            .clone()
            .unwrap_or_else(|| format_engine_id(self.id))
    }
}

/// One `--engine` argument.
#[derive(Clone, Debug)]
pub struct EnginePattern {
    text: String,
    id: Option<i64>,
    glob: Option<GlobMatcher>,
}

/// Why engines cannot be chosen.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No engine of the plugin matches.
    #[error("--engine '{text}' matches no engine of the plugin; it has {has}")]
    Absent {
        /// The argument.
        text: String,
        /// The plugin's engines.
        has: String,
    },
}

impl EnginePattern {
    /// Reads a name, a glob, a decimal id or an id in hexadecimal with `0x`.
    ///
    /// # Errors
    /// [`PatternError`] for a malformed glob.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let hex = text
            .strip_prefix("0x")
            .or_else(|| text.strip_prefix("0X"))
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(|bits| bits as i64);
        let id = hex.or_else(|| text.parse().ok());
        let glob = match id {
            Some(_) => None,
            None => Some(glob(text)?.compile_matcher()),
        };
        Ok(Self {
            text: text.to_owned(),
            id,
            glob,
        })
    }

    /// Whether this pattern means `engine`. An engine without a name is meant by the name that
    /// hashes to its id.
    pub fn matches(&self, engine: &Engine) -> bool {
        if let Some(id) = self.id {
            return engine.id == id;
        }
        let by_name = engine.name.as_deref().is_some_and(|name| {
            name == self.text || self.glob.as_ref().is_some_and(|glob| glob.is_match(name))
        });
        by_name || engine_id(&self.text) == engine.id
    }
}

/// The engines that `patterns` mean, in the plugin's order; all where there is no pattern.
///
/// # Errors
/// [`EngineError::Absent`] for the first pattern that means none.
pub fn select_engines(
    patterns: &[EnginePattern],
    engines: &[Engine],
) -> Result<Vec<Engine>, EngineError> {
    if let Some(absent) = patterns
        .iter()
        .find(|pattern| !engines.iter().any(|engine| pattern.matches(engine)))
    {
        let has: Vec<_> = engines
            .iter()
            .map(|e| format!("{} ({})", e.label(), format_engine_id(e.id)))
            .collect();
        return Err(EngineError::Absent {
            text: absent.text.clone(),
            has: has.join(", "),
        });
    }
    let taken = engines
        .iter()
        .filter(|engine| patterns.is_empty() || patterns.iter().any(|p| p.matches(engine)));
    Ok(taken.cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn engines() -> Vec<Engine> {
        let named = |name: &str| Engine {
            id: engine_id(name),
            name: Some(name.to_owned()),
        };
        let unnamed = |id| Engine { id, name: None };
        vec![
            named("MIOPEN_ENGINE"),
            named("MIOPEN_ENGINE_DETERMINISTIC"),
            unnamed(-2),
            unnamed(engine_id("ROCKE_ENGINE")),
        ]
    }

    #[rstest]
    #[case(&[], &[0, 1, 2, 3])]
    #[case(&["MIOPEN_ENGINE"], &[0])]
    #[case(&["MIOPEN_*"], &[0, 1])]
    #[case(&["-2"], &[2])]
    #[case(&["0xFFFFFFFFFFFFFFFE", "MIOPEN_ENGINE"], &[0, 2])]
    #[case(&["ROCKE_ENGINE"], &[3])]
    fn patterns_mean_engines(#[case] texts: &[&str], #[case] expected: &[usize]) {
        let patterns: Vec<_> = texts
            .iter()
            .map(|t| EnginePattern::parse(t).expect("a pattern"))
            .collect();
        let all = engines();
        let taken = select_engines(&patterns, &all).expect("every pattern means one");
        let expected: Vec<_> = expected.iter().map(|i| all[*i].clone()).collect();
        assert_eq!(taken, expected);
    }

    #[test]
    fn an_absent_engine_is_named_with_what_there_is() {
        let pattern = EnginePattern::parse("MIOPEN").expect("a pattern");
        let message = select_engines(&[pattern], &engines())
            .expect_err("no such engine")
            .to_string();
        assert!(message.contains("'MIOPEN'") && message.contains("MIOPEN_ENGINE (0x15B4"));
        assert!(EnginePattern::parse("a[").is_err());
    }
}
