//! From a case that fails to the smallest that fails in the same way.

mod candidates;
mod regression;
mod search;
mod shrinker;

pub use regression::{Regression, regression};
pub use search::{Limits, Shrunk, Way, shrink};
pub use shrinker::{MOST_SHRUNK, Shrinker};

#[cfg(test)]
mod tests;
