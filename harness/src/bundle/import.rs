//! Bundles as a suite of cases, their support sidecars as claims.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use dnn_assay_graph::Graph;
use dnn_assay_reference::fill::{self, FillError};

use super::case::case_of;
use super::load::{Bundle, Loaded, Problem};
use crate::gate::claims_yaml;

/// What became of the bundles.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Case ids, in order, each once, with the ranges of their inputs by name.
    pub cases: BTreeMap<String, Ranges>,
    /// Cases by engine and architecture that they are claimed for.
    pub claims: BTreeMap<(String, String), BTreeSet<String>>,
    /// Bundles that became cases.
    pub taken: usize,
    /// Bundles that no case is the same as, and why.
    pub left: Vec<Problem>,
    /// Bundles that could not be loaded.
    pub broken: Vec<Problem>,
}

/// Lowest and highest value of inputs, by name.
pub type Ranges = BTreeMap<String, [f64; 2]>;

/// Makes cases of bundles.
pub fn import(loaded: Loaded) -> Imported {
    let mut imported = Imported {
        broken: loaded.problems,
        ..Imported::default()
    };
    for bundle in &loaded.bundles {
        match case_id(bundle).and_then(|found| imported.fits(found)) {
            Ok((id, ranges)) => {
                imported.taken += 1;
                for claim in &bundle.claims {
                    let cases = imported.claims.entry(claim.clone()).or_default();
                    cases.insert(id.clone());
                }
                imported.cases.insert(id, ranges);
            }
            Err(text) => imported.left.push(Problem {
                name: bundle.name.clone(),
                text,
            }),
        }
    }
    imported
}

fn case_id(bundle: &Bundle) -> Result<(String, Ranges), String> {
    let case = case_of(&bundle.graph).map_err(|text| match leaf(bundle) {
        Some(leaf) => leaf,
        None => text,
    })?;
    let graph = case.graph().map_err(|error| error.message)?;
    let names = same_tensors(&bundle.graph, &graph);
    let ranges = bundle.ranges.iter().map(|(uid, range)| {
        let name = names.get(uid).and_then(|uid| graph.tensor(*uid));
        let name = name.ok_or_else(|| format!("the case has no input like {uid}"))?;
        Ok((name.name.clone(), *range))
    });
    Ok((case.to_string(), ranges.collect::<Result<_, String>>()?))
}

/// Uids of `ours` by those of `theirs`: tensors that nodes name in the same places.
fn same_tensors(theirs: &Graph, ours: &Graph) -> BTreeMap<i64, i64> {
    let uids = |graph: &Graph| -> Vec<i64> {
        let nodes = graph.nodes.iter().map(|node| &node.attributes);
        nodes
            .flat_map(|node| [node.inputs(), node.outputs()].concat())
            .collect()
    };
    uids(theirs).into_iter().zip(uids(ours)).collect()
}

/// A group of a suite.
fn group(out: &mut String, name: &str, ranges: &Ranges, ids: &[&String]) {
    if ids.is_empty() {
        return;
    }
    let _ = writeln!(out, "  - name: {name}");
    if !ranges.is_empty() {
        out.push_str("    ranges:\n");
    }
    for (tensor, [low, high]) in ranges {
        let _ = writeln!(out, "      \"{tensor}\": [{low:?}, {high:?}]");
    }
    out.push_str("    ids:\n");
    for id in ids {
        let _ = writeln!(out, "      - {id}");
    }
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
    /// A suite has each case once: another bundle of the same graph must have the same ranges.
    fn fits(&self, found: (String, Ranges)) -> Result<(String, Ranges), String> {
        match self.cases.get(&found.0) {
            Some(known) if *known != found.1 => Err(format!(
                "another bundle is the same case, {}, with other ranges of inputs",
                found.0
            )),
            _ => Ok(found),
        }
    }

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
        let plain = self.cases.iter().filter(|(_, ranges)| ranges.is_empty());
        let plain: Vec<&String> = plain.map(|(id, _)| id).collect();
        group(&mut out, "bundles", &Ranges::new(), &plain);
        // A group for each set of ranges.
        let mut ranged: Vec<(&Ranges, Vec<&String>)> = Vec::new();
        for (id, ranges) in self.cases.iter().filter(|(_, ranges)| !ranges.is_empty()) {
            match ranged.iter_mut().find(|(known, _)| *known == ranges) {
                Some((_, ids)) => ids.push(id),
                None => ranged.push((ranges, vec![id])),
            }
        }
        for (index, (ranges, ids)) in ranged.iter().enumerate() {
            group(
                &mut out,
                &format!("bundles-ranged-{}", index + 1),
                ranges,
                ids,
            );
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
