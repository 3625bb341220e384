//! What each input should hold, by the operation and the field that read it.

use super::random::Stream;
use crate::dtype;
use dnn_assay_graph::schema::{PointwiseAttributes, Role};
use dnn_assay_graph::semantics::{Category, Direction, Domain, Parameters, pointwise};
use dnn_assay_graph::{Attributes, DataType, Graph, PointwiseMode};

/// How the values of an input are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Recipe {
    /// Uniform between two numbers.
    Between(f64, f64),
    /// Uniform magnitude between two positive numbers, either sign.
    AwayFromZero(f64, f64),
    /// Zeros and ones, half each.
    Mask,
    /// Multiples of a quarter in [−1, 1]: two such tensors have many equal pairs.
    Quarters,
    /// Multiples of a step, in order: where the images of a ragged tensor lie.
    Offsets(f64),
    /// Integers ±1…±m, never 0.
    Integers(f64),
    /// Indices, offsets, seeds and saved results, which cannot be drawn.
    NotDrawn,
}

use Recipe::{AwayFromZero, Between, Mask, NotDrawn, Quarters};

/// What an input holds unless a row says otherwise.
pub(crate) const SIGNED: Recipe = Between(-1.0, 1.0);

/// Node kind, field without `_tensor_uid(s)`, recipe. Ranges are upstream's, except that epsilon
/// stays well above 0, so that an engine without it is found out.
const FIELDS: &[(&str, &str, Recipe)] = &[
    ("BatchnormInference", "mean", Between(-0.1, 0.1)),
    ("BatchnormInference", "inv_variance", Between(0.5, 1.5)),
    ("BatchnormInferenceVariance", "mean", Between(-0.1, 0.1)),
    ("BatchnormInferenceVariance", "variance", Between(0.5, 1.5)),
    ("BatchnormInferenceVariance", "epsilon", Between(0.01, 0.5)),
    ("Batchnorm", "epsilon", Between(0.01, 0.5)),
    ("Batchnorm", "prev_running_mean", Between(-0.1, 0.1)),
    ("Batchnorm", "prev_running_variance", Between(0.5, 1.5)),
    ("Batchnorm", "momentum", Between(0.1, 0.9)),
    ("Batchnorm", "peer_stats", NotDrawn),
    ("BatchnormBackward", "mean", Between(-0.1, 0.1)),
    ("BatchnormBackward", "inv_variance", Between(0.5, 1.5)),
    ("BatchnormBackward", "peer_stats", NotDrawn),
    ("Layernorm", "epsilon", Between(0.01, 0.5)),
    ("RMSNorm", "epsilon", Between(0.01, 0.5)),
    ("RMSNormBackward", "inv_rms", NotDrawn),
    ("LayernormBackward", "mean", NotDrawn),
    ("LayernormBackward", "inv_variance", NotDrawn),
    ("LayernormBackward", "epsilon", Between(0.01, 0.5)),
    ("Sdpa", "scale", Between(0.1, 1.0)),
    ("Sdpa", "seq_len_q", NotDrawn),
    ("Sdpa", "seq_len_kv", NotDrawn),
    ("Sdpa", "seed", NotDrawn),
    ("Sdpa", "offset", NotDrawn),
    ("Sdpa", "dropout_mask", NotDrawn),
    ("Sdpa", "page_table_k", NotDrawn),
    ("Sdpa", "page_table_v", NotDrawn),
    ("Sdpa", "block_mask", NotDrawn),
    ("SdpaBackward", "scale", Between(0.1, 1.0)),
    ("SdpaBackward", "o", NotDrawn),
    ("SdpaBackward", "stats", NotDrawn),
    ("SdpaBackward", "seq_len_q", NotDrawn),
    ("SdpaBackward", "seq_len_kv", NotDrawn),
    ("SdpaBackward", "seed", NotDrawn),
    ("SdpaBackward", "offset", NotDrawn),
    ("SdpaBackward", "dropout_mask", NotDrawn),
    ("BlockScaleDequantize", "scale", NotDrawn),
    ("ResampleBwd", "index", NotDrawn),
    ("MoeGroupedMatmul", "first_token_offset", NotDrawn),
    ("MoeGroupedMatmul", "token_index", NotDrawn),
    ("MoeGroupedMatmul", "token_ks", NotDrawn),
    ("MoeGroupedMatmulBwd", "first_token_offset", NotDrawn),
    ("CustomOp", "input", NotDrawn),
];

/// Pointwise modes whose operands, by index, need another range than their domain and category
/// say. tan stays clear of its pole at π/2.
const OPERANDS: &[(PointwiseMode, usize, Recipe)] = &[
    (PointwiseMode::Tan, 0, Between(-1.2, 1.2)),
    (PointwiseMode::Ceil, 0, Between(-4.0, 4.0)),
    (PointwiseMode::Floor, 0, Between(-4.0, 4.0)),
    (PointwiseMode::Erf, 0, Between(-3.0, 3.0)),
    (PointwiseMode::Exp, 0, Between(-4.0, 4.0)),
    (PointwiseMode::Sin, 0, Between(-4.0, 4.0)),
];

/// The recipe of an input: the first reader that asks for something special decides.
pub(crate) fn of(graph: &Graph, uid: i64) -> Recipe {
    let mut ragged = graph
        .tensors
        .iter()
        .filter(|t| t.ragged_offset_uid == Some(uid));
    if let Some(step) = ragged.find_map(dnn_assay_graph::Tensor::ragged_step) {
        return Recipe::Offsets(step as f64);
    }
    let mut recipe = SIGNED;
    for node in graph.nodes.iter() {
        let mut operand = 0;
        node.attributes.visit_uids(Role::Input, &mut |field, read| {
            if read == uid && recipe == SIGNED {
                recipe = match &node.attributes {
                    Attributes::Pointwise(table) => of_operand(table, operand),
                    other => of_field(other.kind(), field.short_name()),
                };
            }
            operand += 1;
        });
    }
    recipe
}

fn of_field(kind: &str, field: &str) -> Recipe {
    let row = FIELDS.iter().find(|(k, f, _)| *k == kind && *f == field);
    row.map_or(SIGNED, |(_, _, recipe)| *recipe)
}

fn of_operand(table: &PointwiseAttributes, operand: usize) -> Recipe {
    let facts = pointwise(table.operation);
    let by_domain = facts.domain.iter().find_map(|domain| match *domain {
        Domain::NonZero(at) if at == operand => Some(AwayFromZero(0.25, 2.0)),
        Domain::NonNegative(at) if at == operand => Some(Between(0.0, 4.0)),
        Domain::Positive(at) if at == operand => Some(Between(0.0625, 4.0)),
        _ => None,
    });
    let by_mode = OPERANDS
        .iter()
        .find(|(mode, at, _)| *mode == table.operation && *at == operand);
    if let Some(recipe) = by_domain.or(by_mode.map(|row| row.2)) {
        return recipe;
    }
    // The forward input of an activation, in either half, should see both of its ends.
    let activated = match facts.direction {
        Direction::Forward => operand == 0,
        Direction::Backward => operand == 1,
        Direction::Plain => false,
    };
    match facts.category {
        _ if facts.mask() == Some(operand) => Mask,
        Category::Logic => Mask,
        Category::Comparison => Quarters,
        _ if activated => activation_range(table),
        _ => SIGNED,
    }
}

/// From below the lower clip to above the upper one; [−4, 4] where nothing is clipped.
fn activation_range(table: &PointwiseAttributes) -> Recipe {
    use PointwiseMode::{ReluBwd, ReluFwd};
    let Parameters {
        relu_lower,
        relu_upper,
        ..
    } = Parameters::of(table);
    if !matches!(table.operation, ReluFwd | ReluBwd) {
        Between(-4.0, 4.0)
    } else if relu_upper.is_finite() {
        let margin = 0.5 * (relu_upper - relu_lower).abs().max(1.0);
        Between(relu_lower - margin, relu_upper + margin)
    } else {
        Between(relu_lower - 1.0, relu_lower + 1.0)
    }
}

impl Recipe {
    /// The recipe for a tensor of an integer type, which cannot hold fractions.
    pub(crate) fn for_type(self, data_type: DataType) -> Self {
        match self {
            Between(..) | AwayFromZero(..) | Quarters if !data_type.is_float() => {
                Self::Integers(8.0)
            }
            other => other,
        }
    }

    /// The value at `index`, rounded to the type.
    #[inline]
    pub(crate) fn draw(self, stream: Stream, index: usize, data_type: DataType) -> f64 {
        let unit = stream.unit(index);
        let value = match self {
            Between(low, high) => low + unit * (high - low),
            AwayFromZero(low, high) => signed(unit, |half| low + half * (high - low)),
            Mask => f64::from(unit < 0.5),
            Quarters => ((unit * 9.0).floor() - 4.0) / 4.0,
            Self::Offsets(step) => index as f64 * step,
            Self::Integers(m) if data_type == DataType::Uint8 => 1.0 + (unit * m).floor(),
            Self::Integers(m) => signed(unit, |half| 1.0 + (half * m).floor()),
            NotDrawn => f64::NAN,
        };
        dtype::round(data_type, value)
    }
}

/// Half of the unit interval for each sign.
#[inline]
fn signed(unit: f64, magnitude: impl Fn(f64) -> f64) -> f64 {
    if unit < 0.5 {
        magnitude(unit * 2.0)
    } else {
        -magnitude(unit * 2.0 - 1.0)
    }
}
