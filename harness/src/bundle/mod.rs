//! Bundles of hipDNN's integration tests: a graph in JSON with metadata, sometimes with golden
//! tensors, alone or as a sweep of cases over one template.
//!
//! Whatever looks like a bundle is either loaded or an error with its name: nothing is dropped.

mod case;
mod check;
mod find;
mod import;
mod load;
mod sweep;

pub use case::case_of;
pub use check::{Checked, Outcome, check};
pub use find::{FindError, Found, find};
pub use import::{Imported, import};
pub use load::{Bundle, Loaded, Problem, load};

#[cfg(test)]
mod tests;
