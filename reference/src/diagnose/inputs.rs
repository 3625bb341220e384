//! Inputs that are read wrongly: in another order, not all of them, or rounded.

use super::agreement::rounding;
use super::conv::{Conv, Direction};
use super::layout::{count, index, is_dense, other_strides, place_of, reread, strides_in_order};
use super::scene::{Place, Reading, Scene, Suspect};
use dnn_assay_graph::{Attributes, DataType, Tensor};
use std::sync::Arc;

/// The image-like inputs of the first convolution: x, or dy; both for wgrad.
fn images(scene: &Scene<'_>) -> Vec<i64> {
    match Conv::of(scene.graph) {
        Some(conv) if conv.direction == Direction::Fprop => vec![conv.x],
        Some(conv) if conv.direction == Direction::Dgrad => vec![conv.y],
        Some(conv) => vec![conv.x, conv.y],
        None => Vec::new(),
    }
}

/// The filter, where it is an input.
fn filters(scene: &Scene<'_>) -> Vec<i64> {
    let conv = Conv::of(scene.graph).filter(|conv| conv.direction != Direction::Wgrad);
    conv.map(|conv| conv.w).into_iter().collect()
}

fn operands(scene: &Scene<'_>) -> Vec<i64> {
    [images(scene), filters(scene)].concat()
}

/// Each of these inputs rearranged by itself.
fn rearranged(
    scene: &Scene<'_>,
    uids: &[i64],
    from: impl Fn(&[i64], &mut [i64]) + Clone + Send + Sync + 'static,
) -> Vec<Suspect> {
    let one = |&uid: &i64| {
        let (from, dims) = (from.clone(), scene.input_tensor(uid)?.dims.clone());
        scene.with_input(uid, Reading::taken(uid, move |at| from(&dims, at)))
    };
    uids.iter().filter_map(one).collect()
}

/// The last two axes read in the order of each other's strides.
fn transpose(dims: &[i64], at: &mut [i64]) {
    let rank = at.len();
    if rank < 2 {
        return;
    }
    let (height, width) = (dims[rank - 2], dims[rank - 1]);
    let place = at[rank - 1] * height + at[rank - 2];
    (at[rank - 2], at[rank - 1]) = (place / width, place % width);
}

pub(super) fn image_transposed(scene: &Scene<'_>) -> Vec<Suspect> {
    rearranged(scene, &images(scene), spatial_transpose)
}

pub(super) fn filter_transposed(scene: &Scene<'_>) -> Vec<Suspect> {
    rearranged(scene, &filters(scene), spatial_transpose)
}

fn spatial_transpose(dims: &[i64], at: &mut [i64]) {
    if dims.len() >= 4 {
        transpose(dims, at);
    }
}

pub(super) fn matrix_transposed(scene: &Scene<'_>) -> Vec<Suspect> {
    let uids: Vec<i64> = scene
        .graph
        .nodes
        .iter()
        .filter(|node| matches!(node.attributes, Attributes::Matmul(_)))
        .flat_map(|node| node.attributes.inputs())
        .collect();
    rearranged(scene, &uids, transpose)
}

/// The image read one element to either side, along each spatial axis; beyond the border the
/// last element again, nothing, or the next row.
pub(super) fn image_shifted(scene: &Scene<'_>) -> Vec<Suspect> {
    let mut suspects = Vec::new();
    for step in [1, -1] {
        for back in 1..=2 {
            let shift = move |at: &mut [i64]| {
                let axis = at.len() - back;
                at[axis] += step;
                axis
            };
            suspects.extend(rearranged(scene, &images(scene), move |dims, at| {
                if at.len() >= 2 + back {
                    let axis = shift(at);
                    at[axis] = at[axis].clamp(0, dims[axis] - 1);
                }
            }));
            suspects.extend(rearranged(scene, &images(scene), move |_, at| {
                if at.len() >= 2 + back {
                    shift(at);
                }
            }));
        }
    }
    suspects
}

/// An input whose memory is read by other strides than it has.
fn misread(
    scene: &Scene<'_>,
    uid: i64,
    strides: impl FnOnce(&Tensor) -> Vec<i64>,
) -> Option<Suspect> {
    let tensor = scene.input_tensor(uid)?;
    if !is_dense(&tensor.dims, &tensor.strides) {
        return None;
    }
    let (dims, written, read) = (tensor.dims.clone(), tensor.strides.clone(), strides(tensor));
    scene.with_input(
        uid,
        Reading::taken(uid, move |at| reread(&dims, &read, &written, at)),
    )
}

/// Memory of one layout taken for another: channels last for channels second and the reverse.
fn in_other_layout(scene: &Scene<'_>, uids: &[i64]) -> Vec<Suspect> {
    let other = |tensor: &Tensor| other_strides(&tensor.dims, &tensor.strides);
    uids.iter()
        .filter_map(|&uid| misread(scene, uid, other))
        .collect()
}

pub(super) fn image_layout(scene: &Scene<'_>) -> Vec<Suspect> {
    in_other_layout(scene, &images(scene))
}

pub(super) fn filter_layout(scene: &Scene<'_>) -> Vec<Suspect> {
    in_other_layout(scene, &filters(scene))
}

/// KCRS read as CKRS or as CRSK.
pub(super) fn filter_axes(scene: &Scene<'_>) -> Vec<Suspect> {
    let orders = |rank: usize| {
        let spatial: Vec<usize> = (2..rank).collect();
        [
            [vec![1, 0], spatial.clone()].concat(),
            [vec![1], spatial, vec![0]].concat(),
        ]
    };
    let mut suspects = Vec::new();
    for uid in filters(scene) {
        for which in 0..2 {
            suspects.extend(misread(scene, uid, |tensor| {
                let order = &orders(tensor.dims.len())[which];
                strides_in_order(&tensor.dims, order)
            }));
        }
    }
    suspects
}

/// Filters of the next or the previous group.
pub(super) fn group_rotated(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some(conv) = Conv::of(scene.graph) else {
        return Vec::new();
    };
    let groups = conv.groups(scene.graph);
    let mut suspects = Vec::new();
    for step in [1, -1].into_iter().filter(|_| groups > 1) {
        suspects.extend(rearranged(scene, &filters(scene), move |dims, at| {
            at[0] = (at[0] + step * (dims[0] / groups)).rem_euclid(dims[0]);
        }));
        suspects.extend(rearranged(scene, &images(scene), move |dims, at| {
            at[1] = (at[1] + step * (dims[1] / groups)).rem_euclid(dims[1]);
        }));
    }
    suspects
}

/// Channels dealt out to the groups in turn, not in blocks.
pub(super) fn group_interleaved(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some(conv) = Conv::of(scene.graph) else {
        return Vec::new();
    };
    let groups = conv.groups(scene.graph);
    if groups < 2 {
        return Vec::new();
    }
    let deal = move |extent: i64, at: i64| {
        let each = extent / groups;
        at % each * groups + at / each
    };
    let mut suspects = rearranged(scene, &images(scene), move |dims, at| {
        at[1] = deal(dims[1], at[1])
    });
    suspects.extend(rearranged(scene, &filters(scene), move |dims, at| {
        at[0] = deal(dims[0], at[0])
    }));
    suspects
}

/// Every group reads the channels of the first; a depthwise filter sums over all channels.
pub(super) fn groups_ignored(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some(conv) = Conv::of(scene.graph).filter(|conv| conv.groups(scene.graph) > 1) else {
        return Vec::new();
    };
    let groups = conv.groups(scene.graph);
    let mut suspects = rearranged(scene, &images(scene), move |dims, at| {
        at[1] %= (dims[1] / groups).max(1)
    });
    for uid in images(scene) {
        let Some(tensor) = scene.input_tensor(uid) else {
            continue;
        };
        let each = tensor.dims[1] / groups;
        let part = |group: i64| -> Place {
            Arc::new(move |at: &mut [i64]| at[1] = at[1] % each.max(1) + group * each)
        };
        let from = (0..groups).map(part).collect();
        suspects.extend(scene.with_input(uid, Reading::Taken { of: uid, from }));
    }
    suspects
}

/// Zeroes what `dropped` holds for.
fn without(
    scene: &Scene<'_>,
    uids: &[i64],
    dropped: impl Fn(&[i64], &[i64]) -> bool + Clone + Send + Sync + 'static,
) -> Vec<Suspect> {
    let one = |&uid: &i64| {
        let (dropped, dims) = (dropped.clone(), scene.input_tensor(uid)?.dims.clone());
        let zeroed = move |at: &[i64], value| if dropped(&dims, at) { 0.0 } else { value };
        scene.with_input(uid, Reading::Mapped(Arc::new(zeroed)))
    };
    uids.iter().filter_map(one).collect()
}

pub(super) fn last_tap(scene: &Scene<'_>) -> Vec<Suspect> {
    without(scene, &filters(scene), |dims, at| {
        (2..at.len()).all(|axis| at[axis] + 1 == dims[axis])
    })
}

pub(super) fn last_channel(scene: &Scene<'_>) -> Vec<Suspect> {
    without(scene, &filters(scene), |dims, at| at[1] + 1 == dims[1])
}

/// Channels beyond the last whole vector.
pub(super) fn channel_tail(scene: &Scene<'_>) -> Vec<Suspect> {
    let vector = |width: i64| {
        without(scene, &filters(scene), move |dims, at| {
            dims[1] > width && at[1] >= dims[1] / width * width && dims[1] % width > 1
        })
    };
    [2, 4, 8, 16, 32, 64].into_iter().flat_map(vector).collect()
}

pub(super) fn last_filter(scene: &Scene<'_>) -> Vec<Suspect> {
    let dgrad = Conv::of(scene.graph).filter(|conv| conv.direction == Direction::Dgrad);
    let uids: Vec<i64> = dgrad.map(|conv| conv.w).into_iter().collect();
    without(scene, &uids, |dims, at| at[0] + 1 == dims[0])
}

pub(super) fn last_image(scene: &Scene<'_>) -> Vec<Suspect> {
    let wgrad = Conv::of(scene.graph).filter(|conv| conv.direction == Direction::Wgrad);
    let uids: Vec<i64> = wgrad.map(|conv| conv.y).into_iter().collect();
    without(scene, &uids, |dims, at| at[0] + 1 == dims[0])
}

pub(super) fn last_row(scene: &Scene<'_>) -> Vec<Suspect> {
    let uids = images(scene);
    let mut suspects = Vec::new();
    for axis in 2..5 {
        suspects.extend(without(scene, &uids, move |dims, at| {
            axis < at.len() && at[axis] + 1 == dims[axis]
        }));
    }
    suspects
}

/// The last of the inner sum of a matrix product.
pub(super) fn last_of_inner(scene: &Scene<'_>) -> Vec<Suspect> {
    let first = scene
        .graph
        .nodes
        .iter()
        .find_map(|node| match &node.attributes {
            Attributes::Matmul(a) => Some(a.a_tensor_uid),
            _ => None,
        });
    let uids: Vec<i64> = first.into_iter().collect();
    without(scene, &uids, |dims, at| {
        at.last().copied() == dims.last().map(|dim| dim - 1)
    })
}

/// All operands of the sums through one rounding.
fn rounded(
    scene: &Scene<'_>,
    round: impl Fn(f64) -> f64 + Clone + Send + Sync + 'static,
) -> Option<Suspect> {
    let mut uids = operands(scene);
    for node in &scene.graph.nodes {
        if matches!(node.attributes, Attributes::Matmul(_)) {
            uids.extend(node.attributes.inputs());
        }
    }
    if uids.is_empty() {
        uids = scene.inputs();
    }
    let float = |uid: &i64| {
        scene
            .input_tensor(*uid)
            .is_some_and(|t| t.data_type.is_float())
    };
    let read = |uid| (uid, Reading::mapped(round.clone()));
    let readings: Vec<(i64, Reading)> = uids.into_iter().filter(float).map(read).collect();
    (!readings.is_empty()).then(|| scene.with_readings(readings))
}

/// `value` with so many significant bits; ties by `ties`, or no rounding at all.
fn significant(value: f64, bits: u32, ties: Ties) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let dropped = 53 - bits;
    let half = 1u64 << (dropped - 1);
    let code = value.to_bits();
    let odd = (code >> dropped) & 1;
    let up = match ties {
        Ties::Even => half - 1 + odd,
        Ties::Away => half,
        Ties::Truncated => 0,
    };
    f64::from_bits((code + up) >> dropped << dropped)
}

#[derive(Clone, Copy)]
enum Ties {
    Even,
    Away,
    Truncated,
}

pub(super) fn rounded_to_tf32(scene: &Scene<'_>) -> Vec<Suspect> {
    [Ties::Even, Ties::Away, Ties::Truncated]
        .into_iter()
        .filter_map(|ties| rounded(scene, move |value| significant(value, 11, ties)))
        .collect()
}

pub(super) fn rounded_to_bf16(scene: &Scene<'_>) -> Vec<Suspect> {
    [Ties::Even, Ties::Truncated]
        .into_iter()
        .filter_map(|ties| rounded(scene, move |value| significant(value, 8, ties)))
        .collect()
}

pub(super) fn rounded_to_f16(scene: &Scene<'_>) -> Vec<Suspect> {
    rounded(scene, rounding(DataType::Half))
        .into_iter()
        .collect()
}

pub(super) fn rounded_to_f32(scene: &Scene<'_>) -> Vec<Suspect> {
    rounded(scene, rounding(DataType::Float))
        .into_iter()
        .collect()
}

/// Subnormal inputs read as zero.
pub(super) fn denormals_flushed(scene: &Scene<'_>) -> Vec<Suspect> {
    let readings = scene.inputs().into_iter().filter_map(|uid| {
        let data_type = scene.input_tensor(uid)?.data_type;
        let flush = move |value| super::outputs::flushed(data_type, value);
        data_type.is_float().then(|| (uid, Reading::mapped(flush)))
    });
    let readings: Vec<(i64, Reading)> = readings.collect();
    (!readings.is_empty())
        .then(|| scene.with_readings(readings))
        .into_iter()
        .collect()
}

/// Two inputs of the same extents in each other's place.
pub(super) fn swapped(scene: &Scene<'_>) -> Vec<Suspect> {
    let uids = scene.inputs();
    let mut suspects = Vec::new();
    for (i, &first) in uids.iter().enumerate() {
        for &second in &uids[i + 1..] {
            let (Some(a), Some(b)) = (scene.input_tensor(first), scene.input_tensor(second)) else {
                continue;
            };
            if a.dims == b.dims && a.data_type == b.data_type {
                let other = |of| Reading::taken(of, |_| ());
                let readings = [(first, other(second)), (second, other(first))];
                suspects.push(scene.with_readings(readings));
            }
        }
    }
    suspects
}

/// The second operand of a pointwise node, one place further along.
pub(super) fn next_operand(scene: &Scene<'_>) -> Vec<Suspect> {
    let second = |uid: &i64| {
        scene.graph.nodes.iter().any(|node| {
            matches!(&node.attributes, Attributes::Pointwise(a) if a.in_1_tensor_uid == Some(*uid))
        })
    };
    let uids: Vec<i64> = scene.inputs().into_iter().filter(second).collect();
    next(scene, &uids)
}

/// The parameters of the next channel, one tensor at a time.
pub(super) fn next_parameter(scene: &Scene<'_>) -> Vec<Suspect> {
    let size = |uid: &i64| scene.graph.tensor(*uid).and_then(Tensor::element_count);
    let inputs = scene.inputs();
    let most = inputs.iter().filter_map(size).max();
    let uids: Vec<i64> = inputs.into_iter().filter(|uid| size(uid) < most).collect();
    next(scene, &uids)
}

/// Each input one element further along, and one back, the last and the first as neighbours.
fn next(scene: &Scene<'_>, uids: &[i64]) -> Vec<Suspect> {
    let rotated = |uid: i64, by: usize| {
        let dims = scene.input_tensor(uid)?.dims.clone();
        let from = move |at: &mut [i64]| {
            let all = count(&dims).max(1);
            let index = index(&dims, at).unwrap_or(0);
            place_of(&dims, (index + by % all) % all, at);
        };
        scene.with_input(uid, Reading::taken(uid, from))
    };
    let size = |uid: i64| scene.graph.tensor(uid).and_then(Tensor::element_count);
    let one = |&uid: &i64| {
        let back = size(uid).unwrap_or(1).saturating_sub(1);
        [rotated(uid, 1), rotated(uid, back)].into_iter().flatten()
    };
    uids.iter().flat_map(one).collect()
}
