//! Globs as hipDNN's test configuration has them, held against case ids.

use std::fmt;

use globset::GlobSet;

use crate::pattern::{self, PatternError};

/// Globs of which one must match. `*` matches `/` too, as in fnmatch without flags.
#[derive(Clone, Debug)]
pub struct Globs {
    texts: Vec<String>,
    set: GlobSet,
}

impl Globs {
    /// Reads each glob.
    ///
    /// # Errors
    /// The first that is none.
    pub fn new(texts: &[String]) -> Result<Self, PatternError> {
        Ok(Self {
            texts: texts.to_vec(),
            set: pattern::globs(texts)?,
        })
    }

    /// Whether one of them matches.
    pub fn matches(&self, id: &str) -> bool {
        self.set.is_match(id)
    }
}

impl fmt::Display for Globs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.texts.join("`, `"))
    }
}
