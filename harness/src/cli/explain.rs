//! `dnn-assay explain`: one case, without a plugin.

use std::io::Write;

use dnn_assay_reference::{evaluate, fill};

use super::args::{ExplainArgs, Selection};
use super::select::select;
use super::{Error, is_coloured, stdout};
use crate::exit::Exit;
use crate::judge::Rules;
use crate::report::explain::{Explained, explain as write_text};
use crate::run::parse_traits;
use crate::suite::{Allowances, Tolerances};

/// Prints the graph, the tensors, and where each number of the bound comes from.
///
/// # Errors
/// Usage, for an id that is no case's.
pub fn explain(args: &ExplainArgs) -> Result<Exit, Error> {
    let selection = Selection {
        case: vec![args.case.clone()],
        ..Selection::default()
    };
    let suite = select(&selection, args.seed)?;
    let case = &suite.cases[0];
    let problem = |problem: Box<crate::yaml::Problem>| Error::usage(problem.render(is_coloured()));
    let declared = parse_traits(&args.traits).map_err(Error::usage)?;
    let tolerances = Tolerances::embedded().map_err(problem)?;
    let allowances = Allowances::embedded().map_err(problem)?;
    let rules = Rules::new(args.criterion, &declared, tolerances, allowances);
    let graph = case.case.graph().map_err(|e| Error::usage(e.message))?;
    let inputs = fill::generate(&graph, case.case.fill(), args.seed).map_err(Error::usage)?;
    let evaluation = evaluate(&graph, &inputs, &rules.arithmetic).map_err(Error::usage)?;
    let mut out = stdout();
    let explained = Explained {
        case,
        graph: &graph,
        inputs: &inputs,
        evaluation: &evaluation,
        rules: &rules,
        seed: args.seed,
    };
    write_text(&explained, &mut out)?;
    out.flush()?;
    Ok(Exit::Ok)
}
