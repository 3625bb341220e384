//! The reference against golden tensors.

use dnn_assay_graph::Graph;
use dnn_assay_reference::{Arithmetic, Criterion, EvalError, Values, compare, dtype, evaluate};

use super::load::Bundle;

/// What came of a bundle.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The bundle's name.
    pub name: String,
    /// The outcome.
    pub outcome: Outcome,
}

/// An outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Every golden element lies within the bound of the reference.
    Agrees {
        /// Elements compared.
        compared: u64,
        /// The largest difference over its bound.
        margin: f64,
    },
    /// Some do not.
    Differs(String),
    /// There is nothing to compare with: the bundle has no golden tensors, or they are not here.
    NoGolden(String),
    /// The reference does not compute the graph.
    NotComputed(String),
    /// The bundle is damaged.
    Broken(String),
}

/// Judges the reference's own values by a bundle's golden tensors: those of a correct engine must
/// lie within the bound of `arithmetic`.
pub fn check(bundle: &Bundle, arithmetic: &Arithmetic) -> Checked {
    Checked {
        name: bundle.name.clone(),
        outcome: outcome(bundle, arithmetic).unwrap_or_else(Outcome::Broken),
    }
}

fn outcome(bundle: &Bundle, arithmetic: &Arithmetic) -> Result<Outcome, String> {
    let graph = &bundle.graph;
    let uids = graph
        .inputs()
        .chain(graph.outputs())
        .map(|tensor| tensor.uid);
    let (here, absent): (Vec<i64>, Vec<i64>) =
        uids.partition(|&uid| bundle.golden_path(uid).is_file());
    if here.is_empty() {
        return Ok(Outcome::NoGolden(match bundle.promises_golden() {
            true => "its golden tensors are not here: `dvc pull` brings them".to_owned(),
            false => "it has no golden tensors".to_owned(),
        }));
    }
    if let Some(uid) = absent.first() {
        let path = bundle.golden_path(*uid);
        return Err(format!("{} is missing, others are there", path.display()));
    }
    let inputs = inputs(bundle, graph)?;
    let evaluation = match evaluate(graph, &inputs, arithmetic) {
        Ok(evaluation) => evaluation,
        Err(error @ EvalError::Unsupported { .. }) => {
            return Ok(Outcome::NotComputed(error.to_string()));
        }
        Err(error) => return Err(error.to_string()),
    };
    let (mut compared, mut margin) = (0, 0.0f64);
    for tensor in graph.outputs() {
        let estimate = evaluation.tensors.get(&tensor.uid);
        let estimate = estimate.ok_or_else(|| format!("nothing computes tensor {}", tensor.uid))?;
        let golden = bundle.golden(tensor.uid)?.unwrap_or_default();
        let result = compare(tensor, estimate, &golden, &Criterion::Bound)
            .map_err(|error| format!("{}: {error}", bundle.golden_path(tensor.uid).display()))?;
        if !result.passed {
            let worst = result
                .worst
                .map_or_else(String::new, |w| format!("; worst {w}"));
            return Ok(Outcome::Differs(format!(
                "{} (uid {}): {} of {} golden elements are outside the bound{worst}",
                tensor.name, tensor.uid, result.mismatched, result.compared
            )));
        }
        compared += result.compared as u64;
        margin = margin.max(result.margin);
    }
    Ok(Outcome::Agrees { compared, margin })
}

fn inputs(bundle: &Bundle, graph: &Graph) -> Result<Values, String> {
    let one = |tensor: &dnn_assay_graph::Tensor| {
        let bytes = bundle.golden(tensor.uid)?.unwrap_or_default();
        let values = dtype::decode(tensor, &bytes)
            .map_err(|error| format!("{}: {error}", bundle.golden_path(tensor.uid).display()))?;
        Ok((tensor.uid, values))
    };
    graph.inputs().map(one).collect()
}
