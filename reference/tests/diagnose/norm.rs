//! Batch normalisation with one fault, and the other directions of convolution.

use crate::trial::Trial;
use rstest::rstest;

/// `[N, C, S]`.
#[derive(Clone, Copy)]
struct Shape {
    batch: usize,
    channels: usize,
    plane: usize,
}

impl Shape {
    fn of(trial: &Trial) -> Self {
        let dims = &trial.tensor("x").dims;
        Self {
            batch: dims[0] as usize,
            channels: dims[1] as usize,
            plane: dims[2..].iter().product::<i64>() as usize,
        }
    }

    fn channel_of(self, index: usize) -> usize {
        index / self.plane % self.channels
    }

    fn image_of(self, index: usize) -> usize {
        index / self.plane / self.channels
    }

    fn count(self) -> f64 {
        (self.batch * self.plane) as f64
    }

    /// Sum of `term` over the elements that are `taken`.
    fn sum(self, taken: impl Fn(usize) -> bool, term: impl Fn(usize) -> f64) -> (f64, f64) {
        let all = 0..self.batch * self.channels * self.plane;
        all.filter(|&i| taken(i))
            .fold((0.0, 0.0), |(n, sum), i| (n + 1.0, sum + term(i)))
    }

    fn moments(self, x: &[f64], taken: impl Fn(usize) -> bool + Copy) -> (f64, f64) {
        let (count, sum) = self.sum(taken, |i| x[i]);
        let mean = sum / count;
        (mean, self.sum(taken, |i| (x[i] - mean).powi(2)).1 / count)
    }
}

/// Everything that training writes, by formulas with holes.
struct Training {
    y: Vec<f64>,
    mean: Vec<f64>,
    inverse: Vec<f64>,
    running_mean: Vec<f64>,
    running_variance: Vec<f64>,
}

/// The formulas of training: which elements count for (channel, element), from variance to its
/// inverse root, from the variance to the one that is kept, momentum.
struct Formulas {
    images: fn(usize) -> bool,
    inverse: fn(f64, f64, f64) -> f64,
    kept: fn(f64, f64) -> f64,
    momentum: fn(f64) -> f64,
}

const RIGHT: Formulas = Formulas {
    images: |_| true,
    inverse: |variance: f64, epsilon: f64, _| 1.0 / (variance + epsilon).sqrt(),
    kept: |variance, count| variance * count / (count - 1.0),
    momentum: |m| m,
};

fn training(trial: &Trial, formulas: &Formulas) -> Training {
    let shape = Shape::of(trial);
    let (x, scale, bias) = (trial.input("x"), trial.input("scale"), trial.input("bias"));
    let (epsilon, momentum) = (
        trial.scalar("epsilon"),
        (formulas.momentum)(trial.scalar("momentum")),
    );
    let (mean, variance): (Vec<f64>, Vec<f64>) = (0..shape.channels)
        .map(|c| {
            shape.moments(x, |i| {
                shape.channel_of(i) == c && (formulas.images)(shape.image_of(i))
            })
        })
        .unzip();
    let inverse: Vec<f64> = variance
        .iter()
        .map(|&v| (formulas.inverse)(v, epsilon, shape.count()))
        .collect();
    let y = x.iter().enumerate().map(|(i, x)| {
        let c = shape.channel_of(i);
        scale[c] * (x - mean[c]) * inverse[c] + bias[c]
    });
    let step = |previous: &[f64], batch: Vec<f64>| -> Vec<f64> {
        let pairs = previous.iter().zip(batch);
        pairs
            .map(|(p, b)| (1.0 - momentum) * p + momentum * b)
            .collect()
    };
    let kept = variance
        .iter()
        .map(|&v| (formulas.kept)(v, shape.count()))
        .collect();
    Training {
        y: y.collect(),
        running_mean: step(trial.input("prev_running_mean"), mean.clone()),
        running_variance: step(trial.input("prev_running_variance"), kept),
        mean,
        inverse,
    }
}

impl Training {
    fn outputs(self) -> Vec<(&'static str, Vec<f64>)> {
        vec![
            ("y", self.y),
            ("mean", self.mean),
            ("inv_variance", self.inverse),
            ("next_running_mean", self.running_mean),
            ("next_running_variance", self.running_variance),
        ]
    }
}

#[rstest]
#[case("variance-unbiased", Formulas {
    inverse: |v: f64, epsilon: f64, count: f64| 1.0 / (v * count / (count - 1.0) + epsilon).sqrt(), ..RIGHT })]
#[case("running-variance-biased", Formulas { kept: |v: f64, _| v, ..RIGHT })]
#[case("epsilon-missing", Formulas { inverse: |v: f64, _, _| 1.0 / v.sqrt(), ..RIGHT })]
#[case("epsilon-fixed", Formulas { inverse: |v: f64, _, _| 1.0 / (v + 1e-5).sqrt(), ..RIGHT })]
#[case("epsilon-outside-root", Formulas { inverse: |v: f64, epsilon: f64, _| 1.0 / (v.sqrt() + epsilon), ..RIGHT })]
#[case("momentum-reversed", Formulas { momentum: |m| 1.0 - m, ..RIGHT })]
#[case("batch-ignored", Formulas { images: |image| image == 0, ..RIGHT })]
fn formulas_of_training(#[case] id: &str, #[case] formulas: Formulas) {
    for case in [
        "batchnorm.training/f32/nchw/n2-c5-i3x4/stats-run-eps0.25-mom0.3",
        "batchnorm.training/f32/nhwc/n3-c4-i2x3/stats-run-eps0.25-mom0.3",
    ] {
        let trial = Trial::of(case);
        trial.check(&training(&trial, &formulas).outputs(), id);
    }
}

#[test]
fn the_formulas_are_right() {
    let trial = Trial::of("batchnorm.training/f32/nchw/n2-c5-i3x4/stats-run-eps0.25-mom0.3");
    for (name, values) in training(&trial, &RIGHT).outputs() {
        for (seen, right) in values.iter().zip(trial.right(name)) {
            assert!((seen - right).abs() < 1e-9 * (1.0 + right.abs()), "{name}");
        }
    }
}

#[test]
fn statistics_over_wrong_axes() {
    let trial = Trial::of("batchnorm.training/f32/nchw/n2-c5-i3x4/eps0.25");
    let shape = Shape::of(&trial);
    let (x, scale, bias) = (trial.input("x"), trial.input("scale"), trial.input("bias"));
    let epsilon = trial.scalar("epsilon");
    let of = |element: usize, all: bool| {
        let (mean, variance) = shape.moments(x, |i| {
            all || shape.channel_of(i) == shape.channel_of(element)
                && shape.image_of(i) == shape.image_of(element)
        });
        let c = shape.channel_of(element);
        scale[c] * (x[element] - mean) / (variance + epsilon).sqrt() + bias[c]
    };
    for all in [true, false] {
        let y = (0..x.len()).map(|i| of(i, all)).collect();
        trial.check(&[("y", y)], "statistics-axes");
    }
}

#[test]
fn the_variance_is_saved_for_its_inverse() {
    let trial = Trial::of("batchnorm.training/f32/nchw/n2-c5-i3x4/stats");
    let shape = Shape::of(&trial);
    let x = trial.input("x");
    let variances = (0..shape.channels).map(|c| shape.moments(x, |i| shape.channel_of(i) == c).1);
    trial.check(
        &[("inv_variance", variances.collect())],
        "variance-for-inverse",
    );
}

/// x, channel, and the parameters mean, inverse, scale, bias by channel.
#[rstest]
#[case("variance-for-inverse", |x: f64, c: usize, [m, v, s, b]: [&[f64]; 4]| s[c] * (x - m[c]) / (v[c] + 1e-5).sqrt() + b[c])]
#[case("scale-missing", |x: f64, c: usize, [m, v, _, b]: [&[f64]; 4]| (x - m[c]) * v[c] + b[c])]
#[case("norm-bias-missing", |x: f64, c: usize, [m, v, s, _]: [&[f64]; 4]| s[c] * (x - m[c]) * v[c])]
#[case("channel-off-by-one", |x: f64, c: usize, [m, v, s, b]: [&[f64]; 4]| s[(c + 1) % 5] * (x - m[c]) * v[c] + b[c])]
#[case("inputs-swapped", |x: f64, c: usize, [m, v, s, b]: [&[f64]; 4]| b[c] * (x - m[c]) * v[c] + s[c])]
fn formulas_of_inference(#[case] id: &str, #[case] f: fn(f64, usize, [&[f64]; 4]) -> f64) {
    let trial = Trial::of("batchnorm.inference/f32/nchw/n3-c5-i7x11");
    let shape = Shape::of(&trial);
    let parameters = ["mean", "inv_variance", "scale", "bias"].map(|name| trial.input(name));
    let x = trial.input("x").iter().enumerate();
    let y = x
        .map(|(i, &x)| f(x, shape.channel_of(i), parameters))
        .collect();
    trial.check(&[("y", y)], id);
}

#[test]
fn epsilon_of_inference() {
    let trial = Trial::of("batchnorm.inference_var/f32/nchw/n2-c8-i7x5/eps0.25");
    let shape = Shape::of(&trial);
    let [m, v, s, b] = ["mean", "variance", "scale", "bias"].map(|name| trial.input(name));
    let epsilon = trial.scalar("epsilon");
    let with = |inverse: &dyn Fn(f64) -> f64| -> Vec<f64> {
        let x = trial.input("x").iter().enumerate();
        x.map(|(i, x)| (i, x, shape.channel_of(i)))
            .map(|(_, x, c)| s[c] * (x - m[c]) * inverse(v[c]) + b[c])
            .collect()
    };
    trial.check(&[("y", with(&|v| 1.0 / v.sqrt()))], "epsilon-missing");
    trial.check(
        &[("y", with(&|v| 1.0 / (v.sqrt() + epsilon)))],
        "epsilon-outside-root",
    );
}

/// dy, factor (scale over σ), dbias/M, x̂·dscale/M, scale.
#[rstest]
#[case("mean-term-missing", |dy: f64, f: f64, _: f64, tilt: f64, _: f64| f * (dy - tilt))]
#[case("scale-term-missing", |dy: f64, f: f64, shift: f64, _: f64, _: f64| f * (dy - shift))]
#[case("statistics-terms-missing", |dy: f64, f: f64, _: f64, _: f64, _: f64| f * dy)]
#[case("scale-missing", |dy: f64, f: f64, shift: f64, tilt: f64, scale: f64| f / scale * (dy - shift - tilt))]
fn formulas_of_backward(#[case] id: &str, #[case] f: fn(f64, f64, f64, f64, f64) -> f64) {
    for case in [
        "batchnorm.backward/f32/nchw/n3-c5-i7x11",
        "batchnorm.backward/f32/nhwc/n3-c5-i7x11/stats",
    ] {
        let trial = Trial::of(case);
        let shape = Shape::of(&trial);
        let [x, dy, scale] = ["x", "dy", "scale"].map(|name| trial.input(name));
        let (dscale, dbias) = (trial.right("dscale"), trial.right("dbias"));
        let saved = case.ends_with("stats");
        let statistics: Vec<(f64, f64)> = (0..shape.channels)
            .map(|c| {
                if saved {
                    return (trial.input("mean")[c], trial.input("inv_variance")[c]);
                }
                let (mean, variance) = shape.moments(x, |i| shape.channel_of(i) == c);
                (mean, 1.0 / (variance + 1e-5).sqrt())
            })
            .collect();
        let dx = (0..x.len()).map(|i| {
            let c = shape.channel_of(i);
            let (mean, inverse) = statistics[c];
            let tilt = (x[i] - mean) * inverse * dscale[c] / shape.count();
            f(
                dy[i],
                scale[c] * inverse,
                dbias[c] / shape.count(),
                tilt,
                scale[c],
            )
        });
        trial.check(&[("dx", dx.collect())], id);
        let swapped = [("dscale", dbias.clone()), ("dbias", dscale.clone())];
        trial.check(&swapped, "gradients-swapped");
    }
}
