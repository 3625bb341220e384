//! The mutants as data.

use std::collections::BTreeMap;

use dnn_assay_graph::case::Case;
use serde::{Deserialize, Serialize};

use super::check::Check;
use crate::yaml::{self, Problem, Source};

/// The embedded table.
const YAML: &str = include_str!("../../../mocks/mutants/mutants.yaml");

/// All mutants, in the order of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Version of the file's form.
    pub schema: u32,
    /// Lists of cases that mutants share; the mutants hold them too.
    #[serde(default)]
    pub sets: BTreeMap<String, Vec<String>>,
    /// The mutants.
    pub mutants: Vec<Mutant>,
    /// What stands for hipDNN's own test plugins.
    #[serde(default)]
    pub upstream: Vec<Upstream>,
}

/// A test plugin of hipDNN, or several of one sort, and what stands for it here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// Its name there.
    pub plugin: String,
    /// What it is like, in one phrase.
    pub about: String,
    /// The mutants with its fault.
    #[serde(default)]
    pub mutants: Vec<String>,
    /// Why there is none.
    #[serde(default)]
    pub why: Option<String>,
}

/// A plugin with one known fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// Unique.
    pub name: String,
    /// What is wrong, in one phrase.
    pub about: String,
    /// What sort of fault it is.
    pub kind: Kind,
    /// The operations that it concerns.
    pub ops: Vec<String>,
    /// Checks, one of which must notice it.
    pub catch: Vec<Check>,
    /// Ids of the hypotheses that name it rightly.
    #[serde(default)]
    pub diagnosis: Vec<String>,
    /// Ids of the cases on which it shows, short forms included.
    #[serde(default)]
    pub cases: Vec<String>,
    /// The fault of the mock of the ABI; `None` for the CPU engine's fault of the mutant's name.
    #[serde(default)]
    pub fault: Option<String>,
    /// How the mock of the ABI is built, where that is part of the fault.
    #[serde(default)]
    pub build: Option<Build>,
    /// A second library that is loaded beside it, for the checks of pairs; an empty mapping is the
    /// mock without a fault of its own.
    #[serde(default)]
    pub beside: Option<Build>,
    /// One finding is enough: the others would only take time.
    #[serde(default)]
    pub stop: bool,
    /// What it needs besides its library; it waits where that is not here.
    #[serde(default)]
    pub requires: Option<String>,
    /// The fault of the gfx942 plugin's launches, which the mock HIP runtime makes.
    #[serde(default)]
    pub launches: Option<String>,
}

/// The sort of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Wrong numbers.
    Numerics,
    /// Memory that is not the plugin's, or is its and not written.
    Memory,
    /// Time, state, ends and leftovers.
    Behaviour,
    /// The contracts of the C ABI.
    Abi,
    /// The file itself.
    Elf,
}

impl Kind {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 5] = [
        Self::Numerics,
        Self::Memory,
        Self::Behaviour,
        Self::Abi,
        Self::Elf,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Numerics => "numerics",
            Self::Memory => "memory",
            Self::Behaviour => "behaviour",
            Self::Abi => "abi",
            Self::Elf => "elf",
        }
    }
}

/// How the mock of the ABI is built.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Which of the mocks it is.
    #[serde(default)]
    pub source: Mock,
    /// The language, and with it the compiler.
    #[serde(default)]
    pub compiler: Compiler,
    /// Further arguments.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Source that is put before the mock's.
    #[serde(default)]
    pub code: String,
}

/// A mock of `mocks/abi`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mock {
    /// Misbehaves in any function.
    #[default]
    Plugin,
    /// The C example with one contract broken at a time.
    Faulty,
    /// The C example itself.
    Example,
    /// As hipDNN's own test plugins: computes nothing.
    Stub,
    /// Ranks engines and executes nothing.
    Heuristic,
}

/// The language of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Compiler {
    /// C.
    #[default]
    #[serde(rename = "c")]
    C,
    /// C++.
    #[serde(rename = "c++")]
    Cxx,
}

impl Table {
    /// The table of this program.
    ///
    /// # Errors
    /// A [`Problem`] with its place in the file: a defect of this program.
    pub fn embedded() -> Result<Self, Box<Problem>> {
        yaml::read(&Source::new("mocks/mutants/mutants.yaml", YAML))
    }
}

impl Mutant {
    /// Whether it is a fault of the CPU engine.
    pub fn is_in_library(&self) -> bool {
        self.fault.is_none() && self.build.is_none() && self.launches.is_none()
    }

    /// Nodes of the largest graph among its cases.
    pub fn largest_graph(&self) -> usize {
        let graphs = self
            .cases
            .iter()
            .filter_map(|id| Case::parse_short(id).ok()?.graph().ok());
        graphs.map(|graph| graph.nodes.len()).max().unwrap_or(0)
    }

    /// The mock that it lives in, if it is not in the CPU engine.
    pub fn mock(&self) -> Option<Mock> {
        let build = self.build.as_ref();
        let elsewhere = self.is_in_library() || self.launches.is_some();
        (!elsewhere).then(|| build.map_or(Mock::Plugin, |build| build.source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_mutant_has_a_name_of_its_own_cases_and_a_check() {
        let table = Table::embedded().expect("the table can be read");
        assert!(table.mutants.len() >= 80);
        let names: BTreeSet<_> = table.mutants.iter().map(|m| &m.name).collect();
        assert_eq!(names.len(), table.mutants.len());
        for mutant in &table.mutants {
            let name = &mutant.name;
            assert!(!mutant.catch.is_empty() && !mutant.ops.is_empty(), "{name}");
            // These compute nothing.
            let idle = matches!(mutant.mock(), Some(Mock::Heuristic | Mock::Stub));
            if mutant.kind != Kind::Elf && !idle {
                assert!((5..=20).contains(&mutant.cases.len()), "{name}");
            }
            if mutant.kind == Kind::Numerics {
                assert!(!mutant.diagnosis.is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn every_test_plugin_of_hipdnn_has_a_mutant_or_a_reason() {
        let table = Table::embedded().expect("the table can be read");
        let names: BTreeSet<_> = table.mutants.iter().map(|m| &m.name).collect();
        assert!(table.upstream.len() >= 20);
        for row in &table.upstream {
            let plugin = &row.plugin;
            assert_ne!(row.mutants.is_empty(), row.why.is_none(), "{plugin}");
            for mutant in &row.mutants {
                assert!(names.contains(mutant), "{plugin}: {mutant}");
            }
        }
    }

    #[test]
    fn every_case_is_one() {
        let table = Table::embedded().expect("the table can be read");
        let ids: BTreeSet<_> = table.mutants.iter().flat_map(|m| &m.cases).collect();
        for id in ids {
            let case = Case::parse_short(id).unwrap_or_else(|error| panic!("{id}: {error:?}"));
            case.graph()
                .unwrap_or_else(|error| panic!("{id}: {error:?}"));
        }
    }

    #[test]
    fn rules_and_checks_exist() {
        let rules: BTreeSet<_> = dnn_assay_elf::rules::all().map(|rule| rule.id).collect();
        let checks = crate::conform::all_checks().map(|check| check.id);
        let checks = checks.chain(crate::conform::PAIR_CHECKS.iter().map(|check| check.id));
        let heuristic = crate::conform::HEURISTIC_CHECKS.iter();
        let checks: BTreeSet<_> = checks.chain(heuristic.map(|check| check.id)).collect();
        let table = Table::embedded().expect("the table can be read");
        for check in table.mutants.iter().flat_map(|m| &m.catch) {
            match check {
                Check::Elf(rule) => assert!(rules.contains(rule.as_str()), "{rule}"),
                Check::Conform(id) => assert!(checks.contains(id.as_str()), "{id}"),
                _ => {}
            }
        }
    }
}
