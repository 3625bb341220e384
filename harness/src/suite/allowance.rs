//! Allowances for cases that are Weak by nature: each with a reason, an owner and an end.

use globset::GlobMatcher;
use jiff::civil::Date;
use serde::Deserialize;

use super::tolerance::{check_schema, embedded};
use crate::pattern::glob;
use crate::yaml::{self, Problem, Source, Step};

/// The allowances of a file.
#[derive(Clone, Debug)]
pub struct Allowances {
    source: Source,
    entries: Vec<Allowance>,
}

/// One allowance: cases that may be Weak.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// Glob over case ids; `*` crosses slashes.
    pub cases: String,
    /// Why no data makes the case strong.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
    /// An issue, or a case that covers what this one cannot.
    pub link: String,
    /// The last day on which it holds.
    pub expires: Date,
    matcher: GlobMatcher,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    #[serde(rename = "about")]
    _about: String,
    allowances: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    cases: String,
    reason: String,
    owner: String,
    link: String,
    expires: String,
}

impl Allowances {
    /// The embedded allowances.
    ///
    /// # Errors
    /// A [`Problem`] with the place in the file.
    pub fn embedded() -> Result<Self, Box<Problem>> {
        Self::read(embedded("tolerances/weak.yaml"))
    }

    /// Reads a file of allowances.
    ///
    /// # Errors
    /// A [`Problem`] with the place: a glob or a date that cannot be read, an empty field.
    pub fn read(source: Source) -> Result<Self, Box<Problem>> {
        let file: File = yaml::read(&source)?;
        check_schema(&source, file.schema)?;
        let entries = file
            .allowances
            .into_iter()
            .enumerate()
            .map(|(index, entry)| parse(&source, index, entry))
            .collect::<Result<_, _>>()?;
        Ok(Self { source, entries })
    }

    /// The allowance that holds for a case on a day.
    pub fn find(&self, case: &str, today: Date) -> Option<&Allowance> {
        self.entries
            .iter()
            .find(|entry| entry.expires >= today && entry.matcher.is_match(case))
    }

    /// What is wrong with the list itself: entries that match none of the cases, and entries that
    /// have expired. Each with its place.
    pub fn problems<'c>(
        &self,
        cases: impl IntoIterator<Item = &'c str>,
        today: Date,
    ) -> Vec<Problem> {
        let mut matched = vec![false; self.entries.len()];
        for case in cases {
            for (hit, entry) in matched.iter_mut().zip(&self.entries) {
                *hit |= entry.matcher.is_match(case);
            }
        }
        let place = |index, key| {
            let path = [Step::Key("allowances"), Step::Item(index), Step::Key(key)];
            self.source.place_of(&path, "this entry")
        };
        let mut problems = Vec::new();
        for (index, (hit, entry)) in matched.into_iter().zip(&self.entries).enumerate() {
            if entry.expires < today {
                problems.push(
                    Problem::new(
                        format!(
                            "the allowance for `{}` expired on {}",
                            entry.cases, entry.expires
                        ),
                        place(index, "expires"),
                    )
                    .help(format!("ask {}: {}", entry.owner, entry.link)),
                );
            } else if !hit {
                problems.push(
                    Problem::new(
                        format!("the allowance for `{}` matched nothing", entry.cases),
                        place(index, "cases"),
                    )
                    .help("remove it, or mend the pattern"),
                );
            }
        }
        problems
    }
}

/// The day in UTC: what expiry dates are compared with.
pub fn today() -> Date {
    jiff::tz::Offset::UTC
        .to_datetime(jiff::Timestamp::now())
        .date()
}

fn parse(source: &Source, index: usize, entry: Entry) -> Result<Allowance, Box<Problem>> {
    let place = |key| {
        let path = [Step::Key("allowances"), Step::Item(index), Step::Key(key)];
        source.place_of(&path, "here")
    };
    let named = [
        ("cases", &entry.cases),
        ("reason", &entry.reason),
        ("owner", &entry.owner),
        ("link", &entry.link),
    ];
    for (key, text) in named {
        if text.trim().is_empty() {
            return Err(Box::new(Problem::new(
                format!("`{key}` is empty"),
                place(key),
            )));
        }
    }
    let matcher = glob(&entry.cases)
        .map_err(|error| Problem::new(error.to_string(), place("cases")))?
        .compile_matcher();
    let expires = entry.expires.parse::<Date>().map_err(|_| {
        Problem::new(format!("`{}` is no date", entry.expires), place("expires"))
            .help("write it as 2027-06-30")
    })?;
    Ok(Allowance {
        cases: entry.cases,
        reason: entry.reason,
        owner: entry.owner,
        link: entry.link,
        expires,
        matcher,
    })
}
