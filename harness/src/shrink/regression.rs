//! A shrunk case as a file of `suites/regressions`.

use std::fmt::Write as _;

use crate::journal::CaseEnd;

/// What a regression file says.
#[derive(Clone, Debug)]
pub struct Regression<'a> {
    /// The end of the shrunk case.
    pub end: &'a CaseEnd,
    /// The case that it was shrunk from.
    pub from: &'a str,
    /// The seed with which it failed.
    pub seed: u64,
}

/// The YAML of a suite of this one case.
pub fn regression(regression: &Regression<'_>) -> String {
    let Regression { end, from, seed } = regression;
    let engine = end.engine.clone();
    let engine = engine.unwrap_or_else(|| format!("{:#018x}", end.engine_id));
    let plain = |text: &str| text.replace(|c: char| c.is_control(), " ");
    let mut out = String::new();
    // Text of plugins stays in comments and lines of its own.
    let _ = writeln!(out, "# {} on {}, seed {seed}", end.verdict, plain(&engine));
    if let Some(reason) = &end.reason {
        let _ = writeln!(out, "# {}", plain(reason));
    }
    if end.case != *from {
        let _ = writeln!(out, "# shrunk from {from}");
    }
    for id in &end.diagnosis {
        let _ = writeln!(out, "# looks like {}", plain(id));
    }
    let _ = write!(
        out,
        "schema: 1\nabout: a case that failed with {}\ngroups:\n  - name: regression\n    ids:\n      - {}\n",
        end.verdict, end.case
    );
    out
}
