//! The shape of a row of the table.

use super::parameters::{Parameter, Parameters};
use crate::enums::{DataType, PointwiseMode};

/// What kind of function a mode is; bounds and fills go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// A few additions, multiplications or divisions; also rounding to integers and square roots.
    Arithmetic,
    /// Uses exp, log, erf, tanh or a trigonometric function.
    Transcendental,
    /// Compares two operands: 1 or 0.
    Comparison,
    /// Combines truth values: 1 or 0.
    Logic,
    /// Passes on one of its operands unchanged: max, min, select, identity, the ReLU.
    Selection,
    /// Depends on the coordinates alone.
    Index,
}

/// Whether a mode is an activation's forward or backward half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The forward half of an activation: `y = f(x)`.
    Forward,
    /// The backward half: `dx = dy · f'(x)`, with `in_0 = dy` and `in_1 = x`.
    Backward,
    /// Not an activation.
    Plain,
}

/// A set of element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DtypeClass {
    /// f64, f32, f16, bf16.
    Float,
    /// [`DtypeClass::Float`], u8, i8, i32 and i64.
    Numeric,
}

impl DtypeClass {
    /// Whether the type is in the set.
    pub const fn allows(self, data_type: DataType) -> bool {
        match self {
            Self::Float => data_type.is_float(),
            Self::Numeric => {
                data_type.is_float()
                    || matches!(
                        data_type,
                        DataType::Uint8 | DataType::Int8 | DataType::Int32 | DataType::Int64
                    )
            }
        }
    }

    /// The set in words, for messages.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Float => "f64, f32, f16 or bf16",
            Self::Numeric => "f64, f32, f16, bf16, u8, i8, i32 or i64",
        }
    }
}

/// Where on an operand something happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Where {
    /// At this value.
    At(f64),
    /// At the lower clip of the ReLU.
    LowerClip,
    /// At the upper clip of the ReLU; nowhere if there is none.
    UpperClip,
    /// At 0, unless the ELU's alpha is 1.
    ZeroUnlessAlphaIsOne,
    /// At every integer.
    Integers,
    /// Where the operand equals the operand of this index.
    EqualToOperand(usize),
    /// At every odd multiple of π/2.
    OddHalfPi,
}

impl Where {
    /// The one value where it happens under these parameters; `None` if there are many, if another
    /// operand decides, or if it happens nowhere.
    pub fn value(self, parameters: &Parameters) -> Option<f64> {
        match self {
            Self::At(value) => Some(value),
            Self::LowerClip => Some(parameters.relu_lower),
            Self::UpperClip => Some(parameters.relu_upper).filter(|upper| upper.is_finite()),
            Self::ZeroUnlessAlphaIsOne => (parameters.elu_alpha != 1.0).then_some(0.0),
            Self::Integers | Self::EqualToOperand(_) | Self::OddHalfPi => None,
        }
    }
}

/// A place on an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Index of the operand.
    pub operand: usize,
    /// Where on it.
    pub at: Where,
}

/// A restriction on an operand outside which the result is NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// The operand of this index must not be 0.
    NonZero(usize),
    /// The operand of this index must be ≥ 0.
    NonNegative(usize),
    /// The operand of this index must be > 0.
    Positive(usize),
}

/// One pointwise mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointwiseSemantics {
    /// The mode.
    pub mode: PointwiseMode,
    /// Name in case ids: the schema's in lower case, `max` and `min` without `_op`.
    pub name: &'static str,
    /// What kind of function it is.
    pub category: Category,
    /// Half of an activation, or neither.
    pub direction: Direction,
    /// Names of the operands in the order `in_0`, `in_1`, `in_2`; their number is the arity.
    pub operands: &'static [&'static str],
    /// The parameters that the mode reads; others are ignored.
    pub parameters: &'static [Parameter],
    /// Types that each operand may have, other than a mask.
    pub inputs: DtypeClass,
    /// Types that the output may have.
    pub output: DtypeClass,
    /// The formula, for people.
    pub formula: &'static str,
    /// Where the value is continuous and the slope is not.
    pub kinks: &'static [Place],
    /// Where the value jumps.
    pub steps: &'static [Place],
    /// Where the value grows beyond all bounds.
    pub poles: &'static [Place],
    /// Operands that must stay in a part of the line.
    pub domain: &'static [Domain],
}

impl PointwiseSemantics {
    /// Number of operands: 1, 2 or 3 (0 for `UNSET`).
    pub const fn arity(&self) -> usize {
        self.operands.len()
    }

    /// Index of the operand that is read as true or false, if it alone decides which of the
    /// others passes.
    pub fn mask(&self) -> Option<usize> {
        (self.mode == PointwiseMode::BinarySelect).then_some(2)
    }

    /// Types that the operand of this index may have.
    pub fn operand_dtypes(&self, operand: usize) -> DtypeClass {
        if self.mask() == Some(operand) {
            DtypeClass::Numeric
        } else {
            self.inputs
        }
    }

    /// Whether the value jumps or its slope does, somewhere, under these parameters.
    pub fn has_kinks_or_steps(&self) -> bool {
        !self.kinks.is_empty() || !self.steps.is_empty()
    }
}
