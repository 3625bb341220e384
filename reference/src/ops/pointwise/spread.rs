//! What uncertain operands do to a pointwise result: the largest change of the mode's value while
//! each operand moves within its error, kinks and steps included.

use super::value::{forward, slope, truth, value};
use dnn_assay_graph::PointwiseMode::{self, *};
use dnn_assay_graph::semantics::Parameters;
use std::f64::consts::PI;

/// The effect of uncertain operands on one element.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spread {
    /// Largest change of the value; infinite across a pole or the edge of the domain.
    pub error: f64,
    /// A kink or step lies within the uncertainty.
    pub undecided: bool,
}

impl Spread {
    fn sure(error: f64) -> Self {
        Self {
            error,
            undecided: false,
        }
    }

    fn of(error: f64, undecided: bool) -> Self {
        Self { error, undecided }
    }
}

/// An operand within ± its error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub at: f64,
    pub error: f64,
}

impl Interval {
    fn low(self) -> f64 {
        self.at - self.error
    }

    fn high(self) -> f64 {
        self.at + self.error
    }

    fn holds(self, point: f64) -> bool {
        self.error > 0.0 && (self.at - point).abs() <= self.error
    }

    /// The largest change of `f` at the ends and at `points` within, plus `curvature·e²/2`, which
    /// bounds what an extremum inside can add when `curvature` bounds |f″|.
    fn change(self, f: impl Fn(f64) -> f64, curvature: f64, points: &[f64]) -> f64 {
        let centre = f(self.at);
        let mut most = (f(self.low()) - centre).abs();
        most = most.max((f(self.high()) - centre).abs());
        for &point in points.iter().filter(|&&point| self.holds(point)) {
            most = most.max((f(point) - centre).abs());
        }
        most.max(0.5 * curvature * self.error * self.error)
    }
}

/// How far `mode` may move while its operands do.
pub(super) fn spread(mode: PointwiseMode, p: &Parameters, [a, b, c]: [Interval; 3]) -> Spread {
    match mode {
        Add | Sub => Spread::sure(a.error + b.error),
        AddSquare => Spread::sure(a.error + b.error * (2.0 * b.at.abs() + b.error)),
        Mul => Spread::sure(product(a, b)),
        Div => Spread::sure(quotient(a, b)),
        Reciprocal => Spread::sure(quotient(
            Interval {
                at: 1.0,
                error: 0.0,
            },
            a,
        )),
        Identity | Neg => Spread::sure(a.error),
        Abs => Spread::of(a.error, a.holds(0.0)),
        Ceil | Floor => {
            let change = a.change(|x| value(mode, p, x, 0.0, 0.0), 0.0, &[]);
            Spread::of(change, change > 0.0)
        }
        MaxOp | MinOp => larger(mode, a, b),
        BinarySelect => select(a, b, c),
        CmpEq | CmpNeq | CmpGe | CmpGt | CmpLe | CmpLt => {
            let (distance, error) = ((a.at - b.at).abs(), a.error + b.error);
            step(error > 0.0 && distance <= error)
        }
        LogicalAnd | LogicalOr => step(a.holds(0.0) || b.holds(0.0)),
        LogicalNot => step(a.holds(0.0)),
        Log | Rsqrt if a.low() <= 0.0 => Spread::sure(f64::INFINITY),
        // Below 0 the root is NaN; down to there it moves by at most its own value.
        Sqrt if a.low() < 0.0 => Spread::sure(f64::INFINITY),
        Tan if pole_of_tan(a) => Spread::sure(f64::INFINITY),
        Sin => Spread::sure(a.change(libm::sin, 1.0, &[])),
        Erf | Exp | Log | Rsqrt | Sqrt | Tan => {
            Spread::sure(a.change(|x| value(mode, p, x, 0.0, 0.0), 0.0, &[]))
        }
        ReluFwd | EluFwd | GeluFwd | GeluApproxTanhFwd | SigmoidFwd | SoftplusFwd | SwishFwd
        | TanhFwd => {
            let points = kinks(mode, p);
            let error = a.change(|x| forward(mode, p, x), curvature(mode, p), &points);
            Spread::of(error, points.iter().any(|&point| a.holds(point)))
        }
        ReluBwd | EluBwd | GeluBwd | GeluApproxTanhBwd | SigmoidBwd | SoftplusBwd | SwishBwd
        | TanhBwd => backward(mode, p, a, b),
        GenIndex | Unset => Spread::default(),
    }
}

fn product(a: Interval, b: Interval) -> f64 {
    a.at.abs() * b.error + b.at.abs() * a.error + a.error * b.error
}

fn quotient(a: Interval, b: Interval) -> f64 {
    if b.error >= b.at.abs() && b.error > 0.0 {
        return f64::INFINITY;
    }
    (a.error + (a.at / b.at).abs() * b.error) / (b.at.abs() - b.error)
}

fn larger(mode: PointwiseMode, a: Interval, b: Interval) -> Spread {
    let error = a.error + b.error;
    if error > 0.0 && (a.at - b.at).abs() <= error {
        return Spread::of(a.error.max(b.error), true);
    }
    let first = (mode == MaxOp) == (a.at > b.at);
    Spread::sure(if first { a.error } else { b.error })
}

fn select(a: Interval, b: Interval, mask: Interval) -> Spread {
    if mask.holds(0.0) {
        Spread::of((a.at - b.at).abs() + a.error.max(b.error), true)
    } else {
        Spread::sure(if truth(mask.at) { a.error } else { b.error })
    }
}

fn step(undecided: bool) -> Spread {
    Spread::of(if undecided { 1.0 } else { 0.0 }, undecided)
}

fn pole_of_tan(a: Interval) -> bool {
    a.error > 0.0 && (a.low() / PI + 0.5).floor() != (a.high() / PI + 0.5).floor()
}

/// dy · slope(x).
fn backward(mode: PointwiseMode, p: &Parameters, dy: Interval, x: Interval) -> Spread {
    let points = kinks(mode, p);
    let undecided = points.iter().any(|&point| x.holds(point));
    let centre = slope(mode, p, x.at);
    let mut change = if x.error > 0.0 {
        x.change(|x| slope(mode, p, x), curvature(mode, p), &points)
    } else {
        0.0
    };
    if undecided && mode == EluBwd {
        // Just above 0 the slope is 1; 0 itself counts as below.
        change = change.max((1.0 - centre).abs());
    }
    if undecided && mode == ReluBwd {
        for (side, other) in [(p.relu_lower, p.relu_slope), (p.relu_upper, 0.0)] {
            if x.holds(side) {
                change = change.max((1.0 - centre).abs()).max((other - centre).abs());
            }
        }
    }
    let moved = Interval {
        at: centre,
        error: change,
    };
    Spread::of(product(dy, moved), undecided)
}

/// Where a mode's slope or value jumps along x; infinite where it does not.
fn kinks(mode: PointwiseMode, p: &Parameters) -> [f64; 2] {
    match mode {
        ReluFwd | ReluBwd => [p.relu_lower, p.relu_upper],
        EluFwd | EluBwd if p.elu_alpha != 1.0 => [0.0, f64::INFINITY],
        _ => [f64::INFINITY; 2],
    }
}

/// A bound on |f″| for the functions that have an extremum inside: sup|φ(x)(2−x²)| = 0.80 for the
/// GELU, β/2 for the swish; for backward modes of their slopes' second derivative.
fn curvature(mode: PointwiseMode, p: &Parameters) -> f64 {
    match mode {
        GeluFwd | GeluApproxTanhFwd => 1.0,
        SwishFwd => 0.6 * p.swish_beta.abs(),
        SigmoidBwd => 0.13,
        TanhBwd => 2.0,
        GeluBwd => 1.0,
        GeluApproxTanhBwd => 1.5,
        SwishBwd => 0.5 * p.swish_beta * p.swish_beta,
        _ => 0.0,
    }
}
