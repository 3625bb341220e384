//! Backward, with saved statistics or with statistics computed anew.

use super::channels::{Bounds, Shape};
use super::element::{Gradient, Sums};
use super::training::Statistics;
use crate::estimate::{Estimate, round_up};
use crate::ops::operand::Operand;
use crate::ops::sums::Term;
use pulp::Simd;

/// ε where the statistics are computed anew: the node has no tensor for it.
pub(crate) const DEFAULT_EPSILON: f64 = 1e-5;

/// dx, dscale and dbias from dy.
pub(crate) struct Backward<'a> {
    pub shape: Shape,
    pub dy: Operand<'a>,
    pub x: Operand<'a>,
    pub scale: Operand<'a>,
    /// Mean and inverse standard deviation.
    pub saved: Option<(Operand<'a>, Operand<'a>)>,
    pub bounds: Bounds<'a>,
}

/// What backward gives.
pub(crate) struct BackwardResult {
    pub dx: Estimate,
    pub dscale: Estimate,
    pub dbias: Estimate,
}

/// One channel.
#[derive(Clone, Copy, Debug)]
struct Channel {
    sums: Sums,
    overflows: bool,
}

/// Of dy and of x̂·dy: the term, its square and its magnitude.
#[derive(Clone, Copy)]
struct Terms {
    mean: f64,
    inverse: f64,
}

impl Term<2, 6> for Terms {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, [x, dy]: [S::f64s; 2]) -> [S::f64s; 6] {
        let deviation = simd.sub_f64s(x, simd.splat_f64s(self.mean));
        let normal = simd.mul_f64s(deviation, simd.splat_f64s(self.inverse));
        let term = simd.mul_f64s(normal, dy);
        let parts = |term| [term, simd.mul_f64s(term, term), simd.abs_f64s(term)];
        let ([a, b, c], [d, e, f]) = (parts(dy), parts(term));
        [a, b, c, d, e, f]
    }
}

impl Backward<'_> {
    /// # Errors
    /// A text where operands do not fit.
    pub fn run(&self) -> Result<BackwardResult, String> {
        self.shape.per_channel("scale", &self.scale)?;
        if let Some((mean, inverse)) = &self.saved {
            self.shape.per_channel("mean", mean)?;
            self.shape.per_channel("inv_variance", inverse)?;
        }
        if self.dy.value.len() != self.shape.elements() {
            return Err(format!("dy is {:?}, x {:?}", self.dy.dims, self.x.dims));
        }
        let (channels, mut dx) = self.channels_and_dx();
        let mut marked = self
            .shape
            .channels_with_alternatives(&[&self.dy, &self.x, &self.scale]);
        if let Some((mean, inverse)) = &self.saved {
            let saved = self.shape.channels_with_alternatives(&[mean, inverse]);
            marked
                .iter_mut()
                .zip(saved)
                .for_each(|(marked, saved)| *marked |= saved);
        }
        for (marked, channel) in marked.iter_mut().zip(&channels) {
            *marked |= channel.overflows;
        }
        dx.also = self.shape.whole_channels(&marked);
        let also = Shape::channel_values(&marked);
        let per_channel = |f: &dyn Fn(&Channel) -> (f64, f64)| {
            let (value, error): (Vec<f64>, Vec<f32>) = channels
                .iter()
                .map(f)
                .map(|(value, error)| (value, round_up(error)))
                .unzip();
            Estimate {
                also: also.clone(),
                ..Estimate::new(value.into(), error.into())
            }
        };
        Ok(BackwardResult {
            dx,
            dscale: per_channel(&|c| c.sums.dscale),
            dbias: per_channel(&|c| c.sums.dbias),
        })
    }

    /// What a channel's statistics and sums are, each with its error.
    pub(super) fn sums(&self, bounds: &Bounds<'_>, c: usize) -> Sums {
        self.channel(bounds, c).sums
    }

    /// Mean, its error, inverse standard deviation, its relative error.
    fn statistics(&self, bounds: &Bounds<'_>, c: usize) -> (f64, f64, f64, f64, bool) {
        match &self.saved {
            Some((mean, inverse)) => (
                mean.value[c],
                mean.error_at(c),
                inverse.value[c],
                inverse.relative_error_at(c),
                false,
            ),
            None => {
                let own = Statistics::of(bounds, &self.shape, &self.x, c, DEFAULT_EPSILON);
                (
                    own.mean,
                    own.mean_error,
                    own.inverse,
                    own.inverse_error,
                    own.overflows,
                )
            }
        }
    }

    fn channel(&self, bounds: &Bounds<'_>, c: usize) -> Channel {
        let (mean, mean_error, inverse, inverse_error, overflows) = self.statistics(bounds, c);
        let (x, dy, shape) = (self.x.value, self.dy.value, &self.shape);
        let count = shape.count() as f64;
        let normal = |i: usize| (x[i] - mean) * inverse;
        let sums = shape.sums(c, [x, dy], Terms { mean, inverse });
        let [
            dbias,
            dbias_squares,
            dbias_s,
            dscale,
            dscale_squares,
            dscale_s,
        ] = sums;
        let (dbias_q, dscale_q) = (dbias_squares.sqrt(), dscale_squares.sqrt());
        let (carried_dbias, carried_dscale) = self.carried(c, normal, inverse);
        let u = bounds.u();
        let dbias_error = bounds.long(
            count,
            [dbias, dbias_q, dbias_s],
            bounds.repetition(shape, c, dy),
        ) + carried_dbias;
        // Each term has three roundings of its own; an error of the mean moves every x̂ alike.
        let dscale_error = bounds.long(count, [dscale, dscale_q, dscale_s], 1.0)
            + 12.0 * u * dscale_q
            + inverse * mean_error * (dbias.abs() + carried_dbias)
            + inverse_error * (dscale.abs() + carried_dscale)
            + carried_dscale;
        Channel {
            sums: Sums {
                mean: (mean, mean_error),
                inverse: (inverse, inverse_error),
                dscale: (dscale, dscale_error),
                dbias: (dbias, dbias_error),
            },
            overflows: overflows
                || !(dbias_s + dscale_s).is_finite()
                || dbias_s.max(dscale_s) >= bounds.sum.overflow,
        }
    }

    /// What errors of dy and x add to dbias and dscale, linearly.
    fn carried(&self, c: usize, normal: impl Fn(usize) -> f64, inverse: f64) -> (f64, f64) {
        let shape = &self.shape;
        let (mut dbias, mut dscale) = (0.0, 0.0);
        if !self.dy.is_exact() {
            dbias += shape.sum(c, |i| self.dy.error_at(i));
            dscale += shape.sum(c, |i| normal(i).abs() * self.dy.error_at(i));
        }
        if !self.x.is_exact() {
            dscale += shape.sum(c, |i| {
                (self.dy.value[i].abs() + self.dy.error_at(i)) * inverse * self.x.error_at(i)
            });
        }
        (dbias, dscale)
    }

    /// The sums of every channel, and dx: `scale·inverse·(dy − dbias/M − x̂·dscale/M)`.
    fn channels_and_dx(&self) -> (Vec<Channel>, Estimate) {
        let bounds = &self.bounds;
        let count = self.shape.count() as f64;
        let prepare = |c: usize, channel: &Channel| {
            let scale = (self.scale.value[c], self.scale.error_at(c));
            let gradient = Gradient::new(bounds, &channel.sums, scale, count);
            #[inline(always)]
            move |values: [f64; 2], errors: [f64; 2]| gradient.at(values, errors)
        };
        let sums = |c| self.channel(bounds, c);
        self.shape
            .each_channel_and_element(bounds.wanted, [&self.x, &self.dy], sums, prepare)
    }
}
