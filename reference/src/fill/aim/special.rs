//! NaN, infinities, both zeros, denormals and the largest number, each where its footprint is
//! known: the receptive field of a convolution, the channel of a batchnorm, the element itself
//! elsewhere.

use super::Sight;
use super::places::channel;
use crate::dtype;
use crate::fill::random::Stream;
use dnn_assay_graph::case::ConvDirection;
use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::semantics::{Category, pointwise};
use dnn_assay_graph::{Attributes, DataType, PointwiseMode, Tensor};

/// One element of so many is special where only itself is affected.
const RATE: u64 = 6;

/// One element of so many of an image is a zero or a denormal.
const HARMLESS: u64 = 12;

pub(super) fn aim(sight: &mut Sight<'_>) {
    let seed = sight.seed;
    let stream = move |uid| Stream::new(seed, uid).salted(0x5bec_1a15);
    for attributes in sight.nodes() {
        match attributes {
            Attributes::Batchnorm(norm) => {
                sight.edit(norm.x_tensor_uid, |tensor, x| {
                    channels(tensor, x, &[f64::NAN]);
                });
            }
            Attributes::BatchnormBackward(norm) => {
                sight.edit(norm.dy_tensor_uid, |tensor, dy| {
                    channels(tensor, dy, &[f64::NAN, f64::INFINITY]);
                });
            }
            Attributes::BatchnormInference(norm) => {
                let uid = norm.x_tensor_uid;
                let places = stream(uid);
                sight.edit(uid, |tensor, x| elements(tensor, x, places, false));
            }
            Attributes::BatchnormInferenceVariance(norm) => {
                let uid = norm.x_tensor_uid;
                let places = stream(uid);
                sight.edit(uid, |tensor, x| elements(tensor, x, places, false));
            }
            Attributes::Pointwise(node) => operands(sight, node, &stream),
            attributes => {
                let Some(conv) = attributes.convolution() else {
                    continue;
                };
                // For wgrad in x, whose padding no sum over positions of dy reads.
                let [uid, _] = conv.operands();
                let apart = conv.direction == ConvDirection::Wgrad;
                let places = stream(uid);
                sight.edit(uid, |tensor, values| image(tensor, values, places, apart));
            }
        }
    }
}

/// Operands of a pointwise node, masks excepted.
fn operands(sight: &mut Sight<'_>, node: &PointwiseAttributes, stream: &dyn Fn(i64) -> Stream) {
    let facts = pointwise(node.operation);
    if matches!(facts.category, Category::Logic | Category::Index) {
        return;
    }
    // A bias or a gradient that meets what another node makes has its value at many places.
    if sight.graph.nodes.len() > 1 {
        return;
    }
    // Behind a step 0·∞ and 0·NaN are as right as 0: the table has a product, engines select.
    if node.operation == PointwiseMode::ReluBwd {
        return;
    }
    let uids = [
        Some(node.in_0_tensor_uid),
        node.in_1_tensor_uid,
        node.in_2_tensor_uid,
    ];
    for (operand, uid) in uids.into_iter().enumerate().take(facts.arity()) {
        let Some(uid) = uid.filter(|_| facts.mask() != Some(operand)) else {
            continue;
        };
        let places = stream(uid);
        let largest = !matches!(node.operation, PointwiseMode::Sin | PointwiseMode::Tan);
        sight.edit(uid, |tensor, values| {
            elements(tensor, values, places, largest);
            if node.operation == PointwiseMode::ReluFwd {
                // The same below its clip, where the slope may be 0.
                let least = -dtype::largest_finite(tensor.data_type);
                let below = values.iter_mut().filter(|v| **v == f64::NEG_INFINITY);
                below.for_each(|value| *value = least);
            }
        });
    }
}

/// A NaN in the first image, one infinity of each sign in the last, zeros and denormals anywhere.
/// `apart`: each in a channel of its own, and one infinity only, because the sum runs over all
/// positions of a channel.
fn image(tensor: &Tensor, values: &mut [f64], places: Stream, apart: bool) {
    let harmless = harmless(tensor.data_type);
    for (index, value) in values.iter_mut().enumerate() {
        let bits = places.bits(index);
        if bits.is_multiple_of(HARMLESS) {
            *value = harmless[(bits >> 8) as usize % harmless.len()];
        }
    }
    let batch = tensor.dims.first().map_or(1, |&n| n.max(1) as usize);
    let size = values.len() / batch;
    if size == 0 {
        return;
    }
    let anywhere = |salt| (places.salted(salt).bits(0) % size as u64) as usize;
    let last = (batch - 1) * size;
    let first = anywhere(1);
    for (salt, special) in [(2, f64::INFINITY), (3, f64::NEG_INFINITY)] {
        let at = last + anywhere(salt);
        let alone = !apart || salt == 2 && channel(tensor, at) != channel(tensor, first);
        if alone {
            values[at] = special;
        }
    }
    values[first] = f64::NAN;
}

/// One special value in each of the first channels.
fn channels(tensor: &Tensor, values: &mut [f64], specials: &[f64]) {
    let count = tensor.dims.get(1).map_or(1, |&c| c.max(1) as usize);
    for (at, &special) in specials.iter().enumerate().take(count) {
        if let Some(index) = (0..values.len()).rfind(|&index| channel(tensor, index) == at) {
            values[index] = special;
        }
    }
}

/// Special values at single elements.
fn elements(tensor: &Tensor, values: &mut [f64], places: Stream, largest: bool) {
    let mut specials = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    specials.extend(harmless(tensor.data_type));
    if largest {
        let most = dtype::largest_finite(tensor.data_type);
        specials.extend([most, -most]);
    }
    for (index, value) in values.iter_mut().enumerate() {
        let bits = places.bits(index);
        if bits.is_multiple_of(RATE) {
            *value = specials[(bits >> 8) as usize % specials.len()];
        }
    }
}

/// Both zeros, the smallest denormal and a larger one.
fn harmless(data_type: DataType) -> [f64; 4] {
    let smallest = dtype::smallest_subnormal(data_type);
    [-0.0, 0.0, smallest, -37.0 * smallest]
}
