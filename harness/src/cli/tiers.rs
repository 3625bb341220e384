//! `dnn-assay dev tiers`: what `list` says of time and memory, against what runs took.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::list::{Statement, statement};
use super::{Error, stdout};
use crate::exit::Exit;
use crate::journal::{self, Journal};
use crate::suite;

/// Arguments of `dev tiers`.
#[derive(Args, Debug)]
pub struct TiersArgs {
    /// Journals of runs; best one of each tier, on a machine with nothing else to do
    #[arg(value_name = "JOURNAL", required = true)]
    pub journals: Vec<PathBuf>,
    /// How far the time may be from what is said, either way
    #[arg(long, value_name = "X", default_value_t = TIME)]
    pub time: f64,
    /// How far the memory may be above what is said
    #[arg(long, value_name = "X", default_value_t = MEMORY)]
    pub memory: f64,
}

/// Times of machines differ, and the statement is one for all operations.
const TIME: f64 = 4.0;
/// Allocators keep some of what was freed, and the outputs of a failing case are kept.
const MEMORY: f64 = 1.5;
/// Seconds of starting a worker and writing reports, which no statement counts.
const START: f64 = 5.0;
/// Bytes of the program itself, which no statement counts.
const PROGRAM: f64 = 128.0 * 1024.0 * 1024.0;

/// A run beside its statement.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    tiers: String,
    cases: usize,
    said: Statement,
    took: Statement,
}

/// Prints a line for each journal. A run that took more time or memory than its cases are said to
/// take, or far less time, fails.
///
/// # Errors
/// Usage: a journal that cannot be read, of a run that was cut, or without cases.
pub fn tiers(args: &TiersArgs) -> Result<Exit, Error> {
    let mut out = stdout();
    let mut exit = Exit::Ok;
    for path in &args.journals {
        let named = |text: String| Error::usage(format!("{}: {text}", path.display()));
        let journal = journal::read(path).map_err(Error::usage)?;
        let row = row(&journal).map_err(named)?;
        let wrong = row.wrong(args.time, args.memory);
        writeln!(out, "{}", row.line(&wrong))?;
        if !wrong.is_empty() {
            exit = Exit::Failed;
        }
    }
    out.flush()?;
    Ok(exit)
}

fn row(journal: &Journal) -> Result<Row, String> {
    let end = journal.end.as_ref().ok_or("the run was cut")?;
    let took = end.seconds.zip(end.peak_memory);
    let (seconds, bytes) = took.ok_or("the journal has no time or no peak of memory")?;
    let tiers: BTreeSet<&str> = journal
        .ends
        .iter()
        .filter_map(|end| end.tier.as_deref())
        .collect();
    // Each case once: several engines share its reference.
    let ids: BTreeSet<&str> = journal.ends.iter().map(|end| end.case.as_str()).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    if ids.is_empty() {
        return Err("the run has no cases".to_owned());
    }
    let suite = suite::of_ids(&ids).map_err(|problem| problem.render(false))?;
    Ok(Row {
        tiers: Vec::from_iter(tiers).join("+"),
        cases: ids.len(),
        said: statement(&suite),
        took: Statement {
            seconds,
            bytes: bytes as f64,
        },
    })
}

impl Row {
    /// What is not as it is said, in words.
    fn wrong(&self, time: f64, memory: f64) -> Vec<String> {
        let mut wrong = Vec::new();
        let (said, took) = (self.said, self.took);
        if took.seconds > time * said.seconds + START {
            wrong.push(format!("more than {time} times the time"));
        }
        if (took.seconds + START) * time < said.seconds {
            wrong.push(format!("less than 1/{time} of the time"));
        }
        if took.bytes > memory * said.bytes + PROGRAM {
            wrong.push(format!("more than {memory} times the memory"));
        }
        wrong
    }

    fn line(&self, wrong: &[String]) -> String {
        let mebibytes = |bytes: f64| bytes / f64::from(1 << 20);
        let verdict = match wrong {
            [] => "as said".to_owned(),
            wrong => wrong.join(", "),
        };
        format!(
            "{:<9} {:>6} cases, said {:.1} s and {:.1} MiB, took {:.1} s and {:.1} MiB: {verdict}",
            self.tiers,
            self.cases,
            self.said.seconds,
            mebibytes(self.said.bytes),
            self.took.seconds,
            mebibytes(self.took.bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{CaseEnd, RunEnd, UnitKey};
    use crate::verdict::Verdict;

    const LARGE: &str =
        "conv.fprop/f16/nchw/n32-c256-k256-i56x56-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1/uni";

    fn took(seconds: f64, mebibytes: u64) -> Journal {
        let ends = (0..2).map(|engine_id| {
            let key = UnitKey {
                plugin: 0,
                engine_id,
                case: LARGE.to_owned(),
            };
            let mut end = CaseEnd::new(key, 1, Verdict::Pass);
            end.tier = Some("full".to_owned());
            end
        });
        Journal {
            ends: ends.collect(),
            end: Some(RunEnd {
                seconds: Some(seconds),
                peak_memory: Some(mebibytes << 20),
                ..RunEnd::default()
            }),
            ..Journal::default()
        }
    }

    #[test]
    fn a_run_is_held_to_what_is_said_of_its_cases() {
        let said = row(&took(1.0, 1)).expect("a row").said;
        assert!(said.seconds > 10.0 && said.bytes > 1e8, "{said:?}");
        let mebibytes = (said.bytes / f64::from(1 << 20)) as u64;
        let wrong = |seconds: f64, mebibytes: u64| {
            let row = row(&took(seconds, mebibytes)).expect("a row");
            assert_eq!((row.cases, row.tiers.as_str()), (1, "full"));
            row.wrong(TIME, MEMORY).join(", ")
        };
        assert_eq!(wrong(said.seconds, mebibytes), "");
        assert_eq!(wrong(said.seconds * 3.9, mebibytes / 3), "");
        assert_eq!(
            wrong(said.seconds * 4.0 + 6.0, mebibytes),
            "more than 4 times the time"
        );
        assert_eq!(wrong(0.1, mebibytes), "less than 1/4 of the time");
        assert_eq!(
            wrong(said.seconds, mebibytes * 2 + 130),
            "more than 1.5 times the memory"
        );
    }

    #[test]
    fn a_run_without_an_end_or_cases_says_nothing() {
        let mut cut = took(1.0, 1);
        cut.end = None;
        assert!(row(&cut).is_err_and(|text| text.contains("cut")));
        let mut empty = took(1.0, 1);
        empty.ends.clear();
        assert!(row(&empty).is_err_and(|text| text.contains("no cases")));
        let mut old = took(1.0, 1);
        old.end.as_mut().expect("an end").peak_memory = None;
        assert!(row(&old).is_err_and(|text| text.contains("no peak")));
    }
}
