//! `dnn-assay conform`: the contracts of the plugin ABI as checks.
//!
//! A check is a row of data ([`Check`]) and a function. The function writes a script of ABI calls,
//! has a worker do it, and judges what the worker saw; a process of its own for each script means
//! that a crash or a hang is a finding of that check and of no other.

pub mod args;
mod check;
mod checks;
mod draft;
mod heuristic;
pub mod knob;
mod lab;
mod links;
mod pairs;
mod report;
mod results;
mod run;
mod sample;

pub use check::{Check, Level};
pub use checks::all as all_checks;
pub use heuristic::CHECKS as HEURISTIC_CHECKS;
pub use pairs::CHECKS as PAIR_CHECKS;
pub use report::{list_json, list_markdown, list_text, write_json, write_junit, write_text};
pub use results::{CheckResult, OutcomeKind, Refusal, Report, SubjectReport};
pub use run::{ConformError, Selection, conform};
