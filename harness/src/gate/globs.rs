//! Globs as hipDNN's test configuration has them, held against case ids.

use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

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
    pub fn new(texts: &[String]) -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        for text in texts {
            set.add(GlobBuilder::new(text).literal_separator(false).build()?);
        }
        Ok(Self {
            texts: texts.to_vec(),
            set: set.build()?,
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
