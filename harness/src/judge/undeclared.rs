//! Whether a trait that the engine does not declare explains a failure.

use dnn_assay_device::Snapshot;
use dnn_assay_graph::{Attributes, DataType, Graph, PointwiseMode};
use dnn_assay_reference::{
    Comparison, Criterion, Evaluation, Trait, Values as Inputs, compare, evaluate,
};

use super::{Finding, Rules};
use crate::verdict::{FailKind, Verdict};

/// A failed case.
pub struct Failed<'a> {
    /// Its graph.
    pub graph: &'a Graph,
    /// The rules by which it failed.
    pub rules: &'a Rules,
    /// The comparisons by those rules, outputs in the order of the graph.
    pub comparisons: Vec<&'a Comparison>,
    /// Ids of the hypotheses that explain it.
    pub named: &'a [String],
    /// Traits that cannot be tried on it.
    pub except: &'a [Trait],
}

/// What came of trying traits; `T` is what a trial leaves where it explains the failure.
pub struct Trials<T> {
    /// Those that were tried, in order.
    pub tried: Vec<Trait>,
    /// Those that apply and cannot be tried on this case.
    pub untried: Vec<Trait>,
    /// The one that explains the failure.
    pub found: Option<(Trait, T)>,
}

/// The order in which traits are tried where nothing is named: what widens the bound least comes
/// first. Narrow accumulators are not among them: nearly anything lies inside their bounds, so they
/// count only where the errors themselves have named them.
const ORDER: [Trait; 7] = [
    Trait::FlushDenormals,
    Trait::ApproxDivSqrt,
    Trait::Xf32,
    Trait::OnePassVariance,
    Trait::Rz,
    Trait::Winograd,
    Trait::Fft,
];

/// Share of elements that must be outside the bound before a narrow accumulator is believed: it
/// errs nearly everywhere, where one wrong element may well lie inside its wide bound.
const WRONG_SHARE: f64 = 0.1;

/// Drift, in standard errors, from which sums are believed to be rounded towards zero.
const DRIFT: f64 = -8.0;

/// Work up to which a failure is looked at: the reference is computed once for each trait.
const MOST_FLOPS: f64 = 4e8;

/// The first trait under whose rules `explains` accepts every output. None is tried where a fault is
/// named that is no trait.
pub fn explanation<T>(failed: &Failed<'_>, explains: impl Fn(&Rules) -> Option<T>) -> Trials<T> {
    let mut trials = Trials {
        tried: Vec::new(),
        untried: Vec::new(),
        found: None,
    };
    let named: Vec<Option<Trait>> = failed.named.iter().map(|id| of(id)).collect();
    // A named fault that is no trait says more than a wider bound.
    if named.first().is_some_and(Option::is_none) {
        return trials;
    }
    let preferred = named.iter().copied().flatten();
    let others = ORDER.into_iter().filter(|_| named.is_empty());
    for which in preferred.chain(others) {
        let is_new = !failed.rules.traits.has(which) && applies(which, failed.graph);
        if !is_new || !is_believable(which, &failed.comparisons) {
            continue;
        }
        if failed.except.contains(&which) {
            trials.untried.push(which);
            continue;
        }
        trials.tried.push(which);
        let rules = failed.rules.with_traits(failed.rules.traits.with(which));
        trials.found = explains(&rules).map(|left| (which, left));
        if trials.found.is_some() {
            break;
        }
    }
    trials
}

impl<T> Trials<T> {
    /// What is worth saying of trials of which none explains the failure.
    pub fn notes(&self) -> Vec<String> {
        let names = |traits: &[Trait]| {
            let names: Vec<&str> = traits.iter().map(|which| which.name()).collect();
            names.join(", ")
        };
        let mut notes = Vec::new();
        if !self.tried.is_empty() {
            notes.push(format!(
                "no trait explains it; tried: {}",
                names(&self.tried)
            ));
        }
        if !self.untried.is_empty() {
            notes.push(format!(
                "traits that err by the whole tensor are not tried by samples: {}",
                names(&self.untried)
            ));
        }
        notes
    }
}

/// Says in a finding that a trait explains all of it.
pub fn convict(finding: &mut Finding, which: Trait, rules: &Rules) {
    finding.verdict = Verdict::Fail(FailKind::UndeclaredTrait);
    finding.reason = format!(
        "{}; all of it is within the bound of the trait `{which}`, which the engine does not \
         declare; if it is meant, add under `traits` in dnn-assay.yaml: {}",
        finding.reason,
        rules.entry(which)
    );
}

fn of(id: &str) -> Option<Trait> {
    Trait::of_hypothesis(id)
}

/// The reference of whole tensors by `rules`, if it accepts every output.
pub fn accepts_whole(
    graph: &Graph,
    inputs: &Inputs,
    snapshot: &Snapshot,
    rules: &Rules,
) -> Option<Evaluation> {
    let evaluation = evaluate(graph, inputs, &rules.arithmetic).ok()?;
    let accepted = graph.outputs().all(|tensor| {
        let estimate = evaluation.tensors.get(&tensor.uid);
        let check = snapshot.buffer(tensor.uid);
        let compared = estimate
            .zip(check)
            .map(|(estimate, check)| compare(tensor, estimate, &check.bytes, &Criterion::Bound));
        matches!(compared, Some(Ok(comparison)) if comparison.passed)
    });
    accepted.then_some(evaluation)
}

/// Whether a graph has something that the trait is about.
fn applies(which: Trait, graph: &Graph) -> bool {
    let types = |wanted: DataType| graph.inputs().any(|tensor| tensor.data_type == wanted);
    let any =
        |holds: fn(&Attributes) -> bool| graph.nodes.iter().any(|node| holds(&node.attributes));
    let products = any(is_convolution) || any(|a| matches!(a, Attributes::Matmul(_)));
    match which {
        Trait::Rn => false,
        Trait::FlushDenormals => true,
        Trait::Rz => products || any(has_statistics),
        Trait::F16 => products && !types(DataType::Double),
        Trait::Bf16Partials => products && types(DataType::Bfloat16),
        Trait::Xf32 => products && types(DataType::Float),
        Trait::Winograd | Trait::Fft => any(is_convolution),
        Trait::OnePassVariance => any(has_statistics),
        Trait::ApproxDivSqrt => any(divides),
    }
}

/// Whether the textbook formula of an operation divides or takes a root.
fn divides(attributes: &Attributes) -> bool {
    use PointwiseMode::{
        Div, Reciprocal, Rsqrt, SigmoidBwd, SigmoidFwd, SoftplusBwd, Sqrt, SwishBwd, SwishFwd,
    };
    match attributes {
        Attributes::Pointwise(table) => matches!(
            table.operation,
            Div | Reciprocal
                | Rsqrt
                | SigmoidBwd
                | SigmoidFwd
                | SoftplusBwd
                | Sqrt
                | SwishBwd
                | SwishFwd
        ),
        Attributes::BatchnormInferenceVariance(_) => true,
        other => has_statistics(other),
    }
}

fn is_convolution(attributes: &Attributes) -> bool {
    use Attributes::{ConvolutionBwd, ConvolutionFwd, ConvolutionWrw};
    matches!(
        attributes,
        ConvolutionFwd(_) | ConvolutionBwd(_) | ConvolutionWrw(_)
    )
}

fn has_statistics(attributes: &Attributes) -> bool {
    matches!(
        attributes,
        Attributes::Batchnorm(_) | Attributes::BatchnormBackward(_)
    )
}

/// Whether the errors are spread as the trait would spread them.
fn is_believable(which: Trait, comparisons: &[&Comparison]) -> bool {
    let wrong: usize = comparisons.iter().map(|c| c.mismatched).sum();
    let failing = comparisons.iter().filter(|c| !c.passed);
    let compared: usize = failing.clone().map(|c| c.compared).sum();
    let share = wrong as f64 / compared.max(1) as f64;
    match which {
        Trait::F16 | Trait::Bf16Partials | Trait::Xf32 => share >= WRONG_SHARE,
        Trait::Rz => failing.clone().all(|c| c.bias_z <= DRIFT),
        // Their bounds are tight enough to be evidence by themselves.
        Trait::FlushDenormals
        | Trait::ApproxDivSqrt
        | Trait::OnePassVariance
        | Trait::Winograd
        | Trait::Fft => true,
        Trait::Rn => false,
    }
}

/// Whether the reference of whole tensors takes too long to be computed for each trait.
pub fn too_large(graph: &Graph) -> bool {
    let work = dnn_assay_graph::case::Work::of(graph);
    work.flops > MOST_FLOPS
}
