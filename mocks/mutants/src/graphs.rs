//! Faults that compute another graph than the one given.

use dnn_assay_graph::semantics::{self, Direction};
use dnn_assay_graph::{Attributes, ConvMode, Graph, PointwiseMode, Tensor, TensorValue, schema};

/// Uid of a tensor that a fault adds.
const ADDED: i64 = 9_000;

/// The windows of all convolutions: pre-padding, post-padding, stride, dilation.
fn for_each_window(graph: &mut Graph, edit: impl Fn([&mut Vec<i64>; 4])) {
    for node in &mut graph.nodes {
        let window = match &mut node.attributes {
            Attributes::ConvolutionFwd(a) => [
                &mut a.pre_padding,
                &mut a.post_padding,
                &mut a.stride,
                &mut a.dilation,
            ],
            Attributes::ConvolutionBwd(a) => [
                &mut a.pre_padding,
                &mut a.post_padding,
                &mut a.stride,
                &mut a.dilation,
            ],
            Attributes::ConvolutionWrw(a) => [
                &mut a.pre_padding,
                &mut a.post_padding,
                &mut a.stride,
                &mut a.dilation,
            ],
            _ => continue,
        };
        edit(window);
    }
}

/// Filter taps stand next to each other.
pub fn dilation_ignored(graph: &mut Graph) {
    for_each_window(graph, |[_, _, _, dilation]| dilation.fill(1));
}

/// The stride's place holds the padding, the padding's the stride.
pub fn stride_and_padding_swapped(graph: &mut Graph) {
    for_each_window(graph, |[pre, _, stride, _]| {
        std::mem::swap(pre, stride);
        stride
            .iter_mut()
            .for_each(|stride| *stride = (*stride).max(1));
    });
}

/// What belongs before the image is put behind it.
pub fn paddings_swapped(graph: &mut Graph) {
    for_each_window(graph, |[pre, post, _, _]| std::mem::swap(pre, post));
}

/// The first element of the window starts at the image's first.
pub fn padding_ignored(graph: &mut Graph) {
    for_each_window(graph, |[pre, _, _, _]| pre.fill(0));
}

/// Every position is visited, whatever the stride.
pub fn stride_ignored(graph: &mut Graph) {
    for_each_window(graph, |[_, _, stride, _]| stride.fill(1));
}

/// Stride, padding and dilation of the axes change places.
pub fn window_axes_swapped(graph: &mut Graph) {
    for_each_window(graph, |window| {
        window.into_iter().for_each(|axis| axis.reverse())
    });
}

/// A true convolution is taken for a cross-correlation.
pub fn mode_ignored(graph: &mut Graph) {
    for node in &mut graph.nodes {
        match &mut node.attributes {
            Attributes::ConvolutionFwd(a) => a.conv_mode = ConvMode::CrossCorrelation,
            Attributes::ConvolutionBwd(a) => a.conv_mode = ConvMode::CrossCorrelation,
            Attributes::ConvolutionWrw(a) => a.conv_mode = ConvMode::CrossCorrelation,
            _ => {}
        }
    }
}

/// Extends the image by its padding, so that a load can say what lies there.
pub fn padding_inside_image(graph: &mut Graph) {
    let Some(Attributes::ConvolutionFwd(a)) = graph.nodes.first_mut().map(|n| &mut n.attributes)
    else {
        return;
    };
    let extra: Vec<i64> = a
        .pre_padding
        .iter()
        .zip(&a.post_padding)
        .map(|(a, b)| a + b)
        .collect();
    let x = a.x_tensor_uid;
    a.pre_padding.fill(0);
    a.post_padding.fill(0);
    if let Some(x) = graph.tensors.iter_mut().find(|tensor| tensor.uid == x) {
        for (dim, extra) in x.dims[2..].iter_mut().zip(extra) {
            *dim += extra;
        }
    }
}

fn pointwise(graph: &mut Graph) -> impl Iterator<Item = &mut schema::PointwiseAttributes> {
    graph
        .nodes
        .iter_mut()
        .filter_map(|node| match &mut node.attributes {
            Attributes::Pointwise(a) => Some(a),
            _ => None,
        })
}

fn is_activation(a: &schema::PointwiseAttributes) -> bool {
    semantics::pointwise(a.operation).direction == Direction::Forward
}

/// The activation's input is its output.
pub fn activation_missing(graph: &mut Graph) {
    for a in pointwise(graph).filter(|a| is_activation(a)) {
        a.operation = PointwiseMode::Identity;
    }
}

/// The activation's output is activated once more.
pub fn activation_twice(graph: &mut Graph) {
    let found = graph
        .nodes
        .iter()
        .position(|node| matches!(&node.attributes, Attributes::Pointwise(a) if is_activation(a)));
    let Some(at) = found else { return };
    let mut second = graph.nodes[at].clone();
    let Attributes::Pointwise(first) = &mut graph.nodes[at].attributes else {
        return;
    };
    let out = first.out_0_tensor_uid;
    first.out_0_tensor_uid = ADDED;
    if let Attributes::Pointwise(second) = &mut second.attributes {
        second.in_0_tensor_uid = ADDED;
    }
    add_virtual_like(graph, out);
    graph.nodes.insert(at + 1, second);
}

fn add_virtual_like(graph: &mut Graph, uid: i64) {
    let Some(tensor) = graph.tensor(uid) else {
        return;
    };
    let added = Tensor {
        uid: ADDED,
        name: "added".to_owned(),
        is_virtual: true,
        ..tensor.clone()
    };
    graph.tensors.push(added);
}

/// conv → activation → bias instead of conv → bias → activation.
pub fn bias_after_activation(graph: &mut Graph) {
    let [.., bias, activation] = graph.nodes.as_mut_slice() else {
        return;
    };
    let (Attributes::Pointwise(add), Attributes::Pointwise(act)) =
        (&mut bias.attributes, &mut activation.attributes)
    else {
        return;
    };
    let (first, between, out) = (
        add.in_0_tensor_uid,
        add.out_0_tensor_uid,
        act.out_0_tensor_uid,
    );
    (act.in_0_tensor_uid, act.out_0_tensor_uid) = (first, between);
    (add.in_0_tensor_uid, add.out_0_tensor_uid) = (between, out);
    let last = graph.nodes.len() - 1;
    graph.nodes.swap(last - 1, last);
}

/// The bias is added nowhere.
pub fn bias_missing(graph: &mut Graph) {
    let named = |graph: &Graph, uid| graph.tensor(uid).is_some_and(|t| t.name == "bias");
    let copy = graph.clone();
    for a in pointwise(graph) {
        if a.operation == PointwiseMode::Add && a.in_1_tensor_uid.is_some_and(|b| named(&copy, b)) {
            a.operation = PointwiseMode::Identity;
        }
    }
}

/// The bias follows the last axis instead of the channels.
pub fn bias_on_last_axis(graph: &mut Graph) {
    let width = graph
        .tensors
        .iter()
        .find(|t| t.name == "y")
        .and_then(|t| t.dims.last().copied());
    let bias = graph
        .tensors
        .iter_mut()
        .find(|tensor| tensor.name == "bias");
    if let (Some(width), Some(bias)) = (width, bias) {
        bias.dims.fill(1);
        if let Some(last) = bias.dims.last_mut() {
            *last = width;
        }
    }
}

/// No clip, no slope: every ReLU is the plain one.
pub fn clips_ignored(graph: &mut Graph) {
    for a in pointwise(graph) {
        (a.relu_lower_clip, a.relu_upper_clip) = (None, None);
    }
}

/// A leaky ReLU does not leak.
pub fn slope_ignored(graph: &mut Graph) {
    pointwise(graph).for_each(|a| a.relu_lower_clip_slope = None);
}

/// α and β are taken for 1.
pub fn parameters_ignored(graph: &mut Graph) {
    for a in pointwise(graph) {
        (a.swish_beta, a.elu_alpha, a.softplus_beta) = (None, None, None);
    }
}

/// The second operand comes first.
pub fn operands_swapped(graph: &mut Graph) {
    for a in pointwise(graph) {
        if let Some(second) = a.in_1_tensor_uid.as_mut() {
            std::mem::swap(second, &mut a.in_0_tensor_uid);
        }
    }
}

fn replace(graph: &mut Graph, pairs: &[(PointwiseMode, PointwiseMode)]) {
    for a in pointwise(graph) {
        if let Some((_, to)) = pairs.iter().find(|(from, _)| *from == a.operation) {
            a.operation = *to;
        }
    }
}

/// GELU by its tanh approximation, where the exact one was asked for.
pub fn gelu_approximated(graph: &mut Graph) {
    use PointwiseMode::{GeluApproxTanhBwd, GeluApproxTanhFwd, GeluBwd, GeluFwd};
    replace(
        graph,
        &[(GeluFwd, GeluApproxTanhFwd), (GeluBwd, GeluApproxTanhBwd)],
    );
}

/// Comparisons that forget, or add, the case of equality.
pub fn equality_confused(graph: &mut Graph) {
    use PointwiseMode::{CmpGe, CmpGt, CmpLe, CmpLt};
    replace(
        graph,
        &[
            (CmpGe, CmpGt),
            (CmpGt, CmpGe),
            (CmpLe, CmpLt),
            (CmpLt, CmpLe),
        ],
    );
}

/// Minimum for maximum and the reverse.
pub fn extremes_swapped(graph: &mut Graph) {
    use PointwiseMode::{MaxOp, MinOp};
    replace(graph, &[(MaxOp, MinOp), (MinOp, MaxOp)]);
}

/// The gradient passes the activation unchanged.
pub fn gradient_unmasked(graph: &mut Graph) {
    for a in pointwise(graph) {
        if semantics::pointwise(a.operation).direction == Direction::Backward {
            a.operation = PointwiseMode::Identity;
        }
    }
}

/// A square that is not taken.
pub fn square_missing(graph: &mut Graph) {
    replace(graph, &[(PointwiseMode::AddSquare, PointwiseMode::Add)]);
}

/// Coordinates along the next axis.
pub fn axis_off_by_one(graph: &mut Graph) {
    let rank = graph
        .tensors
        .first()
        .map_or(1, |tensor| tensor.dims.len() as i64);
    for a in pointwise(graph) {
        a.axis_tensor_uid = a.axis_tensor_uid.map(|axis| (axis + 1) % rank);
    }
}

/// The variance stands alone under the root.
pub fn epsilon_missing(graph: &mut Graph) {
    for tensor in graph
        .tensors
        .iter_mut()
        .filter(|tensor| tensor.name == "epsilon")
    {
        tensor.value = Some(TensorValue::Float32(0.0));
    }
}

/// The new statistics count for what the old ones should.
pub fn momentum_reversed(graph: &mut Graph) {
    for tensor in graph
        .tensors
        .iter_mut()
        .filter(|tensor| tensor.name == "momentum")
    {
        let momentum = tensor.value.and_then(TensorValue::as_f64).unwrap_or(0.1);
        tensor.value = Some(TensorValue::Float64(1.0 - momentum));
    }
}
