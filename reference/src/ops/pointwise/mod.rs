//! The 47 pointwise modes: value, rounding of the textbook formula, and what uncertain operands do.

mod account;
mod broadcast;
mod naive;
mod spread;
mod textbook;
mod value;

pub(crate) use naive::naive;

use crate::arithmetic::{FunctionErrors, Precision};
use crate::array::Array;
use crate::estimate::{Alternative, Estimate, above};
use crate::ops::operand::Operand;
use crate::parallel;
use broadcast::{Broadcast, OPERANDS, Run};
use dnn_assay_graph::semantics::{Category, Parameters, pointwise};
use dnn_assay_graph::{DataType, PointwiseMode};
use rayon::prelude::*;
use spread::{Interval, spread};
use textbook::{Overflowing, Rounding};

/// A pointwise node.
pub(crate) struct Pointwise<'a> {
    pub mode: PointwiseMode,
    pub parameters: Parameters,
    /// As many as the mode's arity.
    pub operands: Vec<Operand<'a>>,
    /// Extents of the output.
    pub output: &'a [i64],
    /// Its type.
    pub output_type: DataType,
    pub precision: Precision,
    pub functions: &'a FunctionErrors,
}

/// Roundings of f64 that the reference's own formula of a transcendental mode may have: libm's
/// functions stay within one unit in the last place, and no formula here takes more than eight
/// steps. It matters where the engine computes in f64 too.
const REFERENCE_STEPS: f64 = 8.0;

/// Output elements per task.
const TASK: usize = 1 << 13;

/// The uncertainty of one element.
#[derive(Clone, Copy, Default)]
struct Doubt {
    error: f64,
    undecided: bool,
    /// What an overflow inside the formula makes of it, where that is not finite.
    instead: Option<f64>,
}

/// What a node's engine may round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roundings {
    /// Every result is one that the compute type holds, whatever the values.
    None,
    /// Nothing but the result, to the output's type.
    Last,
    /// The steps of the formula, or the operands.
    Steps,
}

impl Pointwise<'_> {
    /// The result and how many elements at a kink or step are undecided.
    ///
    /// # Errors
    /// A text where operands, output and parameters do not fit.
    pub fn run(&self) -> Result<(Estimate, usize), String> {
        let arity = pointwise(self.mode).operands.len();
        if self.operands.len() != arity || arity == 0 {
            return Err(format!(
                "{} operands for {}",
                self.operands.len(),
                self.mode
            ));
        }
        let dims: Vec<&[i64]> = self.operands.iter().map(|operand| operand.dims).collect();
        let broadcast = Broadcast::new(self.output, &dims)?;
        if self.mode == PointwiseMode::GenIndex {
            return Ok((self.indices()?, 0));
        }
        let elements = self.output.iter().map(|&dim| dim.max(0) as usize).product();
        let mut estimate = Estimate::unset(elements);
        let task = |(index, (value, error)): (usize, (&mut [f64], &mut [f32]))| {
            self.task(&broadcast, index * TASK, value, error)
        };
        let found: Vec<Found> = if parallel::worthwhile(elements / 4) {
            let values = estimate.value.par_chunks_mut(TASK);
            let errors = estimate.error.par_chunks_mut(TASK);
            values.zip(errors).enumerate().map(task).collect()
        } else {
            let values = estimate.value.chunks_mut(TASK);
            let errors = estimate.error.chunks_mut(TASK);
            values.zip(errors).enumerate().map(task).collect()
        };
        let undecided = found.iter().map(|found| found.undecided).sum();
        estimate.also = found.into_iter().flat_map(|found| found.also).collect();
        estimate.also.sort_by_key(|other| other.index);
        Ok((estimate, undecided))
    }

    /// The elements from `start` on.
    fn task(&self, at: &Broadcast, start: usize, value: &mut [f64], error: &mut [f32]) -> Found {
        let mut found = Found::default();
        let roundings = self.roundings();
        at.runs(start..start + value.len(), |run| {
            let value = &mut value[run.out - start..][..run.len];
            self.values(&run, value);
            let error = &mut error[run.out - start..][..run.len];
            match roundings {
                Roundings::None => error.fill(0.0),
                Roundings::Last => self.last_step(&run, value, error, &mut found),
                Roundings::Steps => self.errors(&run, value, error, &mut found),
            }
            self.open_to_nan(&run, value, error, &mut found);
        });
        found
    }

    /// Where a NaN meets max, min or the step of a ReLU, engines take it up or leave it out: the
    /// other operand is as right as NaN.
    fn open_to_nan(&self, run: &Run, value: &mut [f64], error: &mut [f32], found: &mut Found) {
        use PointwiseMode::{MaxOp, MinOp, ReluBwd};
        if !matches!(self.mode, MaxOp | MinOp | ReluBwd) {
            return;
        }
        for (i, (value, error)) in value.iter_mut().zip(error).enumerate() {
            let [a, b, _] = self.at(run, i);
            if self.mode == ReluBwd {
                let blocked = value::slope(ReluBwd, &self.parameters, b) == 0.0;
                if blocked && !a.is_finite() {
                    *value = 0.0;
                    found.add(run.out + i, f64::NAN);
                } else if b.is_nan() && a.is_finite() {
                    *error = above(f64::from(*error) + a.abs());
                }
            } else if a.is_nan() != b.is_nan() {
                *value = if a.is_nan() { b } else { a };
                found.add(run.out + i, f64::NAN);
            }
        }
    }

    /// What there is to round, by the mode and the operands.
    fn roundings(&self) -> Roundings {
        use PointwiseMode::*;
        let exact = |operand: &Operand<'_>| {
            operand.error.is_empty()
                && operand.also.is_empty()
                && !operand.rounds_into(&self.precision)
        };
        if !self.operands.iter().all(exact) {
            return Roundings::Steps;
        }
        match self.mode {
            ReluFwd if self.parameters.relu_slope == 0.0 => Roundings::None,
            Abs | BinarySelect | Ceil | CmpEq | CmpGe | CmpGt | CmpLe | CmpLt | CmpNeq | Floor
            | GenIndex | Identity | LogicalAnd | LogicalNot | LogicalOr | MaxOp | MinOp | Neg => {
                Roundings::None
            }
            // One correctly rounded step, and the type that it is rounded to is the output's.
            Add | Sub | Mul
                if self.functions.arithmetic <= 1.0
                    && self.output_type == self.precision.data_type =>
            {
                Roundings::Last
            }
            _ => Roundings::Steps,
        }
    }

    /// Errors where the only step is the final rounding: none, unless the step overflows.
    fn last_step(&self, run: &Run, value: &[f64], error: &mut [f32], found: &mut Found) {
        if value
            .iter()
            .any(|value| value.abs() >= self.precision.overflow / 2.0)
        {
            self.errors(run, value, error, found);
        } else {
            error.fill(0.0);
        }
    }

    fn values(&self, run: &Run, out: &mut [f64]) {
        use PointwiseMode::*;
        // The plainest modes are worth loops of their own.
        match self.mode {
            Add => self.each(run, out, |a, b, _| a + b),
            Mul => self.each(run, out, |a, b, _| a * b),
            Sub => self.each(run, out, |a, b, _| a - b),
            Identity => self.each(run, out, |a, _, _| a),
            ReluFwd => {
                let p = self.parameters;
                self.each(
                    run,
                    out,
                    #[inline(always)]
                    move |x, _, _| value::forward(ReluFwd, &p, x),
                );
            }
            // Calls into libm: nothing there to vectorise.
            mode => {
                let p = self.parameters;
                self.loops(run, out, move |a, b, c| value::value(mode, &p, a, b, c));
            }
        }
    }

    #[inline(always)]
    fn each(&self, run: &Run, out: &mut [f64], f: impl Fn(f64, f64, f64) -> f64) {
        parallel::vectorised(
            #[inline(always)]
            || self.loops(run, out, f),
        );
    }

    #[inline(always)]
    fn loops(&self, run: &Run, out: &mut [f64], f: impl Fn(f64, f64, f64) -> f64) {
        let slice = |index: usize| -> Option<&[f64]> {
            let operand = self.operands.get(index)?;
            let len = if run.step[index] == 0 { 1 } else { run.len };
            Some(&operand.value[run.from[index]..run.from[index] + len])
        };
        match (slice(0), slice(1), slice(2)) {
            (Some(a), None, _) if a.len() == out.len() => {
                for (out, &a) in out.iter_mut().zip(a) {
                    *out = f(a, 0.0, 0.0);
                }
            }
            (Some(a), Some(b), None) if a.len() == out.len() && b.len() == out.len() => {
                for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                    *out = f(a, b, 0.0);
                }
            }
            (Some(a), Some(&[b]), None) if a.len() == out.len() => {
                for (out, &a) in out.iter_mut().zip(a) {
                    *out = f(a, b, 0.0);
                }
            }
            _ => {
                for (i, out) in out.iter_mut().enumerate() {
                    let [a, b, c] = self.at(run, i);
                    *out = f(a, b, c);
                }
            }
        }
    }

    /// The operands of the run's element `i`.
    #[inline]
    fn at(&self, run: &Run, i: usize) -> [f64; OPERANDS] {
        std::array::from_fn(|index| {
            self.operands.get(index).map_or(0.0, |operand| {
                operand.value[run.from[index] + i * run.step[index]]
            })
        })
    }

    fn errors(&self, run: &Run, value: &[f64], error: &mut [f32], found: &mut Found) {
        for (i, (error, &value)) in error.iter_mut().zip(value).enumerate() {
            let operands = self.intervals(run, i);
            let mut doubt = self.doubt(operands, value);
            found.undecided += usize::from(doubt.undecided);
            if let Some(other) = doubt.instead {
                found.add(run.out + i, other);
            }
            self.alternatives(run, i, value, &mut doubt.error, found);
            *error = if value.is_finite() {
                above(doubt.error)
            } else {
                0.0
            };
        }
    }

    /// The operands of the run's element `i` with their errors, those of reading them included.
    fn intervals(&self, run: &Run, i: usize) -> [Interval; OPERANDS] {
        std::array::from_fn(|index| {
            let Some(operand) = self.operands.get(index) else {
                return Interval {
                    at: 0.0,
                    error: 0.0,
                };
            };
            let from = run.from[index] + i * run.step[index];
            let at = operand.value[from];
            let read = if operand.rounds_into(&self.precision) {
                self.precision.roundoff * at.abs()
            } else {
                0.0
            };
            let error = operand.error_at(from) + read;
            Interval { at, error }
        })
    }

    fn doubt(&self, operands: [Interval; OPERANDS], value: f64) -> Doubt {
        let [a, b, _] = operands;
        let mut doubt = Doubt::default();
        let rounding = Rounding {
            precision: &self.precision,
            functions: self.functions,
        };
        if let Some(result) = textbook::run(&rounding, self.mode, &self.parameters, a.at, b.at) {
            doubt.error = result.carried;
            // Storing the result of a single step in the type it has is that step's own rounding.
            if !(self.ends_in_one_step() && self.output_type == self.precision.data_type) {
                doubt.error += result.own;
            }
            if pointwise(self.mode).category == Category::Transcendental {
                doubt.error += REFERENCE_STEPS * (f64::EPSILON / 2.0) * value.abs();
            }
            if result.overflows {
                self.overflow(a.at, b.at, value, &mut doubt);
            }
            if doubt.error.is_nan() {
                doubt.error = 16.0 * self.precision.roundoff * value.abs();
            }
        }
        if operands.iter().any(|operand| operand.error > 0.0) {
            let spread = spread(self.mode, &self.parameters, operands);
            let slack = 1.0 + 32.0 * self.precision.roundoff;
            doubt.error = (doubt.error + spread.error) * slack;
            doubt.undecided = spread.undecided;
        }
        doubt
    }

    /// Whether every form of the formula ends in the same correctly rounded step.
    fn ends_in_one_step(&self) -> bool {
        use PointwiseMode::*;
        let steps = match self.mode {
            Add | AddSquare | Sub | Mul => self.functions.arithmetic,
            Div | Reciprocal => self.functions.divide,
            Sqrt => self.functions.sqrt,
            _ => return false,
        };
        steps <= 1.0
    }

    /// What the formula gives when its steps overflow.
    fn overflow(&self, a: f64, b: f64, value: f64, doubt: &mut Doubt) {
        let machine = Overflowing {
            // A step that may overflow does.
            overflow: self.precision.overflow * (1.0 - 64.0 * self.precision.roundoff),
        };
        let other = textbook::run(&machine, self.mode, &self.parameters, a, b);
        match other {
            Some(other) if other.is_finite() && value.is_finite() => {
                doubt.error = doubt.error.max((other - value).abs());
            }
            Some(other) if value.is_finite() => doubt.instead = Some(other),
            _ => {}
        }
    }

    /// What the operands' alternatives make of an element.
    fn alternatives(&self, run: &Run, i: usize, value: f64, error: &mut f64, found: &mut Found) {
        for (index, operand) in self.operands.iter().enumerate() {
            if operand.also.is_empty() {
                continue;
            }
            let from = run.from[index] + i * run.step[index];
            let first = operand.also.partition_point(|other| other.index < from);
            for other in operand.also[first..]
                .iter()
                .take_while(|other| other.index == from)
            {
                let mut operands = self.at(run, i);
                operands[index] = other.value;
                let [a, b, c] = operands;
                let other = value::value(self.mode, &self.parameters, a, b, c);
                if other.is_finite() && value.is_finite() {
                    *error = error.max((other - value).abs() + *error);
                } else {
                    found.add(run.out + i, other);
                }
            }
        }
    }

    /// `GEN_INDEX`: the coordinate along the axis.
    fn indices(&self) -> Result<Estimate, String> {
        let rank = self.output.len();
        let axis = self
            .parameters
            .axis
            .and_then(|axis| usize::try_from(axis).ok())
            .filter(|&axis| axis < rank)
            .ok_or_else(|| format!("axis {:?} of {rank}", self.parameters.axis))?;
        let extent = |dims: &[i64]| {
            dims.iter()
                .map(|&dim| dim.max(0) as usize)
                .product::<usize>()
        };
        let (elements, inner) = (extent(self.output), extent(&self.output[axis + 1..]));
        let along = self.output[axis].max(1) as usize;
        let value: Array<f64> = (0..elements).map(|i| (i / inner % along) as f64).collect();
        Ok(Estimate::exact(value))
    }
}

/// What a task found besides values and errors.
#[derive(Default)]
struct Found {
    undecided: usize,
    also: Vec<Alternative>,
}

impl Found {
    fn add(&mut self, index: usize, value: f64) {
        let other = Alternative { index, value };
        let same =
            |known: &Alternative| known.index == index && known.value.to_bits() == value.to_bits();
        if !self.also.iter().rev().take(8).any(same) {
            self.also.push(other);
        }
    }
}
