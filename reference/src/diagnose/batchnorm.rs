//! Batch normalisation by formulas that are not quite right.

use super::scene::{Reading, Scene, Suspect};
use crate::estimate::{Estimate, round_up};
use dnn_assay_graph::Attributes;
use dnn_assay_graph::schema::{BatchnormAttributes, BatchnormBackwardAttributes};
use std::collections::BTreeMap;

/// ε where a node has no tensor for it.
const DEFAULT_EPSILON: f64 = 1e-5;

/// Roundings of f32 that a short formula may have.
const FEW: f64 = 16.0 / 16_777_216.0;

/// `[N, C, S…]`.
#[derive(Clone, Copy)]
struct Shape {
    batch: usize,
    channels: usize,
    plane: usize,
}

impl Shape {
    fn of(dims: &[i64]) -> Option<Self> {
        let [batch, channels, spatial @ ..] = dims else {
            return None;
        };
        let plane = spatial.iter().map(|&dim| dim.max(0) as usize).product();
        Some(Self {
            batch: usize::try_from(*batch).ok()?,
            channels: usize::try_from(*channels).ok()?,
            plane,
        })
    }

    fn count(&self) -> f64 {
        (self.batch * self.plane) as f64
    }

    /// Elements of a channel of these images.
    fn channel(
        self,
        channel: usize,
        images: std::ops::Range<usize>,
    ) -> impl Iterator<Item = usize> + Clone {
        images.flat_map(move |image| {
            let start = (image * self.channels + channel) * self.plane;
            start..start + self.plane
        })
    }

    fn place(&self, element: usize) -> (usize, usize) {
        let row = element / self.plane.max(1);
        (row / self.channels, row % self.channels)
    }
}

fn moments(values: &[f64], elements: impl Iterator<Item = usize> + Clone) -> (f64, f64) {
    let (count, sum) = elements
        .clone()
        .fold((0.0, 0.0), |(n, sum), i| (n + 1.0, sum + values[i]));
    let mean = sum / f64::max(count, 1.0);
    let squares: f64 = elements.map(|i| (values[i] - mean).powi(2)).sum();
    (mean, squares / f64::max(count, 1.0))
}

/// A training node whose x is an input.
struct Training<'a> {
    scene: &'a Scene<'a>,
    node: &'a BatchnormAttributes,
    shape: Shape,
    x: &'a [f64],
    scale: &'a [f64],
    bias: &'a [f64],
    epsilon: f64,
}

/// What an engine takes for the statistics of one channel of one image.
#[derive(Clone, Copy)]
struct Statistics {
    mean: f64,
    variance: f64,
}

impl<'a> Training<'a> {
    fn of(scene: &'a Scene<'a>) -> Option<Self> {
        let node = scene
            .graph
            .nodes
            .iter()
            .find_map(|node| match &node.attributes {
                Attributes::Batchnorm(table) => Some(table),
                _ => None,
            })?;
        let (tensor, x) = scene.input(node.x_tensor_uid)?;
        let shape = Shape::of(&tensor.dims)?;
        let (scale, bias) = (
            scene.input(node.scale_tensor_uid)?.1,
            scene.input(node.bias_tensor_uid)?.1,
        );
        let fits = scale.len() == shape.channels && bias.len() == shape.channels;
        fits.then_some(Self {
            scene,
            node,
            shape,
            x,
            scale,
            bias,
            epsilon: scene.scalar(node.epsilon_tensor_uid)?,
        })
    }

    fn unbiased(&self) -> f64 {
        let count = self.shape.count();
        if count > 1.0 {
            count / (count - 1.0)
        } else {
            1.0
        }
    }

    /// Mean and biased variance of a channel over all images.
    fn truth(&self, channel: usize) -> Statistics {
        self.of_images(channel, 0..self.shape.batch)
    }

    fn of_images(&self, channel: usize, images: std::ops::Range<usize>) -> Statistics {
        let (mean, variance) = moments(self.x, self.shape.channel(channel, images));
        Statistics { mean, variance }
    }

    fn inverse(&self, variance: f64) -> f64 {
        1.0 / (variance + self.epsilon).sqrt()
    }

    /// All outputs from other statistics, and another way from variance to its inverse.
    fn outputs(
        &self,
        statistics: impl Fn(usize, usize) -> Statistics,
        inverse: impl Fn(f64) -> f64,
    ) -> Vec<Suspect> {
        let shape = self.shape;
        let rows: Vec<Statistics> = (0..shape.batch * shape.channels)
            .map(|row| statistics(row / shape.channels, row % shape.channels))
            .collect();
        let first = rows.get(..shape.channels).unwrap_or_default();
        let mut estimates = BTreeMap::new();
        let y = self.x.iter().enumerate().map(|(element, &x)| {
            let (image, channel) = shape.place(element);
            let row = rows[image * shape.channels + channel];
            let factor = self.scale[channel] * inverse(row.variance);
            let y = factor * (x - row.mean) + self.bias[channel];
            let terms = (factor * x).abs() + (factor * row.mean).abs() + self.bias[channel].abs();
            (y, FEW * terms)
        });
        estimates.insert(
            self.node.y_tensor_uid,
            self.widened(self.node.y_tensor_uid, y),
        );
        let means = first
            .iter()
            .map(|row| (row.mean, FEW * (row.mean.abs() + row.variance.sqrt())));
        let inverses = first.iter().map(|row| {
            let inverse = inverse(row.variance);
            (inverse, FEW * inverse)
        });
        if let Some(uid) = self.node.mean_tensor_uid {
            estimates.insert(uid, self.widened(uid, means));
        }
        if let Some(uid) = self.node.inv_variance_tensor_uid {
            estimates.insert(uid, self.widened(uid, inverses));
        }
        estimates.extend(self.running(first));
        vec![Suspect::Outputs(estimates)]
    }

    /// Running statistics after the step.
    fn running(&self, first: &[Statistics]) -> BTreeMap<i64, Estimate> {
        let momentum = self
            .node
            .momentum_tensor_uid
            .and_then(|uid| self.scene.scalar(uid));
        let Some(momentum) = momentum else {
            return BTreeMap::new();
        };
        let unbiased = self.unbiased();
        let pairs = [
            (
                self.node.prev_running_mean_tensor_uid,
                self.node.next_running_mean_tensor_uid,
                first.iter().map(|row| row.mean).collect::<Vec<_>>(),
            ),
            (
                self.node.prev_running_variance_tensor_uid,
                self.node.next_running_variance_tensor_uid,
                first.iter().map(|row| row.variance * unbiased).collect(),
            ),
        ];
        let mut estimates = BTreeMap::new();
        for (previous, next, batch) in pairs {
            let previous = previous.and_then(|uid| self.scene.input(uid));
            if let (Some((_, previous)), Some(next)) = (previous, next) {
                let values = previous.iter().zip(&batch).map(|(previous, batch)| {
                    let (kept, new) = ((1.0 - momentum) * previous, momentum * batch);
                    (kept + new, FEW * (kept.abs() + new.abs()))
                });
                estimates.insert(next, self.widened(next, values));
            }
        }
        estimates
    }

    /// Values with errors that are at least those of the true output's elements.
    fn widened(&self, uid: i64, values: impl Iterator<Item = (f64, f64)>) -> Estimate {
        let truth = self.scene.truth(uid);
        let (value, error): (Vec<f64>, Vec<f32>) = values
            .enumerate()
            .map(|(index, (value, error))| {
                let known = truth.and_then(|truth| truth.error.get(index)).copied();
                (value, known.unwrap_or(0.0).max(round_up(error)))
            })
            .unzip();
        Estimate::new(value.into(), error.into())
    }
}

pub(super) fn unbiased_variance(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some(node) = Training::of(scene) else {
        return Vec::new();
    };
    let channels: Vec<Statistics> = (0..node.shape.channels).map(|c| node.truth(c)).collect();
    let unbiased = node.unbiased();
    node.outputs(
        |_, c| channels[c],
        |variance| 1.0 / (variance * unbiased + node.epsilon).sqrt(),
    )
}

pub(super) fn biased_running_variance(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some(node) = Training::of(scene) else {
        return Vec::new();
    };
    let channels: Vec<Statistics> = (0..node.shape.channels)
        .map(|c| {
            let Statistics { mean, variance } = node.truth(c);
            Statistics {
                mean,
                variance: variance / node.unbiased(),
            }
        })
        .collect();
    let mut estimates = node.running(&channels);
    estimates.retain(|uid, _| Some(*uid) == node.node.next_running_variance_tensor_uid);
    vec![Suspect::Outputs(estimates)]
}

/// 1/(√v + ε), wherever the variance is given or computed.
pub(super) fn epsilon_outside_root(scene: &Scene<'_>) -> Vec<Suspect> {
    if let Some(node) = Training::of(scene) {
        let channels: Vec<Statistics> = (0..node.shape.channels).map(|c| node.truth(c)).collect();
        return node.outputs(
            |_, c| channels[c],
            |variance| 1.0 / (variance.sqrt() + node.epsilon),
        );
    }
    with_variance(scene, |variance, epsilon| {
        (variance.sqrt() + epsilon).powi(2) - epsilon
    })
}

/// The variance of an inference node through a function of itself and ε.
fn with_variance(scene: &Scene<'_>, edit: fn(f64, f64) -> f64) -> Vec<Suspect> {
    let found = scene
        .graph
        .nodes
        .iter()
        .find_map(|node| match &node.attributes {
            Attributes::BatchnormInferenceVariance(a) => {
                Some((a.variance_tensor_uid, a.epsilon_tensor_uid))
            }
            _ => None,
        });
    let suspect = found.and_then(|(variance, epsilon)| {
        let epsilon = scene.scalar(epsilon)?;
        let read = Reading::mapped(move |value| edit(value, epsilon));
        scene.with_input(variance, read)
    });
    suspect.into_iter().collect()
}

/// ε of any node with one.
fn epsilon(scene: &Scene<'_>) -> Option<i64> {
    scene
        .graph
        .nodes
        .iter()
        .find_map(|node| match &node.attributes {
            Attributes::Batchnorm(a) => Some(a.epsilon_tensor_uid),
            Attributes::BatchnormInferenceVariance(a) => Some(a.epsilon_tensor_uid),
            _ => None,
        })
}

pub(super) fn epsilon_missing(scene: &Scene<'_>) -> Vec<Suspect> {
    epsilon(scene)
        .and_then(|uid| scene.with_scalar(uid, 0.0))
        .into_iter()
        .collect()
}

pub(super) fn epsilon_fixed(scene: &Scene<'_>) -> Vec<Suspect> {
    [1e-5, 1e-3]
        .into_iter()
        .filter_map(|value| scene.with_scalar(epsilon(scene)?, value))
        .collect()
}

pub(super) fn momentum_reversed(scene: &Scene<'_>) -> Vec<Suspect> {
    let suspect = Training::of(scene).and_then(|node| {
        let uid = node.node.momentum_tensor_uid?;
        scene.with_scalar(uid, 1.0 - scene.scalar(uid)?)
    });
    suspect.into_iter().collect()
}

/// The variance where its inverse root belongs, and the reverse.
pub(super) fn variance_for_inverse(scene: &Scene<'_>) -> Vec<Suspect> {
    if let Some(node) = Training::of(scene) {
        let Some(uid) = node.node.inv_variance_tensor_uid else {
            return Vec::new();
        };
        let saved = |added: f64| {
            let values = (0..node.shape.channels).map(|c| {
                let variance = node.truth(c).variance + added;
                (variance, 4.0 * FEW * variance)
            });
            Suspect::Outputs(BTreeMap::from([(uid, node.widened(uid, values))]))
        };
        return vec![saved(0.0), saved(node.epsilon)];
    }
    let given = scene
        .graph
        .nodes
        .iter()
        .find_map(|node| match &node.attributes {
            Attributes::BatchnormInference(a) => Some(a.inv_variance_tensor_uid),
            Attributes::BatchnormBackward(a) => a.inv_variance_tensor_uid,
            _ => None,
        });
    let Some(uid) = given else {
        return with_variance(scene, |variance, epsilon| 1.0 / variance.powi(2) - epsilon);
    };
    [DEFAULT_EPSILON, 0.0]
        .into_iter()
        .filter_map(|epsilon| {
            let read = Reading::mapped(move |value| 1.0 / (value + epsilon).sqrt());
            scene.with_input(uid, read)
        })
        .collect()
}

/// Statistics of the first image.
pub(super) fn first_image(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some(node) = Training::of(scene).filter(|node| node.shape.batch > 1) else {
        return Vec::new();
    };
    let first: Vec<Statistics> = (0..node.shape.channels)
        .map(|c| node.of_images(c, 0..1))
        .collect();
    node.outputs(|_, c| first[c], |variance| node.inverse(variance))
}

/// Statistics of each image alone, or of all channels together.
pub(super) fn statistics_axes(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some(node) = Training::of(scene) else {
        return Vec::new();
    };
    let inverse = |variance: f64| node.inverse(variance);
    let mut suspects = Vec::new();
    if node.shape.batch > 1 {
        suspects.extend(node.outputs(|image, c| node.of_images(c, image..image + 1), inverse));
    }
    if node.shape.channels > 1 {
        let (mean, variance) = moments(node.x, 0..node.x.len());
        suspects.extend(node.outputs(|_, _| Statistics { mean, variance }, inverse));
    }
    suspects
}

/// Parameters that the node has, set to one value.
fn with_parameter(
    scene: &Scene<'_>,
    pick: fn(&Attributes) -> Option<i64>,
    value: f64,
) -> Vec<Suspect> {
    let uid = scene
        .graph
        .nodes
        .iter()
        .find_map(|node| pick(&node.attributes));
    let suspect = uid.and_then(|uid| scene.with_input(uid, Reading::mapped(move |_| value)));
    suspect.into_iter().collect()
}

pub(super) fn scale_missing(scene: &Scene<'_>) -> Vec<Suspect> {
    with_parameter(
        scene,
        |attributes| match attributes {
            Attributes::Batchnorm(a) => Some(a.scale_tensor_uid),
            Attributes::BatchnormInference(a) => Some(a.scale_tensor_uid),
            Attributes::BatchnormInferenceVariance(a) => Some(a.scale_tensor_uid),
            Attributes::BatchnormBackward(a) => Some(a.scale_tensor_uid),
            _ => None,
        },
        1.0,
    )
}

pub(super) fn shift_missing(scene: &Scene<'_>) -> Vec<Suspect> {
    with_parameter(
        scene,
        |attributes| match attributes {
            Attributes::Batchnorm(a) => Some(a.bias_tensor_uid),
            Attributes::BatchnormInference(a) => Some(a.bias_tensor_uid),
            Attributes::BatchnormInferenceVariance(a) => Some(a.bias_tensor_uid),
            _ => None,
        },
        0.0,
    )
}

fn backward<'a>(scene: &Scene<'a>) -> Option<&'a BatchnormBackwardAttributes> {
    scene
        .graph
        .nodes
        .iter()
        .find_map(|node| match &node.attributes {
            Attributes::BatchnormBackward(table) => Some(table),
            _ => None,
        })
}

pub(super) fn gradients_swapped(scene: &Scene<'_>) -> Vec<Suspect> {
    let swapped = backward(scene).and_then(|node| {
        let of = |uid: i64| scene.truth(uid).cloned();
        let (scale, bias) = (node.dscale_tensor_uid, node.dbias_tensor_uid);
        Some(Suspect::Outputs(BTreeMap::from([
            (scale, of(bias)?),
            (bias, of(scale)?),
        ])))
    });
    swapped.into_iter().collect()
}

pub(super) fn mean_term_missing(scene: &Scene<'_>) -> Vec<Suspect> {
    without_terms(scene, true, false)
}

pub(super) fn scale_term_missing(scene: &Scene<'_>) -> Vec<Suspect> {
    without_terms(scene, false, true)
}

/// Neither term: dx as inference would have it.
pub(super) fn statistics_terms_missing(scene: &Scene<'_>) -> Vec<Suspect> {
    without_terms(scene, true, true)
}

fn without_terms(scene: &Scene<'_>, mean_term: bool, scale_term: bool) -> Vec<Suspect> {
    gradient_without(scene, mean_term, scale_term)
        .into_iter()
        .collect()
}

/// dx without the term of dbias, of dscale, or both.
fn gradient_without(scene: &Scene<'_>, mean_term: bool, scale_term: bool) -> Option<Suspect> {
    let node = backward(scene)?;
    let (tensor, x) = scene.input(node.x_tensor_uid)?;
    let shape = Shape::of(&tensor.dims)?;
    let scale = scene.input(node.scale_tensor_uid)?.1;
    let truth = |uid: i64| scene.truth(uid);
    let dx = truth(node.dx_tensor_uid)?;
    let (dscale, dbias) = (
        truth(node.dscale_tensor_uid)?,
        truth(node.dbias_tensor_uid)?,
    );
    let saved = match (node.mean_tensor_uid, node.inv_variance_tensor_uid) {
        (Some(mean), Some(inverse)) => Some((scene.input(mean)?.1, scene.input(inverse)?.1)),
        _ => None,
    };
    let channels: Vec<(f64, f64)> = (0..shape.channels)
        .map(|c| match saved {
            Some((mean, inverse)) => (mean[c], inverse[c]),
            None => {
                let (mean, variance) = moments(x, shape.channel(c, 0..shape.batch));
                (mean, 1.0 / (variance + DEFAULT_EPSILON).sqrt())
            }
        })
        .collect();
    let count = shape.count();
    let (value, error): (Vec<f64>, Vec<f32>) = x
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let (_, c) = shape.place(i);
            let (mean, inverse) = channels[c];
            let factor = scale[c] * inverse;
            let shift = if mean_term {
                factor * dbias.value[c] / count
            } else {
                0.0
            };
            let normal = (x - mean) * inverse;
            let tilt = if scale_term {
                factor * normal * dscale.value[c] / count
            } else {
                0.0
            };
            let error = f64::from(dx.error[i]) + FEW * (shift.abs() + tilt.abs());
            (dx.value[i] + shift + tilt, round_up(error))
        })
        .unzip();
    Some(Suspect::Outputs(BTreeMap::from([(
        node.dx_tensor_uid,
        Estimate::new(value.into(), error.into()),
    )])))
}
