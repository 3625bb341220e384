//! The one case in which a drift of errors is a verdict: a single convolution or product of
//! matrices on real data, whose narrow output an engine that declares `rn` must round to nearest.
//! Elsewhere correct engines drift too, and the figure is a diagnosis.

use dnn_assay_graph::{Attributes, DataType, Graph, Tensor};
use dnn_assay_reference::{Comparison, Trait, Traits};

/// Elements from which the drift is trusted.
const LEAST: usize = 4096;
/// Standard errors beyond which it is no accident.
const STANDARD_ERRORS: f64 = 8.0;
/// Mean of signed error over bound below which it matters to nobody.
const MEAN: f64 = 0.05;

/// Whether the drift of an output that passed is a failure.
pub fn convicts(graph: &Graph, output: &Tensor, comparison: &Comparison, traits: &Traits) -> bool {
    let [node] = graph.nodes.as_slice() else {
        return false;
    };
    use Attributes::{ConvolutionBwd, ConvolutionFwd, ConvolutionWrw, Matmul};
    comparison.passed
        && traits.has(Trait::Rn)
        && matches!(
            node.attributes,
            ConvolutionFwd(_) | ConvolutionBwd(_) | ConvolutionWrw(_) | Matmul(_)
        )
        && matches!(output.data_type, DataType::Half | DataType::Bfloat16)
        && comparison.compared >= LEAST
        && comparison.bias_z.abs() > STANDARD_ERRORS
        && comparison.bias_mean.abs() > MEAN
}

/// The failure in words.
pub fn text(name: &str, comparison: &Comparison) -> String {
    let side = if comparison.bias_mean < 0.0 {
        "towards zero"
    } else {
        "away from zero"
    };
    format!(
        "{name}: every element is within its bound, but the errors drift {side}: {:.2} of the bound \
         on average, {:.0} standard errors; an engine that declares rn rounds to nearest",
        comparison.bias_mean.abs(),
        comparison.bias_z.abs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_graph::case::{Case, Fill};
    use dnn_assay_reference::dtype::{encode, round};
    use dnn_assay_reference::{Arithmetic, Criterion, compare, evaluate, fill};
    use rstest::rstest;

    /// A correct output, or one that is cut off instead of rounded but inside the bound.
    fn judged(id: &str, traits: &str, cut: bool) -> bool {
        let graph = Case::parse_short(id).expect("a case").graph().expect("one");
        let inputs = fill::generate(&graph, Fill::Uniform, 1).expect("inputs");
        let evaluation = evaluate(&graph, &inputs, &Arithmetic::default()).expect("a reference");
        let tensor = graph.outputs().next().expect("an output");
        let estimate = &evaluation.tensors[&tensor.uid];
        let u = dnn_assay_reference::dtype::unit_roundoff(tensor.data_type);
        let seen: Vec<f64> = estimate
            .value
            .iter()
            .map(|&y| {
                let nearest = round(tensor.data_type, y);
                let below = round(tensor.data_type, y * (1.0 - 0.99 * u));
                // Inside the bound, as a larger bound would allow it everywhere.
                let allowed = (below - y).abs() < u * y.abs();
                if cut && allowed { below } else { nearest }
            })
            .collect();
        let mut bytes = vec![0; tensor.byte_size().expect("a size")];
        encode(tensor, &seen, &mut bytes).expect("bytes");
        let comparison = compare(tensor, estimate, &bytes, &Criterion::Bound).expect("compared");
        assert!(comparison.passed, "{comparison:?}");
        convicts(
            &graph,
            tensor,
            &comparison,
            &traits.parse().expect("traits"),
        )
    }

    #[rstest]
    #[case("conv.fprop/f16/nchw/n2-c16-k16-i14x14-f3x3/pad1", "rn", true, true)]
    #[case("conv.fprop/f16/nchw/n2-c16-k16-i14x14-f3x3/pad1", "rn", false, false)]
    #[case("conv.fprop/f16/nchw/n2-c16-k16-i14x14-f3x3/pad1", "", true, false)]
    #[case("conv.dgrad/bf16/nchw/n2-c16-k16-i14x14-f3x3/pad1", "rn", true, true)]
    #[case(
        "conv.fprop+bias/f16/nchw/n2-c16-k16-i14x14-f3x3/pad1",
        "rn",
        true,
        false
    )]
    #[case("conv.fprop/f16/nchw/n2-c16-k2-i14x14-f3x3/pad1", "rn", true, false)]
    fn drift_convicts_in_one_case_only(
        #[case] id: &str,
        #[case] traits: &str,
        #[case] cut: bool,
        #[case] convicted: bool,
    ) {
        assert_eq!(judged(id, traits, cut), convicted);
    }
}
