//! What became of the mutants.

use std::collections::BTreeMap;
use std::time::Duration;

use super::check::Check;
use super::table::{Kind, Mutant, Upstream};

/// What became of all mutants.
#[derive(Clone, Debug)]
pub struct Power {
    /// One per mutant, in the order of the table.
    pub tried: Vec<Tried>,
    /// What was found where nothing is wrong.
    pub clean_findings: Vec<String>,
    /// Units of the clean libraries that were judged and passed.
    pub clean_passed: usize,
    /// What stands for hipDNN's own test plugins.
    pub upstream: Vec<Upstream>,
    /// How long it took.
    pub time: Duration,
}

/// What became of one mutant.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The mutant.
    pub mutant: Mutant,
    /// What noticed it, and in how many units.
    pub by: BTreeMap<Check, usize>,
    /// Units that were run.
    pub units: usize,
    /// Diagnosis ids that the run named.
    pub named: Vec<String>,
    /// Whether hipDNN's table of tolerances notices it, for faults of numbers.
    pub table: Option<bool>,
    /// Whether the root mean square of MIOpenDriver notices it.
    pub rms: Option<bool>,
    /// The first finding's text, or why there is none.
    pub note: String,
}

/// The end of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The check that must notice it did.
    Caught,
    /// Only other checks did.
    CaughtByAnother,
    /// Nothing did.
    Survived,
    /// Not run.
    Waits,
}

/// How well a fault was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// A right id in a set of at most three.
    Right,
    /// A set without a right id, or a larger one.
    Wrong,
    /// No id.
    Unnamed,
}

impl Naming {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::Unnamed => "unnamed",
        }
    }
}

/// How the faults of numbers in graphs of one or two nodes were named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Mutants with a right id in a set of at most three.
    pub right: Vec<String>,
    /// Mutants with another set.
    pub wrong: Vec<String>,
    /// Mutants without any id.
    pub unnamed: Vec<String>,
}

impl Names {
    /// Counts those of `tried` that are about numbers and were run.
    pub fn of<'a>(tried: impl IntoIterator<Item = &'a Tried>) -> Self {
        let mut names = Self::default();
        for tried in tried {
            let mutant = &tried.mutant;
            if mutant.kind != Kind::Numerics || tried.units == 0 || mutant.largest_graph() > 2 {
                continue;
            }
            let list = match tried.naming() {
                Naming::Right => &mut names.right,
                Naming::Wrong => &mut names.wrong,
                Naming::Unnamed => &mut names.unnamed,
            };
            list.push(mutant.name.clone());
        }
        names
    }

    /// All of them.
    pub fn count(&self) -> usize {
        self.right.len() + self.wrong.len() + self.unnamed.len()
    }

    /// The share that is named rightly, 0 to 1; 1 of none.
    pub fn share(&self) -> f64 {
        match self.count() {
            0 => 1.0,
            all => self.right.len() as f64 / all as f64,
        }
    }
}

impl Tried {
    /// A mutant of which nothing is known yet.
    pub(super) fn new(mutant: &Mutant) -> Self {
        Self {
            mutant: mutant.clone(),
            by: BTreeMap::new(),
            units: 0,
            named: Vec::new(),
            table: None,
            rms: None,
            note: String::new(),
        }
    }

    /// The end of the mutant.
    pub fn fate(&self) -> Fate {
        if self.mutant.requires.is_some() && self.units == 0 && self.by.is_empty() {
            Fate::Waits
        } else if self
            .mutant
            .catch
            .iter()
            .any(|check| self.by.contains_key(check))
        {
            Fate::Caught
        } else if self.by.is_empty() {
            Fate::Survived
        } else {
            Fate::CaughtByAnother
        }
    }

    /// How well it was named.
    pub fn naming(&self) -> Naming {
        let right = self
            .named
            .iter()
            .any(|id| self.mutant.diagnosis.contains(id));
        match (self.named.len(), right) {
            (0, _) => Naming::Unnamed,
            (1..=3, true) => Naming::Right,
            _ => Naming::Wrong,
        }
    }
}

impl Power {
    /// How many mutants ended so, of one kind or of all.
    pub fn count(&self, fate: Fate, kind: Option<Kind>) -> usize {
        let of_kind = |tried: &&Tried| kind.is_none_or(|kind| tried.mutant.kind == kind);
        let tried = self.tried.iter().filter(of_kind);
        tried.filter(|tried| tried.fate() == fate).count()
    }

    /// Whether every fault that was tried was caught as it must be, and nothing else was found.
    pub fn is_complete(&self) -> bool {
        self.count(Fate::Survived, None) == 0
            && self.count(Fate::CaughtByAnother, None) == 0
            && self.clean_findings.is_empty()
    }

    /// How the faults of numbers were named.
    pub fn names(&self) -> Names {
        Names::of(&self.tried)
    }

    /// Mutants that a rule of judgement by name was asked about, and those that it missed.
    pub fn missed(&self, verdict: impl Fn(&Tried) -> Option<bool>) -> (usize, Vec<&str>) {
        let asked = self
            .tried
            .iter()
            .filter_map(|tried| Some((tried, verdict(tried)?)));
        let asked: Vec<_> = asked.collect();
        let missed = asked.iter().filter(|(_, caught)| !caught);
        let names = missed.map(|(tried, _)| tried.mutant.name.as_str());
        (asked.len(), names.collect())
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;

    /// A mutant that `numeric` must catch.
    pub fn tried(by: &[(&str, usize)]) -> Tried {
        let yaml = "{name: m, about: a fault, kind: numerics, ops: [conv.fprop], \
                    catch: [numeric], diagnosis: [last-tap-missing], cases: []}";
        let source = crate::yaml::Source::new("test", yaml);
        Tried {
            mutant: crate::yaml::read(&source).expect("a mutant"),
            by: by
                .iter()
                .map(|(check, n)| (check.parse().expect("a check"), *n))
                .collect(),
            units: 5,
            named: Vec::new(),
            table: Some(false),
            rms: Some(true),
            note: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::tried;
    use super::*;

    #[test]
    fn only_the_intended_check_catches() {
        assert_eq!(tried(&[("numeric", 3)]).fate(), Fate::Caught);
        assert_eq!(tried(&[("crash", 3)]).fate(), Fate::CaughtByAnother);
        assert_eq!(tried(&[]).fate(), Fate::Survived);
        let mut waits = tried(&[]);
        waits.mutant.requires = Some("mock-hip".to_owned());
        waits.units = 0;
        assert_eq!(waits.fate(), Fate::Waits);
    }

    #[test]
    fn a_large_set_of_names_names_nothing() {
        let named = |ids: &[&str]| {
            let mut tried = tried(&[]);
            tried.named = ids.iter().map(ToString::to_string).collect();
            tried.naming()
        };
        assert_eq!(named(&[]), Naming::Unnamed);
        assert_eq!(named(&["last-tap-missing", "a"]), Naming::Right);
        assert_eq!(named(&["a"]), Naming::Wrong);
        assert_eq!(named(&["last-tap-missing", "a", "b", "c"]), Naming::Wrong);
    }

    #[test]
    fn names_are_counted_where_a_fault_of_numbers_was_run() {
        let of = |named: &[&str]| {
            let mut tried = tried(&[("numeric", 1)]);
            tried.named = named.iter().map(ToString::to_string).collect();
            tried
        };
        let mut idle = of(&["a"]);
        idle.units = 0;
        let mut long = of(&["a"]);
        long.mutant.cases = vec!["conv.fprop+bias+relu/f32/nchw/n1-c1-k1-i4x4-f1x1".to_owned()];
        let mut memory = of(&["a"]);
        memory.mutant.kind = Kind::Memory;
        let all = [
            of(&["last-tap-missing"]),
            of(&["a"]),
            of(&[]),
            idle,
            long,
            memory,
        ];
        let names = Names::of(&all);
        assert_eq!(
            (names.right.len(), names.wrong.len(), names.unnamed.len()),
            (1, 1, 1)
        );
        assert_eq!(names.share(), 1.0 / 3.0);
        assert_eq!(Names::of(&[]).share(), 1.0);
    }

    #[test]
    fn a_finding_on_the_clean_plugin_is_a_failure() {
        let mut power = Power {
            tried: vec![tried(&[("numeric", 1)])],
            clean_findings: Vec::new(),
            clean_passed: 1,
            upstream: Vec::new(),
            time: Duration::ZERO,
        };
        assert!(power.is_complete());
        power.clean_findings.push("x".to_owned());
        assert!(!power.is_complete());
        assert_eq!(power.missed(|t| t.table), (1, vec!["m"]));
        assert_eq!(power.missed(|t| t.rms), (1, Vec::new()));
    }
}
