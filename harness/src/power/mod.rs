//! `dnn-assay dev power`: whether the harness notices faults.
//!
//! A [`Mutant`] is a plugin with one known fault, the cases on which it shows, and the check that
//! must catch it. [`power`] runs every mutant through the same machinery as any other plugin, and
//! the same libraries without a fault on all of their cases. A fault that nothing notices, or that
//! only another check notices, survives; the clean libraries must have no finding.

mod check;
mod library;
mod report;
mod result;
mod run;
mod table;
mod trial;

pub use check::Check;
pub use library::{LibraryError, MUTANTS};
pub use report::{write_json, write_markdown, write_text};
pub use result::{Fate, Names, Naming, Power, Tried};
pub use run::{PowerError, names, power};
pub use table::{Build, Kind, Mock, Mutant, Table, Upstream};
