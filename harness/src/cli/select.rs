//! From `--suite`, `--case` and `--filter` to cases.

use super::args::Selection;
use super::{Error, is_coloured};
use crate::plan::Filter;
use crate::suite::{self, Suite};

/// The suite of a selection that names none.
pub const DEFAULT_SUITE: &str = "smoke";

/// The cases that `selection` means, in the order of the suites. `--case` takes precedence over
/// suites: a case need not be in any. `--fuzz` draws cases by `seed`.
///
/// # Errors
/// Usage: an unknown suite, a malformed file, id or filter, or a selection without cases.
pub fn select(selection: &Selection, seed: u64) -> Result<Suite, Error> {
    let filter = Filter::parse(&selection.filter)
        .map_err(|error| Error::usage(format!("--filter: {error}")))?;
    let smoke = [DEFAULT_SUITE.to_owned()];
    let suites = match selection.suite.as_slice() {
        [] => &smoke,
        named => named,
    };
    let mut chosen = if let Some(count) = selection.fuzz {
        crate::fuzz::suite(seed, count)
    } else if selection.case.is_empty() {
        suite::load_all(suites).map_err(|problem| Error::usage(problem.render(is_coloured())))?
    } else {
        named_cases(&selection.case)?
    };
    let before = chosen.cases.len();
    chosen.cases.retain(|case| filter.matches(case));
    if chosen.cases.is_empty() {
        return Err(Error::usage(format!(
            "the filter '{}' takes none of the {before} cases of {}; `dnn-assay list` shows them",
            selection.filter.join(" "),
            chosen.name
        )));
    }
    Ok(chosen)
}

/// Cases by id; suites that have one lend it their tags.
fn named_cases(ids: &[String]) -> Result<Suite, Error> {
    suite::of_ids(ids).map_err(|problem| Error::usage(problem.render(is_coloured())))
}
