//! Waivers: what is known to fail, with a reason, a link, an owner and an end.

use jiff::civil::Date;
use serde::Deserialize;

use super::document::Origin;
use super::finding::known_rules;
use super::globs::Globs;
use super::range::VersionRange;
use super::subject::{Subject, arch_of, is_arch};
use crate::journal::{CaseEnd, PluginRecord};
use crate::plan::{EnginePattern, Filter};
use crate::verdict::{Verdict, VerdictPattern};
use crate::yaml::{self, Place, Problem, Source, Step};

/// An entry as it is written. Every text is as the user typed it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaiverEntry {
    /// Exactly this case. Either this, or `filter`, or `finding`.
    pub case: Option<String>,
    /// Terms over the fields of ids, as `--filter` takes them.
    pub filter: Option<String>,
    /// A rule of inspection or a contract: `inspect/export/std`, `conform/handle/distinct`.
    pub finding: Option<String>,
    /// Name, glob or id of the engine; all where absent.
    pub engine: Option<String>,
    /// Range of the plugin's version.
    pub plugin: Option<String>,
    /// Architectures, separated by commas; `host` for plugins in host memory.
    pub arch: Option<String>,
    /// Range of the ROCm version.
    pub rocm: Option<String>,
    /// Verdicts, separated by commas: `fail(numeric)`, `crash`; for a finding `finding`.
    pub expect: String,
    /// Why this is known.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
    /// An issue.
    pub link: String,
    /// The last day on which it holds.
    pub expires: String,
}

/// All waivers of a run, in the order of the files.
#[derive(Clone, Debug, Default)]
pub struct Waivers(Vec<Waiver>);

/// A checked entry.
#[derive(Clone, Debug)]
pub struct Waiver {
    /// Where it is written.
    pub origin: Origin,
    /// Who answers for it.
    pub owner: String,
    /// An issue.
    pub link: String,
    reason: String,
    cases: Cases,
    engine: Option<EnginePattern>,
    plugin: Option<VersionRange>,
    arch: Arches,
    rocm: Option<VersionRange>,
    expect: Vec<VerdictPattern>,
    expires: Option<Date>,
}

/// What a waiver of a finding expects.
pub const FINDING: &str = "finding";

/// Which cases an entry means.
#[derive(Clone, Debug)]
enum Cases {
    Id(String),
    Filter(String, Filter),
    /// Globs of hipDNN's test configuration, over ids.
    Globs(Globs),
    /// No case: a rule or contract.
    Rule(String),
}

/// The architectures on which an entry holds; all where the list is empty.
#[derive(Clone, Debug)]
enum Arches {
    /// Whole names, or the parts before the features.
    Named(Vec<String>),
    /// Parts of the name with its features, as hipDNN's configuration has them.
    Parts(Vec<String>),
}

impl Waivers {
    /// Checks the entries of a list that stands in `source` under `waive`.
    ///
    /// # Errors
    /// A [`Problem`] at the first entry that cannot be understood.
    pub fn read(source: &Source, entries: &[WaiverEntry]) -> Result<Self, Box<Problem>> {
        entries
            .iter()
            .enumerate()
            .map(|(index, entry)| Waiver::read(source, index, entry))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// More entries behind these.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// An entry more.
    pub fn push(&mut self, waiver: Waiver) {
        self.0.push(waiver);
    }

    /// The entries in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Waiver> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Waiver {
    fn read(source: &Source, index: usize, entry: &WaiverEntry) -> Result<Self, Box<Problem>> {
        let place = |key| {
            let path = [Step::Key("waive"), Step::Item(index), Step::Key(key)];
            source.place_of(&path, "here")
        };
        let wrong = |key, message: String| Box::new(Problem::new(message, place(key)));
        for (key, text) in [
            ("reason", &entry.reason),
            ("owner", &entry.owner),
            ("link", &entry.link),
            ("expires", &entry.expires),
        ] {
            if text.trim().is_empty() {
                let title = format!("a waiver needs its `{key}`, and this one is empty");
                return Err(wrong(key, title));
            }
        }
        let range = |key, text: &Option<String>| {
            let text = text.as_deref();
            text.map(VersionRange::parse)
                .transpose()
                .map_err(|m| wrong(key, m))
        };
        Ok(Self {
            origin: Origin::of(source, &[Step::Key("waive"), Step::Item(index)]),
            owner: entry.owner.clone(),
            link: entry.link.clone(),
            reason: entry.reason.clone(),
            cases: Cases::read(source, index, entry)?,
            engine: entry
                .engine
                .as_deref()
                .map(EnginePattern::parse)
                .transpose()
                .map_err(|error| wrong("engine", error.to_string()))?,
            plugin: range("plugin", &entry.plugin)?,
            arch: Arches::Named(list(entry.arch.as_deref().unwrap_or_default())),
            rocm: range("rocm", &entry.rocm)?,
            expect: expected(entry).map_err(|message| wrong("expect", message))?,
            expires: Some(entry.expires.parse().map_err(|_| {
                let text = &entry.expires;
                *wrong("expires", format!("`{text}` is no day; write 2027-06-30"))
            })?),
        })
    }

    /// A skip of hipDNN's test configuration: any failure is expected, and no pass is a surprise.
    pub(super) fn skip(origin: Origin, globs: Globs, reason: &str, arch: Vec<String>) -> Self {
        Self {
            origin,
            owner: "test_skips".to_owned(),
            link: "no link".to_owned(),
            reason: reason.to_owned(),
            cases: Cases::Globs(globs),
            engine: None,
            plugin: None,
            arch: Arches::Parts(arch),
            rocm: None,
            expect: VerdictPattern::any_red(),
            expires: None,
        }
    }

    /// Whether the entry means a rule or contract and not cases.
    pub fn is_for_findings(&self) -> bool {
        matches!(self.cases, Cases::Rule(_))
    }

    /// Whether the entry means this rule or contract.
    pub fn is_for_rule(&self, rule: &str) -> bool {
        matches!(&self.cases, Cases::Rule(meant) if meant == rule)
    }

    /// Whether the entry means this unit.
    pub fn is_for(&self, subject: &Subject) -> bool {
        self.cases.matches(subject)
            && self
                .engine
                .as_ref()
                .is_none_or(|e| e.matches(&subject.engine))
            && holds(self.plugin.as_ref(), subject.plugin_version.as_deref())
            && holds(self.rocm.as_ref(), subject.rocm.as_deref())
            && self.is_for_arch(subject.arch.as_deref())
    }

    /// Whether the entry can mean units of this plugin on this device.
    pub fn is_for_plugin(
        &self,
        plugin: &PluginRecord,
        arch: Option<&str>,
        rocm: Option<&str>,
    ) -> bool {
        holds(self.plugin.as_ref(), plugin.version.as_deref())
            && holds(self.rocm.as_ref(), rocm)
            && self.is_for_arch(arch_of(plugin, arch))
    }

    fn is_for_arch(&self, arch: Option<&str>) -> bool {
        let (Arches::Named(list) | Arches::Parts(list)) = &self.arch;
        let holds = |arch: &str, meant: &String| match &self.arch {
            Arches::Named(_) => is_arch(arch, meant),
            Arches::Parts(_) => arch.contains(meant.as_str()),
        };
        list.is_empty() || arch.is_some_and(|arch| list.iter().any(|meant| holds(arch, meant)))
    }

    /// Whether the verdict is one that is expected.
    pub fn expects(&self, verdict: &Verdict) -> bool {
        self.expect.iter().any(|pattern| pattern.matches(verdict))
    }

    /// Whether a pass is a surprise.
    pub fn is_strict(&self) -> bool {
        self.expires.is_some()
    }

    /// Whether the last day is over.
    pub fn is_expired(&self, today: Date) -> bool {
        self.expires.is_some_and(|last| last < today)
    }

    /// The last day.
    pub fn expiry(&self) -> String {
        self.expires
            .map_or_else(|| "never".to_owned(), |day| day.to_string())
    }

    /// The expected verdicts.
    pub fn expected(&self) -> String {
        let texts: Vec<String> = self.expect.iter().map(ToString::to_string).collect();
        texts.join(" or ")
    }

    /// How the entry names its cases.
    pub fn selector(&self) -> String {
        match &self.cases {
            Cases::Id(id) => format!("its case `{id}`"),
            Cases::Filter(text, _) => format!("its filter `{text}`"),
            Cases::Globs(globs) => format!("its filters {globs}"),
            Cases::Rule(rule) => format!("its finding `{rule}`"),
        }
    }

    /// What is said of a unit whose verdict the entry has changed.
    pub fn account(&self, end: &CaseEnd) -> String {
        let seen = match &end.reason {
            Some(reason) => format!("{}: {reason}", end.verdict),
            None => end.verdict.to_string(),
        };
        format!("{seen}; {}", self.waived())
    }

    /// That the entry waives something, why, until when, and who answers for it.
    pub fn waived(&self) -> String {
        format!(
            "waived at {}: {} ({}, {}, until {})",
            self.origin,
            self.reason,
            self.owner,
            self.link,
            self.expiry()
        )
    }
}

/// A range holds where there is none, or where the version is known and lies in it.
fn holds(range: Option<&VersionRange>, version: Option<&str>) -> bool {
    range.is_none_or(|range| version.is_some_and(|version| range.contains(version)))
}

/// The verdicts that an entry expects; for a finding there is one word only.
fn expected(entry: &WaiverEntry) -> Result<Vec<VerdictPattern>, String> {
    if entry.finding.is_some() {
        return match entry.expect.trim() {
            FINDING => Ok(Vec::new()),
            other => Err(format!(
                "the waiver of a finding expects `{FINDING}`, not `{other}`"
            )),
        };
    }
    let texts = list(&entry.expect);
    if texts.is_empty() {
        return Err("a waiver says which verdict it expects: fail(numeric), crash, …".to_owned());
    }
    texts
        .iter()
        .map(|text| VerdictPattern::parse(text))
        .collect()
}

fn list(text: &str) -> Vec<String> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

impl Cases {
    fn read(source: &Source, index: usize, entry: &WaiverEntry) -> Result<Self, Box<Problem>> {
        let path = |key| [Step::Key("waive"), Step::Item(index), Step::Key(key)];
        match (&entry.case, &entry.filter, &entry.finding) {
            (None, None, Some(rule)) => {
                if entry.engine.is_some() {
                    let title = "a finding is of a file, and has no `engine`";
                    let place = source.place_of(&path("engine"), "here");
                    return Err(Box::new(Problem::new(title, place)));
                }
                Self::rule(rule, source.place_of(&path("finding"), "here"))
            }
            (Some(id), None, None) => {
                let case = dnn_assay_graph::case::Case::parse_short(id).map_err(|error| {
                    let at = source.place_within(&path("case"), id, &error.at, "here");
                    Problem::new(error.message, at)
                })?;
                Ok(Self::Id(case.to_string()))
            }
            (None, Some(text), None) if !text.trim().is_empty() => {
                let filter = Filter::parse(&[text]).map_err(|error| {
                    Problem::new(error.to_string(), source.place_of(&path("filter"), "here"))
                })?;
                Ok(Self::Filter(text.clone(), filter))
            }
            _ => Err(Box::new(Problem::new(
                "a waiver names its cases by `case` or by `filter`, or a `finding`: one of the three",
                source.place_of(&path("")[..2], "this entry"),
            ))),
        }
    }

    fn rule(name: &str, place: Place) -> Result<Self, Box<Problem>> {
        let known: Vec<String> = known_rules().collect();
        if known.iter().any(|rule| rule == name) {
            return Ok(Self::Rule(name.to_owned()));
        }
        let problem = Problem::new(format!("no rule or contract is called `{name}`"), place);
        let near = yaml::nearest(name, known.iter().map(String::as_str));
        let near = near.map(|near| format!("did you mean `{near}`?"));
        let list = "`dnn-assay inspect --list` and `dnn-assay conform --list` show them; \
                    write inspect/ or conform/ before the name";
        Err(Box::new(match near {
            Some(near) => problem.help(near),
            None => problem.help(list),
        }))
    }

    fn matches(&self, subject: &Subject) -> bool {
        match self {
            Self::Id(id) => *id == subject.id,
            Self::Filter(_, filter) => filter.matches(subject),
            Self::Globs(globs) => globs.matches(&subject.id),
            Self::Rule(_) => false,
        }
    }
}
