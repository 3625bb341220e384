//! The functions whose errors are measured, with what they should be.

/// Name, hipDNN's number of the pointwise mode, and the function in f64.
pub type Function = (&'static str, u32, fn(f64) -> f64);

/// Pointwise modes of one operand.
pub const FUNCTIONS: &[Function] = &[
    ("erf", 15, libm::erf),
    ("exp", 16, libm::exp),
    ("gelu", 21, |x| {
        x * 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
    }),
    ("log", 24, libm::log),
    ("sin", 38, libm::sin),
    ("tan", 45, libm::tan),
    ("tanh", 47, libm::tanh),
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
