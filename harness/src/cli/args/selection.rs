//! Which cases: chosen, listed, explained.

use clap::{Args, ValueEnum};

use super::choices::CriterionName;

/// Which cases.
#[derive(Args, Clone, Debug, Default)]
pub struct Selection {
    /// Suite by name (smoke, full, ...) or YAML file; may be repeated [default: smoke]
    #[arg(long, value_name = "NAME|FILE")]
    pub suite: Vec<String>,
    /// Exactly this case, whether a suite has it or not; may be repeated
    #[arg(long, value_name = "ID")]
    pub case: Vec<String>,
    /// This many random cases instead of a suite; the same --seed gives the same. Failures shrink
    /// by themselves
    #[arg(long, value_name = "N", conflicts_with_all = ["suite", "case"], value_parser = parse_count)]
    pub fuzz: Option<usize>,
    /// Terms over the fields of ids, all of which must hold: 'op=conv dtype=f16,bf16 tag!=slow ~k64'
    #[arg(long, value_name = "TERMS", allow_hyphen_values = true)]
    pub filter: Vec<String>,
}

/// Arguments of `list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Which cases to show.
    #[command(flatten)]
    pub selection: Selection,
    /// Seed of --fuzz
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = ListFormat::Terse)]
    pub format: ListFormat,
}

/// Forms of `list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// One id a line
    Terse,
    /// One tier a line: cases, time of the reference on two cores, memory of the largest case
    Tiers,
    /// One JSON document
    Json,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// The case's id
    #[arg(value_name = "CASE")]
    pub case: String,
    /// Seed of the input data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Rule of judgement
    #[arg(long, value_enum, default_value_t = CriterionName::Bound)]
    pub criterion: CriterionName,
    /// Traits the engine is taken to declare
    #[arg(long = "trait", value_name = "TRAIT")]
    pub traits: Vec<String>,
}

/// A number of cases: from 1 to ten million.
fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=10_000_000) => Ok(count),
        _ => Err(format!(
            "expected a number of cases from 1 to 10000000, got '{text}'"
        )),
    }
}
