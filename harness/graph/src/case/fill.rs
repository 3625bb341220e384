//! How inputs are filled.

use super::op::{ConvDirection, Op};
use crate::enums::DataType;
use crate::semantics::{Category, pointwise};
use std::fmt;

/// What the inputs of a case hold. The seed is not part of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fill {
    /// `uni`: signed uniform values, rounded to the tensor's type.
    #[default]
    Uniform,
    /// `int`: dense non-zero integers, small enough that sums are exact.
    Integer,
    /// `special`: uniform with NaN, infinities, both zeros, denormals and the largest number at a
    /// few places whose footprint is known.
    Special,
    /// `means`: channels whose mean is 0, 10 or 100 standard deviations away from 0.
    Means,
    /// `spreads`: channels whose variance is 0, ε/100, ε or 100·ε.
    Spreads,
    /// `edges`: zero but for the last of every axis and the places beside tile borders.
    Edges,
    /// `index`: the image says where each element is, the filter takes one element.
    Index,
    /// `probe`: values whose digits a narrower type cannot hold.
    Probe,
}

impl Fill {
    /// Every fill.
    pub const ALL: &'static [Self] = &[
        Self::Uniform,
        Self::Integer,
        Self::Special,
        Self::Means,
        Self::Spreads,
        Self::Edges,
        Self::Index,
        Self::Probe,
    ];

    /// The name in case ids.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uni",
            Self::Integer => "int",
            Self::Special => "special",
            Self::Means => "means",
            Self::Spreads => "spreads",
            Self::Edges => "edges",
            Self::Index => "index",
            Self::Probe => "probe",
        }
    }

    /// The fill with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fill| fill.name() == name)
    }

    /// Whether every value is an integer small enough that sums may be exact.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::Integer | Self::Index)
    }

    /// What a case must be for this fill to aim at anything; `None` where `op` with inputs of the
    /// type `inputs` is that.
    pub(super) fn wants(self, op: Op, inputs: DataType) -> Option<&'static str> {
        let (fits, wanted) = match self {
            Self::Uniform | Self::Integer => (true, ""),
            Self::Special => (
                inputs.is_float() && !op_is_logic(op),
                "floating-point operands that are numbers",
            ),
            Self::Means | Self::Spreads => (
                op.family() == "batchnorm",
                "a batchnorm, which has channels with statistics",
            ),
            Self::Edges => (op.is_conv(), "a convolution, which has taps and borders"),
            Self::Index => (
                matches!(op, Op::Conv(ConvDirection::Fprop | ConvDirection::Dgrad)),
                "conv.fprop or conv.dgrad, whose outputs can show single elements",
            ),
            Self::Probe => (
                op.is_conv() && matches!(inputs, DataType::Float | DataType::Double),
                "a convolution of f32 or f64, whose digits a matrix unit may drop",
            ),
        };
        (!fits).then_some(wanted)
    }
}

/// Truth values and coordinates are no numbers.
fn op_is_logic(op: Op) -> bool {
    let Op::Pointwise(mode) = op else {
        return false;
    };
    matches!(pointwise(mode).category, Category::Logic | Category::Index)
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
