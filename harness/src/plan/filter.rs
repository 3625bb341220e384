//! `--filter`: terms over the fields of a case, all of which must hold.
//!
//! A term is `field=value,value`, `field!=value,value`, or `~regex` or `!~regex` over the id. `op=conv` holds
//! for every convolution, `op=conv.fprop` for one direction; `tag=` and `tier=` come from the
//! suite; any attribute of the id is a field as well (`g=2`).

use dnn_assay_graph::case::{AttributeKey, Case};
use regex::Regex;

use crate::pattern::{PatternError, regex};
use crate::suite::SuiteCase;

/// What a filter can ask of a case.
pub trait Fields {
    /// The case's id.
    fn id(&self) -> &str;
    /// Values of a field; empty where the case has none.
    fn values(&self, field: &str) -> Vec<String>;
}

/// Fields that every case has; others are attributes of some ids.
pub const FIELDS: &[&str] = &["op", "direction", "dtype", "layout", "fill", "tag", "tier"];

/// A filter: terms that must all hold. The empty filter takes every case.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    terms: Vec<Term>,
}

#[derive(Clone, Debug)]
enum Term {
    Field {
        field: String,
        values: Vec<String>,
        wanted: bool,
    },
    Id {
        regex: Box<Regex>,
        wanted: bool,
    },
}

/// Why a filter cannot be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Neither `field=value` nor `~regex`.
    #[error("term '{0}': expected field=value, field!=value, ~regex or !~regex")]
    Term(String),
    /// No case has such a field.
    #[error("term '{term}': no field is called '{field}'{}; fields are {}", hint(.nearest), FIELDS.join(", "))]
    Field {
        /// The term as typed.
        term: String,
        /// Its field.
        field: String,
        /// The nearest known field.
        nearest: Option<String>,
    },
    /// The regular expression does not parse.
    #[error(transparent)]
    Regex(#[from] PatternError),
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|name| format!(", did you mean '{name}'?"))
        .unwrap_or_default()
}

impl Filter {
    /// Reads the terms of several `--filter` arguments, separated by white space.
    ///
    /// # Errors
    /// [`FilterError`] for the first term that cannot be understood.
    pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<Self, FilterError> {
        let terms = arguments
            .iter()
            .flat_map(|argument| argument.as_ref().split_whitespace())
            .map(parse_term)
            .collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    /// These terms and those of another filter.
    pub fn extend(&mut self, other: Self) {
        self.terms.extend(other.terms);
    }

    /// Whether there is no term.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether every term holds for `case`.
    pub fn matches(&self, case: &dyn Fields) -> bool {
        self.terms.iter().all(|term| match term {
            Term::Id { regex, wanted } => regex.is_match(case.id()) == *wanted,
            Term::Field {
                field,
                values,
                wanted,
            } => {
                let has = case
                    .values(field)
                    .iter()
                    .any(|value| values.iter().any(|asked| is_part(value, asked)));
                has == *wanted
            }
        })
    }
}

/// `conv` asks for `conv.fprop` and `conv.fprop+bias`; a whole value asks for itself.
fn is_part(value: &str, asked: &str) -> bool {
    value == asked
        || value
            .strip_prefix(asked)
            .is_some_and(|rest| rest.starts_with(['.', '+']))
}

fn parse_term(term: &str) -> Result<Term, FilterError> {
    let pattern = term.strip_prefix("!~").map(|pattern| (pattern, false));
    if let Some((pattern, wanted)) = pattern.or(term.strip_prefix('~').map(|p| (p, true))) {
        return Ok(Term::Id {
            regex: Box::new(regex(pattern)?),
            wanted,
        });
    }
    let (field, values) = term
        .split_once('=')
        .filter(|(field, values)| !field.is_empty() && !values.is_empty())
        .ok_or_else(|| FilterError::Term(term.to_owned()))?;
    let (field, wanted) = match field.strip_suffix('!') {
        Some(field) => (field, false),
        None => (field, true),
    };
    check_field(term, field)?;
    Ok(Term::Field {
        field: field.to_owned(),
        values: values.split(',').map(str::to_owned).collect(),
        wanted,
    })
}

/// Fields of all cases, and the attributes of the case-id grammar.
fn check_field(term: &str, field: &str) -> Result<(), FilterError> {
    let known = || FIELDS.iter().copied().chain(attribute_names());
    if known().any(|name| name == field) {
        return Ok(());
    }
    Err(FilterError::Field {
        term: term.to_owned(),
        field: field.to_owned(),
        nearest: crate::yaml::nearest(field, known()).map(str::to_owned),
    })
}

/// Names of the attributes of ids, without the dot that separates some from their value.
fn attribute_names() -> impl Iterator<Item = &'static str> {
    AttributeKey::ALL
        .iter()
        .map(|key| key.name().trim_end_matches('.'))
}

impl Fields for SuiteCase {
    fn id(&self) -> &str {
        &self.id
    }

    fn values(&self, field: &str) -> Vec<String> {
        match field {
            "tag" => self.tags.to_vec(),
            "tier" => vec![self.tier.to_string()],
            field => case_values(&self.case, field),
        }
    }
}

/// Values of a field that comes from the id alone.
pub fn case_values(case: &Case, field: &str) -> Vec<String> {
    match field {
        "op" => vec![case.op().to_string()],
        "direction" => vec![case.direction()],
        "dtype" => case
            .dtypes()
            .iter()
            .map(|d| d.short_name().to_owned())
            .collect(),
        "layout" => vec![case.layout().to_string()],
        "fill" => vec![case.fill().to_string()],
        attribute => case
            .attribute_map()
            .into_iter()
            .filter(|(key, _)| key.trim_end_matches('.') == attribute)
            .map(|(_, value)| value)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    struct Sample;

    impl Fields for Sample {
        fn id(&self) -> &str {
            "conv.fprop+bias/f16/nhwc/n2-c64-k64-i56x56-f3x3"
        }
        fn values(&self, field: &str) -> Vec<String> {
            let values: &[&str] = match field {
                "op" => &["conv.fprop+bias"],
                "direction" => &["fprop"],
                "dtype" => &["f16"],
                "tag" => &["slow", "resnet"],
                _ => &[],
            };
            values.iter().map(|v| (*v).to_owned()).collect()
        }
    }

    #[rstest]
    #[case("", true)]
    #[case("op=conv", true)]
    #[case("op=conv.fprop", true)]
    #[case("op=co", false)]
    #[case("op=batchnorm,conv dtype=f16,bf16", true)]
    #[case("dtype!=f16", false)]
    #[case("tag!=fast tag=resnet", true)]
    #[case("layout=nhwc", false)]
    #[case("~k64-i56", true)]
    #[case("~^batchnorm", false)]
    #[case("!~^batchnorm", true)]
    #[case("!~k64", false)]
    fn terms_hold_or_not(#[case] text: &str, #[case] expected: bool) {
        let filter = Filter::parse(&[text]).expect("a filter");
        assert_eq!(filter.matches(&Sample), expected, "{text}");
    }

    #[rstest]
    #[case("conv", "expected field=value")]
    #[case("dtpye=f16", "did you mean 'dtype'?")]
    #[case(
        "~k(",
        "'k(' is no regular expression, from character 2 on: unclosed group"
    )]
    fn mistakes_are_named(#[case] text: &str, #[case] part: &str) {
        let message = Filter::parse(&[text]).expect_err("a mistake").to_string();
        assert!(message.contains(part), "{message}");
    }
}
