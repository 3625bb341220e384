//! Zero but for the last of every axis and the places beside tile borders: few terms stay in each
//! sum, and one that is left out shows, however long the sum would be.

use super::Sight;
use super::places::{each_element, is_edge};
use dnn_assay_graph::Tensor;
use dnn_assay_graph::case::ConvDirection;

pub(super) fn aim(sight: &mut Sight<'_>) {
    for attributes in sight.nodes() {
        let Some(conv) = attributes.convolution() else {
            continue;
        };
        match conv.direction {
            ConvDirection::Fprop => {
                sight.edit(conv.x, image);
                sight.edit(conv.w, |tensor, w| filter(tensor, w, 1));
            }
            ConvDirection::Dgrad => {
                sight.edit(conv.y, image);
                sight.edit(conv.w, |tensor, w| filter(tensor, w, 0));
            }
            // The sum runs over images and positions of dy; x stays as it is.
            ConvDirection::Wgrad => sight.edit(conv.y, gradient),
        }
    }
}

/// Channels and positions at an edge.
fn image(tensor: &Tensor, values: &mut [f64]) {
    each_element(tensor, |index, at| {
        let edge = (1..at.len()).any(|axis| is_edge(at[axis], tensor.dims[axis]));
        spot(&mut values[index], edge);
    });
}

/// The last image, and positions at an edge.
fn gradient(tensor: &Tensor, values: &mut [f64]) {
    each_element(tensor, |index, at| {
        let last = at[0] == tensor.dims[0] - 1;
        let edge = (2..at.len()).any(|axis| is_edge(at[axis], tensor.dims[axis]));
        spot(&mut values[index], last || edge);
    });
}

/// The last tap, and all taps of the summed axis's edges.
fn filter(tensor: &Tensor, values: &mut [f64], summed: usize) {
    each_element(tensor, |index, at| {
        let last = (2..at.len()).all(|axis| at[axis] == tensor.dims[axis] - 1);
        spot(
            &mut values[index],
            last || is_edge(at[summed], tensor.dims[summed]),
        );
    });
}

/// Away from 0 or 0, from a value in [−1, 1].
fn spot(value: &mut f64, lit: bool) {
    *value = if lit {
        0.5f64.copysign(*value) + 0.5 * *value
    } else {
        0.0
    };
}
