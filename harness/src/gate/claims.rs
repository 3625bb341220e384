//! Claims: what an engine is known to accept, per architecture. A claimed case that the engine
//! declines is a failure.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use serde::Deserialize;

use super::document::{Origin, check_schema};
use super::subject::{Subject, arch_of, is_arch};
use crate::journal::Journal;
use crate::plan::{Engine, EnginePattern, Filter};
use crate::verdict::Verdict;
use crate::yaml::{self, Problem, Source, Step};

/// All claims of a run.
#[derive(Clone, Debug, Default)]
pub struct Claims(Vec<Claim>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    schema: u32,
    #[serde(default, rename = "about")]
    _about: Option<String>,
    claims: Vec<ClaimEntry>,
}

/// An entry as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimEntry {
    /// Name, glob or id of the engine.
    pub engine: String,
    /// Architectures, separated by commas; `host` for plugins in host memory; `*` for all.
    pub arch: String,
    /// What the claim rests on, for people.
    #[serde(default, rename = "about")]
    pub _about: Option<String>,
    /// Cases by id.
    #[serde(default)]
    pub cases: Vec<String>,
    /// Cases by filter; one of them must hold.
    #[serde(default)]
    pub filters: Vec<String>,
}

/// A checked entry.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Where it is written.
    pub origin: Origin,
    place: crate::yaml::Place,
    text: String,
    engine: EnginePattern,
    arch: Vec<String>,
    cases: HashSet<String>,
    filters: Vec<Filter>,
}

/// A claim for an engine that no plugin has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GoneEngine(pub Box<Problem>);

impl Claims {
    /// Reads a file of claims.
    ///
    /// # Errors
    /// A [`Problem`] with the place.
    pub fn read(source: &Source) -> Result<Self, Box<Problem>> {
        let file: ClaimFile = yaml::read(source)?;
        check_schema(source, file.schema)?;
        let entries = file.claims.iter().enumerate();
        entries
            .map(|(index, entry)| Claim::read(source, index, entry))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// More entries behind these.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entry that claims this unit.
    pub fn find(&self, subject: &Subject) -> Option<&Claim> {
        self.0.iter().find(|claim| claim.is_for(subject))
    }

    /// The first claim for an engine that is not among `engines`.
    pub fn gone_engine(&self, engines: &[Engine]) -> Option<GoneEngine> {
        let gone = self
            .0
            .iter()
            .find(|claim| !engines.iter().any(|e| claim.engine.matches(e)))?;
        let has: Vec<String> = engines.iter().map(Engine::label).collect();
        let title = format!("no plugin of this run has the engine `{}`", gone.text);
        let problem = Problem::new(title, gone.place.clone())
            .help(format!("engines here: {}", has.join(", ")))
            .help("remove the claim, or bring the engine back");
        Some(GoneEngine(Box::new(problem)))
    }
}

impl Claim {
    fn read(source: &Source, index: usize, entry: &ClaimEntry) -> Result<Self, Box<Problem>> {
        let base = [Step::Key("claims"), Step::Item(index)];
        let at = |rest: &[Step]| source.place_of(&[&base[..], rest].concat(), "here");
        let engine = EnginePattern::parse(&entry.engine)
            .map_err(|e| Problem::new(e.to_string(), at(&[Step::Key("engine")])))?;
        let filters = entry.filters.iter().enumerate().map(|(item, text)| {
            Filter::parse(&[text]).map_err(|e| {
                let path = [Step::Key("filters"), Step::Item(item)];
                Box::new(Problem::new(e.to_string(), at(&path)))
            })
        });
        let claim = Self {
            origin: Origin::of(source, &base),
            place: at(&[Step::Key("engine")]),
            text: entry.engine.clone(),
            engine,
            arch: entry.arch.split(',').map(|a| a.trim().to_owned()).collect(),
            cases: entry.cases.iter().cloned().collect(),
            filters: filters.collect::<Result<_, _>>()?,
        };
        if claim.cases.is_empty() && claim.filters.is_empty() {
            let title = "a claim names its cases by `cases` or by `filters`";
            return Err(Box::new(Problem::new(title, at(&[]))));
        }
        Ok(claim)
    }

    fn is_for(&self, subject: &Subject) -> bool {
        let arch = |meant: &String| {
            meant == "*"
                || subject
                    .arch
                    .as_deref()
                    .is_some_and(|arch| is_arch(arch, meant))
        };
        self.engine.matches(&subject.engine)
            && self.arch.iter().any(arch)
            && (self.cases.contains(&subject.id)
                || self.filters.iter().any(|filter| filter.matches(subject)))
    }
}

/// The claims file of a run: the verified cases that passed, per engine and architecture.
pub fn recorded(journal: &Journal) -> String {
    let device = journal
        .start
        .as_ref()
        .and_then(|s| s.device.as_ref())
        .and_then(|d| d.arch.as_deref());
    let mut claims: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for unit in journal.units() {
        if unit.verdict != Verdict::Pass {
            continue;
        }
        let plugin = journal.plugin(unit.key.plugin);
        let arch = plugin
            .and_then(|plugin| arch_of(plugin, device))
            .unwrap_or("*");
        let base = arch.split(':').next().unwrap_or(arch);
        let engine = crate::report::engine_argument(journal, &unit.key);
        claims
            .entry((engine, base.to_owned()))
            .or_default()
            .push(unit.key.case);
    }
    for cases in claims.values_mut() {
        cases.sort_unstable();
    }
    claims_yaml(
        "# What each engine was verified to compute, as recorded by `dnn-assay claims`. A claimed\n\
         # case that its engine declines is a failure of `dnn-assay check`.\n",
        &claims,
    )
}

/// A claims file: `head`, comment lines with their ends, then the cases in the order given, per
/// engine and architecture.
pub fn claims_yaml<'a, Cases>(head: &str, claims: &'a BTreeMap<(String, String), Cases>) -> String
where
    &'a Cases: IntoIterator<Item = &'a String>,
{
    let mut out = format!("{head}schema: 1\n");
    out.push_str(if claims.is_empty() {
        "claims: []\n"
    } else {
        "claims:\n"
    });
    for ((engine, arch), cases) in claims {
        let _ = writeln!(
            out,
            "  - engine: \"{engine}\"\n    arch: \"{arch}\"\n    cases:"
        );
        for case in cases {
            let _ = writeln!(out, "      - {case}");
        }
    }
    out
}
