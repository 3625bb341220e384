//! The contracts, by subject. Each is a row of a table and a function.

mod contexts;
mod engines;
mod errors;
mod execution;
mod graphs;
mod handles;
mod knobs;
mod life;
mod loading;
mod logging;
mod optional;
mod queries;
mod versions;

use super::check::Check;

/// All checks of one plugin, in the order of a report.
pub fn all() -> impl Iterator<Item = &'static Check> {
    [
        loading::CHECKS,
        engines::CHECKS,
        versions::CHECKS,
        handles::CHECKS,
        queries::CHECKS,
        contexts::CHECKS,
        execution::CHECKS,
        optional::CHECKS,
        knobs::CHECKS,
        errors::CHECKS,
        logging::CHECKS,
        graphs::CHECKS,
        life::CHECKS,
    ]
    .into_iter()
    .flatten()
}
