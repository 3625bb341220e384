//! Pointwise nodes, biases and activations that are left out, doubled or confused.

use super::layout::{count, place_of};
use super::scene::{Case, Reading, Scene, Suspect};
use dnn_assay_graph::model::packed_strides;
use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::semantics::{self, Direction};
use dnn_assay_graph::{Attributes, Graph, PointwiseMode, Tensor};
use std::collections::BTreeMap;

fn pointwise(graph: &mut Graph) -> impl Iterator<Item = &mut PointwiseAttributes> {
    graph
        .nodes
        .iter_mut()
        .filter_map(|node| match &mut node.attributes {
            Attributes::Pointwise(table) => Some(table),
            _ => None,
        })
}

fn is(table: &PointwiseAttributes, direction: Direction) -> bool {
    semantics::pointwise(table.operation).direction == direction
}

pub(super) fn activation_missing(scene: &Scene<'_>) -> Vec<Suspect> {
    scene.with_graph(|graph| {
        for table in pointwise(graph).filter(|table| is(table, Direction::Forward)) {
            table.operation = PointwiseMode::Identity;
        }
    })
}

pub(super) fn gradient_unmasked(scene: &Scene<'_>) -> Vec<Suspect> {
    scene.with_graph(|graph| {
        for table in pointwise(graph).filter(|table| is(table, Direction::Backward)) {
            table.operation = PointwiseMode::Identity;
        }
    })
}

/// The activation's output activated once more.
pub(super) fn activation_doubled(scene: &Scene<'_>) -> Vec<Suspect> {
    scene.with_graph(|graph| {
        let is_activation = |attributes: &Attributes| {
            matches!(attributes, Attributes::Pointwise(table) if is(table, Direction::Forward))
        };
        let found = graph.nodes.iter().position(|node| is_activation(&node.attributes));
        let Some(at) = found else { return };
        let added = graph.tensors.iter().map(|tensor| tensor.uid).max().unwrap_or(0) + 1;
        let mut second = graph.nodes[at].clone();
        let Attributes::Pointwise(first) = &mut graph.nodes[at].attributes else {
            return;
        };
        let out = std::mem::replace(&mut first.out_0_tensor_uid, added);
        if let Attributes::Pointwise(second) = &mut second.attributes {
            second.in_0_tensor_uid = added;
        }
        graph.nodes.insert(at + 1, second);
        if let Some(tensor) = graph.tensor(out) {
            let tensor = Tensor {
                uid: added,
                is_virtual: true,
                ..tensor.clone()
            };
            graph.tensors.push(tensor);
        }
    })
}

/// Every subset of clip and slope that may be forgotten by itself.
pub(super) fn clips_ignored(scene: &Scene<'_>) -> Vec<Suspect> {
    let edits: [fn(&mut PointwiseAttributes); 3] = [
        |table| (table.relu_lower_clip, table.relu_upper_clip) = (None, None),
        |table| table.relu_upper_clip = None,
        |table| table.relu_lower_clip = None,
    ];
    each_edit(scene, &edits)
}

/// No slope, a slope of 0.01, or a slope everywhere.
pub(super) fn slope_wrong(scene: &Scene<'_>) -> Vec<Suspect> {
    let edits: [fn(&mut PointwiseAttributes); 3] = [
        |table| table.relu_lower_clip_slope = None,
        |table| table.relu_lower_clip_slope = table.relu_lower_clip_slope.map(|_| 0.01),
        |table| table.relu_lower_clip_slope = table.relu_lower_clip_slope.map(|slope| 1.0 / slope),
    ];
    each_edit(scene, &edits)
}

pub(super) fn parameters_ignored(scene: &Scene<'_>) -> Vec<Suspect> {
    let edits: [fn(&mut PointwiseAttributes); 1] = [|table| {
        (table.swish_beta, table.elu_alpha, table.softplus_beta) = (None, None, None);
    }];
    each_edit(scene, &edits)
}

fn each_edit(scene: &Scene<'_>, edits: &[fn(&mut PointwiseAttributes)]) -> Vec<Suspect> {
    edits
        .iter()
        .flat_map(|edit| scene.with_graph(|graph| pointwise(graph).for_each(edit)))
        .collect()
}

pub(super) fn operands_swapped(scene: &Scene<'_>) -> Vec<Suspect> {
    let edits: [fn(&mut PointwiseAttributes); 3] = [
        |table| {
            if let Some(second) = table.in_1_tensor_uid.as_mut() {
                std::mem::swap(second, &mut table.in_0_tensor_uid);
            }
        },
        |table| {
            if let Some(third) = table.in_2_tensor_uid.as_mut() {
                std::mem::swap(third, &mut table.in_0_tensor_uid);
            }
        },
        |table| {
            if table.in_2_tensor_uid.is_some() {
                std::mem::swap(&mut table.in_1_tensor_uid, &mut table.in_2_tensor_uid);
            }
        },
    ];
    each_edit(scene, &edits)
}

fn replaced(scene: &Scene<'_>, pairs: &[(PointwiseMode, PointwiseMode)]) -> Vec<Suspect> {
    scene.with_graph(|graph| {
        for table in pointwise(graph) {
            if let Some((_, to)) = pairs.iter().find(|(from, _)| *from == table.operation) {
                table.operation = *to;
            }
        }
    })
}

pub(super) fn gelu_form(scene: &Scene<'_>) -> Vec<Suspect> {
    use PointwiseMode::{GeluApproxTanhBwd, GeluApproxTanhFwd, GeluBwd, GeluFwd};
    replaced(
        scene,
        &[
            (GeluFwd, GeluApproxTanhFwd),
            (GeluBwd, GeluApproxTanhBwd),
            (GeluApproxTanhFwd, GeluFwd),
            (GeluApproxTanhBwd, GeluBwd),
        ],
    )
}

pub(super) fn equality(scene: &Scene<'_>) -> Vec<Suspect> {
    use PointwiseMode::{CmpGe, CmpGt, CmpLe, CmpLt};
    replaced(
        scene,
        &[
            (CmpGe, CmpGt),
            (CmpGt, CmpGe),
            (CmpLe, CmpLt),
            (CmpLt, CmpLe),
        ],
    )
}

pub(super) fn extremes(scene: &Scene<'_>) -> Vec<Suspect> {
    use PointwiseMode::{MaxOp, MinOp};
    replaced(scene, &[(MaxOp, MinOp), (MinOp, MaxOp)])
}

pub(super) fn square_missing(scene: &Scene<'_>) -> Vec<Suspect> {
    replaced(scene, &[(PointwiseMode::AddSquare, PointwiseMode::Add)])
}

/// Coordinates along each other axis.
pub(super) fn index_axis(scene: &Scene<'_>) -> Vec<Suspect> {
    let rank = scene
        .outputs
        .first()
        .map_or(0, |output| output.tensor.dims.len() as i64);
    let with = |axis: i64| {
        scene.with_graph(|graph| {
            for table in pointwise(graph) {
                table.axis_tensor_uid = table.axis_tensor_uid.map(|_| axis);
            }
        })
    };
    (0..rank).flat_map(with).collect()
}

/// The addition of a broadcast tensor: index of the node, uid of the bias.
fn bias(scene: &Scene<'_>) -> Option<(usize, i64)> {
    scene
        .graph
        .nodes
        .iter()
        .enumerate()
        .find_map(|(index, node)| {
            let Attributes::Pointwise(table) = &node.attributes else {
                return None;
            };
            let uid = table.in_1_tensor_uid?;
            let bias = scene.input_tensor(uid)?;
            let out = scene.graph.tensor(table.out_0_tensor_uid)?;
            let adds = table.operation == PointwiseMode::Add;
            (adds && bias.element_count() < out.element_count()).then_some((index, uid))
        })
}

pub(super) fn bias_missing(scene: &Scene<'_>) -> Vec<Suspect> {
    scaled_bias(scene, 0.0)
}

pub(super) fn bias_doubled(scene: &Scene<'_>) -> Vec<Suspect> {
    scaled_bias(scene, 2.0)
}

pub(super) fn bias_subtracted(scene: &Scene<'_>) -> Vec<Suspect> {
    scaled_bias(scene, -1.0)
}

fn scaled_bias(scene: &Scene<'_>, factor: f64) -> Vec<Suspect> {
    let scaled = bias(scene)
        .and_then(|(_, uid)| scene.with_input(uid, Reading::mapped(move |value| value * factor)));
    scaled.into_iter().collect()
}

/// The bias along each other axis, repeated as often as need be.
pub(super) fn bias_axis(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some((node, uid)) = bias(scene) else {
        return Vec::new();
    };
    let Attributes::Pointwise(table) = &scene.graph.nodes[node].attributes else {
        return Vec::new();
    };
    let (Some(out), Some(given)) = (
        scene.graph.tensor(table.out_0_tensor_uid),
        scene.input_tensor(uid),
    ) else {
        return Vec::new();
    };
    let mut suspects = Vec::new();
    for axis in 0..out.dims.len() {
        let mut graph = scene.graph.clone();
        let mut dims = vec![1; out.dims.len()];
        dims[axis] = out.dims[axis];
        let Some(tensor) = graph.tensors.iter_mut().find(|tensor| tensor.uid == uid) else {
            continue;
        };
        if tensor.dims == dims {
            continue;
        }
        tensor.strides = packed_strides(&dims);
        tensor.dims = dims;
        // Each element by its index, from the beginning again where there are no more.
        let old = given.dims.clone();
        let from = move |at: &mut [i64]| {
            let index = at[axis] as usize % count(&old).max(1);
            place_of(&old, index, at);
        };
        let readings = BTreeMap::from([(uid, Reading::taken(uid, from))]);
        suspects.push(Suspect::Case(Box::new(Case { graph, readings })));
    }
    suspects
}

/// Activation, then bias.
pub(super) fn bias_after_activation(scene: &Scene<'_>) -> Vec<Suspect> {
    let Some((at, _)) = bias(scene) else {
        return Vec::new();
    };
    scene.with_graph(|graph| {
        let Some([first, second]) = graph.nodes.get_mut(at..at + 2) else {
            return;
        };
        let (Attributes::Pointwise(add), Attributes::Pointwise(activation)) =
            (&mut first.attributes, &mut second.attributes)
        else {
            return;
        };
        if !is(activation, Direction::Forward) || activation.in_0_tensor_uid != add.out_0_tensor_uid
        {
            return;
        }
        let (start, between) = (add.in_0_tensor_uid, add.out_0_tensor_uid);
        let out = activation.out_0_tensor_uid;
        (activation.in_0_tensor_uid, activation.out_0_tensor_uid) = (start, between);
        (add.in_0_tensor_uid, add.out_0_tensor_uid) = (between, out);
        graph.nodes.swap(at, at + 1);
    })
}
