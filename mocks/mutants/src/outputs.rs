//! Faults in what is written.

use dnn_assay_graph::DataType;
use half::{bf16, f16};

use crate::fault::{Site, coordinates, extents, rearrange};

/// Positions of a tile.
const TILE: usize = 16;

/// A thousandth too large.
pub fn scaled(_: &Site<'_>, values: &mut [f64]) {
    values.iter_mut().for_each(|value| *value *= 1.001);
}

/// Digits cut off instead of rounded.
pub fn truncated(site: &Site<'_>, values: &mut [f64]) {
    for value in values {
        *value = match site.tensor.data_type {
            DataType::Half => {
                let near = f16::from_f64(*value);
                let over = near.to_f64().abs() > value.abs();
                f16::from_bits(near.to_bits() - u16::from(over)).to_f64()
            }
            DataType::Bfloat16 => {
                let near = bf16::from_f64(*value);
                let over = near.to_f64().abs() > value.abs();
                bf16::from_bits(near.to_bits() - u16::from(over)).to_f64()
            }
            _ => *value,
        };
    }
}

/// Rounded to bf16 on the way.
pub fn by_way_of_bf16(_: &Site<'_>, values: &mut [f64]) {
    values
        .iter_mut()
        .for_each(|value| *value = bf16::from_f64(*value).to_f64());
}

/// Digits of f32 only.
pub fn by_way_of_f32(_: &Site<'_>, values: &mut [f64]) {
    values
        .iter_mut()
        .for_each(|value| *value = f64::from(*value as f32));
}

/// Zeros.
pub fn zeros(_: &Site<'_>, values: &mut [f64]) {
    values.fill(0.0);
}

/// Their mean, everywhere.
pub fn mean(_: &Site<'_>, values: &mut [f64]) {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.fill(mean);
}

/// The last, incomplete tile of positions of the last channel is zero.
pub fn last_tile(site: &Site<'_>, values: &mut [f64]) {
    let dims = extents(site.tensor);
    let positions: usize = dims[2..].iter().product();
    let whole = (positions.saturating_sub(1)) / TILE * TILE;
    for (index, value) in values.iter_mut().enumerate() {
        if coordinates(&dims, index)[1] + 1 == dims[1] && index % positions >= whole {
            *value = 0.0;
        }
    }
}

/// Channels 0 and 1 exchanged.
pub fn channels_swapped(site: &Site<'_>, values: &mut [f64]) {
    let dims = extents(site.tensor);
    rearrange(&dims, values, |at| {
        if at[1] < 2 && dims[1] > 1 {
            at[1] = 1 - at[1];
        }
    });
}

/// The first image's values in all of the batch.
pub fn first_image_everywhere(site: &Site<'_>, values: &mut [f64]) {
    rearrange(&extents(site.tensor), values, |at| at[0] = 0);
}

/// The very last element doubled.
pub fn last_element_doubled(_: &Site<'_>, values: &mut [f64]) {
    if let Some(last) = values.last_mut() {
        *last *= 2.0;
    }
}

/// Every hundredth element of the last channel 5 % off, and at least one.
pub fn hundredth_of_channel(site: &Site<'_>, values: &mut [f64]) {
    let dims = extents(site.tensor);
    let channel = (0..values.len()).filter(|&index| {
        let at = coordinates(&dims, index);
        dims.len() < 2 || at[1] + 1 == dims[1]
    });
    for index in channel.step_by(100) {
        values[index] *= 1.05;
    }
}

/// Added to what the buffer held before.
pub fn accumulated(site: &Site<'_>, values: &mut [f64]) {
    if let Ok(stale) = site.execution.load::<f64>(site.tensor.uid) {
        values
            .iter_mut()
            .zip(stale)
            .for_each(|(value, stale)| *value += stale);
    }
}

/// Numbers below the smallest normal one become zero.
pub fn denormals_flushed(site: &Site<'_>, values: &mut [f64]) {
    let smallest = match site.tensor.data_type {
        DataType::Half => 2f64.powi(-14),
        DataType::Double => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    };
    for value in values.iter_mut().filter(|value| value.abs() < smallest) {
        *value = 0.0;
    }
}

/// NaN becomes zero.
pub fn nan_swallowed(_: &Site<'_>, values: &mut [f64]) {
    values
        .iter_mut()
        .filter(|value| value.is_nan())
        .for_each(|value| *value = 0.0);
}

/// −0 becomes 0 and 0 becomes −0.
pub fn zero_sign_flipped(_: &Site<'_>, values: &mut [f64]) {
    values
        .iter_mut()
        .filter(|value| **value == 0.0)
        .for_each(|value| *value = -*value);
}

/// Infinity becomes the largest finite number.
pub fn infinity_saturated(site: &Site<'_>, values: &mut [f64]) {
    let largest = match site.tensor.data_type {
        DataType::Half => f16::MAX.to_f64(),
        DataType::Bfloat16 => bf16::MAX.to_f64(),
        DataType::Double => f64::MAX,
        _ => f64::from(f32::MAX),
    };
    for value in values {
        *value = value.clamp(-largest, largest);
    }
}

/// One part in 2¹⁴ off, as a short polynomial for exp and its kin is.
pub fn fast_math(_: &Site<'_>, values: &mut [f64]) {
    values
        .iter_mut()
        .for_each(|value| *value *= 1.0 + 2f64.powi(-14));
}

/// Truth as 255 instead of 1.
pub fn truth_all_ones(_: &Site<'_>, values: &mut [f64]) {
    values.iter_mut().for_each(|value| *value *= 255.0);
}
