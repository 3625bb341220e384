//! Traits that engines declare, each for all of a run or for some of its units.

use std::fmt;

use dnn_assay_reference::{Trait, Traits};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::plan::{Engine, EnginePattern, Fields, Filter};
use crate::yaml::{Problem, Source, Step};

/// An entry under `traits` as it is written: a name, or a name with an engine, a scope and a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraitEntry {
    /// The trait's name.
    pub name: String,
    /// Name, glob or id of the engine; all where absent.
    pub engine: Option<String>,
    /// Where it holds; everywhere where absent.
    pub when: ScopeEntry,
    /// Why the engine computes so; compulsory unless the entry is a bare name.
    pub reason: Option<String>,
}

/// Where a trait holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeEntry {
    /// The operation, or the beginning of its name: `conv`, `conv.fprop`.
    #[serde(default)]
    pub op: Option<String>,
    /// A type of the case.
    #[serde(default)]
    pub dtype: Option<String>,
    /// Terms over the fields of ids, as `--filter` takes them.
    #[serde(default)]
    pub filter: Option<String>,
    /// Architectures, separated by commas; `host` for plugins in host memory.
    #[serde(default)]
    pub arch: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LongEntry {
    #[serde(rename = "trait")]
    name: String,
    #[serde(default)]
    engine: Option<String>,
    #[serde(default)]
    when: ScopeEntry,
    reason: String,
}

impl<'de> Deserialize<'de> for TraitEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = TraitEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a trait's name, or `{trait: name, engine: …, when: …, reason: …}`")
            }

            fn visit_str<E>(self, name: &str) -> Result<TraitEntry, E> {
                Ok(TraitEntry {
                    name: name.to_owned(),
                    ..TraitEntry::default()
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TraitEntry, A::Error> {
                let long = LongEntry::deserialize(MapAccessDeserializer::new(map))?;
                Ok(TraitEntry {
                    name: long.name,
                    engine: long.engine,
                    when: long.when,
                    reason: Some(long.reason),
                })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The checked entries of a run.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    which: Trait,
    engine: Option<EnginePattern>,
    filter: Filter,
    arch: Vec<String>,
}

/// A unit as scopes see it.
#[derive(Clone, Copy)]
pub struct Unit<'a> {
    /// The case.
    pub case: &'a dyn Fields,
    /// The engine.
    pub engine: &'a Engine,
    /// `host`, or the device's architecture, where it is known.
    pub arch: Option<&'a str>,
}

/// What is wrong with an entry, and under which of its keys.
struct Wrong {
    key: &'static str,
    message: String,
}

impl Declared {
    /// Traits that hold for every unit.
    pub fn everywhere(traits: &Traits) -> Self {
        let entries = traits.iter().map(|which| Entry {
            which,
            engine: None,
            filter: Filter::default(),
            arch: Vec::new(),
        });
        Self {
            entries: entries.collect(),
        }
    }

    /// Checks the entries of a list that stands in `source` under `traits`.
    ///
    /// # Errors
    /// A [`Problem`] at the first entry that cannot be understood.
    pub fn read(source: &Source, entries: &[TraitEntry]) -> Result<Self, Box<Problem>> {
        let checked = entries.iter().enumerate().map(|(index, entry)| {
            Entry::read(entry).map_err(|Wrong { key, message }| {
                let at = [Step::Key("traits"), Step::Item(index)];
                let scope = [Step::Key("when"), Step::Key(key)];
                let path = match key {
                    _ if entry.reason.is_none() => at.to_vec(),
                    "op" | "dtype" | "filter" => [&at[..], &scope].concat(),
                    key => [&at[..], &[Step::Key(key)]].concat(),
                };
                Box::new(Problem::new(message, source.place_of(&path, "here")))
            })
        });
        Ok(Self {
            entries: checked.collect::<Result<_, _>>()?,
        })
    }

    /// The traits that hold for a unit.
    pub fn of(&self, unit: Unit<'_>) -> Traits {
        let holds = |entry: &&Entry| entry.holds(unit);
        self.entries
            .iter()
            .filter(holds)
            .map(|entry| entry.which)
            .collect()
    }

    /// The traits that hold for every unit.
    pub fn unscoped(&self) -> Traits {
        let everywhere = |entry: &&Entry| {
            entry.engine.is_none() && entry.filter.is_empty() && entry.arch.is_empty()
        };
        let entries = self.entries.iter().filter(everywhere);
        entries.map(|entry| entry.which).collect()
    }
}

impl Entry {
    fn read(entry: &TraitEntry) -> Result<Self, Wrong> {
        let wrong = |key, message: String| Wrong { key, message };
        if entry
            .reason
            .as_ref()
            .is_some_and(|reason| reason.trim().is_empty())
        {
            let message = "a trait needs its `reason`, and this one is empty".to_owned();
            return Err(wrong("reason", message));
        }
        let engine = entry.engine.as_deref().map(EnginePattern::parse);
        let when = &entry.when;
        let mut filter = Filter::default();
        let terms = [
            ("op", when.op.as_ref().map(|op| format!("op={op}"))),
            (
                "dtype",
                when.dtype.as_ref().map(|dtype| format!("dtype={dtype}")),
            ),
            ("filter", when.filter.clone()),
        ];
        for (key, text) in terms {
            let Some(text) = text else { continue };
            let part = Filter::parse(&[text]).map_err(|error| wrong(key, error.to_string()))?;
            filter.extend(part);
        }
        let arch = when.arch.as_deref().unwrap_or_default().split(',');
        Ok(Self {
            which: entry
                .name
                .parse()
                .map_err(|error: dnn_assay_reference::UnknownTrait| {
                    wrong("trait", error.to_string())
                })?,
            engine: engine
                .transpose()
                .map_err(|error| wrong("engine", error.to_string()))?,
            filter,
            arch: arch
                .map(str::trim)
                .filter(|arch| !arch.is_empty())
                .map(str::to_owned)
                .collect(),
        })
    }

    fn holds(&self, unit: Unit<'_>) -> bool {
        let is_meant = |meant: &String| {
            unit.arch
                .is_some_and(|arch| crate::gate::is_arch(arch, meant))
        };
        self.engine
            .as_ref()
            .is_none_or(|engine| engine.matches(unit.engine))
            && self.filter.matches(unit.case)
            && (self.arch.is_empty() || self.arch.iter().any(is_meant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{SuiteCase, of_ids};
    use crate::yaml;
    use rstest::rstest;

    #[derive(Deserialize)]
    struct List {
        traits: Vec<TraitEntry>,
    }

    fn declared(text: &str) -> Result<Declared, String> {
        let source = Source::new("dnn-assay.yaml", text);
        let list: List = yaml::read(&source).map_err(|problem| problem.render(false))?;
        Declared::read(&source, &list.traits).map_err(|problem| problem.render(false))
    }

    fn case(id: &str) -> SuiteCase {
        of_ids(&[id]).expect("a case").cases.remove(0)
    }

    const LIST: &str = "traits:\n  - flush-denormals\n  - {trait: winograd, engine: MIOPEN*, \
        when: {op: conv, dtype: f16, filter: '~f3x3', arch: 'gfx90a, gfx942'}, reason: r}\n";

    #[rstest]
    #[case(
        "conv.fprop/f16/nchw/n1-c4-k4-i5x5-f3x3",
        "MIOPEN_ENGINE",
        Some("gfx942:sramecc+"),
        "winograd,flush-denormals"
    )]
    #[case(
        "conv.fprop/f32/nchw/n1-c4-k4-i5x5-f3x3",
        "MIOPEN_ENGINE",
        Some("gfx942"),
        "flush-denormals"
    )]
    #[case(
        "conv.fprop/f16/nchw/n1-c4-k4-i5x5-f1x1",
        "MIOPEN_ENGINE",
        Some("gfx942"),
        "flush-denormals"
    )]
    #[case(
        "conv.fprop/f16/nchw/n1-c4-k4-i5x5-f3x3",
        "OTHER",
        Some("gfx942"),
        "flush-denormals"
    )]
    #[case(
        "conv.fprop/f16/nchw/n1-c4-k4-i5x5-f3x3",
        "MIOPEN_ENGINE",
        Some("host"),
        "flush-denormals"
    )]
    #[case(
        "conv.fprop/f16/nchw/n1-c4-k4-i5x5-f3x3",
        "MIOPEN_ENGINE",
        None,
        "flush-denormals"
    )]
    fn traits_hold_where_they_are_scoped(
        #[case] id: &str,
        #[case] engine: &str,
        #[case] arch: Option<&str>,
        #[case] expected: &str,
    ) {
        let declared = declared(LIST).expect("a list");
        let engine = Engine {
            id: 7,
            name: Some(engine.to_owned()),
        };
        let unit = Unit {
            case: &case(id),
            engine: &engine,
            arch,
        };
        assert_eq!(declared.of(unit).to_string(), expected);
        assert_eq!(declared.unscoped().to_string(), "flush-denormals");
    }

    #[rstest]
    #[case("traits: [nonsense]\n", "no trait \"nonsense\"")]
    #[case("traits:\n  - {trait: f16}\n", "reason")]
    #[case("traits:\n  - {trait: f16, reason: ' '}\n", "is empty")]
    #[case(
        "traits:\n  - {trait: f16, reason: r, wen: {}}\n",
        "did you mean `when`?"
    )]
    #[case(
        "traits:\n  - {trait: f16, reason: r, when: {filter: 'x y'}}\n",
        "term 'x': expected field=value"
    )]
    #[case(
        "traits:\n  - {trait: f16, reason: r, engine: '['}\n",
        "error: '[' is no glob, from character 1 on"
    )]
    #[case("traits: [3]\n", "trait's name")]
    fn mistakes_are_pointed_at(#[case] text: &str, #[case] part: &str) {
        let message = declared(text).expect_err("a mistake");
        assert!(message.contains(part), "{message}");
    }
}
