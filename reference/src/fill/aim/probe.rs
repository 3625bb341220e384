//! Values near ±1 whose last digits a matrix unit of fewer bits drops: inputs that are rounded on
//! the way show in every output.

use super::Sight;
use dnn_assay_graph::{DataType, Tensor};

pub(super) fn aim(sight: &mut Sight<'_>) {
    for attributes in sight.nodes() {
        let Some(conv) = attributes.convolution() else {
            continue;
        };
        for uid in conv.operands() {
            sight.edit(uid, digits);
        }
    }
}

/// ±(1 + an odd multiple of the digit), from a value in [−1, 1]. The digit is the last but two of
/// what the narrower type keeps: 11 bits for f32 (TF32, xf32), 24 for f64.
fn digits(tensor: &Tensor, values: &mut [f64]) {
    let digit = match tensor.data_type {
        DataType::Double => (-26f64).exp2(),
        _ => (-12f64).exp2(),
    };
    for value in values {
        let steps = (value.abs() * 256.0).floor();
        *value = (1.0 + (2.0 * steps + 1.0) * digit).copysign(*value);
    }
}
