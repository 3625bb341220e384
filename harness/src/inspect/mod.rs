//! `dnn-assay inspect`: what plugin files say without being loaded.
//!
//! The rules, the loader's walk and the pairs are those of `dnn-assay-elf`; here are the policy
//! that a person writes, the files of this machine, and the reports.

pub mod args;
mod baseline;
mod policy;
mod report;
mod results;
mod run;

pub use baseline::write_baseline;
pub use policy::{EXAMPLE, PolicyProblem, read_policy};
pub use report::{list_json, list_markdown, list_text, write_json, write_junit, write_text};
pub use results::{FileReport, Refused, Report};
pub use run::{InspectError, Inspector};
