//! What each mode computes, in `f64` and in forms whose tails do not cancel.

use dnn_assay_graph::PointwiseMode::{self, *};
use dnn_assay_graph::semantics::Parameters;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// √(2/π).
const SQRT_2_OVER_PI: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;

/// The cubic coefficient of GELU's tanh approximation.
const GELU_CUBIC: f64 = 0.044715;

/// One element: `x`, `y`, `z` are the operands `in_0`, `in_1`, `in_2`; those beyond the mode's
/// arity are ignored. Backward modes take `x = dy`, `y` the forward input.
#[inline(always)]
pub(super) fn evaluate(mode: PointwiseMode, p: &Parameters, x: f64, y: f64, z: f64) -> f64 {
    match mode {
        Abs => x.abs(),
        Ceil => x.ceil(),
        Erf => libm::erf(x),
        Exp => x.exp(),
        Floor => x.floor(),
        Identity => x,
        Log => x.ln(),
        LogicalNot => truth(x == 0.0),
        Neg => -x,
        Reciprocal => 1.0 / x,
        Rsqrt => 1.0 / x.sqrt(),
        Sin => x.sin(),
        Sqrt => x.sqrt(),
        Tan => x.tan(),
        Add => x + y,
        AddSquare => x + y * y,
        Div => x / y,
        Mul => x * y,
        Sub => x - y,
        // A NaN on either side wins.
        MaxOp => {
            if x > y || x.is_nan() {
                x
            } else {
                y
            }
        }
        MinOp => {
            if x < y || x.is_nan() {
                x
            } else {
                y
            }
        }
        CmpEq => truth(x == y),
        CmpGe => truth(x >= y),
        CmpGt => truth(x > y),
        CmpLe => truth(x <= y),
        CmpLt => truth(x < y),
        CmpNeq => truth(x != y),
        LogicalAnd => truth(x != 0.0 && y != 0.0),
        LogicalOr => truth(x != 0.0 || y != 0.0),
        BinarySelect => {
            if z != 0.0 {
                x
            } else {
                y
            }
        }
        // Its values are the coordinates, not the operand.
        GenIndex | Unset => f64::NAN,
        _ => activation(mode, p, x, y),
    }
}

fn activation(mode: PointwiseMode, p: &Parameters, x: f64, y: f64) -> f64 {
    match mode {
        ReluFwd => relu(p, x),
        ReluBwd => x * relu_slope(p, y),
        SigmoidFwd => sigmoid(x),
        SigmoidBwd => x * sigmoid(y) * sigmoid(-y),
        TanhFwd => x.tanh(),
        TanhBwd => x / y.cosh().powi(2),
        EluFwd => {
            if x > 0.0 {
                x
            } else {
                p.elu_alpha * x.exp_m1()
            }
        }
        EluBwd => x * if y > 0.0 { 1.0 } else { p.elu_alpha * y.exp() },
        SoftplusFwd => softplus(p.softplus_beta * x) / p.softplus_beta,
        SoftplusBwd => x * sigmoid(p.softplus_beta * y),
        SwishFwd => x * sigmoid(p.swish_beta * x),
        SwishBwd => {
            let t = p.swish_beta * y;
            x * (sigmoid(t) + t * sigmoid(t) * sigmoid(-t))
        }
        GeluFwd => x * normal_cdf(x),
        GeluBwd => x * (normal_cdf(y) + y * normal_density(y)),
        GeluApproxTanhFwd => x * sigmoid(2.0 * gelu_argument(x)),
        GeluApproxTanhBwd => x * gelu_tanh_slope(y),
        _ => f64::NAN,
    }
}

fn truth(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

fn relu(p: &Parameters, x: f64) -> f64 {
    if x <= p.relu_lower {
        p.relu_slope * (x - p.relu_lower) + p.relu_lower
    } else if x >= p.relu_upper {
        p.relu_upper
    } else {
        x
    }
}

fn relu_slope(p: &Parameters, x: f64) -> f64 {
    if x <= p.relu_lower {
        p.relu_slope
    } else if x > p.relu_upper {
        0.0
    } else {
        1.0
    }
}

/// 1 / (1 + e^−x), without overflow on either side.
fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x < 0.0 {
        e / (1.0 + e)
    } else {
        1.0 / (1.0 + e)
    }
}

/// ln(1 + e^x), without overflow above or cancellation below.
fn softplus(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Φ(x), by erfc so that the lower tail keeps its digits.
fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// φ(x) = e^(−x²/2) / √(2π).
fn normal_density(x: f64) -> f64 {
    0.5 * SQRT_2_OVER_PI * (-0.5 * x * x).exp()
}

/// The argument of GELU's tanh: √(2/π) · (x + 0.044715·x³).
fn gelu_argument(x: f64) -> f64 {
    SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x)
}

/// With t = tanh(u): (1 + t)/2 = σ(2u) and 1 − t² = 4·σ(2u)·σ(−2u).
fn gelu_tanh_slope(x: f64) -> f64 {
    let u = 2.0 * gelu_argument(x);
    let inner = SQRT_2_OVER_PI * (1.0 + 3.0 * GELU_CUBIC * x * x);
    sigmoid(u) + 2.0 * x * sigmoid(u) * sigmoid(-u) * inner
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mode: PointwiseMode, x: f64, y: f64, z: f64) -> f64 {
        evaluate(mode, &Parameters::default(), x, y, z)
    }

    #[test]
    fn every_mode_is_computed() {
        for &mode in PointwiseMode::ALL {
            let value = at(mode, 0.5, 0.25, 1.0);
            assert_eq!(value.is_nan(), matches!(mode, GenIndex | Unset), "{mode}");
        }
    }

    #[test]
    fn backward_modes_are_the_slopes_of_forward_modes() {
        for (forward, backward) in [
            (ReluFwd, ReluBwd),
            (SigmoidFwd, SigmoidBwd),
            (TanhFwd, TanhBwd),
            (EluFwd, EluBwd),
            (SoftplusFwd, SoftplusBwd),
            (SwishFwd, SwishBwd),
            (GeluFwd, GeluBwd),
            (GeluApproxTanhFwd, GeluApproxTanhBwd),
        ] {
            for x in [-3.0, -0.7, 0.3, 2.5] {
                let h = 1e-5;
                let slope = (at(forward, x + h, 0., 0.) - at(forward, x - h, 0., 0.)) / (2.0 * h);
                let got = at(backward, 2.0, x, 0.0);
                assert!(
                    (got - 2.0 * slope).abs() < 1e-8,
                    "{backward} at {x}: {got}, {slope}"
                );
            }
        }
    }

    #[test]
    fn tails_keep_their_digits() {
        // −20·Φ(−20), with Φ(−20) from the asymptotic series of erfc.
        let expected = -20.0 * 2.753_624_118_606_233_6e-89;
        assert!((at(GeluFwd, -20.0, 0.0, 0.0) / expected - 1.0).abs() < 1e-12);
        assert_eq!(at(SoftplusFwd, 1000.0, 0.0, 0.0), 1000.0);
        assert!((at(SoftplusFwd, -50.0, 0.0, 0.0) / (-50f64).exp() - 1.0).abs() < 1e-15);
        assert_eq!(at(SigmoidFwd, -1000.0, 0.0, 0.0), 0.0);
        assert_eq!(at(SwishFwd, -1e4, 0.0, 0.0), 0.0);
    }

    #[test]
    fn nan_goes_through() {
        for mode in [
            ReluFwd,
            SigmoidFwd,
            SoftplusFwd,
            EluFwd,
            GeluFwd,
            TanhFwd,
            Abs,
        ] {
            assert!(at(mode, f64::NAN, 0.0, 0.0).is_nan(), "{mode}");
        }
        for mode in [MaxOp, MinOp, Add] {
            assert!(at(mode, f64::NAN, 1.0, 0.0).is_nan(), "{mode}");
            assert!(at(mode, 1.0, f64::NAN, 0.0).is_nan(), "{mode}");
        }
    }

    #[test]
    fn relu_edges_and_parameters() {
        let p = Parameters {
            relu_lower: -1.0,
            relu_upper: 6.0,
            relu_slope: 0.5,
            ..Parameters::default()
        };
        let relu = |x| evaluate(ReluFwd, &p, x, 0.0, 0.0);
        assert_eq!(
            [-3.0, -1.0, 0.5, 6.0, 9.0].map(relu),
            [-2.0, -1.0, 0.5, 6.0, 6.0]
        );
        let slope = |x| evaluate(ReluBwd, &p, 1.0, x, 0.0);
        assert_eq!(
            [-3.0, -1.0, 0.5, 6.0, 9.0].map(slope),
            [0.5, 0.5, 1.0, 1.0, 0.0]
        );
    }
}
