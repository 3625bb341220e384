//! Training: batch statistics, normalisation with them, running statistics.

use super::channels::{Bounds, Shape};
use super::element::Affine;
use super::inference::inverse_root_change;
use crate::estimate::{Estimate, round_up};
use crate::ops::operand::Operand;
use crate::ops::sums::Term;
use pulp::Simd;

/// Up to this |mean|/σ the sum behind a mean grows as √M; beyond, as in constant channels, its
/// roundings agree in sign and it grows as M.
const STEADY: f64 = 100.0;

/// Running statistics before the step, and the momentum.
pub(crate) struct Running<'a> {
    pub mean: Operand<'a>,
    pub variance: Operand<'a>,
    pub momentum: f64,
}

/// Training forward.
pub(crate) struct Training<'a> {
    pub shape: Shape,
    pub x: Operand<'a>,
    pub scale: Operand<'a>,
    pub bias: Operand<'a>,
    pub epsilon: f64,
    pub running: Option<Running<'a>>,
    pub bounds: Bounds<'a>,
}

/// What training gives.
pub(crate) struct TrainingResult {
    pub y: Estimate,
    pub mean: Estimate,
    pub inverse: Estimate,
    /// The next running mean and variance.
    pub running: Option<(Estimate, Estimate)>,
}

/// Batch statistics of a channel, with the errors of a correct engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statistics {
    pub mean: f64,
    pub mean_error: f64,
    /// Biased.
    pub variance: f64,
    pub variance_error: f64,
    pub inverse: f64,
    /// Relative.
    pub inverse_error: f64,
    /// A sum may overflow in the compute type, or is not finite: NaN and infinities are all right.
    pub overflows: bool,
}

/// x and |x|.
#[derive(Clone, Copy)]
struct WithMagnitude;

impl Term<1, 2> for WithMagnitude {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, [x]: [S::f64s; 1]) -> [S::f64s; 2] {
        [x, simd.abs_f64s(x)]
    }
}

/// (x − mean)² and its square.
#[derive(Clone, Copy)]
struct Deviations {
    mean: f64,
}

impl Term<1, 2> for Deviations {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, [x]: [S::f64s; 1]) -> [S::f64s; 2] {
        let deviation = simd.sub_f64s(x, simd.splat_f64s(self.mean));
        let square = simd.mul_f64s(deviation, deviation);
        [square, simd.mul_f64s(square, square)]
    }
}

impl Statistics {
    /// Two passes over channel `c` of x.
    pub fn of(bounds: &Bounds<'_>, shape: &Shape, x: &Operand<'_>, c: usize, eps: f64) -> Self {
        let values = x.value;
        let count = shape.count() as f64;
        let [total, magnitude] = shape.sums(c, [values], WithMagnitude);
        let mean = total / count;
        let deviation = |i: usize| values[i] - mean;
        let [squares, fourths] = shape.sums(c, [values], Deviations { mean });
        let variance = squares / count;
        let fourth = fourths.sqrt();
        // Σx² = Σ(x − mean)² + M·mean².
        let q = (squares + count * mean * mean).sqrt();
        let (input, input_variance) = if x.is_exact() {
            (0.0, 0.0)
        } else {
            let error = |i: usize| x.error_at(i);
            let change = |i: usize| error(i) * (2.0 * deviation(i).abs() + error(i));
            (shape.sum(c, error) / count, shape.sum(c, change) / count)
        };
        let sum = mean * count;
        let repetition = bounds.repetition(shape, c, values);
        let random = bounds.sum.random(count, sum, q);
        let worst = bounds.sum.worst(count, sum, q, magnitude);
        let sum_error = if mean.abs() > STEADY * variance.sqrt() {
            worst
        } else {
            random.max(worst.min(random * repetition))
        };
        let mean_error = sum_error / count + bounds.u() * mean.abs() + input;
        let variance_error = bounds.long(count, [squares, fourth, squares], repetition) / count
            + 4.0 * bounds.u() * variance
            + mean_error * mean_error
            + input_variance;
        let one_pass = if bounds.sum.one_pass {
            // Σx²/M − mean²: both terms round, and their difference keeps the errors.
            let second = squares / count + mean * mean;
            let spread = shape.sum(c, |i| values[i].powi(4)).sqrt();
            let total = second * count;
            bounds.long(count, [total, spread, total], repetition) / count
                + 2.0 * mean.abs() * (sum_error / count)
                + 4.0 * bounds.u() * second
        } else {
            0.0
        };
        let variance_error = variance_error + one_pass;
        // A variance from deviations is never below 0, whatever its error; a difference may be.
        let fallen = if bounds.sum.one_pass {
            variance_error
        } else {
            variance_error.min(variance)
        };
        let fall = inverse_root_change(variance + eps, fallen);
        Self {
            mean,
            mean_error,
            variance,
            variance_error,
            inverse: 1.0 / (variance + eps).sqrt(),
            inverse_error: fall + bounds.inverse_root(),
            overflows: one_pass >= variance + eps
                || !squares.is_finite()
                || squares.max(q * q) >= bounds.sum.overflow,
        }
    }
}

impl Training<'_> {
    /// # Errors
    /// A text where an operand does not have one value per channel.
    pub fn run(&self) -> Result<TrainingResult, String> {
        self.shape.per_channel("scale", &self.scale)?;
        self.shape.per_channel("bias", &self.bias)?;
        if let Some(running) = &self.running {
            self.shape.per_channel("prev_running_mean", &running.mean)?;
            self.shape
                .per_channel("prev_running_variance", &running.variance)?;
        }
        let (statistics, mut y) = self.normalise();
        let mut marked = self
            .shape
            .channels_with_alternatives(&[&self.x, &self.scale, &self.bias]);
        for (marked, channel) in marked.iter_mut().zip(&statistics) {
            *marked |= channel.overflows;
        }
        y.also = self.shape.whole_channels(&marked);
        let also = Shape::channel_values(&marked);
        let per_channel = |f: &dyn Fn(&Statistics) -> (f64, f64)| {
            let (value, error): (Vec<f64>, Vec<f32>) = statistics
                .iter()
                .map(f)
                .map(|(value, error)| (value, round_up(error)))
                .unzip();
            Estimate {
                also: also.clone(),
                ..Estimate::new(value.into(), error.into())
            }
        };
        let running = self.running.as_ref().map(|running| {
            let (mean, variance) = self.running(running, &statistics);
            let with = |estimate: Estimate| Estimate {
                also: also.clone(),
                ..estimate
            };
            (with(mean), with(variance))
        });
        Ok(TrainingResult {
            y,
            mean: per_channel(&|c| (c.mean, c.mean_error)),
            inverse: per_channel(&|c| (c.inverse, c.inverse * c.inverse_error)),
            running,
        })
    }

    /// The statistics of every channel, and y.
    fn normalise(&self) -> (Vec<Statistics>, Estimate) {
        let bounds = &self.bounds;
        let statistics = |c| Statistics::of(bounds, &self.shape, &self.x, c, self.epsilon);
        let prepare = |c: usize, own: &Statistics| {
            let affine = Affine::new(
                bounds,
                (own.mean, own.mean_error),
                (own.inverse, own.inverse_error),
                (self.scale.value[c], self.scale.error_at(c)),
                (self.bias.value[c], self.bias.error_at(c)),
            );
            #[inline(always)]
            move |[x]: [f64; 1], [x_error]: [f64; 1]| affine.at(x, x_error)
        };
        self.shape
            .each_channel_and_element(bounds.wanted, [&self.x], statistics, prepare)
    }

    /// `(1 − m)·previous + m·batch`, the variance unbiased unless the channel has one element.
    fn running(&self, running: &Running<'_>, statistics: &[Statistics]) -> (Estimate, Estimate) {
        let count = self.shape.count() as f64;
        let unbiased = if count > 1.0 {
            count / (count - 1.0)
        } else {
            1.0
        };
        let m = running.momentum;
        let step = |previous: &Operand<'_>, c: usize, batch: f64, batch_error: f64| {
            let (kept, new) = ((1.0 - m) * previous.value[c], m * batch);
            let y = kept + new;
            let q = (previous.value[c] * m).abs().max(kept.abs()).hypot(new);
            let error = self.bounds.sum.random(2.0, y, q)
                + m.abs() * batch_error
                + (1.0 - m).abs() * previous.error_at(c);
            (y, round_up(error))
        };
        let (mean, mean_error): (Vec<f64>, Vec<f32>) = statistics
            .iter()
            .enumerate()
            .map(|(c, channel)| step(&running.mean, c, channel.mean, channel.mean_error))
            .unzip();
        let (variance, variance_error): (Vec<f64>, Vec<f32>) = statistics
            .iter()
            .enumerate()
            .map(|(c, channel)| {
                let batch = unbiased * channel.variance;
                let error = unbiased * channel.variance_error + 3.0 * self.bounds.u() * batch;
                step(&running.variance, c, batch, error)
            })
            .unzip();
        (
            Estimate::new(mean.into(), mean_error.into()),
            Estimate::new(variance.into(), variance_error.into()),
        )
    }
}
