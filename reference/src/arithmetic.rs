//! How a correct engine may compute: the constants of the error model.

use crate::dtype;
use dnn_assay_graph::DataType;

/// The arithmetic that engines are allowed, from which every uncertainty follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Arithmetic {
    /// The constant in `c·u·√K·(|y| + Q)`.
    pub sum_factor: f64,
    /// Replaces the unit roundoff of the node's compute type where an engine declares a trait.
    pub accumulator_roundoff: Option<f64>,
    /// The type whose range sums must stay in, where it is not the compute type (trait `f16`).
    pub accumulator_type: Option<DataType>,
    /// Every sum grows as `K·u·S`, not only the one-signed ones (trait `rz`).
    pub linear_growth: bool,
    /// Unit roundoff of partial sums of products that are stored in a narrower type (trait
    /// `bf16-partials`); 0 where none are.
    pub partial_roundoff: f64,
    /// Unit roundoff of the type that f32 operands of products are rounded to (trait `xf32`); 0
    /// where they are not.
    pub product_roundoff: f64,
    /// How much more than direct sums a convolution by transforms errs, over the largest error of
    /// any element (traits `winograd`, `fft`); 0 without transforms.
    pub transform: f64,
    /// Variances are the mean of squares less the square of the mean.
    pub one_pass_variance: bool,
    /// Denormals may be read as zero, and zero be written for them.
    pub flushes_denormals: bool,
    /// Units in the last place that each function may be off.
    pub functions: FunctionErrors,
}

impl Default for Arithmetic {
    fn default() -> Self {
        Self {
            sum_factor: 4.0,
            accumulator_roundoff: None,
            accumulator_type: None,
            linear_growth: false,
            partial_roundoff: 0.0,
            product_roundoff: 0.0,
            transform: 0.0,
            one_pass_variance: false,
            flushes_denormals: false,
            functions: FunctionErrors::default(),
        }
    }
}

/// Error of each elementary function, in units of the compute type's unit roundoff, relative to
/// the function's value.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionErrors {
    /// +, −, ·, and multiplication by a constant.
    pub arithmetic: f64,
    /// Division and reciprocal.
    pub divide: f64,
    /// Square root.
    pub sqrt: f64,
    /// 1/√x.
    pub rsqrt: f64,
    /// eˣ.
    pub exp: f64,
    /// ln x.
    pub log: f64,
    /// tanh x.
    pub tanh: f64,
    /// erf x.
    pub erf: f64,
    /// sin x.
    pub sin: f64,
    /// tan x, in addition to its conditioning.
    pub tan: f64,
}

impl Default for FunctionErrors {
    fn default() -> Self {
        Self {
            arithmetic: 1.0,
            divide: 1.0,
            sqrt: 1.0,
            rsqrt: 4.0,
            exp: 4.0,
            log: 4.0,
            tanh: 4.0,
            erf: 4.0,
            sin: 4.0,
            tan: 4.0,
        }
    }
}

/// A compute type as the error model sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Precision {
    /// The type.
    pub data_type: DataType,
    /// Bits of the significand.
    pub bits: u32,
    /// Unit roundoff, or what a trait puts in its place.
    pub roundoff: f64,
    /// Magnitudes from here on become infinite when rounded.
    pub overflow: f64,
    /// What an underflow loses: half of the smallest subnormal, or all of the subnormals where they
    /// are flushed.
    pub half_subnormal: f64,
}

impl Precision {
    /// The arithmetic of a node: its own compute type, else the graph's, else f64 where every
    /// tensor is f64 and f32 otherwise. `None` for a type that is not a floating one.
    pub fn of(arithmetic: &Arithmetic, declared: DataType, tensors: &[DataType]) -> Option<Self> {
        let data_type = match declared {
            DataType::Unset if tensors.iter().all(|&t| t == DataType::Double) => DataType::Double,
            DataType::Unset => DataType::Float,
            declared => declared,
        };
        let range = arithmetic.accumulator_type.unwrap_or(data_type);
        let lost = if arithmetic.flushes_denormals {
            dtype::smallest_normal(range)
        } else {
            dtype::smallest_subnormal(range) / 2.0
        };
        data_type.is_float().then(|| Self {
            data_type,
            bits: dtype::precision(data_type),
            roundoff: arithmetic
                .accumulator_roundoff
                .unwrap_or_else(|| dtype::unit_roundoff(data_type)),
            overflow: dtype::overflow_threshold(range),
            half_subnormal: lost,
        })
    }
}
