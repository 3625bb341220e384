//! The faults that are known by name. An id is for tools: it stands in journals and in the list of
//! mutants, and does not change.

use super::scene::{Scene, Suspect};
use super::{batchnorm, inputs, nodes, outputs, precision, window};
use dnn_assay_graph::{Attributes, Graph};
use std::fmt;

/// A fault that an engine may have.
pub struct Hypothesis {
    /// Its name for tools.
    pub id: &'static str,
    /// What it is, in one phrase: `pre and post padding swapped`.
    pub text: &'static str,
    /// Operations that can have it; a graph has it if one of its nodes can.
    pub operations: &'static [Operation],
    /// Hypotheses of a higher tier are considered only where no lower one explains the output:
    /// they would explain much.
    pub tier: u8,
    /// What the outputs would be, the likeliest first.
    pub(super) suspects: fn(&Scene<'_>) -> Vec<Suspect>,
}

/// The operations as far as their faults differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Any graph.
    Any,
    /// Convolution forward.
    Fprop,
    /// Its gradient of the image.
    Dgrad,
    /// Its gradient of the filter.
    Wgrad,
    /// Matrix product.
    Matmul,
    /// Pointwise node, fused ones too.
    Pointwise,
    /// Batchnorm with statistics of its own.
    Training,
    /// Batchnorm with statistics given.
    Inference,
    /// Batchnorm backward.
    NormBackward,
}

impl Operation {
    /// Its name in data: `fprop`, `norm-backward`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Fprop => "fprop",
            Self::Dgrad => "dgrad",
            Self::Wgrad => "wgrad",
            Self::Matmul => "matmul",
            Self::Pointwise => "pointwise",
            Self::Training => "training",
            Self::Inference => "inference",
            Self::NormBackward => "norm-backward",
        }
    }

    /// The operations of a graph.
    pub(super) fn of(graph: &Graph) -> Vec<Self> {
        let of = |attributes: &Attributes| match attributes {
            Attributes::ConvolutionFwd(_) => Self::Fprop,
            Attributes::ConvolutionBwd(_) => Self::Dgrad,
            Attributes::ConvolutionWrw(_) => Self::Wgrad,
            Attributes::Matmul(_) => Self::Matmul,
            Attributes::Pointwise(_) => Self::Pointwise,
            Attributes::Batchnorm(_) => Self::Training,
            Attributes::BatchnormInference(_) | Attributes::BatchnormInferenceVariance(_) => {
                Self::Inference
            }
            Attributes::BatchnormBackward(_) => Self::NormBackward,
            _ => Self::Any,
        };
        graph
            .nodes
            .iter()
            .map(|node| of(&node.attributes))
            .collect()
    }
}

impl Hypothesis {
    /// Whether samples of an output cannot show the fault, or not tell it from others.
    pub(super) fn needs_whole(&self) -> bool {
        const WHOLE: [&str; 4] = [
            "images-permuted",
            "channels-permuted",
            "rows-permuted",
            "single-element",
        ];
        WHOLE.contains(&self.id)
    }

    /// Whether a graph with these operations can have the fault.
    pub(super) fn applies_to(&self, operations: &[Operation]) -> bool {
        let can =
            |operation: &Operation| *operation == Operation::Any || operations.contains(operation);
        self.operations.iter().any(can)
    }
}

impl fmt::Debug for Hypothesis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hypothesis")
            .field("id", &self.id)
            .field("text", &self.text)
            .finish()
    }
}

/// Only the first image counts: in what is written, or in batchnorm's statistics.
fn first_image(scene: &Scene<'_>) -> Vec<Suspect> {
    let mut suspects = outputs::first_image_everywhere(scene);
    suspects.extend(batchnorm::first_image(scene));
    suspects
}

/// The hypothesis with this id.
pub fn hypothesis(id: &str) -> Option<&'static Hypothesis> {
    HYPOTHESES.iter().find(|hypothesis| hypothesis.id == id)
}

use Operation::{Any, Dgrad, Fprop, Inference, Matmul, NormBackward, Pointwise, Training, Wgrad};

const CONV: &[Operation] = &[Fprop, Dgrad, Wgrad];
const FILTERED: &[Operation] = &[Fprop, Dgrad];
const SUMS: &[Operation] = &[Fprop, Dgrad, Wgrad, Matmul];
const NORMS: &[Operation] = &[Training, Inference, NormBackward];
const ANY: &[Operation] = &[Any];

macro_rules! hypotheses {
    ($($tier:literal $id:literal $text:literal $operations:expr => $suspects:path;)*) => {
        /// All of them, the cheapest first.
        pub static HYPOTHESES: &[Hypothesis] = &[$(Hypothesis {
            id: $id,
            text: $text,
            operations: $operations,
            tier: $tier,
            suspects: $suspects,
        }),*];
    };
}

/// What is told by where something was written, not by what was: no output is looked for.
fn by_place(_: &Scene<'_>) -> Vec<Suspect> {
    Vec::new()
}

hypotheses! {
    // What is written: nothing need be computed anew.
    0 "zeros" "the output is all zeros" ANY => outputs::zeros;
    0 "constant" "the output is one value everywhere" ANY => outputs::constants;
    0 "stale-accumulated" "added to what the buffer held: every element is NaN, as the poison is" ANY => outputs::accumulated;
    0 "output-negated" "the sign is reversed" ANY => outputs::negated;
    0 "truncated" "the output is truncated, not rounded to nearest" ANY => outputs::truncated;
    0 "output-bf16" "the output was rounded to bf16 on the way" ANY => outputs::by_way_of_bf16;
    0 "output-f16" "the output was rounded to f16 on the way" ANY => outputs::by_way_of_f16;
    0 "output-f32" "the output was rounded to f32 on the way" ANY => outputs::by_way_of_f32;
    0 "denormals-flushed" "denormal numbers are flushed to zero" ANY => outputs::denormals_flushed;
    0 "infinity-saturated" "infinity is replaced by the largest finite number" ANY => outputs::saturated;
    0 "nan-swallowed" "NaN is replaced by zero" ANY => outputs::nan_swallowed;
    0 "zero-sign" "zeros have the wrong sign" ANY => outputs::zero_sign;
    0 "index-overflow" "places of the output wrap around: an index or an offset of 32 bits" ANY => by_place;
    0 "batch-ignored" "only the first image of the batch counts" ANY => first_image;
    0 "images-permuted" "images of the batch are in each other's place" ANY => outputs::images_permuted;
    0 "channels-permuted" "output channels are in each other's place" ANY => outputs::channels_permuted;
    0 "rows-permuted" "rows or columns of the output are in each other's place" ANY => outputs::rows_permuted;
    0 "output-transposed" "the output's last two axes (H and W) are swapped" ANY => outputs::transposed;
    0 "output-layout-ignored" "the output is written in another layout: NCHW for NHWC or the reverse" ANY => outputs::layout_ignored;
    // Batch normalisation, from sums per channel.
    0 "variance-unbiased" "normalised by the unbiased variance (M - 1), not the biased one" &[Training] => batchnorm::unbiased_variance;
    0 "running-variance-biased" "the running variance keeps the biased variance, not the unbiased one" &[Training] => batchnorm::biased_running_variance;
    0 "epsilon-outside-root" "epsilon is added outside the square root" &[Training, Inference] => batchnorm::epsilon_outside_root;
    0 "epsilon-missing" "epsilon is missing" &[Training, Inference] => batchnorm::epsilon_missing;
    0 "epsilon-fixed" "a fixed epsilon (1e-5 or 1e-3) is used, not the one given" &[Training, Inference] => batchnorm::epsilon_fixed;
    0 "momentum-reversed" "momentum m and 1 - m are exchanged" &[Training] => batchnorm::momentum_reversed;
    0 "variance-for-inverse" "variance and inverse standard deviation are confused" NORMS => batchnorm::variance_for_inverse;
    0 "statistics-axes" "statistics are taken over the wrong axes: each image alone, or all channels" &[Training] => batchnorm::statistics_axes;
    0 "gradients-swapped" "dscale and dbias are exchanged" &[NormBackward] => batchnorm::gradients_swapped;
    0 "mean-term-missing" "dx lacks the term of the mean (dbias / M)" &[NormBackward] => batchnorm::mean_term_missing;
    0 "scale-term-missing" "dx lacks the term of the variance (dscale / M)" &[NormBackward] => batchnorm::scale_term_missing;
    0 "statistics-terms-missing" "dx lacks both terms of the statistics" &[NormBackward] => batchnorm::statistics_terms_missing;
    0 "scale-missing" "scale is left out" NORMS => batchnorm::scale_missing;
    0 "norm-bias-missing" "bias is left out" &[Training, Inference] => batchnorm::shift_missing;
    // Pointwise nodes, fused or alone.
    0 "bias-missing" "the bias is missing" &[Pointwise] => nodes::bias_missing;
    0 "bias-doubled" "the bias is added twice" &[Pointwise] => nodes::bias_doubled;
    0 "bias-subtracted" "the bias is subtracted" &[Pointwise] => nodes::bias_subtracted;
    0 "bias-axis" "the bias follows another axis than the channels" &[Pointwise] => nodes::bias_axis;
    0 "bias-after-activation" "the bias is added after the activation, not before" &[Pointwise] => nodes::bias_after_activation;
    0 "activation-missing" "the activation is missing" &[Pointwise] => nodes::activation_missing;
    0 "activation-twice" "the activation is applied twice" &[Pointwise] => nodes::activation_doubled;
    0 "gradient-unmasked" "the gradient passes the activation unchanged" &[Pointwise] => nodes::gradient_unmasked;
    0 "clips-ignored" "a clip of the ReLU is ignored" &[Pointwise] => nodes::clips_ignored;
    0 "slope-ignored" "the negative slope of the ReLU is ignored or another" &[Pointwise] => nodes::slope_wrong;
    0 "parameters-ignored" "alpha or beta of the activation is ignored" &[Pointwise] => nodes::parameters_ignored;
    0 "operands-swapped" "operands of a pointwise operation are exchanged" &[Pointwise] => nodes::operands_swapped;
    0 "extremes-swapped" "minimum and maximum are confused" &[Pointwise] => nodes::extremes;
    0 "equality-confused" "a comparison treats equality the other way" &[Pointwise] => nodes::equality;
    0 "square-missing" "the second operand is not squared" &[Pointwise] => nodes::square_missing;
    0 "gelu-approximated" "exact GELU and its tanh approximation are confused" &[Pointwise] => nodes::gelu_form;
    0 "axis-off-by-one" "coordinates are taken along another axis" &[Pointwise] => nodes::index_axis;
    0 "bias-off-by-one" "a bias or broadcast operand is off by one element" &[Pointwise] => inputs::next_operand;
    0 "channel-off-by-one" "a channel uses the parameters of its neighbour" NORMS => inputs::next_parameter;
    0 "inputs-swapped" "two inputs of equal shape are exchanged" ANY => inputs::swapped;
    0 "input-denormals-flushed" "denormal inputs are read as zero" ANY => inputs::denormals_flushed;
    // Convolutions: the window.
    0 "filter-flipped" "the filter is flipped: convolution and cross-correlation confused" CONV => window::flipped;
    0 "padding-ignored" "padding before the image is ignored" CONV => window::padding_ignored;
    0 "paddings-swapped" "pre and post padding are swapped" CONV => window::paddings_swapped;
    0 "padding-off-by-one" "padding before the image is off by one" CONV => window::padding_off_by_one;
    0 "border-wraps" "the image wraps around at its border" &[Fprop, Wgrad] => window::border_wraps;
    0 "border-repeats" "the border's elements are repeated, not padded with zeros" &[Fprop, Wgrad] => window::border_repeats;
    0 "border-reflects" "the image is reflected at its border" &[Fprop, Wgrad] => window::border_reflects;
    0 "stride-ignored" "stride is ignored" CONV => window::stride_ignored;
    0 "dilation-ignored" "dilation is ignored" CONV => window::dilation_ignored;
    0 "stride-axes-swapped" "strides of H and W are swapped" CONV => window::stride_axes_swapped;
    0 "dilation-axes-swapped" "dilations of H and W are swapped" CONV => window::dilation_axes_swapped;
    0 "padding-axes-swapped" "paddings of H and W are swapped" CONV => window::padding_axes_swapped;
    0 "window-axes-swapped" "padding, stride and dilation of H and W are swapped" CONV => window::window_axes_swapped;
    0 "stride-padding-swapped" "stride and padding are exchanged" CONV => window::stride_padding_swapped;
    0 "stride-dilation-swapped" "stride and dilation are exchanged" CONV => window::stride_dilation_swapped;
    0 "direction-confused" "dgrad is computed for fprop or the reverse" FILTERED => window::other_direction;
    // Convolutions: which element is which.
    0 "image-transposed" "H and W of the image are swapped" CONV => inputs::image_transposed;
    0 "filter-transposed" "H and W of the filter are swapped" FILTERED => inputs::filter_transposed;
    0 "matrix-transposed" "a matrix is read transposed" &[Matmul] => inputs::matrix_transposed;
    0 "image-layout" "the image is read in another layout: NHWC as NCHW or the reverse" CONV => inputs::image_layout;
    0 "filter-layout" "the filter is read in another layout: KRSC as KCRS or the reverse" FILTERED => inputs::filter_layout;
    0 "filter-axes" "filters and channels of the weights are exchanged: KCRS as CKRS or CRSK" FILTERED => inputs::filter_axes;
    0 "group-off-by-one" "a group uses the filters or channels of its neighbour" CONV => inputs::group_rotated;
    0 "groups-interleaved" "channels are dealt out to the groups in turn, not in blocks" CONV => inputs::group_interleaved;
    0 "groups-ignored" "groups are ignored: a grouped or depthwise convolution is taken for a full one" CONV => inputs::groups_ignored;
    0 "shifted" "the image is read one element beside" CONV => inputs::image_shifted;
    // Sums: what is left out.
    0 "last-tap-missing" "the last tap of the filter is left out" FILTERED => inputs::last_tap;
    0 "last-channel-missing" "the last channel of the sum is left out" FILTERED => inputs::last_channel;
    0 "channel-tail-missing" "channels beyond the last whole vector are left out" FILTERED => inputs::channel_tail;
    0 "last-filter-missing" "the last filter is left out of the sum" &[Dgrad] => inputs::last_filter;
    0 "last-image-missing" "the last image is left out of the sum" &[Wgrad] => inputs::last_image;
    0 "last-row-missing" "the last row or column is left out of the sum" CONV => inputs::last_row;
    0 "last-inner-missing" "the last of the inner sum (K) is left out" &[Matmul] => inputs::last_of_inner;
    // Precision of what is read.
    0 "xf32-inputs" "inputs are rounded to TF32 (xf32)" ANY => inputs::rounded_to_tf32;
    0 "bf16-inputs" "inputs are rounded to bf16" ANY => inputs::rounded_to_bf16;
    0 "f16-inputs" "inputs are rounded to f16" ANY => inputs::rounded_to_f16;
    0 "f32-inputs" "inputs are rounded to f32" ANY => inputs::rounded_to_f32;
    // What explains much, and comes after what explains one thing.
    1 "scaled" "the output is scaled by a constant" ANY => outputs::times_constant;
    1 "tile-missing" "a part of the output is zero: a tile or tail is not computed" ANY => outputs::part_zero;
    2 "accumulator-f32" "sums of f64 are kept in f32" SUMS => precision::f32_accumulator;
    2 "accumulator-f16" "sums are kept in f16" SUMS => precision::f16_accumulator;
    2 "accumulator-bf16" "sums are kept in bf16" SUMS => precision::bf16_accumulator;
    2 "bf16-partials" "partial sums are kept in bf16" SUMS => precision::bf16_partials;
    2 "one-pass-variance" "the variance is the mean of squares less the square of the mean" &[Training, NormBackward] => precision::one_pass_variance;
    3 "single-element" "one element is wrong" ANY => outputs::single_element;
    3 "channel-share" "some elements of one channel are off by the same factor" ANY => outputs::channel_share;
    3 "part-doubled" "the wrong elements are doubled: added twice" ANY => outputs::part_doubled;
    3 "part-scaled" "the wrong elements are all scaled by the same constant" ANY => outputs::part_scaled;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_and_texts_are_unique_and_plain() {
        let ids: BTreeSet<_> = HYPOTHESES.iter().map(|hypothesis| hypothesis.id).collect();
        let texts: BTreeSet<_> = HYPOTHESES
            .iter()
            .map(|hypothesis| hypothesis.text)
            .collect();
        assert_eq!(
            (ids.len(), texts.len()),
            (HYPOTHESES.len(), HYPOTHESES.len())
        );
        assert!(HYPOTHESES.len() >= 30);
        for hypothesis in HYPOTHESES {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(hypothesis.id.chars().all(plain), "{}", hypothesis.id);
            assert!(!hypothesis.operations.is_empty() && !hypothesis.text.ends_with('.'));
            assert_eq!(
                super::hypothesis(hypothesis.id).map(|found| found.id),
                Some(hypothesis.id)
            );
        }
    }
}
