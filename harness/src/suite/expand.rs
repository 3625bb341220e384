//! From a file's groups to cases.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use dnn_assay_graph::DataType;
use dnn_assay_graph::case::{Case, CaseError, Fill};

use super::file::{Group, SuiteFile};
use super::fills::FillRules;
use super::{Origin, SuiteCase, Tier};
use crate::yaml::{self, Problem, Source, Step};

/// Every case of a file's own groups, in the order of operations, types, layouts and shapes.
pub fn expand(source: &Arc<Source>, file: &SuiteFile) -> Result<Vec<SuiteCase>, Box<Problem>> {
    let mut cases = Vec::new();
    for (index, group) in file.groups.iter().enumerate() {
        let tags = file.tags.iter().chain(&group.tags).cloned();
        let expansion = Expansion {
            source,
            group,
            index,
            tier: group.tier.or(file.tier).unwrap_or_default(),
            tags: tags.chain([group.name.clone()]).collect(),
            ranges: Arc::new(group.ranges.clone()),
        };
        expansion.check()?;
        expansion.products(&mut cases)?;
        expansion.whole_ids(&mut cases)?;
    }
    Ok(cases)
}

struct Expansion<'a> {
    source: &'a Arc<Source>,
    group: &'a Group,
    index: usize,
    tier: Tier,
    tags: Arc<[String]>,
    ranges: Arc<BTreeMap<String, [f64; 2]>>,
}

impl Expansion<'_> {
    /// What would otherwise be misread as a fault of the shape, or expand to nothing.
    fn check(&self) -> Result<(), Box<Problem>> {
        let group = self.group;
        let lists = [
            ("ops", group.ops.is_empty()),
            ("dtypes", group.dtypes.is_empty()),
            ("layouts", group.layouts.is_empty()),
            ("shapes", group.shapes.is_empty()),
        ];
        let absent: Vec<&str> = lists.iter().filter(|(_, e)| *e).map(|(n, _)| *n).collect();
        let product = absent.len() < lists.len();
        if (product && !absent.is_empty()) || (!product && group.ids.is_empty()) {
            let place = self.source.place_of(
                &[Step::Key("groups"), Step::Item(self.index)],
                "in this group",
            );
            return Err(Box::new(
                Problem::new(format!("group `{}` expands to nothing", group.name), place)
                    .help(format!("it lacks {}", absent.join(", "))),
            ));
        }
        for (at, dtypes) in group.dtypes.iter().enumerate() {
            self.check_dtypes(at, dtypes)?;
        }
        self.check_ranges()
    }

    fn check_ranges(&self) -> Result<(), Box<Problem>> {
        let mut ranges = self.group.ranges.iter();
        let bad = ranges.find(|(_, [low, high])| low > high || !(high - low).is_finite());
        let Some((name, [low, high])) = bad else {
            return Ok(());
        };
        let path = [
            Step::Key("groups"),
            Step::Item(self.index),
            Step::Key("ranges"),
        ];
        let place = self.source.place_of(&path, "in these ranges");
        let text = format!("the range of `{name}` is [{low}, {high}]");
        let help = "two finite numbers, the lower one first: x: [-2, 2]";
        Err(Box::new(Problem::new(text, place).help(help)))
    }

    fn check_dtypes(&self, at: usize, dtypes: &str) -> Result<(), Box<Problem>> {
        let mut start = 0;
        for name in dtypes.split('+') {
            let span = start..start + name.len();
            start = span.end + 1;
            if DataType::from_short_name(name).is_some_and(|dtype| dtype != DataType::Unset) {
                continue;
            }
            let path = self.path("dtypes", at);
            let place = self
                .source
                .place_within(&path, dtypes, &span, "unknown type");
            let known: Vec<&str> = DataType::short_names().filter(|n| *n != "unset").collect();
            let problem = Problem::new(format!("there is no data type `{name}`"), place);
            let problem = match yaml::nearest(name, known.iter().copied()) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem,
            };
            return Err(Box::new(
                problem.help(format!("known types: {}", known.join(", "))),
            ));
        }
        Ok(())
    }

    fn products(&self, cases: &mut Vec<SuiteCase>) -> Result<(), Box<Problem>> {
        let group = self.group;
        for op in &group.ops {
            for dtypes in &group.dtypes {
                let fills = self.fills(op, dtypes)?;
                for layout in &group.layouts {
                    for (at, shape) in group.shapes.iter().enumerate() {
                        let head = format!("{op}/{dtypes}/{layout}/");
                        for fill in &fills {
                            let text = format!("{head}{shape}/{}", fill.name());
                            let case = self.case(&text, "shapes", at, shape, head.len())?;
                            cases.push(case);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The fills of a group's cases: `uni` where it names none, those of the rule table for
    /// `aimed`.
    fn fills(&self, op: &str, dtypes: &str) -> Result<Vec<Fill>, Box<Problem>> {
        let mut fills = Vec::new();
        for name in &self.group.fills {
            match name.fill() {
                Some(fill) => fills.push(fill),
                None => fills.extend(FillRules::embedded()?.of(op, dtypes)),
            }
        }
        if self.group.fills.is_empty() {
            fills.push(Fill::Uniform);
        }
        Ok(fills)
    }

    fn whole_ids(&self, cases: &mut Vec<SuiteCase>) -> Result<(), Box<Problem>> {
        for (at, id) in self.group.ids.iter().enumerate() {
            cases.push(self.case(id, "ids", at, id, 0)?);
        }
        Ok(())
    }

    /// Parses `text`, in which what the file says (`written`) begins at byte `head`.
    fn case(
        &self,
        text: &str,
        list: &'static str,
        at: usize,
        written: &str,
        head: usize,
    ) -> Result<SuiteCase, Box<Problem>> {
        let path = self.path(list, at);
        let case = Case::parse_short(text)
            .map_err(|error| self.problem(&path, text, written, head, &error))?;
        Ok(SuiteCase {
            id: case.to_string(),
            case,
            tier: self.tier,
            tags: Arc::clone(&self.tags),
            sample: self.group.sample,
            ranges: Arc::clone(&self.ranges),
            origin: Origin {
                source: Arc::clone(self.source),
                path,
            },
        })
    }

    /// A fault of the id: with its caret inside the written text when it lies there, else on the
    /// whole of it.
    fn problem(
        &self,
        path: &[Step],
        text: &str,
        written: &str,
        head: usize,
        error: &CaseError,
    ) -> Box<Problem> {
        let inside = error.at.start >= head && error.at.end <= head + written.len();
        let span: Range<usize> = if inside {
            error.at.start - head..error.at.end - head
        } else {
            0..written.len()
        };
        let place = self.source.place_within(path, written, &span, "here");
        let problem = Problem::new(error.message.clone(), place);
        Box::new(problem.help(format!("the case is `{text}`")))
    }

    fn path(&self, list: &'static str, at: usize) -> [Step; 4] {
        [
            Step::Key("groups"),
            Step::Item(self.index),
            Step::Key(list),
            Step::Item(at),
        ]
    }
}
