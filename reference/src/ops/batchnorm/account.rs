//! The numbers behind the bound of one batchnorm result.

use super::backward::Backward;
use super::channels::{Bounds, Shape};
use super::inference::Inference;
use super::training::{Statistics, Training};
use crate::ops::account::Figures;

/// Which result of a batchnorm node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Result {
    /// y of training.
    Y,
    /// The batch's mean.
    Mean,
    /// The batch's inverse standard deviation.
    Inverse,
    /// The next running mean.
    RunningMean,
    /// The next running variance.
    RunningVariance,
    /// The gradient of x.
    Dx,
    /// The gradient of scale.
    Dscale,
    /// The gradient of bias.
    Dbias,
}

/// One channel's parameters as y = scale·(x − mean)·inverse + bias reads them.
struct Affine {
    mean: (f64, f64),
    /// With its relative error.
    inverse: (f64, f64),
    scale: (f64, f64),
    bias: (f64, f64),
}

impl Affine {
    /// The three terms at x, and what adds up to y's uncertainty.
    fn account(&self, bounds: &Bounds<'_>, (x, x_error): (f64, f64), figures: &mut Figures) {
        let ((mean, mean_error), (inverse, inverse_error)) = (self.mean, self.inverse);
        let ((scale, scale_error), (bias, bias_error)) = (self.scale, self.bias);
        let factor = scale * inverse;
        let normal = (x - mean) * inverse;
        let y = scale * normal + bias;
        figures.add_uncertain("x", x, x_error);
        figures.add_uncertain("mean", mean, mean_error);
        figures.add_uncertain(
            "inverse standard deviation",
            inverse,
            inverse * inverse_error,
        );
        figures.add_uncertain("scale", scale, scale_error);
        figures.add_uncertain("bias", bias, bias_error);
        figures.add("x̂ = (x − mean)·inverse", normal);
        let terms = [factor * x, factor * mean, bias];
        for (name, term) in ["a·x, a = scale·inverse", "a·mean"].into_iter().zip(terms) {
            figures.add(name, term);
        }
        figures.add(
            "Q of the three terms",
            terms.iter().map(|t| t * t).sum::<f64>().sqrt(),
        );
        figures.add("u of the compute type", bounds.u());
        figures.part(
            "sum of three terms: c·u·√3·(|y| + Q)",
            bounds.three(y, terms),
        );
        let moved = (x_error + mean_error) * (1.0 + inverse_error);
        figures.part("e of x and of the mean, times |a|", factor.abs() * moved);
        figures.part(
            "relative e of the inverse deviation, times |scale·x̂|",
            (scale * normal).abs() * inverse_error,
        );
        figures.part(
            "e of scale and bias",
            normal.abs() * scale_error + bias_error,
        );
    }
}

impl Statistics {
    fn account(&self, count: f64, figures: &mut Figures) {
        figures.add("M, elements of the channel", count);
        figures.add_uncertain("mean of the batch", self.mean, self.mean_error);
        figures.add_uncertain("variance of the batch", self.variance, self.variance_error);
    }
}

impl Inference<'_> {
    /// The numbers of element `index` of y.
    pub fn account(&self, index: usize) -> Figures {
        let bounds = &self.bounds;
        let (mean, inverse, scale, bias) = self.parameters(bounds, channel(&self.shape, index));
        let affine = Affine {
            mean,
            inverse,
            scale,
            bias,
        };
        let mut figures = Figures::default();
        let x = (self.x.value[index], self.x.error_at(index));
        affine.account(bounds, x, &mut figures);
        figures
    }
}

impl Training<'_> {
    /// The numbers of element `index` of a result.
    pub fn account(&self, result: Result, index: usize) -> Figures {
        let bounds = &self.bounds;
        let c = if result == Result::Y {
            channel(&self.shape, index)
        } else {
            index
        };
        let own = Statistics::of(bounds, &self.shape, &self.x, c, self.epsilon);
        let count = self.shape.count() as f64;
        let mut figures = Figures::default();
        own.account(count, &mut figures);
        figures.add("epsilon", self.epsilon);
        match result {
            Result::Y => Affine {
                mean: (own.mean, own.mean_error),
                inverse: (own.inverse, own.inverse_error),
                scale: (self.scale.value[c], self.scale.error_at(c)),
                bias: (self.bias.value[c], self.bias.error_at(c)),
            }
            .account(
                bounds,
                (self.x.value[index], self.x.error_at(index)),
                &mut figures,
            ),
            Result::Mean => {
                figures.add("u of the compute type", bounds.u());
                figures.part(
                    "e of the mean: the sum's over M, and the division",
                    own.mean_error,
                );
            }
            Result::Inverse => {
                let root = own.inverse * bounds.inverse_root();
                figures.part("1/√ itself: one sum and the function", root);
                figures.part(
                    "e of the variance through 1/√(variance + ε)",
                    own.inverse * own.inverse_error - root,
                );
            }
            _ => self.running_account(bounds, result, c, &own, &mut figures),
        }
        figures
    }

    fn running_account(
        &self,
        bounds: &Bounds<'_>,
        result: Result,
        c: usize,
        own: &Statistics,
        figures: &mut Figures,
    ) {
        let Some(running) = &self.running else { return };
        let m = running.momentum;
        let count = self.shape.count() as f64;
        let unbiased = if count > 1.0 {
            count / (count - 1.0)
        } else {
            1.0
        };
        let (previous, batch, error) = match result {
            Result::RunningMean => (&running.mean, own.mean, own.mean_error),
            _ => {
                let batch = unbiased * own.variance;
                let error = unbiased * own.variance_error + 3.0 * bounds.u() * batch;
                (&running.variance, batch, error)
            }
        };
        let (kept, new) = ((1.0 - m) * previous.value[c], m * batch);
        let q = (previous.value[c] * m).abs().max(kept.abs()).hypot(new);
        figures.add("momentum m", m);
        figures.add_uncertain("previous", previous.value[c], previous.error_at(c));
        figures.add_uncertain("of the batch, unbiased", batch, error);
        figures.part(
            "sum of two terms: c·u·√2·(|y| + Q)",
            bounds.sum.random(2.0, kept + new, q),
        );
        figures.part("m·e of the batch", m.abs() * error);
        figures.part(
            "(1 − m)·e of the previous",
            (1.0 - m).abs() * previous.error_at(c),
        );
    }
}

impl Backward<'_> {
    /// The numbers of element `index` of a result.
    pub fn account(&self, result: Result, index: usize) -> Figures {
        let bounds = &self.bounds;
        let c = if result == Result::Dx {
            channel(&self.shape, index)
        } else {
            index
        };
        let own = self.sums(bounds, c);
        let count = self.shape.count() as f64;
        let mut figures = Figures::default();
        figures.add("M, elements of the channel", count);
        figures.add_uncertain("mean", own.mean.0, own.mean.1);
        figures.add_uncertain(
            "inverse standard deviation",
            own.inverse.0,
            own.inverse.0 * own.inverse.1,
        );
        figures.add_uncertain("dbias = Σdy", own.dbias.0, own.dbias.1);
        figures.add_uncertain("dscale = Σdy·x̂", own.dscale.0, own.dscale.1);
        figures.add("u of the compute type", bounds.u());
        match result {
            Result::Dbias => figures.part("the sum's rounding, and e of dy", own.dbias.1),
            Result::Dscale => {
                figures.part(
                    "the sum's rounding, its terms', and e of mean, inverse, x, dy",
                    own.dscale.1,
                );
            }
            _ => self.dx_account(bounds, index, c, &own, &mut figures),
        }
        figures
    }

    fn dx_account(
        &self,
        bounds: &Bounds<'_>,
        index: usize,
        c: usize,
        own: &super::element::Sums,
        figures: &mut Figures,
    ) {
        let count = self.shape.count() as f64;
        let ((mean, mean_error), (inverse, inverse_error)) = (own.mean, own.inverse);
        let (x, x_error) = (self.x.value[index], self.x.error_at(index));
        let (dy, dy_error) = (self.dy.value[index], self.dy.error_at(index));
        let factor = self.scale.value[c] * inverse;
        let scale_error = self.scale.error_at(c) * inverse;
        let normal = (x - mean) * inverse;
        let (shift, tilt) = (own.dbias.0 / count, normal * own.dscale.0 / count);
        let inner = dy - shift - tilt;
        let terms = [factor * dy, factor * shift, factor * tilt];
        let normal_error = inverse * (x_error + mean_error) + normal.abs() * inverse_error;
        figures.add_uncertain("dy", dy, dy_error);
        figures.add_uncertain("x̂ = (x − mean)·inverse", normal, normal_error);
        figures.add("a = scale·inverse", factor);
        figures.add("a·dy", terms[0]);
        figures.add("a·dbias/M", terms[1]);
        figures.add("a·x̂·dscale/M", terms[2]);
        let steps = bounds.u() * (2.0 * terms[1].abs() + 6.0 * terms[2].abs());
        figures.part(
            "sum of three terms, and the steps to them",
            bounds.three(factor * inner, terms) + steps,
        );
        let around = (factor.abs() + scale_error) * (1.0 + inverse_error);
        figures.part("e of dy", around * dy_error);
        figures.part("e of dbias over M", around * own.dbias.1 / count);
        figures.part(
            "e of dscale over M",
            around * (normal.abs() + normal_error) * own.dscale.1 / count,
        );
        figures.part("e of x̂", around * normal_error * own.dscale.0.abs() / count);
        figures.part(
            "relative e of the inverse deviation, and e of scale",
            (factor * inner).abs() * inverse_error + inner.abs() * scale_error,
        );
    }
}

fn channel(shape: &Shape, index: usize) -> usize {
    index / shape.plane.max(1) % shape.channels.max(1)
}
