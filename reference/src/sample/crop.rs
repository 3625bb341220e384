//! The smallest graph that computes one element of an output.
//!
//! Every operation of it runs on the part of its operands that the element depends on, with the same
//! parameters, and the padding that is left of a window at the border. So the element's value has the
//! bits that it has in the whole graph, whatever chain of operations leads to it.

use super::{Source, flat};
use crate::estimate::Values;
use crate::ops::conv::{Axis, Geometry};
use dnn_assay_graph::case::ConvDirection;
use dnn_assay_graph::schema::{FieldMut, Role};
use dnn_assay_graph::{Attributes, Convolution, Graph, Node, Tensor};
use std::ops::Range;

/// Elements of operands that one element may depend on.
const MOST: usize = 1 << 26;

/// Why an element has no smaller graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Uncroppable {
    /// The window of a convolution lies in the padding, or no tap reaches the element: a sum of
    /// nothing.
    Dead,
    /// Something else, in words.
    Other(String),
}

use Uncroppable::{Dead, Other};

/// A part of a graph.
pub(super) struct Crop {
    /// Operations on parts of tensors.
    pub graph: Graph,
    /// What those hold.
    pub values: Values,
    /// The tensor with the element, its only one.
    pub uid: i64,
}

/// A box in a tensor: a range for each axis.
type Region = Vec<Range<usize>>;

/// The graph of the element at `place` of tensor `uid`.
pub(super) fn crop(
    graph: &Graph,
    source: &dyn Source,
    uid: i64,
    place: &[usize],
) -> Result<Crop, Uncroppable> {
    let mut cropper = Cropper {
        whole: graph,
        source,
        graph: Graph {
            tensors: Vec::new(),
            nodes: Vec::new(),
            ..graph.clone()
        },
        values: Values::new(),
        parts: Vec::new(),
        elements: 0,
    };
    let region = place.iter().map(|&at| at..at + 1).collect();
    let uid = cropper.part(uid, &region)?;
    Ok(Crop {
        graph: cropper.graph,
        values: cropper.values,
        uid,
    })
}

struct Cropper<'a> {
    whole: &'a Graph,
    source: &'a dyn Source,
    graph: Graph,
    values: Values,
    /// Parts that are there already: the same box of the same tensor is one.
    parts: Vec<(i64, Region, i64)>,
    elements: usize,
}

/// A node of the whole graph with the boxes of its operands, in the order of the fields, and what
/// else changes.
struct Cut {
    operands: Vec<Region>,
    window: Option<Padding>,
}

/// Padding before and behind, per spatial axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Padding {
    pre: Vec<i64>,
    post: Vec<i64>,
}

impl Cropper<'_> {
    /// The uid, in the cropped graph, of a box of a tensor.
    fn part(&mut self, uid: i64, region: &Region) -> Result<i64, Uncroppable> {
        let known = self
            .parts
            .iter()
            .find(|(of, at, _)| *of == uid && at == region);
        if let Some(&(_, _, part)) = known {
            return Ok(part);
        }
        let whole = self.whole;
        let tensor = tensor(whole, uid)?;
        let mut nodes = whole.nodes.iter();
        let producer = nodes.find(|node| node.attributes.outputs().contains(&uid));
        let part = match producer {
            Some(node) => self.produced(node, uid, region)?,
            None => self.given(tensor, region)?,
        };
        self.parts.push((uid, region.clone(), part));
        Ok(part)
    }

    /// A box of what a node writes: the node on boxes of its operands.
    fn produced(&mut self, node: &Node, uid: i64, region: &Region) -> Result<i64, Uncroppable> {
        let cut = cut(self.whole, node, region)?;
        let mut parts = Vec::new();
        let mut operands = cut.operands.iter();
        for operand in node.attributes.inputs() {
            let region = operands
                .next()
                .ok_or_else(|| other("an operand without a part"))?;
            parts.push(self.part(operand, region)?);
        }
        let written = self.declare(tensor(self.whole, uid)?, region)?;
        let mut node = node.clone();
        let mut parts = parts.into_iter();
        node.attributes.record_mut().visit_mut(&mut |field, value| {
            let uid = match field.role {
                Role::Input => match &value {
                    FieldMut::OptInt64(None) => return,
                    _ => parts.next(),
                },
                Role::Output => Some(written),
                Role::Attribute => return,
            };
            match (value, uid) {
                (FieldMut::Int64(place), Some(uid)) => *place = uid,
                (FieldMut::OptInt64(place), Some(uid)) => *place = Some(uid),
                _ => {}
            }
        });
        if let Some(padding) = cut.window {
            pad(&mut node.attributes, padding);
        }
        self.graph.nodes.push(node);
        Ok(written)
    }

    /// A box of an input, or of a constant.
    fn given(&mut self, tensor: &Tensor, region: &Region) -> Result<i64, Uncroppable> {
        let part = self.declare(tensor, region)?;
        if tensor.value.is_some() {
            return Ok(part);
        }
        let missing = || Other(format!("no values for tensor {}", tensor.uid));
        let mut values = Vec::new();
        let mut place: Vec<usize> = region.iter().map(|range| range.start).collect();
        let (rows, last) = match region.split_last() {
            Some((last, outer)) => (outer.iter().map(Range::len).product(), last.clone()),
            None => (1, 0..1),
        };
        for _ in 0..rows {
            let start = flat(&tensor.dims, &place);
            for index in start..start + last.len() {
                values.push(self.source.value(tensor.uid, index).ok_or_else(missing)?);
            }
            next_row(region, &mut place);
        }
        self.values.insert(part, values.into());
        Ok(part)
    }

    fn declare(&mut self, tensor: &Tensor, region: &Region) -> Result<i64, Uncroppable> {
        let elements: usize = region.iter().map(Range::len).product();
        self.elements += elements;
        if self.elements > MOST {
            return Err(other("one element depends on too many others"));
        }
        let dims: Vec<i64> = region.iter().map(|range| range.len() as i64).collect();
        let uid = self.graph.tensors.len() as i64 + 1;
        self.graph.tensors.push(Tensor {
            strides: Tensor::packed(uid, "", tensor.data_type, &dims).strides,
            uid,
            dims,
            ..tensor.clone()
        });
        Ok(uid)
    }
}

/// The next row of a box, the last axis left alone.
fn next_row(region: &Region, place: &mut [usize]) {
    for axis in (0..region.len().saturating_sub(1)).rev() {
        place[axis] += 1;
        if place[axis] < region[axis].end {
            return;
        }
        place[axis] = region[axis].start;
    }
}

fn other(text: &str) -> Uncroppable {
    Other(text.to_owned())
}

fn tensor(graph: &Graph, uid: i64) -> Result<&Tensor, Uncroppable> {
    let missing = || Other(format!("there is no tensor {uid}"));
    graph.tensor(uid).ok_or_else(missing)
}

/// The parts of a node's operands on which `region` of its output depends.
fn cut(graph: &Graph, node: &Node, region: &Region) -> Result<Cut, Uncroppable> {
    let plain = |operands| {
        Ok(Cut {
            operands,
            window: None,
        })
    };
    let dims = |uid: i64| tensor(graph, uid).map(|tensor| tensor.dims.as_slice());
    match &node.attributes {
        Attributes::Pointwise(table) => {
            let uids = node.attributes.inputs();
            let out = dims(table.out_0_tensor_uid)?;
            let operands = uids.iter().map(|&uid| broadcast(out, dims(uid)?, region));
            plain(operands.collect::<Result<_, _>>()?)
        }
        Attributes::BatchnormInference(_) | Attributes::BatchnormInferenceVariance(_) => {
            let channels = region.get(1).cloned().ok_or_else(|| other("no channels"))?;
            let uids = node.attributes.inputs().into_iter().enumerate();
            let operands = uids.map(|(index, uid)| match index {
                0 => Ok(region.clone()),
                _ => per_channel(dims(uid)?, &channels),
            });
            plain(operands.collect::<Result<_, _>>()?)
        }
        Attributes::Matmul(table) => {
            let c = dims(table.c_tensor_uid)?;
            let (a, b) = (dims(table.a_tensor_uid)?, dims(table.b_tensor_uid)?);
            plain(factors(a, b, c, region)?)
        }
        attributes => match attributes.convolution() {
            Some(conv) => {
                let of = geometry(graph, &conv)?;
                match conv.direction {
                    ConvDirection::Fprop => fprop(&of, dims(conv.w)?, region),
                    ConvDirection::Dgrad => dgrad(&of, dims(conv.w)?, region),
                    ConvDirection::Wgrad => wgrad(&of, dims(conv.y)?, region),
                }
            }
            None => Err(Other(format!("{} has no parts", attributes.kind()))),
        },
    }
}

/// The shapes of a convolution.
pub(super) fn geometry(graph: &Graph, conv: &Convolution<'_>) -> Result<Geometry, Uncroppable> {
    let [x, w, y] = [conv.x, conv.w, conv.y].map(|uid| tensor(graph, uid));
    Geometry::new(x?, w?, y?, &conv.window).map_err(Other)
}

fn pad(attributes: &mut Attributes, padding: Padding) {
    let (pre, post) = match attributes {
        Attributes::ConvolutionFwd(table) => (&mut table.pre_padding, &mut table.post_padding),
        Attributes::ConvolutionBwd(table) => (&mut table.pre_padding, &mut table.post_padding),
        Attributes::ConvolutionWrw(table) => (&mut table.pre_padding, &mut table.post_padding),
        _ => return,
    };
    (*pre, *post) = (padding.pre, padding.post);
}

/// Aligned at the last axis; an axis of extent 1 repeats.
fn broadcast(out: &[i64], own: &[i64], region: &Region) -> Result<Region, Uncroppable> {
    let missing = out.len() as i64 - own.len() as i64;
    let axes = own.iter().enumerate().map(|(axis, &extent)| {
        let at = axis as i64 + missing;
        match extent {
            1 => Ok(0..1),
            _ if at >= 0 => Ok(region[at as usize].clone()),
            _ => Err(other("an operand with more axes than the output")),
        }
    });
    axes.collect()
}

/// A tensor with one value per channel on some axis, or a scalar.
fn per_channel(dims: &[i64], channels: &Range<usize>) -> Result<Region, Uncroppable> {
    let wide: Vec<usize> = (0..dims.len()).filter(|&axis| dims[axis] != 1).collect();
    let axis = match wide[..] {
        [] => None,
        [axis] => Some(axis),
        _ => return Err(other("statistics with more than one axis")),
    };
    let range = |at| {
        if Some(at) == axis {
            channels.clone()
        } else {
            0..1
        }
    };
    Ok((0..dims.len()).map(range).collect())
}

/// A `[…, M, K]` and B `[…, K, N]` behind a box of C; blocks of batches repeat.
fn factors(a: &[i64], b: &[i64], c: &[i64], region: &Region) -> Result<Vec<Region>, Uncroppable> {
    let rank = c.len();
    if rank < 2 || a.len() != rank || b.len() != rank {
        return Err(other("a product of other ranks"));
    }
    let batches = |own: &[i64]| -> Result<Region, Uncroppable> {
        let axes = (0..rank - 2).map(|axis| {
            let (range, repeat) = (&region[axis], (c[axis] / own[axis].max(1)).max(1) as usize);
            match repeat {
                1 => Ok(range.clone()),
                _ if range.len() == 1 => Ok(range.start / repeat..range.start / repeat + 1),
                _ => Err(other("repeated batches of more than one element")),
            }
        });
        axes.collect()
    };
    let inner = 0..a[rank - 1].max(0) as usize;
    let (mut first, mut second) = (batches(a)?, batches(b)?);
    first.extend([region[rank - 2].clone(), inner.clone()]);
    second.extend([inner, region[rank - 1].clone()]);
    Ok(vec![first, second])
}

/// Groups that a range of channels covers, `each` to a group: part of one, or some wholly.
fn groups(range: &Range<usize>, each: usize) -> Result<Range<usize>, Uncroppable> {
    let (first, last) = (range.start / each, (range.end - 1) / each);
    let whole = range.start.is_multiple_of(each) && range.end.is_multiple_of(each);
    if first == last || whole {
        Ok(first..last + 1)
    } else {
        Err(other("parts of several groups"))
    }
}

fn scaled(range: &Range<usize>, each: usize) -> Range<usize> {
    range.start * each..range.end * each
}

fn full(dims: &[i64]) -> impl Iterator<Item = Range<usize>> + '_ {
    dims.iter().map(|&dim| 0..dim as usize)
}

/// x and w behind a box of y.
fn fprop(geometry: &Geometry, w: &[i64], region: &Region) -> Result<Cut, Uncroppable> {
    let groups = groups(&region[1], geometry.filters)?;
    let mut x = vec![region[0].clone(), scaled(&groups, geometry.channels)];
    let mut padding = Padding::default();
    for (axis, range) in geometry.axes.iter().zip(&region[2..]) {
        let start = (range.start * axis.stride) as i64 - axis.pre as i64;
        let end = ((range.end - 1) * axis.stride + reach(axis)) as i64 - axis.pre as i64;
        x.push(padding.clip(start, end, axis.input)?);
    }
    let filters = [region[1].clone()].into_iter().chain(full(&w[1..]));
    Ok(Cut {
        operands: vec![x, filters.collect()],
        window: Some(padding),
    })
}

/// dy and w behind a box of dx.
fn dgrad(geometry: &Geometry, w: &[i64], region: &Region) -> Result<Cut, Uncroppable> {
    let groups = groups(&region[1], geometry.channels)?;
    let filters = scaled(&groups, geometry.filters);
    let channels = match groups.len() {
        1 => {
            let first = groups.start * geometry.channels;
            region[1].start - first..region[1].end - first
        }
        _ => 0..geometry.channels,
    };
    let mut dy = vec![region[0].clone(), filters.clone()];
    let mut padding = Padding::default();
    for (axis, range) in geometry.axes.iter().zip(&region[2..]) {
        let (start, end) = (range.start + axis.pre, range.end - 1 + axis.pre);
        let first = (start + 1)
            .saturating_sub(reach(axis))
            .div_ceil(axis.stride);
        let last = (end / axis.stride).min(axis.output - 1);
        if first > last {
            return Err(Dead);
        }
        let pre = start as i64 - (first * axis.stride) as i64;
        let padded = ((last - first) * axis.stride + reach(axis)) as i64;
        let post = padded - range.len() as i64 - pre;
        if pre < 0 || post < 0 {
            return Err(other("a window with less than no padding"));
        }
        padding.pre.push(pre);
        padding.post.push(post);
        dy.push(first..last + 1);
    }
    let weights = [filters, channels].into_iter().chain(full(&w[2..]));
    Ok(Cut {
        operands: vec![dy, weights.collect()],
        window: Some(padding),
    })
}

/// x and dy behind a box of dw.
fn wgrad(geometry: &Geometry, dy: &[i64], region: &Region) -> Result<Cut, Uncroppable> {
    let groups = groups(&region[0], geometry.filters)?;
    let channels = match groups.len() {
        1 => {
            let first = groups.start * geometry.channels;
            region[1].start + first..region[1].end + first
        }
        _ if region[1].len() == geometry.channels => scaled(&groups, geometry.channels),
        _ => return Err(other("some channels of several groups")),
    };
    let images = 0..geometry.batch;
    let mut x = vec![images.clone(), channels];
    let mut padding = Padding::default();
    for (axis, range) in geometry.axes.iter().zip(&region[2..]) {
        let taps = if geometry.flipped {
            axis.taps - range.end..axis.taps - range.start
        } else {
            range.clone()
        };
        let start = (taps.start * axis.dilation) as i64 - axis.pre as i64;
        let span = (axis.output - 1) * axis.stride + (taps.len() - 1) * axis.dilation + 1;
        x.push(padding.clip(start, start + span as i64, axis.input)?);
    }
    let rest = [images, region[0].clone()]
        .into_iter()
        .chain(full(&dy[2..]));
    Ok(Cut {
        operands: vec![x, rest.collect()],
        window: Some(padding),
    })
}

/// Elements that a window spans.
fn reach(axis: &Axis) -> usize {
    (axis.taps - 1) * axis.dilation + 1
}

impl Padding {
    /// What of `start..end` lies in `0..extent`; the rest becomes padding.
    fn clip(&mut self, start: i64, end: i64, extent: usize) -> Result<Range<usize>, Uncroppable> {
        let (low, high) = (start.max(0), end.min(extent as i64));
        if low >= high {
            return Err(Dead);
        }
        self.pre.push(low - start);
        self.post.push(end - high);
        Ok(low as usize..high as usize)
    }
}
