//! The table itself. Formulas: hipDNN's CPU and GPU references where they have the mode, the
//! standard definitions elsewhere.

use super::facts::{Category, Direction, Domain, DtypeClass, Place, PointwiseSemantics, Where};
use super::parameters::Parameter;
use crate::enums::PointwiseMode::{self, *};
use Category::*;

/// The facts about a mode. `UNSET` has a row without operands.
pub fn pointwise(mode: PointwiseMode) -> &'static PointwiseSemantics {
    let index = usize::try_from(mode.number()).unwrap_or(0);
    &TABLE[index]
}

/// The facts about the mode with this name in case ids, such as `relu_fwd`.
pub fn pointwise_by_name(name: &str) -> Option<&'static PointwiseSemantics> {
    pointwise_modes().find(|row| row.name == name)
}

/// The 47 modes in the order of the schema, without `UNSET`.
pub fn pointwise_modes() -> impl Iterator<Item = &'static PointwiseSemantics> {
    TABLE[1..].iter()
}

const fn row(
    mode: PointwiseMode,
    name: &'static str,
    category: Category,
    operands: &'static [&'static str],
    formula: &'static str,
) -> PointwiseSemantics {
    let class = match category {
        Transcendental => DtypeClass::Float,
        _ => DtypeClass::Numeric,
    };
    PointwiseSemantics {
        mode,
        name,
        category,
        direction: Direction::Plain,
        operands,
        parameters: &[],
        inputs: class,
        output: class,
        formula,
        kinks: &[],
        steps: &[],
        poles: &[],
        domain: &[],
    }
}

const X: &[&str] = &["x"];
const AB: &[&str] = &["a", "b"];
const DY_X: &[&str] = &["dy", "x"];

impl PointwiseSemantics {
    const fn forward(self) -> Self {
        Self {
            direction: Direction::Forward,
            ..self.float()
        }
    }
    const fn backward(self) -> Self {
        Self {
            direction: Direction::Backward,
            ..self.float()
        }
    }
    const fn float(self) -> Self {
        Self {
            inputs: DtypeClass::Float,
            output: DtypeClass::Float,
            ..self
        }
    }
    const fn with(self, parameters: &'static [Parameter]) -> Self {
        Self { parameters, ..self }
    }
    const fn kinks(self, kinks: &'static [Place]) -> Self {
        Self { kinks, ..self }
    }
    const fn steps(self, steps: &'static [Place]) -> Self {
        Self { steps, ..self }
    }
    const fn poles(self, poles: &'static [Place]) -> Self {
        Self { poles, ..self }
    }
    const fn domain(self, domain: &'static [Domain]) -> Self {
        Self { domain, ..self }
    }
}

const fn on(operand: usize, at: Where) -> Place {
    Place { operand, at }
}

const AT_ZERO: Where = Where::At(0.0);
const ZERO: &[Place] = &[on(0, AT_ZERO)];
const ZERO_OF_1: &[Place] = &[on(1, AT_ZERO)];
const ZERO_OF_BOTH: &[Place] = &[on(0, AT_ZERO), on(1, AT_ZERO)];
const ZERO_OF_MASK: &[Place] = &[on(2, AT_ZERO)];
const EQUAL: &[Place] = &[on(0, Where::EqualToOperand(1))];
const INTEGERS: &[Place] = &[on(0, Where::Integers)];
const CLIPS: &[Place] = &[on(0, Where::LowerClip), on(0, Where::UpperClip)];
const CLIPS_OF_1: &[Place] = &[on(1, Where::LowerClip), on(1, Where::UpperClip)];
const ELU_ZERO: &[Place] = &[on(0, Where::ZeroUnlessAlphaIsOne)];
const ELU_ZERO_OF_1: &[Place] = &[on(1, Where::ZeroUnlessAlphaIsOne)];
const RELU: &[Parameter] = &[
    Parameter::ReluLower,
    Parameter::ReluUpper,
    Parameter::ReluSlope,
];
const ALPHA: &[Parameter] = &[Parameter::EluAlpha];
const SOFTPLUS: &[Parameter] = &[Parameter::SoftplusBeta];
const SWISH: &[Parameter] = &[Parameter::SwishBeta];

static TABLE: [PointwiseSemantics; 48] = [
    row(Unset, "unset", Index, &[], "nothing"),
    row(Abs, "abs", Arithmetic, X, "|x|").kinks(ZERO),
    row(Add, "add", Arithmetic, AB, "a + b"),
    row(AddSquare, "add_square", Arithmetic, AB, "a + b·b"),
    row(
        BinarySelect,
        "binary_select",
        Selection,
        &["a", "b", "mask"],
        "mask != 0 ? a : b",
    )
    .steps(ZERO_OF_MASK),
    row(Ceil, "ceil", Arithmetic, X, "the least integer >= x").steps(INTEGERS),
    row(CmpEq, "cmp_eq", Comparison, AB, "a == b ? 1 : 0").steps(EQUAL),
    row(CmpGe, "cmp_ge", Comparison, AB, "a >= b ? 1 : 0").steps(EQUAL),
    row(CmpGt, "cmp_gt", Comparison, AB, "a > b ? 1 : 0").steps(EQUAL),
    row(CmpLe, "cmp_le", Comparison, AB, "a <= b ? 1 : 0").steps(EQUAL),
    row(CmpLt, "cmp_lt", Comparison, AB, "a < b ? 1 : 0").steps(EQUAL),
    row(CmpNeq, "cmp_neq", Comparison, AB, "a != b ? 1 : 0").steps(EQUAL),
    row(Div, "div", Arithmetic, AB, "a / b")
        .float()
        .poles(ZERO_OF_1)
        .domain(&[Domain::NonZero(1)]),
    row(
        EluBwd,
        "elu_bwd",
        Transcendental,
        DY_X,
        "dy·(x > 0 ? 1 : alpha·exp(x))",
    )
    .backward()
    .with(ALPHA)
    .steps(ELU_ZERO_OF_1),
    row(
        EluFwd,
        "elu_fwd",
        Transcendental,
        X,
        "x > 0 ? x : alpha·(exp(x) - 1)",
    )
    .forward()
    .with(ALPHA)
    .kinks(ELU_ZERO),
    row(Erf, "erf", Transcendental, X, "erf(x)"),
    row(Exp, "exp", Transcendental, X, "exp(x)"),
    row(Floor, "floor", Arithmetic, X, "the greatest integer <= x").steps(INTEGERS),
    row(
        GeluApproxTanhBwd,
        "gelu_approx_tanh_bwd",
        Transcendental,
        DY_X,
        "dy·((1 + t)/2 + x·(1 - t²)/2·√(2/π)·(1 + 3·0.044715·x²)), \
         t = tanh(√(2/π)·(x + 0.044715·x³))",
    )
    .backward(),
    row(
        GeluApproxTanhFwd,
        "gelu_approx_tanh_fwd",
        Transcendental,
        X,
        "x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))",
    )
    .forward(),
    row(
        GeluBwd,
        "gelu_bwd",
        Transcendental,
        DY_X,
        "dy·((1 + erf(x/√2))/2 + x·exp(-x²/2)/√(2π))",
    )
    .backward(),
    row(
        GeluFwd,
        "gelu_fwd",
        Transcendental,
        X,
        "x/2·(1 + erf(x/√2))",
    )
    .forward(),
    row(
        GenIndex,
        "gen_index",
        Index,
        X,
        "the coordinate along the axis",
    )
    .with(&[Parameter::Axis]),
    row(Identity, "identity", Selection, X, "x"),
    row(Log, "log", Transcendental, X, "ln(x)")
        .poles(ZERO)
        .domain(&[Domain::Positive(0)]),
    row(
        LogicalAnd,
        "logical_and",
        Logic,
        AB,
        "a != 0 and b != 0 ? 1 : 0",
    )
    .steps(ZERO_OF_BOTH),
    row(LogicalNot, "logical_not", Logic, X, "x != 0 ? 0 : 1").steps(ZERO),
    row(
        LogicalOr,
        "logical_or",
        Logic,
        AB,
        "a != 0 or b != 0 ? 1 : 0",
    )
    .steps(ZERO_OF_BOTH),
    row(MaxOp, "max", Selection, AB, "a > b ? a : b").kinks(EQUAL),
    row(MinOp, "min", Selection, AB, "a < b ? a : b").kinks(EQUAL),
    row(Mul, "mul", Arithmetic, AB, "a·b"),
    row(Neg, "neg", Arithmetic, X, "-x"),
    row(Reciprocal, "reciprocal", Arithmetic, X, "1 / x")
        .float()
        .poles(ZERO)
        .domain(&[Domain::NonZero(0)]),
    row(
        ReluBwd,
        "relu_bwd",
        Selection,
        DY_X,
        "dy·(x <= lower ? slope : x > upper ? 0 : 1)",
    )
    .backward()
    .with(RELU)
    .steps(CLIPS_OF_1),
    row(
        ReluFwd,
        "relu_fwd",
        Selection,
        X,
        "x <= lower ? slope·(x - lower) + lower : x >= upper ? upper : x",
    )
    .forward()
    .with(RELU)
    .kinks(CLIPS),
    row(Rsqrt, "rsqrt", Arithmetic, X, "1 / √x")
        .float()
        .poles(ZERO)
        .domain(&[Domain::Positive(0)]),
    row(
        SigmoidBwd,
        "sigmoid_bwd",
        Transcendental,
        DY_X,
        "dy·s·(1 - s), s = 1/(1 + exp(-x))",
    )
    .backward(),
    row(
        SigmoidFwd,
        "sigmoid_fwd",
        Transcendental,
        X,
        "1/(1 + exp(-x))",
    )
    .forward(),
    row(Sin, "sin", Transcendental, X, "sin(x)"),
    row(
        SoftplusBwd,
        "softplus_bwd",
        Transcendental,
        DY_X,
        "dy/(1 + exp(-beta·x))",
    )
    .backward()
    .with(SOFTPLUS),
    row(
        SoftplusFwd,
        "softplus_fwd",
        Transcendental,
        X,
        "ln(1 + exp(beta·x))/beta",
    )
    .forward()
    .with(SOFTPLUS),
    row(Sqrt, "sqrt", Arithmetic, X, "√x")
        .float()
        .domain(&[Domain::NonNegative(0)]),
    row(Sub, "sub", Arithmetic, AB, "a - b"),
    row(
        SwishBwd,
        "swish_bwd",
        Transcendental,
        DY_X,
        "dy·(s + beta·x·s·(1 - s)), s = 1/(1 + exp(-beta·x))",
    )
    .backward()
    .with(SWISH),
    row(
        SwishFwd,
        "swish_fwd",
        Transcendental,
        X,
        "x/(1 + exp(-beta·x))",
    )
    .forward()
    .with(SWISH),
    row(Tan, "tan", Transcendental, X, "tan(x)").poles(&[on(0, Where::OddHalfPi)]),
    row(
        TanhBwd,
        "tanh_bwd",
        Transcendental,
        DY_X,
        "dy·(1 - tanh(x)²)",
    )
    .backward(),
    row(TanhFwd, "tanh_fwd", Transcendental, X, "tanh(x)").forward(),
];
