//! Suites: YAML files that expand to cases, and the tolerance tables and allowances beside them.

mod allowance;
mod expand;
mod file;
mod load;
mod tier;
mod tolerance;

pub use allowance::{Allowance, Allowances};
pub use load::{Origin, Suite, SuiteCase, load, load_all, load_source};
pub use tier::Tier;
pub use tolerance::{BoundConstants, Functions, Quoted, Table, TableEntry, Tolerances, operation};
