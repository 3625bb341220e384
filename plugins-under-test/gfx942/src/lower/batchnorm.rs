//! Batch normalisation nodes: coefficients per channel, then one elementwise pass.

use dnn_assay_graph::schema::{
    BatchnormAttributes, BatchnormBackwardAttributes, BatchnormInferenceAttributes,
    BatchnormInferenceAttributesVarianceExt,
};
use dnn_assay_plugin_sdk::Error;

use super::memory::Memory;
use super::view::View;
use super::walk::{Order, goes_in_vectors, walk};
use super::{Launch, Parameters, blocks};
use crate::parameters::{
    AXES, ApplyParams, COEFFICIENTS, ChannelValues, Kernel, MAX_RANK, StatisticsParams, VECTOR,
    element,
};

/// Epsilon of a backward pass that recomputes its statistics: the node carries none.
const DEFAULT_EPSILON: f64 = 1e-5;

pub(super) fn inference(
    a: &BatchnormInferenceAttributes,
    memory: &mut Memory<'_>,
    launches: &mut Vec<Launch>,
) -> Result<(), Error> {
    let x = memory.view(a.x_tensor_uid)?;
    let mut p = statistics(&x, memory)?;
    p.mean = channels(memory, a.mean_tensor_uid)?;
    p.inverse = channels(memory, a.inv_variance_tensor_uid)?;
    p.scale = channels(memory, a.scale_tensor_uid)?;
    p.bias = channels(memory, a.bias_tensor_uid)?;
    let y = memory.view(a.y_tensor_uid)?;
    normalise(Kernel::BatchnormInference, p, &x, None, &y, launches)
}

pub(super) fn inference_with_variance(
    a: &BatchnormInferenceAttributesVarianceExt,
    memory: &mut Memory<'_>,
    launches: &mut Vec<Launch>,
) -> Result<(), Error> {
    let x = memory.view(a.x_tensor_uid)?;
    let mut p = statistics(&x, memory)?;
    p.mean = channels(memory, a.mean_tensor_uid)?;
    p.variance = channels(memory, a.variance_tensor_uid)?;
    p.scale = channels(memory, a.scale_tensor_uid)?;
    p.bias = channels(memory, a.bias_tensor_uid)?;
    p.epsilon = memory.scalar(a.epsilon_tensor_uid)?;
    let y = memory.view(a.y_tensor_uid)?;
    normalise(Kernel::BatchnormInference, p, &x, None, &y, launches)
}

pub(super) fn training(
    a: &BatchnormAttributes,
    memory: &mut Memory<'_>,
    launches: &mut Vec<Launch>,
) -> Result<(), Error> {
    let x = memory.view(a.x_tensor_uid)?;
    let mut p = statistics(&x, memory)?;
    p.scale = channels(memory, a.scale_tensor_uid)?;
    p.bias = channels(memory, a.bias_tensor_uid)?;
    p.epsilon = memory.scalar(a.epsilon_tensor_uid)?;
    for (field, uid) in [
        (&mut p.mean, a.mean_tensor_uid),
        (&mut p.inverse, a.inv_variance_tensor_uid),
        (&mut p.previous_mean, a.prev_running_mean_tensor_uid),
        (&mut p.previous_variance, a.prev_running_variance_tensor_uid),
        (&mut p.next_mean, a.next_running_mean_tensor_uid),
        (&mut p.next_variance, a.next_running_variance_tensor_uid),
    ] {
        if let Some(uid) = uid {
            *field = channels(memory, uid)?;
        }
    }
    if let Some(momentum) = a.momentum_tensor_uid {
        p.momentum = memory.scalar(momentum)?;
    }
    let y = memory.view(a.y_tensor_uid)?;
    normalise(Kernel::BatchnormTraining, p, &x, None, &y, launches)
}

pub(super) fn backward(
    a: &BatchnormBackwardAttributes,
    memory: &mut Memory<'_>,
    launches: &mut Vec<Launch>,
) -> Result<(), Error> {
    let (x, dy) = (memory.view(a.x_tensor_uid)?, memory.view(a.dy_tensor_uid)?);
    let mut p = statistics(&x, memory)?;
    p.dy = dy.address;
    p.dy_type = dy.kind;
    (p.dy_step, p.dy_channel) = steps(&dy);
    p.epsilon = DEFAULT_EPSILON;
    p.scale = channels(memory, a.scale_tensor_uid)?;
    p.dscale = channels(memory, a.dscale_tensor_uid)?;
    p.dbias = channels(memory, a.dbias_tensor_uid)?;
    let mut kernel = Kernel::BatchnormBackward;
    if let (Some(mean), Some(inverse)) = (a.mean_tensor_uid, a.inv_variance_tensor_uid) {
        kernel = Kernel::BatchnormBackwardSaved;
        p.mean = channels(memory, mean)?;
        p.inverse = channels(memory, inverse)?;
    }
    let dx = memory.view(a.dx_tensor_uid)?;
    normalise(kernel, p, &x, Some(&dy), &dx, launches)
}

fn channels(memory: &mut Memory<'_>, uid: i64) -> Result<ChannelValues, Error> {
    Ok(memory.view(uid)?.channels())
}

fn statistics(x: &View, memory: &mut Memory<'_>) -> Result<StatisticsParams, Error> {
    if x.dims.len() > AXES + 2 {
        return Err(Error::not_applicable(
            "batch normalisation with more than three spatial axes",
        ));
    }
    let total = x.count()?;
    let channels = x.dims[1] as usize;
    let (x_step, x_channel) = steps(x);
    Ok(StatisticsParams {
        x: x.address,
        x_type: x.kind,
        coefficients: memory.scratch(channels.next_multiple_of(VECTOR) * COEFFICIENTS)?,
        channels: channels as u32,
        count: (total / channels) as u32,
        extents: x.spatial_dims().map(|dim| dim as u32),
        x_step,
        x_channel,
        ..StatisticsParams::default()
    })
}

/// Strides of the batch and the spatial axes, and of the channels.
fn steps(view: &View) -> ([i64; AXES + 1], i64) {
    let [a, b, c] = view.spatial_strides();
    ([view.strides[0], a, b, c], view.strides[1])
}

/// The launch that makes the coefficients, and the one that applies them.
fn normalise(
    kernel: Kernel,
    p: StatisticsParams,
    x: &View,
    dy: Option<&View>,
    out: &View,
    launches: &mut Vec<Launch>,
) -> Result<(), Error> {
    let rank = out.dims.len();
    let mut per_channel = vec![0; rank];
    if out.dims[1] != 1 {
        per_channel[1] = 1;
    }
    let none = vec![0; rank];
    let dy_strides = dy.map_or(&none, |dy| &dy.strides).clone();
    let strides = [
        out.strides.clone(),
        x.strides.clone(),
        dy_strides,
        per_channel,
    ];
    let (walk, steps) = walk(&out.dims, &strides, Order::Memory)?;
    let mut rows = vec![
        (out.address, out.kind, steps[0]),
        (x.address, x.kind, steps[1]),
    ];
    rows.extend(dy.map(|dy| (dy.address, dy.kind, steps[2])));
    let beside = rows.iter().all(|row| row.2[MAX_RANK - 1] == 1);
    let (apply_kernel, each) = if beside && goes_in_vectors(&walk, &rows) {
        (Kernel::BatchnormApplyVector, VECTOR)
    } else {
        (Kernel::BatchnormApply, 1)
    };
    let apply = ApplyParams {
        out: out.address,
        out_type: out.kind,
        x: x.address,
        x_type: x.kind,
        dy: dy.map_or(0, |dy| dy.address),
        dy_type: dy.map_or(0, |dy| dy.kind),
        coefficients: p.coefficients,
        channels: p.channels,
        walk,
        steps,
    };
    let grid = match kernel {
        Kernel::BatchnormInference => blocks(p.channels as usize),
        _ => p.channels,
    };
    let reads = [Some(x), dy].into_iter().flatten().cloned();
    let row = i64::from(p.channels).max(1);
    let stride = (p.channels as usize).next_multiple_of(VECTOR) as i64;
    let coefficients = View::of(p.coefficients, element::F64, [4, row], [stride, 1]);
    let values = |all: &[&ChannelValues]| -> Vec<View> {
        let view = |v: &&ChannelValues| View::of(v.base, v.kind, [row], [v.step]);
        all.iter().map(view).collect()
    };
    let given = [&p.mean, &p.inverse, &p.variance, &p.scale, &p.bias];
    let previous = [&p.previous_mean, &p.previous_variance];
    let made = [&p.next_mean, &p.next_variance, &p.dscale, &p.dbias];
    let statistics = [&p.mean, &p.inverse];
    let (inputs, outputs) = match kernel {
        // Training makes the mean and the inverse deviation.
        Kernel::BatchnormTraining => (values(&given[3..]), values(&statistics)),
        _ => (values(&given), Vec::new()),
    };
    let of_statistics = match kernel {
        Kernel::BatchnormInference => Vec::new(),
        _ => reads.clone().collect(),
    };
    launches.push(Launch {
        kernel,
        grid: [grid, 1, 1],
        reads: [of_statistics, inputs, values(&previous)].concat(),
        writes: [vec![coefficients.clone()], outputs, values(&made)].concat(),
        parameters: Parameters::Statistics(Box::new(p)),
    });
    launches.push(Launch {
        kernel: apply_kernel,
        grid: [blocks(out.count()?.div_ceil(each)), 1, 1],
        parameters: Parameters::Apply(Box::new(apply)),
        reads: reads.chain([coefficients]).collect(),
        writes: vec![out.clone()],
    });
    Ok(())
}
