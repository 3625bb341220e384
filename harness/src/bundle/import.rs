//! Bundles as a suite of cases, their support sidecars as claims.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use dnn_assay_reference::fill::{self, FillError};

use super::case::case_of;
use super::load::{Bundle, Loaded, Problem};
use crate::gate::claims_yaml;

/// What became of the bundles.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Case ids, in order, each once.
    pub cases: BTreeSet<String>,
    /// Cases by engine and architecture that they are claimed for.
    pub claims: BTreeMap<(String, String), BTreeSet<String>>,
    /// Bundles that became cases.
    pub taken: usize,
    /// Bundles that no case is the same as, and why.
    pub left: Vec<Problem>,
    /// Bundles that could not be loaded.
    pub broken: Vec<Problem>,
}

/// Makes cases of bundles.
pub fn import(loaded: Loaded) -> Imported {
    let mut imported = Imported {
        broken: loaded.problems,
        ..Imported::default()
    };
    for bundle in &loaded.bundles {
        match case_id(bundle) {
            Ok(id) => {
                imported.taken += 1;
                for claim in &bundle.claims {
                    let cases = imported.claims.entry(claim.clone()).or_default();
                    cases.insert(id.clone());
                }
                imported.cases.insert(id);
            }
            Err(text) => imported.left.push(Problem {
                name: bundle.name.clone(),
                text,
            }),
        }
    }
    imported
}

fn case_id(bundle: &Bundle) -> Result<String, String> {
    if !bundle.ranges.is_empty() {
        return Err(format!(
            "its metadata give ranges for the inputs {}, which ids have no word for",
            bundle.ranges.join(", ")
        ));
    }
    let case = case_of(&bundle.graph).map_err(|text| match leaf(bundle) {
        Some(leaf) => leaf,
        None => text,
    })?;
    Ok(case.to_string())
}

/// An input that cannot be drawn, by name.
fn leaf(bundle: &Bundle) -> Option<String> {
    let error = fill::generate(&bundle.graph, Default::default(), 1).err()?;
    let FillError::NotDrawn { uid } = error else {
        return None;
    };
    let name = bundle.graph.tensor(uid).map_or("", |tensor| &tensor.name);
    Some(format!(
        "unverifiable: the input {name} (uid {uid}) has values with a meaning"
    ))
}

impl Imported {
    /// The suite of the cases.
    pub fn suite(&self, from: &str) -> String {
        let mut out = format!(
            "# {} cases of {} bundles below {from}, by `dnn-assay import bundle`.\nschema: 1\ntags: [bundles]\ngroups:\n",
            self.cases.len(),
            self.taken
        );
        if self.cases.is_empty() {
            return out.replace("groups:\n", "groups: []\n");
        }
        out.push_str("  - name: bundles\n    ids:\n");
        for id in &self.cases {
            let _ = writeln!(out, "      - {id}");
        }
        out
    }

    /// The claims of the sidecars, for Linux.
    pub fn claims_file(&self) -> String {
        claims_yaml(
            "# Claims of support sidecars, by `dnn-assay import bundle`.\n",
            &self.claims,
        )
    }
}
