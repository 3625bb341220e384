//! `dnn-assay reference`: our reference against golden data of others.

use std::io::Write;

use super::args::{ReferenceArgs, ReferenceCommand};
use super::{Error, is_coloured, stdout};
use crate::bundle::{self, Checked, Outcome};
use crate::exit::Exit;
use crate::judge::Rules;
use crate::report::bundles;
use crate::run::parse_traits;
use crate::suite::{Allowances, Tolerances};

/// Runs a subcommand.
///
/// # Errors
/// Usage: a folder that cannot be read or holds no bundle, or an unknown trait.
pub fn reference(command: &ReferenceCommand) -> Result<Exit, Error> {
    match command {
        ReferenceCommand::Check(args) => check(args),
    }
}

/// Judges the reference by the golden tensors of every bundle below a folder.
fn check(args: &ReferenceArgs) -> Result<Exit, Error> {
    let problem = |problem: Box<crate::yaml::Problem>| Error::usage(problem.render(is_coloured()));
    let rules = Rules::new(
        super::args::CriterionName::Bound,
        &parse_traits(&args.traits).map_err(Error::usage)?,
        Tolerances::embedded().map_err(problem)?,
        Allowances::embedded().map_err(problem)?,
    );
    let found = bundle::find(&args.dir).map_err(Error::usage)?;
    let loaded = bundle::load(&args.dir, &found);
    let broken = loaded.problems.into_iter().map(|problem| Checked {
        name: problem.name,
        outcome: Outcome::Broken(problem.text),
    });
    let judged = loaded.bundles.iter();
    let judged = judged.map(|bundle| bundle::check(bundle, &rules.arithmetic));
    let mut all: Vec<Checked> = broken.chain(judged).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let mut out = stdout();
    bundles::checked(&all, &mut out)?;
    out.flush()?;
    Ok(exit_of(&all))
}

/// A broken bundle is wrong input (2), a difference a failure (1), and nothing that could be
/// compared is no success (4).
fn exit_of(all: &[Checked]) -> Exit {
    let exits = all.iter().map(|checked| match &checked.outcome {
        Outcome::Agrees { .. } => Exit::Ok,
        Outcome::Differs(_) => Exit::Failed,
        Outcome::Broken(_) => Exit::Usage,
        Outcome::NoGolden(_) | Outcome::NotComputed(_) => Exit::Ok,
    });
    let agrees = |checked: &Checked| matches!(checked.outcome, Outcome::Agrees { .. });
    let nothing = (!all.iter().any(agrees)).then_some(Exit::NothingVerified);
    Exit::strongest(exits.chain(nothing))
}
