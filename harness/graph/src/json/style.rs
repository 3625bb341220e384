//! How each node kind is spelled: where its parameters stand, what an absent uid looks like, how
//! its enums are written. Upstream has one hand-written serializer per kind, and they differ.
//!
//! Source: `flatbuffers_sdk/.../utilities/json/*.hpp` of hipDNN (2026), behaviour only.

use crate::schema::Attributes;
use crate::tensor_value::TensorValue;

/// Where a field stands in a node's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// In the node itself.
    Node,
    /// In `inputs`.
    Inputs,
    /// In `outputs`.
    Outputs,
    /// In `parameters`.
    Parameters,
    /// In `attributes`.
    Attributes,
}

impl Section {
    /// Every place where the reader looks.
    pub(super) const ALL: [Self; 5] = [
        Self::Inputs,
        Self::Outputs,
        Self::Parameters,
        Self::Attributes,
        Self::Node,
    ];

    /// The key of the section's object; `None` for the node itself.
    pub(super) const fn key(self) -> Option<&'static str> {
        match self {
            Self::Node => None,
            Self::Inputs => Some("inputs"),
            Self::Outputs => Some("outputs"),
            Self::Parameters => Some("parameters"),
            Self::Attributes => Some("attributes"),
        }
    }
}

/// How a kind's fields are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Whether uids stand in `inputs` and `outputs`; in the node itself otherwise.
    pub split_uids: bool,
    /// Where parameters stand.
    pub parameters: Section,
    /// Whether an absent optional field is written as `null`; left out otherwise.
    pub null_if_absent: bool,
}

const fn style(split_uids: bool, parameters: Section, null_if_absent: bool) -> Style {
    Style {
        split_uids,
        parameters,
        null_if_absent,
    }
}

/// The layout of a kind.
pub(super) fn of(attributes: &Attributes) -> Style {
    match attributes {
        Attributes::Pointwise(_) => style(true, Section::Inputs, true),
        Attributes::ConvolutionFwd(_)
        | Attributes::ConvolutionBwd(_)
        | Attributes::ConvolutionWrw(_)
        | Attributes::SdpaBackward(_) => style(true, Section::Parameters, true),
        Attributes::Sdpa(_) => style(true, Section::Attributes, true),
        Attributes::BatchnormInference(_)
        | Attributes::BatchnormInferenceVariance(_)
        | Attributes::BatchnormBackward(_)
        | Attributes::Batchnorm(_)
        | Attributes::Matmul(_)
        | Attributes::Layernorm(_)
        | Attributes::LayernormBackward(_) => style(true, Section::Node, true),
        Attributes::RMSNorm(_)
        | Attributes::RMSNormBackward(_)
        | Attributes::BlockScaleDequantize(_)
        | Attributes::BlockScaleQuantize(_)
        | Attributes::MoeGroupedMatmul(_)
        | Attributes::MoeGroupedMatmulBwd(_) => style(true, Section::Node, false),
        Attributes::CustomOp(_)
        | Attributes::Reduction(_)
        | Attributes::ResampleFwd(_)
        | Attributes::ResampleBwd(_) => style(false, Section::Node, false),
    }
}

/// How an enum's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// The schema's name: `CROSS_CORRELATION`.
    Upper,
    /// The schema's name in lower case: `relu_fwd`.
    Lower,
    /// The number on the wire.
    Number,
}

/// The spelling of an enum in a kind's object.
pub(super) fn spelling(attributes: &Attributes, enum_name: &str) -> Spelling {
    match (attributes, enum_name) {
        (Attributes::Layernorm(_), "NormFwdPhase") => Spelling::Number,
        (_, "ResampleMode" | "PaddingMode") => Spelling::Number,
        (_, "DataType" | "PointwiseMode" | "ReductionMode" | "MoeGroupedMatmulMode") => {
            Spelling::Lower
        }
        _ => Spelling::Upper,
    }
}

/// `ReductionMode` drops the suffix that the schema needs to stay clear of C++ macros:
/// `MIN_OP` is `min`. `PointwiseMode` keeps it.
pub(super) const REDUCTION_MODE: &str = "ReductionMode";
/// The suffix that is dropped.
pub(super) const OP_SUFFIX: &str = "_OP";

/// Names of the members of the union `TensorValue`, by tag.
pub(super) const VALUE_TYPES: [(u8, &str); 8] = [
    (1, "Float32Value"),
    (2, "Float16Value"),
    (3, "BFloat16Value"),
    (4, "Float8Value"),
    (5, "Int32Value"),
    (6, "Float64Value"),
    (7, "Int64Value"),
    (8, "BoolValue"),
];

/// The name of a value's member.
pub(super) fn value_type(value: TensorValue) -> &'static str {
    VALUE_TYPES[usize::from(value.tag()) - 1].1
}

/// Keys of an engine API version.
pub(super) const API_VERSION_KEYS: [&str; 3] = ["major", "minor", "patch"];

/// Keys of a graph.
pub(super) const GRAPH_KEYS: [&str; 10] = [
    "name",
    "compute_data_type",
    "intermediate_data_type",
    "io_data_type",
    "tensors",
    "nodes",
    "preferred_engine_id",
    "is_override_shape_enabled",
    "min_required_engine_api_version",
    "id",
];

/// Keys of a tensor.
pub(super) const TENSOR_KEYS: [&str; 12] = [
    "uid",
    "name",
    "data_type",
    "strides",
    "dims",
    "virtual",
    "value_type",
    "value",
    "is_runtime_pass_by_value",
    "ragged_offset_tensor_uid",
    "alignment",
    "ragged_offset_multiplier",
];

/// Keys of every node.
pub(super) const NODE_KEYS: [&str; 7] = [
    "name",
    "type",
    "compute_data_type",
    "inputs",
    "outputs",
    "parameters",
    "attributes",
];
