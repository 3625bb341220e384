//! From an element of an intermediate to an input element that it depends on.

use dnn_assay_graph::semantics::{Direction, pointwise};
use dnn_assay_graph::{Attributes, Graph, Node};

/// The node that writes a tensor.
pub(super) fn producer(graph: &Graph, uid: i64) -> Option<&Node> {
    graph
        .nodes
        .iter()
        .find(|node| node.attributes.outputs().contains(&uid))
}

/// An element of an input of the graph on which element `index` of tensor `uid` depends; `None`
/// where none is found. Moving it moves the element, and some of its neighbours too.
pub(super) fn input_behind(graph: &Graph, uid: i64, index: usize) -> Option<(i64, usize)> {
    let (mut uid, mut index) = (uid, index);
    // As many steps as there are nodes suffice, since each goes back by one.
    for _ in 0..=graph.nodes.len() {
        let Some(node) = producer(graph, uid) else {
            let drawn = graph.tensor(uid)?.value.is_none();
            return drawn.then_some((uid, index));
        };
        (uid, index) = step(graph, node, uid, index)?;
    }
    None
}

/// One node back.
fn step(graph: &Graph, node: &Node, uid: i64, index: usize) -> Option<(i64, usize)> {
    let dims = |uid: i64| graph.tensor(uid).map(|tensor| tensor.dims.as_slice());
    let same = |source: i64| Some((source, broadcast(dims(uid)?, dims(source)?, index)));
    match &node.attributes {
        Attributes::Pointwise(table) => {
            let backward = pointwise(table.operation).direction == Direction::Backward;
            let computed = |uid: i64| producer(graph, uid).is_some();
            match table.in_1_tensor_uid {
                // Of two operands, the one that others make; of a derivative, dy.
                Some(second) if !backward && computed(second) => same(second),
                _ => same(table.in_0_tensor_uid),
            }
        }
        Attributes::BatchnormInference(bn) => same(bn.x_tensor_uid),
        Attributes::BatchnormInferenceVariance(bn) => same(bn.x_tensor_uid),
        Attributes::Batchnorm(bn) if bn.y_tensor_uid == uid => same(bn.x_tensor_uid),
        Attributes::BatchnormBackward(bn) if bn.dx_tensor_uid == uid => same(bn.dy_tensor_uid),
        Attributes::Matmul(matmul) => {
            let (c, a) = (dims(uid)?, dims(matmul.a_tensor_uid)?);
            let mut at = coordinates(c, index);
            *at.last_mut()? = 0;
            for (at, (&c, &a)) in at.iter_mut().zip(c.iter().zip(a)).rev().skip(2) {
                *at = *at * a / c.max(1);
            }
            Some((matmul.a_tensor_uid, flat(a, &at)))
        }
        Attributes::ConvolutionFwd(conv) => {
            let (y, x, w) = (
                dims(uid)?,
                dims(conv.x_tensor_uid)?,
                dims(conv.w_tensor_uid)?,
            );
            let mut at = coordinates(y, index);
            let groups = (x[1] / w[1].max(1)).max(1);
            at[1] = at[1] / (w[0] / groups).max(1) * w[1];
            for axis in 0..at.len() - 2 {
                let (stride, dilation) = (conv.stride[axis], conv.dilation[axis]);
                let start = at[axis + 2] * stride - conv.pre_padding[axis];
                at[axis + 2] = middle_out(w[axis + 2])
                    .map(|tap| start + tap * dilation)
                    .find(|at| (0..x[axis + 2]).contains(at))?;
            }
            Some((conv.x_tensor_uid, flat(x, &at)))
        }
        Attributes::ConvolutionBwd(conv) => {
            let (dx, dy, w) = (
                dims(uid)?,
                dims(conv.dy_tensor_uid)?,
                dims(conv.w_tensor_uid)?,
            );
            let mut at = coordinates(dx, index);
            let groups = (dx[1] / w[1].max(1)).max(1);
            at[1] = at[1] / w[1].max(1) * (w[0] / groups);
            for axis in 0..at.len() - 2 {
                let (stride, dilation) = (conv.stride[axis].max(1), conv.dilation[axis]);
                let start = at[axis + 2] + conv.pre_padding[axis];
                at[axis + 2] = middle_out(w[axis + 2])
                    .map(|tap| start - tap * dilation)
                    .find(|at| at % stride == 0 && (0..dy[axis + 2]).contains(&(at / stride)))?
                    / stride;
            }
            Some((conv.dy_tensor_uid, flat(dy, &at)))
        }
        _ => None,
    }
}

/// 0…n−1 from the middle to the ends.
fn middle_out(n: i64) -> impl Iterator<Item = i64> {
    let middle = n / 2;
    (0..=n)
        .flat_map(move |step| [middle - step, middle + step + 1])
        .filter(move |i| (0..n).contains(i))
}

/// The index into `source` that element `index` of `target` reads, aligned at the last axis.
pub(crate) fn broadcast(target: &[i64], source: &[i64], index: usize) -> usize {
    let at = coordinates(target, index);
    let skip = target.len().saturating_sub(source.len());
    let pairs = source.iter().zip(&at[skip..]);
    pairs.fold(0, |flat, (&dim, &at)| {
        flat * dim.max(1) as usize + at.min(dim - 1).max(0) as usize
    })
}

fn coordinates(dims: &[i64], mut index: usize) -> Vec<i64> {
    let mut at = vec![0; dims.len()];
    for (at, &dim) in at.iter_mut().zip(dims).rev() {
        let dim = dim.max(1) as usize;
        *at = (index % dim) as i64;
        index /= dim;
    }
    at
}

fn flat(dims: &[i64], at: &[i64]) -> usize {
    dims.iter()
        .zip(at)
        .fold(0, |flat, (&dim, &at)| flat * dim as usize + at as usize)
}
