//! Cases that are named one by one, whether a suite has them or not.

use std::sync::Arc;

use dnn_assay_graph::case::Case;

use super::load::{Origin, Suite, SuiteCase};
use super::tier::Tier;
use crate::yaml::{Problem, Source, Step};

/// A suite of exactly these cases, given by id; short forms are taken too.
///
/// # Errors
/// A [`Problem`] that points into the id.
pub fn of_ids<S: AsRef<str>>(ids: &[S]) -> Result<Suite, Box<Problem>> {
    let tags: Arc<[String]> = Arc::from(Vec::new());
    let cases = ids
        .iter()
        .map(|id| {
            let source = Source::new("--case", id.as_ref());
            let case = Case::parse_short(id.as_ref()).map_err(|error| {
                let mut place = source.place(error.at.start, "here");
                place.span = error.at.clone();
                let problem = Problem::new(error.message, place);
                Box::new(match id.as_ref().split_once('@') {
                    Some((_, engine)) => problem.help(format!(
                        "reports put the engine behind an '@': give it as --engine {engine}"
                    )),
                    None => problem,
                })
            })?;
            Ok(SuiteCase {
                id: case.to_string(),
                case,
                tier: Tier::default(),
                tags: tags.clone(),
                sample: None,
                ranges: Arc::default(),
                origin: Origin {
                    source: Arc::new(source),
                    path: [const { Step::Item(0) }; 4],
                },
            })
        })
        .collect::<Result<_, Box<Problem>>>()?;
    Ok(Suite {
        name: "--case".to_owned(),
        cases,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_cases_and_typos_are_pointed_at() {
        let id = "pointwise.add/f32/nchw/n1-c4-i4x4/none/uni";
        let short = "pointwise.add/f32/nchw/n1-c4-i4x4";
        let suite = of_ids(&[short]).expect("a case");
        assert_eq!(suite.cases.len(), 1);
        assert!(
            suite.cases[0].id.starts_with("pointwise.add/f32/nchw/"),
            "{id}"
        );
        let problem = of_ids(&["pointwise.ad/f32/nchw/n1-c4-i4x4"]).expect_err("a typo");
        assert!(
            problem.render(false).contains("pointwise.ad"),
            "{}",
            problem.render(false)
        );
    }
}
