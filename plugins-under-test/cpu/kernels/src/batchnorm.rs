//! Spatial batch normalisation: statistics per channel over the batch and all spatial axes.
//!
//! Every channel is computed in `f64` with two passes, and rounded once.

use crate::program::{Num, Tensors};
use crate::support::{ensure, float};
use dnn_assay_graph::Graph;
use dnn_assay_graph::schema::{
    BatchnormAttributes, BatchnormBackwardAttributes, BatchnormInferenceAttributes,
    BatchnormInferenceAttributesVarianceExt,
};
use dnn_assay_plugin_sdk::Error;

/// Epsilon of a backward pass that recomputes its statistics: the node carries none.
const DEFAULT_EPSILON: f64 = 1e-5;

/// `[N, C, spatial…]` seen as batch, channels, and elements per channel and image.
#[derive(Clone, Copy)]
struct Shape {
    batch: usize,
    channels: usize,
    spatial: usize,
}

impl Shape {
    fn of(dims: &[usize]) -> Self {
        Self {
            batch: dims[0],
            channels: dims[1],
            spatial: dims[2..].iter().product(),
        }
    }

    /// Elements per channel.
    fn count(self) -> f64 {
        (self.batch * self.spatial) as f64
    }

    /// The index ranges of a channel, one per image.
    fn runs(self, channel: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        (0..self.batch).map(move |n| {
            let start = (n * self.channels + channel) * self.spatial;
            start..start + self.spatial
        })
    }

    /// Σ f(i) over a channel: one sum per image, then the images' sums.
    fn sum(self, channel: usize, f: impl Fn(usize) -> f64) -> f64 {
        self.runs(channel).map(|run| run.map(&f).sum::<f64>()).sum()
    }
}

/// Mean and biased variance of a channel.
fn statistics<T: Num>(shape: Shape, channel: usize, x: &[T]) -> (f64, f64) {
    let mean = shape.sum(channel, |i| x[i].to_f64()) / shape.count();
    let squares = shape.sum(channel, |i| (x[i].to_f64() - mean).powi(2));
    (mean, squares / shape.count())
}

/// `y = scale · (x − mean) · inv_variance + bias`.
pub(crate) fn inference<T: Num>(
    a: &BatchnormInferenceAttributes,
    tensors: &mut Tensors<'_, T>,
) -> Result<(), Error> {
    let (x, mean, inverse) = (a.x_tensor_uid, a.mean_tensor_uid, a.inv_variance_tensor_uid);
    let (scale, bias) = (a.scale_tensor_uid, a.bias_tensor_uid);
    tensors.need(&[x, mean, inverse, scale, bias])?;
    let inverse: Vec<f64> = tensors.get(inverse)?.iter().map(|v| v.to_f64()).collect();
    let mean: Vec<f64> = tensors.get(mean)?.iter().map(|v| v.to_f64()).collect();
    let y = normalise(tensors, x, &mean, &inverse, (scale, bias))?;
    tensors.set(a.y_tensor_uid, y)
}

/// As [`inference`] with `inv_variance = 1 / √(variance + epsilon)`.
pub(crate) fn inference_with_variance<T: Num>(
    a: &BatchnormInferenceAttributesVarianceExt,
    tensors: &mut Tensors<'_, T>,
) -> Result<(), Error> {
    let (x, mean, variance) = (a.x_tensor_uid, a.mean_tensor_uid, a.variance_tensor_uid);
    let (scale, bias) = (a.scale_tensor_uid, a.bias_tensor_uid);
    tensors.need(&[x, mean, variance, scale, bias])?;
    let epsilon = tensors.scalar(a.epsilon_tensor_uid)?;
    let inverse: Vec<f64> = tensors
        .get(variance)?
        .iter()
        .map(|v| 1.0 / (v.to_f64() + epsilon).sqrt())
        .collect();
    let mean: Vec<f64> = tensors.get(mean)?.iter().map(|v| v.to_f64()).collect();
    let y = normalise(tensors, x, &mean, &inverse, (scale, bias))?;
    tensors.set(a.y_tensor_uid, y)
}

/// `scale · (x − mean) · inverse + bias` with one mean, inverse, scale and bias per channel.
fn normalise<T: Num>(
    tensors: &Tensors<'_, T>,
    x: i64,
    mean: &[f64],
    inverse: &[f64],
    (scale, bias): (i64, i64),
) -> Result<Vec<T>, Error> {
    let shape = Shape::of(&tensors.dims(x)?);
    let (x, scale, bias) = (tensors.get(x)?, tensors.get(scale)?, tensors.get(bias)?);
    let mut y = vec![T::default(); x.len()];
    for c in 0..shape.channels {
        let (factor, offset) = (scale[c].to_f64(), bias[c].to_f64());
        for i in shape.runs(c).flatten() {
            let normal = (x[i].to_f64() - mean[c]) * inverse[c];
            y[i] = T::from_f64(factor * normal + offset);
        }
    }
    Ok(y)
}

/// Normalises by the batch's own statistics, saves them if asked, and moves the running ones:
/// `next = (1 − momentum) · prev + momentum · batch`, with the unbiased variance `M/(M−1) · var`
/// (the biased one where M = 1).
pub(crate) fn training<T: Num>(
    a: &BatchnormAttributes,
    tensors: &mut Tensors<'_, T>,
) -> Result<(), Error> {
    let x = a.x_tensor_uid;
    tensors.need(&[x, a.scale_tensor_uid, a.bias_tensor_uid])?;
    let epsilon = tensors.scalar(a.epsilon_tensor_uid)?;
    let shape = Shape::of(&tensors.dims(x)?);
    let values = tensors.get(x)?;
    let (mean, variance): (Vec<f64>, Vec<f64>) = (0..shape.channels)
        .map(|c| statistics(shape, c, values))
        .unzip();
    let inverse: Vec<f64> = variance
        .iter()
        .map(|v| 1.0 / (v + epsilon).sqrt())
        .collect();
    let y = normalise(
        tensors,
        x,
        &mean,
        &inverse,
        (a.scale_tensor_uid, a.bias_tensor_uid),
    )?;
    tensors.set(a.y_tensor_uid, y)?;
    if let Some(uid) = a.mean_tensor_uid {
        tensors.set(uid, rounded(&mean))?;
    }
    if let Some(uid) = a.inv_variance_tensor_uid {
        tensors.set(uid, rounded(&inverse))?;
    }
    let Some(momentum) = a.momentum_tensor_uid else {
        return Ok(());
    };
    let momentum = tensors.scalar(momentum)?;
    let count = shape.count();
    let correction = if count > 1.0 {
        count / (count - 1.0)
    } else {
        1.0
    };
    let unbiased: Vec<f64> = variance.iter().map(|v| v * correction).collect();
    for (previous, next, batch) in [
        (
            a.prev_running_mean_tensor_uid,
            a.next_running_mean_tensor_uid,
            &mean,
        ),
        (
            a.prev_running_variance_tensor_uid,
            a.next_running_variance_tensor_uid,
            &unbiased,
        ),
    ] {
        if let (Some(previous), Some(next)) = (previous, next) {
            tensors.need(&[previous])?;
            let moved: Vec<f64> = tensors
                .get(previous)?
                .iter()
                .zip(batch)
                .map(|(previous, batch)| (1.0 - momentum) * previous.to_f64() + momentum * batch)
                .collect();
            tensors.set(next, rounded(&moved))?;
        }
    }
    Ok(())
}

/// With `x̂ = (x − mean) · inv`: `dscale = Σ x̂·dy`, `dbias = Σ dy`,
/// `dx = scale · inv · (dy − dbias/M − x̂ · dscale/M)`.
pub(crate) fn backward<T: Num>(
    a: &BatchnormBackwardAttributes,
    tensors: &mut Tensors<'_, T>,
) -> Result<(), Error> {
    tensors.need(&[a.x_tensor_uid, a.dy_tensor_uid, a.scale_tensor_uid])?;
    let saved = a.mean_tensor_uid.zip(a.inv_variance_tensor_uid);
    if let Some((mean, inverse)) = saved {
        tensors.need(&[mean, inverse])?;
    }
    let saved = match saved {
        Some((mean, inverse)) => Some((tensors.get(mean)?, tensors.get(inverse)?)),
        None => None,
    };
    let shape = Shape::of(&tensors.dims(a.x_tensor_uid)?);
    let (x, dy) = (tensors.get(a.x_tensor_uid)?, tensors.get(a.dy_tensor_uid)?);
    let scale = tensors.get(a.scale_tensor_uid)?;
    let mut dx = vec![T::default(); x.len()];
    let (mut dscale, mut dbias) = (Vec::new(), Vec::new());
    for c in 0..shape.channels {
        let (mean, inverse) = match saved {
            Some((mean, inverse)) => (mean[c].to_f64(), inverse[c].to_f64()),
            None => {
                let (mean, variance) = statistics(shape, c, x);
                (mean, 1.0 / (variance + DEFAULT_EPSILON).sqrt())
            }
        };
        let normal = |i: usize| (x[i].to_f64() - mean) * inverse;
        let sum_scale = shape.sum(c, |i| normal(i) * dy[i].to_f64());
        let sum_bias = shape.sum(c, |i| dy[i].to_f64());
        let factor = scale[c].to_f64() * inverse;
        let (mean_scale, mean_bias) = (sum_scale / shape.count(), sum_bias / shape.count());
        for i in shape.runs(c).flatten() {
            let centred = dy[i].to_f64() - mean_bias - normal(i) * mean_scale;
            dx[i] = T::from_f64(factor * centred);
        }
        dscale.push(sum_scale);
        dbias.push(sum_bias);
    }
    tensors.set(a.dx_tensor_uid, dx)?;
    tensors.set(a.dscale_tensor_uid, rounded(&dscale))?;
    tensors.set(a.dbias_tensor_uid, rounded(&dbias))
}

fn rounded<T: Num>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&value| T::from_f64(value)).collect()
}

/// `images` have the shape of the first of them; `parameters` have one element per channel;
/// `scalars` have one element.
fn check(graph: &Graph, images: &[i64], parameters: &[i64], scalars: &[i64]) -> Result<(), String> {
    let shape = &float(graph, images[0])?.dims;
    ensure(
        shape.len() >= 2,
        "batch normalisation needs at least two axes",
    )?;
    for &uid in images {
        ensure(
            &float(graph, uid)?.dims == shape,
            "images of different shapes",
        )?;
    }
    for &uid in parameters {
        let tensor = float(graph, uid)?;
        let per_channel = tensor.element_count() == usize::try_from(shape[1]).ok();
        ensure(
            per_channel,
            "a parameter that is not one element per channel",
        )?;
    }
    for &uid in scalars {
        let one = float(graph, uid)?.element_count() == Some(1);
        ensure(one, "a scalar with more than one element")?;
    }
    Ok(())
}

/// Whether [`inference`] can run this node.
pub(crate) fn check_inference(
    a: &BatchnormInferenceAttributes,
    graph: &Graph,
) -> Result<(), String> {
    let parameters = [
        a.mean_tensor_uid,
        a.inv_variance_tensor_uid,
        a.scale_tensor_uid,
        a.bias_tensor_uid,
    ];
    check(graph, &[a.x_tensor_uid, a.y_tensor_uid], &parameters, &[])
}

/// Whether [`inference_with_variance`] can run this node.
pub(crate) fn check_inference_with_variance(
    a: &BatchnormInferenceAttributesVarianceExt,
    graph: &Graph,
) -> Result<(), String> {
    let parameters = [
        a.mean_tensor_uid,
        a.variance_tensor_uid,
        a.scale_tensor_uid,
        a.bias_tensor_uid,
    ];
    let images = [a.x_tensor_uid, a.y_tensor_uid];
    check(graph, &images, &parameters, &[a.epsilon_tensor_uid])
}

/// Whether [`training`] can run this node.
pub(crate) fn check_training(a: &BatchnormAttributes, graph: &Graph) -> Result<(), String> {
    ensure(
        a.peer_stats_tensor_uid.is_empty(),
        "statistics of peers are not supported",
    )?;
    let running = [
        a.prev_running_mean_tensor_uid,
        a.prev_running_variance_tensor_uid,
        a.next_running_mean_tensor_uid,
        a.next_running_variance_tensor_uid,
        a.momentum_tensor_uid,
    ];
    let given = running.iter().flatten().count();
    ensure(
        given == 0 || given == running.len(),
        "running statistics need mean and variance, before and after, and a momentum",
    )?;
    let mut parameters = vec![a.scale_tensor_uid, a.bias_tensor_uid];
    parameters.extend(
        [a.mean_tensor_uid, a.inv_variance_tensor_uid]
            .iter()
            .flatten(),
    );
    parameters.extend(running[..4].iter().flatten());
    let mut scalars = vec![a.epsilon_tensor_uid];
    scalars.extend(a.momentum_tensor_uid);
    check(
        graph,
        &[a.x_tensor_uid, a.y_tensor_uid],
        &parameters,
        &scalars,
    )
}

/// Whether [`backward`] can run this node.
pub(crate) fn check_backward(a: &BatchnormBackwardAttributes, graph: &Graph) -> Result<(), String> {
    ensure(
        a.peer_stats_tensor_uid.is_empty(),
        "statistics of peers are not supported",
    )?;
    ensure(
        a.mean_tensor_uid.is_some() == a.inv_variance_tensor_uid.is_some(),
        "saved mean and inverse variance go together",
    )?;
    let mut parameters = vec![a.scale_tensor_uid, a.dscale_tensor_uid, a.dbias_tensor_uid];
    parameters.extend(a.mean_tensor_uid);
    parameters.extend(a.inv_variance_tensor_uid);
    let images = [a.x_tensor_uid, a.dy_tensor_uid, a.dx_tensor_uid];
    check(graph, &images, &parameters, &[])
}
