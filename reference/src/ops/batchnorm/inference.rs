//! Inference, with the inverse standard deviation or with the variance given.

use super::channels::{Bounds, Shape};
use super::element::{Affine, Uncertain};
use crate::estimate::Estimate;
use crate::ops::operand::{Operand, any_overflow};

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
    pub bounds: Bounds<'a>,
}

/// Mean, inverse deviation, scale and bias.
pub(super) type Parameters = (Uncertain, Uncertain, Uncertain, Uncertain);

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
        let bounds = &self.bounds;
        let channel = |c| {
            let (mean, inverse, scale, bias) = self.parameters(bounds, c);
            Affine::new(bounds, mean, inverse, scale, bias)
        };
        let channels: Vec<Affine> = (0..self.shape.channels).map(channel).collect();
        let mut estimate = self.shape.each_element(bounds.wanted, [&self.x], |c| {
            let affine = channels[c];
            #[inline(always)]
            move |[x]: [f64; 1], [x_error]: [f64; 1]| affine.at(x, x_error)
        });
        let operands = [&self.mean, spread, &self.scale, &self.bias];
        let marked = self.shape.channels_with_alternatives(&operands);
        estimate.also = self.shape.whole_channels(&marked);
        let single = self.x.also.iter().map(|other| other.index);
        estimate.also.extend(single.flat_map(any_overflow));
        estimate.also.sort_by_key(|other| other.index);
        Ok(estimate)
    }

    /// Mean, inverse deviation, scale and bias of a channel, each with its error; that of the inverse
    /// is relative.
    pub(super) fn parameters(&self, bounds: &Bounds<'_>, c: usize) -> Parameters {
        let inverse = match &self.spread {
            Spread::Inverse(inverse) => (inverse.value[c], inverse.relative_error_at(c)),
            Spread::Variance(variance, epsilon) => {
                let sum = variance.value[c] + epsilon;
                let carried = inverse_root_change(sum, variance.error_at(c));
                (1.0 / sum.sqrt(), bounds.inverse_root() + carried)
            }
        };
        let of = |operand: &Operand<'_>| (operand.value[c], operand.error_at(c));
        (of(&self.mean), inverse, of(&self.scale), of(&self.bias))
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
