//! Finds a suite's files, follows includes, and collects the cases.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU32;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use dnn_assay_graph::case::Case;

use super::Tier;
use super::expand::expand;
use super::file::SuiteFile;
use super::tolerance::check_schema;
use crate::yaml::{self, Problem, Source, Step};

/// A suite: cases in order, each once.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The name or path it was asked for by.
    pub name: String,
    /// Cases, in the order of the files.
    pub cases: Vec<SuiteCase>,
}

/// A case and where it comes from.
#[derive(Clone, Debug)]
pub struct SuiteCase {
    /// The id, as the case prints itself.
    pub id: String,
    /// The case.
    pub case: Case,
    /// Tier.
    pub tier: Tier,
    /// Tags of the file and the group, and the group's name.
    pub tags: Arc<[String]>,
    /// Inputs by name that are uniform between two numbers of their own.
    pub ranges: Arc<BTreeMap<String, [f64; 2]>>,
    /// Draws at random where the suite asks for a judgement by samples.
    pub sample: Option<NonZeroU32>,
    /// Where it is written.
    pub origin: Origin,
}

/// Where a case is written. Lines are found when asked for: that reads the file again.
#[derive(Clone, Debug)]
pub struct Origin {
    pub(super) source: Arc<Source>,
    pub(super) path: [Step; 4],
}

impl Origin {
    /// The suite file.
    pub fn file(&self) -> &str {
        &self.source.name
    }

    /// The 1-based line of the shape or id in it.
    pub fn line(&self) -> Option<u32> {
        yaml::locate(&self.source.text, &self.path).map(|at| yaml::line_of(&self.source.text, at))
    }
}

/// Where files come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origins {
    /// The suites crate.
    Embedded,
    /// The file system.
    Files,
}

/// Loads an embedded suite by name, or a file by path. Something with a dot or a slash is a path.
///
/// # Errors
/// A [`Problem`] with the place in the file.
pub fn load(name_or_path: &str) -> Result<Suite, Box<Problem>> {
    if !name_or_path.contains(['/', '.', '\\']) {
        let root = format!("{name_or_path}/{}", dnn_assay_suites::ROOT_FILE);
        return match dnn_assay_suites::file(&root) {
            Some(_) => Loader::new(Origins::Embedded).suite(name_or_path, &root),
            None => Err(Box::new(unknown_suite(name_or_path))),
        };
    }
    Loader::new(Origins::Files).suite(name_or_path, name_or_path)
}

/// Loads several suites as one. A case that two of them hold is there once, as the first has it.
///
/// # Errors
/// As [`load`].
pub fn load_all<S: AsRef<str>>(names: &[S]) -> Result<Suite, Box<Problem>> {
    let mut all = Suite {
        name: String::new(),
        cases: Vec::new(),
    };
    let mut seen = HashSet::new();
    for name in names {
        let suite = load(name.as_ref())?;
        if !all.name.is_empty() {
            all.name.push_str(", ");
        }
        all.name.push_str(&suite.name);
        let new = suite
            .cases
            .into_iter()
            .filter(|case| seen.insert(case.id.clone()));
        all.cases.extend(new);
    }
    Ok(all)
}

/// Loads a suite from a text; includes are looked for beside its name in the file system.
///
/// # Errors
/// As [`load`].
pub fn load_source(source: Source) -> Result<Suite, Box<Problem>> {
    let mut loader = Loader::new(Origins::Files);
    let name = source.name.clone();
    loader.add(source)?;
    Ok(loader.into_suite(&name))
}

fn unknown_suite(name: &str) -> Problem {
    let known = dnn_assay_suites::suites();
    let source = Source::new("--suite", name);
    let problem = Problem::new(
        format!("there is no suite `{name}`"),
        source.place(0, "unknown suite"),
    );
    if Tier::ALL.iter().any(|tier| tier.name() == name) {
        return problem.help(format!(
            "{name} is a tier: --suite full --filter tier={name}"
        ));
    }
    let problem = match yaml::nearest(name, known.iter().copied()) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem,
    };
    problem.help(format!(
        "embedded suites: {}; a file is given by a path with a dot or a slash",
        known.join(", ")
    ))
}

struct Loader {
    origins: Origins,
    /// Files that are being read, outermost first.
    open: Vec<String>,
    /// Files that were read: a second include of one adds nothing.
    done: Vec<String>,
    cases: Vec<SuiteCase>,
    seen: HashMap<String, usize>,
}

impl Loader {
    fn new(origins: Origins) -> Self {
        Self {
            origins,
            open: Vec::new(),
            done: Vec::new(),
            cases: Vec::new(),
            seen: HashMap::new(),
        }
    }

    fn suite(mut self, name: &str, root: &str) -> Result<Suite, Box<Problem>> {
        let source = self.open_file(root).map_err(|message| {
            let command = Source::new("--suite", root);
            Problem::new(message, command.place(0, "this file"))
        })?;
        self.add(source)?;
        Ok(self.into_suite(name))
    }

    fn into_suite(self, name: &str) -> Suite {
        Suite {
            name: name.to_owned(),
            cases: self.cases,
        }
    }

    fn open_file(&self, name: &str) -> Result<Source, String> {
        match self.origins {
            Origins::Embedded => dnn_assay_suites::file(name)
                .map(|text| Source::new(name, text))
                .ok_or_else(|| format!("there is no embedded file {name}")),
            Origins::Files => {
                let bytes = std::fs::read(name).map_err(|e| format!("cannot read {name}: {e}"))?;
                String::from_utf8(bytes)
                    .map(|text| Source::new(name, text))
                    .map_err(|e| {
                        let at = e.utf8_error().valid_up_to();
                        format!("{name} is not UTF-8: byte {at} begins no character")
                    })
            }
        }
    }

    fn add(&mut self, source: Source) -> Result<(), Box<Problem>> {
        let file: SuiteFile = yaml::read(&source)?;
        check_schema(&source, file.schema)?;
        let source = Arc::new(source);
        self.open.push(source.name.clone());
        for (index, include) in file.include.iter().enumerate() {
            self.include(&source, index, include)?;
        }
        self.open.pop();
        for case in expand(&source, &file)? {
            self.push(case)?;
        }
        self.done.push(source.name.clone());
        Ok(())
    }

    fn include(
        &mut self,
        from: &Arc<Source>,
        index: usize,
        include: &str,
    ) -> Result<(), Box<Problem>> {
        let name = beside(&from.name, include);
        let place = |label: &str| from.place_of(&[Step::Key("include"), Step::Item(index)], label);
        if let Some(at) = self.open.iter().position(|open| *open == name) {
            let mut cycle: Vec<&str> = self.open[at..].iter().map(String::as_str).collect();
            cycle.push(&name);
            return Err(Box::new(
                Problem::new(
                    "includes form a cycle",
                    place("this file is already being read"),
                )
                .help(format!("the cycle: {}", cycle.join(" -> "))),
            ));
        }
        if self.done.contains(&name) {
            return Ok(());
        }
        let source = self
            .open_file(&name)
            .map_err(|message| Problem::new(message, place("included here")))?;
        self.add(source)
    }

    fn push(&mut self, case: SuiteCase) -> Result<(), Box<Problem>> {
        let Some(&first) = self.seen.get(&case.id) else {
            self.seen.insert(case.id.clone(), self.cases.len());
            self.cases.push(case);
            return Ok(());
        };
        let place = |origin: &Origin, label: &str| origin.source.place_of(&origin.path, label);
        Err(Box::new(
            Problem::new(
                format!("case `{}` is there twice", case.id),
                place(&case.origin, "second here"),
            )
            .other(place(&self.cases[first].origin, "first here"))
            .help("remove one; a suite holds a case once, in the lowest tier that wants it"),
        ))
    }
}

/// `include` relative to the folder of `from`, without `.` and `..` where that is possible.
fn beside(from: &str, include: &str) -> String {
    let joined = Path::new(from)
        .parent()
        .unwrap_or_else(|| Path::new(""))
        .join(include);
    let mut plain = PathBuf::new();
    for part in joined.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(plain.components().next_back(), Some(Component::Normal(_))) =>
            {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain.to_string_lossy().into_owned()
}

impl Suite {
    /// The case with this id.
    pub fn case(&self, id: &str) -> Option<&SuiteCase> {
        self.cases.iter().find(|case| case.id == id)
    }

    /// Cases up to a tier.
    pub fn up_to(&self, tier: Tier) -> impl Iterator<Item = &SuiteCase> {
        self.cases.iter().filter(move |case| case.tier <= tier)
    }
}
