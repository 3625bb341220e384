//! Which fills beside `uni` and `int` an operation's cases use: `suites/tolerances/fills.yaml`.

use std::sync::LazyLock;

use dnn_assay_graph::case::Fill;
use globset::GlobSet;
use serde::Deserialize;

use super::file::FillName;
use super::tolerance::{check_schema, embedded};
use crate::pattern;
use crate::yaml::{self, Problem, Source, Step};

/// The rule table.
#[derive(Clone, Debug)]
pub struct FillRules {
    rules: Vec<FillRule>,
}

/// One fill and the operations that it is for.
#[derive(Clone, Debug)]
pub struct FillRule {
    /// The fill.
    pub fill: Fill,
    /// What it finds.
    pub why: String,
    ops: GlobSet,
    except: GlobSet,
    dtypes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    #[serde(rename = "about")]
    _about: String,
    rules: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    fill: FillName,
    ops: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    #[serde(default)]
    dtypes: Vec<String>,
    why: String,
}

static EMBEDDED: LazyLock<Result<FillRules, Box<Problem>>> =
    LazyLock::new(|| FillRules::read(&embedded("tolerances/fills.yaml")));

impl FillRules {
    /// The embedded rules.
    ///
    /// # Errors
    /// A [`Problem`] with the place in the file.
    pub fn embedded() -> Result<&'static Self, Box<Problem>> {
        EMBEDDED.as_ref().map_err(Clone::clone)
    }

    /// Reads a rule table.
    ///
    /// # Errors
    /// A [`Problem`] with the place: a glob that cannot be read, `aimed` inside its own table, an
    /// empty reason.
    pub fn read(source: &Source) -> Result<Self, Box<Problem>> {
        let file: File = yaml::read(source)?;
        check_schema(source, file.schema)?;
        let rules = file.rules.into_iter().enumerate();
        let rules = rules.map(|(index, entry)| rule(source, index, entry));
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
        })
    }

    /// Every rule, in the order of the file.
    pub fn all(&self) -> &[FillRule] {
        &self.rules
    }

    /// The fills for an operation and types, as an id writes both.
    pub fn of(&self, op: &str, dtypes: &str) -> impl Iterator<Item = Fill> {
        let inputs = dtypes.split('+').next().unwrap_or_default();
        let fits = move |rule: &&FillRule| {
            rule.ops.is_match(op)
                && !rule.except.is_match(op)
                && (rule.dtypes.is_empty() || rule.dtypes.iter().any(|dtype| dtype == inputs))
        };
        self.rules.iter().filter(fits).map(|rule| rule.fill)
    }
}

fn rule(source: &Source, index: usize, entry: Entry) -> Result<FillRule, Box<Problem>> {
    let place = |key| {
        let path = [Step::Key("rules"), Step::Item(index), Step::Key(key)];
        source.place_of(&path, "here")
    };
    let fill = entry.fill.fill().ok_or_else(|| {
        Box::new(Problem::new(
            "`aimed` stands for this table and cannot be in it",
            place("fill"),
        ))
    })?;
    if entry.why.trim().is_empty() {
        return Err(Box::new(Problem::new("`why` is empty", place("why"))));
    }
    let globs = |key, patterns: &[String]| -> Result<GlobSet, Box<Problem>> {
        pattern::globs(patterns)
            .map_err(|error| Box::new(Problem::new(error.to_string(), place(key))))
    };
    Ok(FillRule {
        fill,
        ops: globs("ops", &entry.ops)?,
        except: globs("except", &entry.except)?,
        dtypes: entry.dtypes,
        why: entry.why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_graph::case::{Case, Op};

    fn names(op: &str, dtypes: &str) -> Vec<&'static str> {
        let rules = FillRules::embedded().expect("the embedded table can be read");
        rules.of(op, dtypes).map(Fill::name).collect()
    }

    #[test]
    fn fills_by_operation_and_type() {
        assert_eq!(
            names("conv.fprop", "f32"),
            ["special", "edges", "index", "probe"]
        );
        assert_eq!(names("conv.wgrad", "bf16"), ["special", "edges"]);
        assert_eq!(
            names("batchnorm.training", "f16+f32"),
            ["special", "means", "spreads"]
        );
        assert_eq!(names("pointwise.exp", "f16"), ["special"]);
        assert!(names("pointwise.logical_and", "f32").is_empty());
        assert!(names("pointwise.gen_index", "f32").is_empty());
    }

    /// What the table gives for an operation is a case.
    #[test]
    fn every_rule_fits_its_operations() {
        let rules = FillRules::embedded().expect("the embedded table can be read");
        let mut used = std::collections::BTreeSet::new();
        for op in Op::all() {
            for dtypes in ["f32", "f16", "bf16", "f64"] {
                for fill in rules.of(&op.to_string(), dtypes) {
                    used.insert(fill);
                    let id = Case::smallest(op).to_string().replace("f32", dtypes);
                    let id = id.replace("/uni", &format!("/{fill}"));
                    let case = Case::parse(&id);
                    assert!(case.is_ok(), "{id}: {case:?}");
                }
            }
        }
        assert_eq!(used.len(), rules.all().len());
    }

    #[test]
    fn mistakes_are_pointed_at() {
        let problem = |text: &str| {
            let text = format!("schema: 1\nabout: a\nrules:\n  - {{{text}}}\n");
            let read = FillRules::read(&Source::new("fills.yaml", text));
            read.expect_err("a mistake").render(false)
        };
        assert!(problem("fill: aimed, ops: [conv.fprop], why: w").contains("cannot be in it"));
        assert!(problem("fill: edges, ops: ['[', ], why: w").contains("'[' is no glob"));
        assert!(problem("fill: edge, ops: [conv.fprop], why: w").contains("edges"));
        assert!(problem("fill: edges, ops: [conv.fprop], why: ' '").contains("`why` is empty"));
    }
}
