//! Suites: YAML files that expand to cases, and the tolerance tables and allowances beside them.

mod allowance;
mod draft;
mod expand;
mod file;
mod fills;
mod load;
mod named;
mod tier;
mod tolerance;

pub use allowance::{Allowance, Allowances, today};
pub use draft::Draft;
pub use fills::{FillRule, FillRules};
pub use load::{Origin, Suite, SuiteCase, load, load_all, load_source};
pub use named::of_ids;
pub use tier::Tier;
pub use tolerance::{BoundConstants, Functions, Quoted, Table, TableEntry, Tolerances, operation};

#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twins_tests;
