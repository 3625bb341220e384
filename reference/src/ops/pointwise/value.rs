//! The modes in f64, each in a form that keeps its digits: erfc rather than 1 + erf, expm1 rather
//! than eˣ − 1. Transcendentals come from `libm`, whose bits do not depend on the CPU.

use dnn_assay_graph::PointwiseMode::{self, *};
use dnn_assay_graph::semantics::Parameters;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// √(2/π).
pub(super) const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
/// The cubic's coefficient in the tanh form of the GELU.
pub(super) const GELU_CUBIC: f64 = 0.044_715;

/// `mode(a, b, c)`; operands beyond the mode's arity are not read. `GEN_INDEX` depends on the
/// coordinates and is not here; it and the unset mode give NaN.
#[inline]
pub(super) fn value(mode: PointwiseMode, p: &Parameters, a: f64, b: f64, c: f64) -> f64 {
    match mode {
        Abs => a.abs(),
        Add => a + b,
        AddSquare => a + b * b,
        BinarySelect => {
            if truth(c) {
                a
            } else {
                b
            }
        }
        Ceil => a.ceil(),
        CmpEq => number(a == b),
        CmpGe => number(a >= b),
        CmpGt => number(a > b),
        CmpLe => number(a <= b),
        CmpLt => number(a < b),
        CmpNeq => number(a != b),
        Div => a / b,
        Erf => libm::erf(a),
        Exp => libm::exp(a),
        Floor => a.floor(),
        Identity => a,
        Log => libm::log(a),
        LogicalAnd => number(truth(a) && truth(b)),
        LogicalNot => number(!truth(a)),
        LogicalOr => number(truth(a) || truth(b)),
        MaxOp => pick(a > b, a, b),
        MinOp => pick(a < b, a, b),
        Mul => a * b,
        Neg => -a,
        Reciprocal => 1.0 / a,
        Rsqrt => 1.0 / a.sqrt(),
        Sin => libm::sin(a),
        Sqrt => a.sqrt(),
        Sub => a - b,
        Tan => libm::tan(a),
        ReluFwd | EluFwd | GeluFwd | GeluApproxTanhFwd | SigmoidFwd | SoftplusFwd | SwishFwd
        | TanhFwd => forward(mode, p, a),
        ReluBwd | EluBwd | GeluBwd | GeluApproxTanhBwd | SigmoidBwd | SoftplusBwd | SwishBwd
        | TanhBwd => a * slope(mode, p, b),
        GenIndex | Unset => f64::NAN,
    }
}

/// An activation.
#[inline(always)]
pub(super) fn forward(mode: PointwiseMode, p: &Parameters, x: f64) -> f64 {
    match mode {
        ReluFwd if x <= p.relu_lower => p.relu_slope * (x - p.relu_lower) + p.relu_lower,
        ReluFwd if x >= p.relu_upper => p.relu_upper,
        ReluFwd => x,
        EluFwd if x > 0.0 => x,
        EluFwd => p.elu_alpha * libm::expm1(x),
        GeluFwd => 0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2),
        GeluApproxTanhFwd => x * logistic(2.0 * gelu_argument(x)),
        SigmoidFwd => logistic(x),
        SoftplusFwd => {
            let z = p.softplus_beta * x;
            (z.max(0.0) + libm::log1p(libm::exp(-z.abs()))) / p.softplus_beta
        }
        SwishFwd => x * logistic(p.swish_beta * x),
        TanhFwd => libm::tanh(x),
        _ => f64::NAN,
    }
}

/// An activation's derivative at x: what its backward mode multiplies dy with.
#[inline]
pub(super) fn slope(mode: PointwiseMode, p: &Parameters, x: f64) -> f64 {
    match mode {
        ReluBwd if x <= p.relu_lower => p.relu_slope,
        ReluBwd if x > p.relu_upper => 0.0,
        ReluBwd => 1.0,
        EluBwd if x > 0.0 => 1.0,
        EluBwd => p.elu_alpha * libm::exp(x),
        GeluBwd => {
            let density = libm::exp(-0.5 * x * x) / (2.0 * PI).sqrt();
            0.5 * libm::erfc(-x * FRAC_1_SQRT_2) + x * density
        }
        GeluApproxTanhBwd => {
            let z = 2.0 * gelu_argument(x);
            let inner = SQRT_2_OVER_PI * (1.0 + 3.0 * GELU_CUBIC * x * x);
            logistic(z) + 2.0 * x * logistic(z) * logistic(-z) * inner
        }
        SigmoidBwd => logistic(x) * logistic(-x),
        SoftplusBwd => logistic(p.softplus_beta * x),
        SwishBwd => {
            let z = p.swish_beta * x;
            logistic(z) * (1.0 + z * logistic(-z))
        }
        TanhBwd => 4.0 * logistic(2.0 * x) * logistic(-2.0 * x),
        _ => f64::NAN,
    }
}

/// Non-zero is true, NaN too.
#[inline]
pub(super) fn truth(x: f64) -> bool {
    x != 0.0
}

fn number(truth: bool) -> f64 {
    f64::from(u8::from(truth))
}

fn pick(first: bool, a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if first {
        a
    } else {
        b
    }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

fn gelu_argument(x: f64) -> f64 {
    SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x)
}
