//! Batch normalisation by formulas that are not quite right, in f64.

use dnn_assay_cpu_kernels::Storage;
use dnn_assay_graph::schema::{
    BatchnormAttributes, BatchnormBackwardAttributes, BatchnormInferenceAttributes,
    BatchnormInferenceAttributesVarianceExt,
};
use dnn_assay_graph::{Attributes, Graph};
use dnn_assay_plugin_sdk::Error;

use crate::fault::extents;

/// What is wrong about the formula.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BatchnormFault {
    /// Normalises by the variance over M − 1.
    UnbiasedVariance,
    /// Keeps the variance over M as the running one.
    BiasedRunningVariance,
    /// 1 / (√var + ε).
    EpsilonOutsideRoot,
    /// Takes the inverse variance for a variance (inference), or gives the variance for its
    /// inverse (training).
    VarianceForInverse,
    /// E[x²] − E[x]² in f32, on data far from zero.
    OnePassInF32,
    /// Statistics of the first image only.
    FirstImageOnly,
    /// dscale where dbias belongs and the reverse.
    GradientsSwapped,
    /// dx without the term of dbias.
    MeanTermMissing,
    /// dx without the term of dscale.
    ScaleTermMissing,
    /// dx without the factor scale.
    ScaleMissing,
}

use BatchnormFault::{
    BiasedRunningVariance, EpsilonOutsideRoot, FirstImageOnly, GradientsSwapped, MeanTermMissing,
    OnePassInF32, ScaleMissing, ScaleTermMissing, UnbiasedVariance, VarianceForInverse,
};

/// Epsilon of a backward pass that recomputes its statistics.
const DEFAULT_EPSILON: f64 = 1e-5;

/// `[N, C, spatial…]`.
struct Shape {
    batch: usize,
    channels: usize,
    spatial: usize,
}

impl Shape {
    fn of(graph: &Graph, uid: i64) -> Self {
        let dims = graph.tensor(uid).map(extents).unwrap_or_default();
        Self {
            batch: dims[0],
            channels: dims[1],
            spatial: dims[2..].iter().product(),
        }
    }

    /// Indices of a channel in the first `images` images.
    fn channel(&self, channel: usize, images: usize) -> impl Iterator<Item = usize> + '_ {
        (0..images).flat_map(move |n| {
            let start = (n * self.channels + channel) * self.spatial;
            start..start + self.spatial
        })
    }

    /// Channel of an index.
    fn channel_of(&self, index: usize) -> usize {
        index / self.spatial % self.channels
    }
}

/// Runs the graph's one node with the fault.
///
/// # Errors
/// A graph of other nodes, or what the storage says.
pub fn run(fault: BatchnormFault, storage: &dyn Storage<f64>) -> Result<(), Error> {
    match storage.graph().nodes.first().map(|node| &node.attributes) {
        Some(Attributes::Batchnorm(a)) => training(fault, a, storage),
        Some(Attributes::BatchnormBackward(a)) => backward(fault, a, storage),
        Some(Attributes::BatchnormInference(a)) => inference(fault, a, storage),
        Some(Attributes::BatchnormInferenceVariance(a)) => with_variance(fault, a, storage),
        _ => Err(Error::not_applicable(
            "the mutant is one of batchnorm nodes",
        )),
    }
}

fn inverse_root(fault: BatchnormFault, variance: f64, epsilon: f64) -> f64 {
    if fault == EpsilonOutsideRoot {
        1.0 / (variance.sqrt() + epsilon)
    } else {
        1.0 / (variance + epsilon).sqrt()
    }
}

/// Mean and variance of each channel; the variance over M.
fn statistics(fault: BatchnormFault, shape: &Shape, x: &[f64]) -> Vec<(f64, f64)> {
    let images = if fault == FirstImageOnly {
        1
    } else {
        shape.batch
    };
    let count = (images * shape.spatial) as f64;
    (0..shape.channels)
        .map(|c| {
            if fault == OnePassInF32 {
                return one_pass(shape.channel(c, images).map(|i| x[i] as f32), count as f32);
            }
            let mean = shape.channel(c, images).map(|i| x[i]).sum::<f64>() / count;
            let squares: f64 = shape
                .channel(c, images)
                .map(|i| (x[i] - mean).powi(2))
                .sum();
            (mean, squares / count)
        })
        .collect()
}

fn one_pass(values: impl Iterator<Item = f32>, count: f32) -> (f64, f64) {
    let (sum, squares) = values.fold((0f32, 0f32), |(s, q), v| (s + v, q + v * v));
    let mean = sum / count;
    (f64::from(mean), f64::from(squares / count - mean * mean))
}

fn normalise(
    shape: &Shape,
    x: &[f64],
    (mean, inverse): (&[f64], &[f64]),
    (scale, bias): (&[f64], &[f64]),
) -> Vec<f64> {
    let value = |(i, x): (usize, &f64)| {
        let c = shape.channel_of(i);
        scale[c] * (x - mean[c]) * inverse[c] + bias[c]
    };
    x.iter().enumerate().map(value).collect()
}

fn inference(
    fault: BatchnormFault,
    a: &BatchnormInferenceAttributes,
    storage: &dyn Storage<f64>,
) -> Result<(), Error> {
    let shape = Shape::of(storage.graph(), a.x_tensor_uid);
    let mut inverse = storage.load(a.inv_variance_tensor_uid)?;
    if fault == VarianceForInverse {
        inverse
            .iter_mut()
            .for_each(|v| *v = 1.0 / (*v + DEFAULT_EPSILON).sqrt());
    }
    let y = normalise(
        &shape,
        &storage.load(a.x_tensor_uid)?,
        (&storage.load(a.mean_tensor_uid)?, &inverse),
        (
            &storage.load(a.scale_tensor_uid)?,
            &storage.load(a.bias_tensor_uid)?,
        ),
    );
    storage.store(a.y_tensor_uid, &y)
}

fn with_variance(
    fault: BatchnormFault,
    a: &BatchnormInferenceAttributesVarianceExt,
    storage: &dyn Storage<f64>,
) -> Result<(), Error> {
    let shape = Shape::of(storage.graph(), a.x_tensor_uid);
    let epsilon = storage.scalar(a.epsilon_tensor_uid)?.unwrap_or(0.0);
    let variance = storage.load(a.variance_tensor_uid)?;
    let inverse: Vec<f64> = variance
        .iter()
        .map(|v| inverse_root(fault, *v, epsilon))
        .collect();
    let y = normalise(
        &shape,
        &storage.load(a.x_tensor_uid)?,
        (&storage.load(a.mean_tensor_uid)?, &inverse),
        (
            &storage.load(a.scale_tensor_uid)?,
            &storage.load(a.bias_tensor_uid)?,
        ),
    );
    storage.store(a.y_tensor_uid, &y)
}

fn training(
    fault: BatchnormFault,
    a: &BatchnormAttributes,
    storage: &dyn Storage<f64>,
) -> Result<(), Error> {
    let shape = Shape::of(storage.graph(), a.x_tensor_uid);
    let x = storage.load(a.x_tensor_uid)?;
    let epsilon = storage.scalar(a.epsilon_tensor_uid)?.unwrap_or(0.0);
    let (mean, variance): (Vec<f64>, Vec<f64>) = statistics(fault, &shape, &x).into_iter().unzip();
    let count = (shape.batch * shape.spatial) as f64;
    let correction = if count > 1.0 {
        count / (count - 1.0)
    } else {
        1.0
    };
    let used = if fault == UnbiasedVariance {
        correction
    } else {
        1.0
    };
    let inverse: Vec<f64> = variance
        .iter()
        .map(|v| inverse_root(fault, v * used, epsilon))
        .collect();
    let (scale, bias) = (
        storage.load(a.scale_tensor_uid)?,
        storage.load(a.bias_tensor_uid)?,
    );
    let y = normalise(&shape, &x, (&mean, &inverse), (&scale, &bias));
    storage.store(a.y_tensor_uid, &y)?;
    if let Some(uid) = a.mean_tensor_uid {
        storage.store(uid, &mean)?;
    }
    if let Some(uid) = a.inv_variance_tensor_uid {
        let saved = if fault == VarianceForInverse {
            &variance
        } else {
            &inverse
        };
        storage.store(uid, saved)?;
    }
    let Some(momentum) = a.momentum_tensor_uid else {
        return Ok(());
    };
    let momentum = storage.scalar(momentum)?.unwrap_or(0.0);
    let kept = if fault == BiasedRunningVariance {
        1.0
    } else {
        correction
    };
    let running: Vec<f64> = variance.iter().map(|v| v * kept).collect();
    for (previous, next, batch) in [
        (
            a.prev_running_mean_tensor_uid,
            a.next_running_mean_tensor_uid,
            &mean,
        ),
        (
            a.prev_running_variance_tensor_uid,
            a.next_running_variance_tensor_uid,
            &running,
        ),
    ] {
        if let (Some(previous), Some(next)) = (previous, next) {
            let moved = storage.load(previous)?;
            let moved = moved
                .iter()
                .zip(batch)
                .map(|(p, b)| (1.0 - momentum) * p + momentum * b);
            storage.store(next, &moved.collect::<Vec<f64>>())?;
        }
    }
    Ok(())
}

fn backward(
    fault: BatchnormFault,
    a: &BatchnormBackwardAttributes,
    storage: &dyn Storage<f64>,
) -> Result<(), Error> {
    let shape = Shape::of(storage.graph(), a.x_tensor_uid);
    let (x, dy) = (
        storage.load(a.x_tensor_uid)?,
        storage.load(a.dy_tensor_uid)?,
    );
    let scale = storage.load(a.scale_tensor_uid)?;
    let saved = match a.mean_tensor_uid.zip(a.inv_variance_tensor_uid) {
        Some((mean, inverse)) => Some((storage.load(mean)?, storage.load(inverse)?)),
        None => None,
    };
    let own = statistics(fault, &shape, &x);
    let count = (shape.batch * shape.spatial) as f64;
    let mut dx = vec![0.0; x.len()];
    let (mut dscale, mut dbias) = (Vec::new(), Vec::new());
    for c in 0..shape.channels {
        let (mean, inverse) = match &saved {
            Some((mean, inverse)) => (mean[c], inverse[c]),
            None => (own[c].0, inverse_root(fault, own[c].1, DEFAULT_EPSILON)),
        };
        let normal = |i: usize| (x[i] - mean) * inverse;
        let sum_scale: f64 = shape
            .channel(c, shape.batch)
            .map(|i| normal(i) * dy[i])
            .sum();
        let sum_bias: f64 = shape.channel(c, shape.batch).map(|i| dy[i]).sum();
        let of_bias = if fault == MeanTermMissing {
            0.0
        } else {
            sum_bias / count
        };
        let of_scale = if fault == ScaleTermMissing {
            0.0
        } else {
            sum_scale / count
        };
        let factor = if fault == ScaleMissing {
            inverse
        } else {
            scale[c] * inverse
        };
        for i in shape.channel(c, shape.batch) {
            dx[i] = factor * (dy[i] - of_bias - normal(i) * of_scale);
        }
        dscale.push(sum_scale);
        dbias.push(sum_bias);
    }
    if fault == GradientsSwapped {
        std::mem::swap(&mut dscale, &mut dbias);
    }
    storage.store(a.dx_tensor_uid, &dx)?;
    storage.store(a.dscale_tensor_uid, &dscale)?;
    storage.store(a.dbias_tensor_uid, &dbias)
}
