//! Convolutions that place their window wrongly.

use super::conv::{Conv, Direction, Window};
use super::scene::{Case, Reading, Scene, Suspect};
use dnn_assay_graph::Attributes;
use dnn_assay_graph::model::packed_strides;
use dnn_assay_graph::schema::{ConvolutionBwdAttributes, ConvolutionFwdAttributes};
use std::collections::BTreeMap;
use std::mem::swap;

pub(super) fn flipped(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some(conv) = Conv::of(scene.graph) else {
        return Vec::new();
    };
    scene.with_graph(|graph| conv.flip(graph))
}

pub(super) fn padding_ignored(scene: &Scene<'_>) -> Vec<Suspect> {
    rewindowed(scene, |window| window.pre.fill(0))
}

pub(super) fn paddings_swapped(scene: &Scene<'_>) -> Vec<Suspect> {
    rewindowed(scene, |Window { pre, post, .. }| swap(pre, post))
}

/// All axes, then each alone.
pub(super) fn padding_off_by_one(scene: &Scene<'_>) -> Vec<Suspect> {
    let axes = Conv::of(scene.graph).map_or(0, |conv| conv.window.pre.len());
    let mut suspects = Vec::new();
    for step in [-1, 1] {
        suspects.extend(rewindowed(scene, |window| {
            window.pre.iter_mut().for_each(|pre| *pre += step);
        }));
        for axis in (0..axes).filter(|_| axes > 1) {
            suspects.extend(rewindowed(scene, |window| window.pre[axis] += step));
        }
    }
    suspects
}

pub(super) fn stride_ignored(scene: &Scene<'_>) -> Vec<Suspect> {
    rewindowed(scene, |window| window.stride.fill(1))
}

pub(super) fn dilation_ignored(scene: &Scene<'_>) -> Vec<Suspect> {
    rewindowed(scene, |window| window.dilation.fill(1))
}

pub(super) fn stride_axes_swapped(scene: &Scene<'_>) -> Vec<Suspect> {
    rewindowed(scene, |window| window.stride.reverse())
}

pub(super) fn dilation_axes_swapped(scene: &Scene<'_>) -> Vec<Suspect> {
    rewindowed(scene, |window| window.dilation.reverse())
}

pub(super) fn padding_axes_swapped(scene: &Scene<'_>) -> Vec<Suspect> {
    rewindowed(scene, |window| {
        window.pre.reverse();
        window.post.reverse();
    })
}

pub(super) fn window_axes_swapped(scene: &Scene<'_>) -> Vec<Suspect> {
    rewindowed(scene, |window| {
        let Window {
            pre,
            post,
            stride,
            dilation,
        } = window;
        for list in [pre, post, stride, dilation] {
            list.reverse();
        }
    })
}

pub(super) fn stride_padding_swapped(scene: &Scene<'_>) -> Vec<Suspect> {
    rewindowed(scene, |window| {
        swap(&mut window.pre, &mut window.stride);
        window
            .stride
            .iter_mut()
            .for_each(|stride| *stride = (*stride).max(1));
    })
}

pub(super) fn stride_dilation_swapped(scene: &Scene<'_>) -> Vec<Suspect> {
    rewindowed(scene, |window| {
        swap(&mut window.stride, &mut window.dilation)
    })
}

pub(super) fn border_wraps(scene: &Scene<'_>) -> Vec<Suspect> {
    bordered(scene, |at, extent| at.rem_euclid(extent))
}

pub(super) fn border_repeats(scene: &Scene<'_>) -> Vec<Suspect> {
    bordered(scene, |at, extent| at.clamp(0, extent - 1))
}

pub(super) fn border_reflects(scene: &Scene<'_>) -> Vec<Suspect> {
    bordered(scene, |at, extent| {
        let period = (2 * extent - 2).max(1);
        let at = at.rem_euclid(period);
        if at < extent { at } else { period - at }
    })
}

/// dgrad where fprop was asked for, and the reverse.
pub(super) fn other_direction(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some(conv) = Conv::of(scene.graph) else {
        return Vec::new();
    };
    scene.with_graph(|graph| {
        let Some(node) = graph.nodes.get_mut(conv.node) else {
            return;
        };
        let other: Attributes = match &node.attributes {
            Attributes::ConvolutionFwd(a) => ConvolutionBwdAttributes {
                dy_tensor_uid: a.x_tensor_uid,
                w_tensor_uid: a.w_tensor_uid,
                dx_tensor_uid: a.y_tensor_uid,
                pre_padding: a.pre_padding.clone(),
                post_padding: a.post_padding.clone(),
                stride: a.stride.clone(),
                dilation: a.dilation.clone(),
                conv_mode: a.conv_mode,
            }
            .into(),
            Attributes::ConvolutionBwd(a) => ConvolutionFwdAttributes {
                x_tensor_uid: a.dy_tensor_uid,
                w_tensor_uid: a.w_tensor_uid,
                y_tensor_uid: a.dx_tensor_uid,
                pre_padding: a.pre_padding.clone(),
                post_padding: a.post_padding.clone(),
                stride: a.stride.clone(),
                dilation: a.dilation.clone(),
                conv_mode: a.conv_mode,
            }
            .into(),
            _ => return,
        };
        node.attributes = other;
    })
}

/// The convolution with another window and the extents that it has; what the window then sees
/// beyond a tensor is zero.
fn rewindowed(scene: &Scene<'_>, edit: impl Fn(&mut Window)) -> Vec<Suspect> {
    let Some(conv) = Conv::of(scene.graph) else {
        return Vec::new();
    };
    let mut window = conv.window.clone();
    edit(&mut window);
    if window == conv.window {
        return Vec::new();
    }
    fitted(scene, &conv, window).into_iter().collect()
}

/// Makes the extents fit: by padding behind the image; where the window does not reach its end,
/// by an image without that end (fprop, wgrad) or gradients of zero beyond the output (dgrad).
fn fitted(scene: &Scene<'_>, conv: &Conv, mut window: Window) -> Option<Suspect> {
    let dims = |uid: i64| Some(scene.graph.tensor(uid)?.dims.clone());
    let (mut x, w, mut y) = (dims(conv.x)?, dims(conv.w)?, dims(conv.y)?);
    for axis in 0..window.pre.len() {
        let (pre, stride) = (window.pre[axis], window.stride[axis]);
        if pre < 0 || stride < 1 || window.dilation[axis] < 1 {
            return None;
        }
        let (input, output) = (x[axis + 2], y[axis + 2]);
        let reach = (w[axis + 2] - 1) * window.dilation[axis] + 1;
        let behind = (output - 1) * stride + reach - input - pre;
        window.post[axis] = behind.max(0);
        if behind < 0 && conv.direction == Direction::Dgrad {
            let room = input + pre - reach;
            if room < 0 {
                return None;
            }
            y[axis + 2] = room / stride + 1;
        } else if behind < 0 {
            x[axis + 2] = (input + behind > 0).then_some(input + behind)?;
        }
    }
    let mut case = Case {
        graph: scene.graph.clone(),
        readings: BTreeMap::new(),
    };
    resize(scene, &mut case, conv.x, &x)?;
    resize(scene, &mut case, conv.y, &y)?;
    conv.set_window(&mut case.graph, &window);
    Some(Suspect::Case(Box::new(case)))
}

/// Gives an input other extents: what is cut off is lost, what is added is zero.
fn resize(scene: &Scene<'_>, case: &mut Case, uid: i64, dims: &[i64]) -> Option<()> {
    let mut tensors = case.graph.tensors.iter_mut();
    let tensor = tensors.find(|tensor| tensor.uid == uid)?;
    if tensor.dims == dims {
        return Some(());
    }
    scene.input_tensor(uid)?;
    case.readings.insert(uid, Reading::taken(uid, |_| ()));
    tensor.dims = dims.to_vec();
    tensor.strides = packed_strides(dims);
    Some(())
}

/// An image that has been extended by its padding, filled by what `source` says lies at a
/// coordinate beyond the border.
fn bordered(scene: &Scene<'_>, source: fn(i64, i64) -> i64) -> Vec<Suspect> {
    bordered_case(scene, source).into_iter().collect()
}

fn bordered_case(scene: &Scene<'_>, source: fn(i64, i64) -> i64) -> Option<Suspect> {
    let conv = Conv::of(scene.graph).filter(|conv| conv.direction != Direction::Dgrad)?;
    let mut window = conv.window.clone();
    let padded = window
        .pre
        .iter()
        .chain(&window.post)
        .any(|&padding| padding > 0);
    let old = scene.input_tensor(conv.x).filter(|_| padded)?.dims.clone();
    let mut dims = old.clone();
    for (dim, (pre, post)) in dims[2..]
        .iter_mut()
        .zip(window.pre.iter().zip(&window.post))
    {
        *dim += pre + post;
    }
    let pre = window.pre.clone();
    let from = move |at: &mut [i64]| {
        for axis in 2..at.len() {
            at[axis] = source(at[axis] - pre[axis - 2], old[axis]);
        }
    };
    let mut case = Case {
        graph: scene.graph.clone(),
        readings: BTreeMap::from([(conv.x, Reading::taken(conv.x, from))]),
    };
    let mut tensors = case.graph.tensors.iter_mut();
    let x = tensors.find(|tensor| tensor.uid == conv.x)?;
    x.strides = packed_strides(&dims);
    x.dims = dims;
    window.pre.fill(0);
    window.post.fill(0);
    conv.set_window(&mut case.graph, &window);
    Some(Suspect::Case(Box::new(case)))
}
