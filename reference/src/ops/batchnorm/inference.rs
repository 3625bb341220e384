//! Inference, with the inverse standard deviation or with the variance given.

use super::channels::{Bounds, Shape};
use crate::arithmetic::FunctionErrors;
use crate::estimate::Estimate;
use crate::ops::operand::{Operand, any_overflow};
use crate::ops::sums::SumBound;

/// How the spread of a channel is given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spread<'a> {
    /// 1/√(variance + ε).
    Inverse(Operand<'a>),
    /// The variance, and ε.
    Variance(Operand<'a>, f64),
}

/// `y = scale·(x − mean)·inverse + bias`.
pub(crate) struct Inference<'a> {
    pub shape: Shape,
    pub x: Operand<'a>,
    pub mean: Operand<'a>,
    pub spread: Spread<'a>,
    pub scale: Operand<'a>,
    pub bias: Operand<'a>,
    pub bound: SumBound,
    pub functions: &'a FunctionErrors,
}

/// Four numbers with their errors.
pub(super) type Parameters = ((f64, f64), (f64, f64), (f64, f64), (f64, f64));

/// One channel.
#[derive(Clone, Copy)]
struct Channel {
    mean: f64,
    mean_error: f64,
    inverse: f64,
    /// Relative.
    inverse_error: f64,
    scale: f64,
    scale_error: f64,
    bias: f64,
    bias_error: f64,
}

impl Inference<'_> {
    /// # Errors
    /// A text where an operand does not have one value per channel.
    pub fn run(&self) -> Result<Estimate, String> {
        let spread = match &self.spread {
            Spread::Inverse(operand) | Spread::Variance(operand, _) => operand,
        };
        let named = [
            ("mean", &self.mean),
            ("variance", spread),
            ("scale", &self.scale),
            ("bias", &self.bias),
        ];
        for (name, operand) in named {
            self.shape.per_channel(name, operand)?;
        }
        let bounds = self.bounds();
        let channels: Vec<Channel> = (0..self.shape.channels)
            .map(|c| self.channel(&bounds, c))
            .collect();
        let mut estimate = self.shape.each_element([&self.x], |c| {
            let channel = channels[c];
            #[inline(always)]
            move |[x]: [f64; 1], [x_error]: [f64; 1]| channel.element(&bounds, x, x_error)
        });
        let operands = [&self.mean, spread, &self.scale, &self.bias];
        let marked = self.shape.channels_with_alternatives(&operands);
        estimate.also = self.shape.whole_channels(&marked);
        let single = self.x.also.iter().map(|other| other.index);
        estimate.also.extend(single.flat_map(any_overflow));
        estimate.also.sort_by_key(|other| other.index);
        Ok(estimate)
    }

    pub(super) fn bounds(&self) -> Bounds<'_> {
        Bounds {
            sum: self.bound,
            functions: self.functions,
        }
    }

    /// Mean, inverse deviation, scale and bias of a channel, each with its error; that of the inverse
    /// is relative.
    pub(super) fn parameters(&self, bounds: &Bounds<'_>, c: usize) -> Parameters {
        let own = self.channel(bounds, c);
        (
            (own.mean, own.mean_error),
            (own.inverse, own.inverse_error),
            (own.scale, own.scale_error),
            (own.bias, own.bias_error),
        )
    }

    fn channel(&self, bounds: &Bounds<'_>, c: usize) -> Channel {
        let (inverse, inverse_error) = match &self.spread {
            Spread::Inverse(inverse) => {
                let value = inverse.value[c];
                let error = inverse.error_at(c);
                (
                    value,
                    if error == 0.0 {
                        0.0
                    } else {
                        error / value.abs()
                    },
                )
            }
            Spread::Variance(variance, epsilon) => {
                let sum = variance.value[c] + epsilon;
                let carried = inverse_root_change(sum, variance.error_at(c));
                (1.0 / sum.sqrt(), bounds.inverse_root() + carried)
            }
        };
        Channel {
            mean: self.mean.value[c],
            mean_error: self.mean.error_at(c),
            inverse,
            inverse_error,
            scale: self.scale.value[c],
            scale_error: self.scale.error_at(c),
            bias: self.bias.value[c],
            bias_error: self.bias.error_at(c),
        }
    }
}

impl Channel {
    /// Value and error of y at x.
    #[inline(always)]
    fn element(&self, bounds: &Bounds<'_>, x: f64, x_error: f64) -> (f64, f64) {
        let factor = self.scale * self.inverse;
        let normal = (x - self.mean) * self.inverse;
        let y = self.scale * normal + self.bias;
        let rounding = bounds.three(y, [factor * x, factor * self.mean, self.bias]);
        let carried = factor.abs() * (x_error + self.mean_error) * (1.0 + self.inverse_error)
            + (self.scale * normal).abs() * self.inverse_error
            + normal.abs() * self.scale_error
            + self.bias_error;
        (y, rounding + carried)
    }
}

/// Relative change of 1/√v while v moves by `error`: √(v/(v − error)) − 1.
pub(super) fn inverse_root_change(v: f64, error: f64) -> f64 {
    if error == 0.0 {
        return 0.0;
    }
    if v - error <= 0.0 {
        return f64::INFINITY;
    }
    (v / (v - error)).sqrt() - 1.0
}
