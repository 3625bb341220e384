//! The functions whose errors are measured, with what they should be.

/// A function of the kernels.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// hipDNN's number of the pointwise mode.
    pub mode: u32,
    /// Units in the last place of f32 that the kernels' result may be away from the true value,
    /// before it is rounded to f32: that adds half of one.
    #[allow(dead_code, reason = "the example reports what it finds")]
    pub allowed: f64,
    /// The function in f64.
    pub expected: fn(f64) -> f64,
}

/// One that is worked out in f64.
const fn double(name: &'static str, mode: u32, expected: fn(f64) -> f64) -> Function {
    Function {
        name,
        mode,
        allowed: 0.01,
        expected,
    }
}

/// Pointwise modes of one operand.
pub const FUNCTIONS: &[Function] = &[
    double("erf", 15, libm::erf),
    double("exp", 16, libm::exp),
    // In f32, so the half unit of its rounding is in it. Negative operands have the larger errors:
    // there the textbook form 0.5 x (1 + erf(x / sqrt(2))) in f32 cancels, and has more.
    Function {
        name: "gelu",
        mode: 21,
        allowed: 3.2,
        expected: |x| x * 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
    },
    double("log", 24, libm::log),
    double("sin", 38, libm::sin),
    double("tan", 45, libm::tan),
    double("tanh", 47, libm::tanh),
];

/// The error of `got` in units in the last place of the f32 nearest to `want`; `None` where the true
/// value is not finite in f32 and `got` agrees with that.
pub fn error(want: f64, got: f64) -> Option<f64> {
    if want.is_nan() || want.abs() > f64::from(f32::MAX) {
        let agree = want.is_nan() == got.is_nan() && (want.is_nan() || want as f32 == got as f32);
        return (!agree).then_some(f64::INFINITY);
    }
    let magnitude = want.abs().max(f64::from(f32::MIN_POSITIVE));
    let unit = (magnitude.log2().floor() - 23.0).exp2();
    Some((got - want).abs() / unit)
}
