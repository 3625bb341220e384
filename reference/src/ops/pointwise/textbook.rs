//! The textbook formulas, step by step, on a machine that is told of every step: one machine
//! tracks rounding, another overflow.
//!
//! Where a formula has two usual forms (x/(1 + e⁻ˣ) and x·σ(x); division by β and multiplication
//! with 1/β), the one with more steps stands here: its bound covers both.

use super::value::{GELU_CUBIC, SQRT_2_OVER_PI};
use crate::arithmetic::{FunctionErrors, Precision};
use dnn_assay_graph::PointwiseMode::{self, *};
use dnn_assay_graph::semantics::Parameters;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Elementary functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Exp,
    Log,
    Tanh,
    Erf,
    Sin,
    Tan,
    Sqrt,
    Rsqrt,
}

/// Something that carries out a formula.
pub(super) trait Machine {
    type Number: Copy;
    /// A number that the compute type holds.
    fn exact(&self, x: f64) -> Self::Number;
    /// A constant rounded to the compute type.
    fn constant(&self, x: f64) -> Self::Number;
    fn add(&self, a: Self::Number, b: Self::Number) -> Self::Number;
    fn mul(&self, a: Self::Number, b: Self::Number) -> Self::Number;
    fn div(&self, a: Self::Number, b: Self::Number) -> Self::Number;
    fn call(&self, function: Function, a: Self::Number) -> Self::Number;
    /// By a power of two, or −1: exact.
    fn scale(&self, a: Self::Number, by: f64) -> Self::Number;

    fn sub(&self, a: Self::Number, b: Self::Number) -> Self::Number {
        self.add(a, self.scale(b, -1.0))
    }
}

/// The formula of `mode` on exact operands; `None` where it rounds nothing.
pub(super) fn run<M: Machine>(
    m: &M,
    mode: PointwiseMode,
    p: &Parameters,
    a: f64,
    b: f64,
) -> Option<M::Number> {
    let (x, y) = (m.exact(a), m.exact(b));
    Some(match mode {
        Add => m.add(x, y),
        AddSquare => m.add(x, m.mul(y, y)),
        Sub => m.sub(x, y),
        Mul => m.mul(x, y),
        Div => m.div(x, y),
        Reciprocal => m.div(m.exact(1.0), x),
        Sqrt => m.call(Function::Sqrt, x),
        Rsqrt => m.call(Function::Rsqrt, x),
        Exp => m.call(Function::Exp, x),
        Log => m.call(Function::Log, x),
        Erf => m.call(Function::Erf, x),
        Sin => m.call(Function::Sin, x),
        Tan => m.call(Function::Tan, x),
        TanhFwd => m.call(Function::Tanh, x),
        ReluFwd if a <= p.relu_lower && p.relu_slope != 0.0 => {
            let (lower, slope) = (m.exact(p.relu_lower), m.exact(p.relu_slope));
            if p.relu_lower == 0.0 {
                m.mul(slope, x)
            } else {
                m.add(m.mul(slope, m.sub(x, lower)), lower)
            }
        }
        EluFwd if a <= 0.0 => {
            let grown = m.sub(m.call(Function::Exp, x), m.exact(1.0));
            times(m, p.elu_alpha, grown)
        }
        GeluFwd => {
            let erf = m.call(Function::Erf, m.mul(x, m.constant(FRAC_1_SQRT_2)));
            m.mul(m.scale(x, 0.5), m.add(m.exact(1.0), erf))
        }
        GeluApproxTanhFwd => {
            let tanh = m.call(Function::Tanh, gelu_argument(m, x));
            m.mul(m.scale(x, 0.5), m.add(m.exact(1.0), tanh))
        }
        SigmoidFwd => logistic(m, x),
        SoftplusFwd => {
            let beta = p.softplus_beta;
            let grown = m.call(Function::Exp, times(m, beta, x));
            let log = m.call(Function::Log, m.add(m.exact(1.0), grown));
            if beta == 1.0 {
                log
            } else {
                m.mul(log, m.constant(1.0 / beta))
            }
        }
        SwishFwd => m.mul(x, logistic(m, times(m, p.swish_beta, x))),
        _ => return backward(m, mode, p, x, (b, y)),
    })
}

/// The backward modes: dy times a slope.
fn backward<M: Machine>(
    m: &M,
    mode: PointwiseMode,
    p: &Parameters,
    dy: M::Number,
    (at, x): (f64, M::Number),
) -> Option<M::Number> {
    let one = m.exact(1.0);
    let slope = match mode {
        ReluBwd if at <= p.relu_lower && !matches!(p.relu_slope, 0.0 | 1.0) => {
            m.exact(p.relu_slope)
        }
        EluBwd if at <= 0.0 => times(m, p.elu_alpha, m.call(Function::Exp, x)),
        SigmoidBwd => {
            let s = logistic(m, x);
            return Some(m.mul(m.mul(dy, s), m.sub(one, s)));
        }
        TanhBwd => {
            let t = m.call(Function::Tanh, x);
            m.sub(one, m.mul(t, t))
        }
        SoftplusBwd => logistic(m, times(m, p.softplus_beta, x)),
        SwishBwd => {
            let z = times(m, p.swish_beta, x);
            let s = logistic(m, z);
            m.add(s, m.mul(m.mul(z, s), m.sub(one, s)))
        }
        GeluBwd => {
            let erf = m.call(Function::Erf, m.mul(x, m.constant(FRAC_1_SQRT_2)));
            let area = m.scale(m.add(one, erf), 0.5);
            let square = m.scale(m.mul(x, x), -0.5);
            let density = m.mul(
                m.call(Function::Exp, square),
                m.constant(1.0 / (2.0 * PI).sqrt()),
            );
            m.add(area, m.mul(x, density))
        }
        GeluApproxTanhBwd => {
            let t = m.call(Function::Tanh, gelu_argument(m, x));
            let square = m.mul(m.constant(3.0 * GELU_CUBIC), m.mul(x, x));
            let inner = m.mul(m.constant(SQRT_2_OVER_PI), m.add(one, square));
            let rest = m.mul(m.scale(x, 0.5), m.sub(one, m.mul(t, t)));
            m.add(m.scale(m.add(one, t), 0.5), m.mul(rest, inner))
        }
        _ => return None,
    };
    Some(m.mul(dy, slope))
}

/// A parameter times a number; nothing to do where the parameter is 1.
fn times<M: Machine>(m: &M, parameter: f64, x: M::Number) -> M::Number {
    if parameter == 1.0 {
        x
    } else {
        m.mul(m.exact(parameter), x)
    }
}

/// 1 + e⁻ᶻ.
fn growth<M: Machine>(m: &M, z: M::Number) -> M::Number {
    m.add(m.exact(1.0), m.call(Function::Exp, m.scale(z, -1.0)))
}

fn logistic<M: Machine>(m: &M, z: M::Number) -> M::Number {
    m.div(m.exact(1.0), growth(m, z))
}

/// √(2/π)·(x + 0.044715·x³), as x·(1 + 0.044715·x²): one step more than the other form.
fn gelu_argument<M: Machine>(m: &M, x: M::Number) -> M::Number {
    let square = m.mul(m.constant(GELU_CUBIC), m.mul(x, x));
    let sum = m.mul(x, m.add(m.exact(1.0), square));
    m.mul(m.constant(SQRT_2_OVER_PI), sum)
}

/// A value and how far the compute type's result may be from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracked {
    /// Value.
    pub value: f64,
    /// Error that came with the operands.
    pub carried: f64,
    /// Error of the last step.
    pub own: f64,
    /// Some step may overflow.
    pub overflows: bool,
}

impl Tracked {
    /// Both errors.
    pub fn error(self) -> f64 {
        self.carried + self.own
    }
}

/// Running error analysis: each step adds `n·u·|t|` and passes on its operands' errors by the
/// step's derivative. That is Σ |∂y/∂t|·n_f·u·|t| with the paths of a shared intermediate added
/// without their signs.
pub(super) struct Rounding<'a> {
    pub precision: &'a Precision,
    pub functions: &'a FunctionErrors,
}

/// Unit roundoff of f64: the reference's own.
const REFERENCE_ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// Where exp is held, so that infinities do not turn errors into NaN.
const LARGEST_EXP: f64 = 1e100;

impl Rounding<'_> {
    /// What a step rounds by: the engine's roundoff, and the reference's own, which matters where
    /// the engine computes in f64 too.
    fn roundoffs(&self) -> f64 {
        self.precision.roundoff + REFERENCE_ROUNDOFF
    }

    fn step(&self, value: f64, carried: f64, steps: f64, overflows: bool) -> Tracked {
        let own = steps * self.roundoffs() * value.abs() + self.precision.half_subnormal;
        Tracked {
            value,
            carried,
            own,
            overflows: overflows || value.abs() + carried + own >= self.precision.overflow,
        }
    }
}

impl Machine for Rounding<'_> {
    type Number = Tracked;

    fn exact(&self, value: f64) -> Tracked {
        Tracked {
            value,
            carried: 0.0,
            own: 0.0,
            overflows: false,
        }
    }

    fn constant(&self, value: f64) -> Tracked {
        Tracked {
            own: self.roundoffs() * value.abs(),
            ..self.exact(value)
        }
    }

    fn add(&self, a: Tracked, b: Tracked) -> Tracked {
        let carried = a.error() + b.error();
        let over = a.overflows || b.overflows;
        self.step(a.value + b.value, carried, self.functions.arithmetic, over)
    }

    fn mul(&self, a: Tracked, b: Tracked) -> Tracked {
        let (ea, eb) = (a.error(), b.error());
        let carried = a.value.abs() * eb + b.value.abs() * ea + ea * eb;
        let over = a.overflows || b.overflows;
        self.step(a.value * b.value, carried, self.functions.arithmetic, over)
    }

    fn div(&self, a: Tracked, b: Tracked) -> Tracked {
        let value = a.value / b.value;
        let carried = (a.error() + value.abs() * b.error()) / (b.value.abs() - b.error());
        let over = a.overflows || b.overflows;
        self.step(value, carried, self.functions.divide, over)
    }

    fn call(&self, function: Function, a: Tracked) -> Tracked {
        let (x, e, n) = (a.value, a.error(), self.functions);
        let (value, carried, steps) = match function {
            Function::Exp => {
                let value = libm::exp(x).min(LARGEST_EXP);
                (value, value * libm::expm1(e), n.exp)
            }
            Function::Log => (libm::log(x), -libm::log1p(-e / x.abs()), n.log),
            Function::Tanh => (
                libm::tanh(x),
                e * steepest(x, e, |x| 1.0 - libm::tanh(x).powi(2)),
                n.tanh,
            ),
            Function::Erf => {
                let slope = |x: f64| 2.0 / PI.sqrt() * libm::exp(-x * x);
                (libm::erf(x), e * steepest(x, e, slope), n.erf)
            }
            Function::Sin => (libm::sin(x), e, n.sin),
            // tan' = 1 + tan², taken at the worse end.
            Function::Tan => {
                let value = libm::tan(x);
                (value, e * (1.0 + (value.abs() + e).powi(2)), n.tan)
            }
            Function::Sqrt => (x.sqrt(), e / x.sqrt(), n.sqrt),
            Function::Rsqrt => (1.0 / x.sqrt(), e / (x * x.sqrt()), n.rsqrt),
        };
        let carried = if e == 0.0 { 0.0 } else { carried };
        let mut result = self.step(value, carried, steps, a.overflows);
        if function == Function::Tan {
            // The argument reduced by multiples of π/2 in the compute type: conditioning.
            let reduced = self.precision.roundoff * x.abs().min(1.0) * (1.0 + value * value);
            result.own += reduced;
        }
        result
    }

    fn scale(&self, a: Tracked, by: f64) -> Tracked {
        Tracked {
            value: a.value * by,
            carried: a.carried * by.abs(),
            own: a.own * by.abs(),
            ..a
        }
    }
}

/// The largest slope within `e` of `x` of a function that is steepest at 0 and flattens outwards.
fn steepest(x: f64, e: f64, slope: impl Fn(f64) -> f64) -> f64 {
    slope((x.abs() - e).max(0.0))
}

/// f64 with the compute type's range: what a formula gives when steps overflow.
pub(super) struct Overflowing {
    /// Magnitudes from here on become infinite.
    pub overflow: f64,
}

impl Overflowing {
    fn step(&self, value: f64) -> f64 {
        if value.abs() >= self.overflow {
            f64::INFINITY.copysign(value)
        } else {
            value
        }
    }
}

impl Machine for Overflowing {
    type Number = f64;

    fn exact(&self, value: f64) -> f64 {
        value
    }

    fn constant(&self, value: f64) -> f64 {
        value
    }

    fn add(&self, a: f64, b: f64) -> f64 {
        self.step(a + b)
    }

    fn mul(&self, a: f64, b: f64) -> f64 {
        self.step(a * b)
    }

    fn div(&self, a: f64, b: f64) -> f64 {
        self.step(a / b)
    }

    fn call(&self, function: Function, a: f64) -> f64 {
        self.step(match function {
            Function::Exp => libm::exp(a),
            Function::Log => libm::log(a),
            Function::Tanh => libm::tanh(a),
            Function::Erf => libm::erf(a),
            Function::Sin => libm::sin(a),
            Function::Tan => libm::tan(a),
            Function::Sqrt => a.sqrt(),
            Function::Rsqrt => 1.0 / a.sqrt(),
        })
    }

    fn scale(&self, a: f64, by: f64) -> f64 {
        a * by
    }
}
