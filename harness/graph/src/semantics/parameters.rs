//! The parameters of pointwise modes and their defaults.

use crate::schema::PointwiseAttributes;

/// A parameter of a pointwise node; all are optional on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Parameter {
    /// `relu_lower_clip`, default 0.
    ReluLower,
    /// `relu_upper_clip`, default none.
    ReluUpper,
    /// `relu_lower_clip_slope`, default 0.
    ReluSlope,
    /// `swish_beta`, default 1.
    SwishBeta,
    /// `elu_alpha`, default 1.
    EluAlpha,
    /// `softplus_beta`, default 1.
    SoftplusBeta,
    /// `axis_tensor_uid`: an axis index, not a uid. It has no default.
    Axis,
}

impl Parameter {
    /// Every parameter, in the order of case ids.
    pub const ALL: &'static [Self] = &[
        Self::ReluLower,
        Self::ReluUpper,
        Self::ReluSlope,
        Self::SwishBeta,
        Self::EluAlpha,
        Self::SoftplusBeta,
        Self::Axis,
    ];

    /// The field's name in the schema.
    pub const fn field(self) -> &'static str {
        match self {
            Self::ReluLower => "relu_lower_clip",
            Self::ReluUpper => "relu_upper_clip",
            Self::ReluSlope => "relu_lower_clip_slope",
            Self::SwishBeta => "swish_beta",
            Self::EluAlpha => "elu_alpha",
            Self::SoftplusBeta => "softplus_beta",
            Self::Axis => "axis_tensor_uid",
        }
    }

    /// The value that an absent field means; `None` where absence means "no such limit"
    /// ([`Parameter::ReluUpper`]) or is an error ([`Parameter::Axis`]).
    pub const fn default_value(self) -> Option<f64> {
        match self {
            Self::ReluLower | Self::ReluSlope => Some(0.0),
            Self::SwishBeta | Self::EluAlpha | Self::SoftplusBeta => Some(1.0),
            Self::ReluUpper | Self::Axis => None,
        }
    }

    /// Whether the node sets it.
    pub fn is_set(self, node: &PointwiseAttributes) -> bool {
        match self {
            Self::ReluLower => node.relu_lower_clip.is_some(),
            Self::ReluUpper => node.relu_upper_clip.is_some(),
            Self::ReluSlope => node.relu_lower_clip_slope.is_some(),
            Self::SwishBeta => node.swish_beta.is_some(),
            Self::EluAlpha => node.elu_alpha.is_some(),
            Self::SoftplusBeta => node.softplus_beta.is_some(),
            Self::Axis => node.axis_tensor_uid.is_some(),
        }
    }
}

/// A node's parameters with defaults filled in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Lower clip of the ReLU.
    pub relu_lower: f64,
    /// Upper clip of the ReLU; infinite if there is none. (Upstream writes the largest finite f32
    /// instead; that differs only where x is +∞.)
    pub relu_upper: f64,
    /// Slope below the lower clip.
    pub relu_slope: f64,
    /// β of the swish.
    pub swish_beta: f64,
    /// α of the ELU.
    pub elu_alpha: f64,
    /// β of the softplus.
    pub softplus_beta: f64,
    /// The axis of `GEN_INDEX`, if given.
    pub axis: Option<i64>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self::of(&PointwiseAttributes::default())
    }
}

impl Parameters {
    /// The parameters of a node.
    pub fn of(node: &PointwiseAttributes) -> Self {
        let or_default = |field: Option<f32>, parameter: Parameter| {
            field
                .map(f64::from)
                .or(parameter.default_value())
                .unwrap_or(f64::INFINITY)
        };
        Self {
            relu_lower: or_default(node.relu_lower_clip, Parameter::ReluLower),
            relu_upper: or_default(node.relu_upper_clip, Parameter::ReluUpper),
            relu_slope: or_default(node.relu_lower_clip_slope, Parameter::ReluSlope),
            swish_beta: or_default(node.swish_beta, Parameter::SwishBeta),
            elu_alpha: or_default(node.elu_alpha, Parameter::EluAlpha),
            softplus_beta: or_default(node.softplus_beta, Parameter::SoftplusBeta),
            axis: node.axis_tensor_uid,
        }
    }
}
