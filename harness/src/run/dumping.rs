//! Keeping what is known of a failing case, for `dnn-assay replay`.

use dnn_assay_reference::Evaluation;

use super::context::Context;
use super::execution::Execution;
use super::prepared::Prepared;
use super::unit::Unit;
use crate::dump;
use crate::journal::CaseEnd;

/// Keeps all that is known of a failing case, where the run asks for it. A dump that cannot be
/// written is said and changes nothing.
pub(super) fn dump(
    context: &Context,
    unit: &Unit<'_>,
    prepared: &Prepared,
    evaluation: Option<&Evaluation>,
    first: &Execution,
    end: &mut CaseEnd,
) {
    let Some(dumper) = &context.dumper else {
        return;
    };
    let (fill, rules) = (unit.case.case.fill(), &unit.rules);
    let whole = evaluation.filter(|_| prepared.drawn.is_none());
    let exactness = whole.and_then(|evaluation| {
        rules.exactness(&prepared.graph, fill, &prepared.values, evaluation)
    });
    let failed = dump::Failed {
        graph: &prepared.graph,
        fill: fill.name(),
        inputs: &prepared.values,
        evaluation: whole,
        criterion: &|tensor| {
            let criterion = rules.criterion(&prepared.graph, tensor, exactness.as_ref());
            criterion.unwrap_or_default()
        },
        overridden: &|tensor| rules.overridden(&prepared.graph, tensor),
        snapshot: first.snapshot.as_ref(),
        samples: prepared.drawn.as_ref().map(|samples| dump::SampledCase {
            inputs: &samples.inputs,
            ranges: &samples.ranges,
            random: samples.random,
            seed: context.options.seed,
            arithmetic: &rules.arithmetic,
        }),
    };
    if let Err(error) = dumper.dump(&failed, end) {
        end.dump = None;
        end.notes.push(format!("not dumped: {error}"));
    }
}
