//! Faults in how inputs are read.

use dnn_assay_graph::Attributes;
use half::bf16;

use crate::fault::{Site, coordinates, extents, index_of, rearrange};

/// Zeroes the elements for which `dropped` holds.
fn drop_where(site: &Site<'_>, values: &mut [f64], dropped: impl Fn(&[usize], &[usize]) -> bool) {
    let dims = extents(site.tensor);
    for (index, value) in values.iter_mut().enumerate() {
        if dropped(&coordinates(&dims, index), &dims) {
            *value = 0.0;
        }
    }
}

/// The last tap of every filter is left out.
pub fn last_tap(site: &Site<'_>, values: &mut [f64]) {
    drop_where(site, values, |at, dims| {
        at[2..]
            .iter()
            .zip(&dims[2..])
            .all(|(at, dim)| at + 1 == *dim)
    });
}

/// The last channel of a group's sum is left out.
pub fn last_channel(site: &Site<'_>, values: &mut [f64]) {
    drop_where(site, values, |at, dims| at[1] + 1 == dims[1]);
}

/// Channels beyond the last multiple of four are left out of the sum.
pub fn channel_tail(site: &Site<'_>, values: &mut [f64]) {
    drop_where(site, values, |at, dims| {
        dims[1] > 4 && at[1] >= dims[1] / 4 * 4
    });
}

/// The last filter takes no part in the sum over filters.
pub fn last_filter(site: &Site<'_>, values: &mut [f64]) {
    drop_where(site, values, |at, dims| at[0] + 1 == dims[0]);
}

/// The last image of the batch is left out.
pub fn last_image(site: &Site<'_>, values: &mut [f64]) {
    last_filter(site, values);
}

/// The last row of positions is left out.
pub fn last_row(site: &Site<'_>, values: &mut [f64]) {
    drop_where(site, values, |at, dims| at[2] + 1 == dims[2]);
}

/// Filters are rotated by half a turn: a true convolution.
pub fn flipped(site: &Site<'_>, values: &mut [f64]) {
    let dims = extents(site.tensor);
    rearrange(&dims, values, |at| {
        for axis in 2..at.len() {
            at[axis] = dims[axis] - 1 - at[axis];
        }
    });
}

/// The filters of the next group.
pub fn next_group(site: &Site<'_>, values: &mut [f64]) {
    let dims = extents(site.tensor);
    let groups = groups(site, dims[1]);
    rearrange(&dims, values, |at| {
        at[0] = (at[0] + dims[0] / groups) % dims[0]
    });
}

fn groups(site: &Site<'_>, channels: usize) -> usize {
    let image = site
        .graph
        .tensors
        .iter()
        .find(|t| matches!(t.name.as_str(), "x" | "dx"));
    let all = image.map_or(channels, |tensor| extents(tensor)[1]);
    (all / channels).max(1)
}

/// Memory in the order of a layout with the channels last, read as one with the channels second.
pub fn layout_ignored(site: &Site<'_>, values: &mut [f64]) {
    let dims = extents(site.tensor);
    let mut memory = vec![0.0; values.len()];
    for (index, value) in values.iter().enumerate() {
        let at = coordinates(&dims, index);
        let offset: usize = at
            .iter()
            .zip(&site.tensor.strides)
            .map(|(a, s)| a * *s as usize)
            .sum();
        if let Some(place) = memory.get_mut(offset) {
            *place = *value;
        }
    }
    values.copy_from_slice(&memory);
}

/// Every plane read with its last two axes exchanged.
pub fn plane_transposed(site: &Site<'_>, values: &mut [f64]) {
    let dims = extents(site.tensor);
    let rank = dims.len();
    let (height, width) = (dims[rank - 2], dims[rank - 1]);
    rearrange(&dims, values, |at| {
        let place = at[rank - 1] * height + at[rank - 2];
        (at[rank - 2], at[rank - 1]) = (place / width, place % width);
    });
}

/// Every row read one element further along.
pub fn row_shifted(site: &Site<'_>, values: &mut [f64]) {
    let dims = extents(site.tensor);
    let last = dims.len() - 1;
    rearrange(&dims, values, |at| {
        at[last] = (at[last] + 1).min(dims[last] - 1)
    });
}

/// The parameters of the next channel.
pub fn next_channel(_: &Site<'_>, values: &mut [f64]) {
    if !values.is_empty() {
        values.rotate_left(1);
    }
}

/// Inputs rounded to eleven significant bits, as matrix units in single precision do.
pub fn rounded_to_xf32(_: &Site<'_>, values: &mut [f64]) {
    const DROPPED: u32 = 13;
    for value in values {
        let bits = (*value as f32).to_bits();
        let half = 1 << (DROPPED - 1);
        *value = f64::from(f32::from_bits((bits + half) >> DROPPED << DROPPED));
    }
}

/// Inputs rounded to bf16.
pub fn rounded_to_bf16(_: &Site<'_>, values: &mut [f64]) {
    for value in values {
        *value = bf16::from_f64(*value).to_f64();
    }
}

/// Inputs rounded to f32.
pub fn rounded_to_f32(_: &Site<'_>, values: &mut [f64]) {
    for value in values {
        *value = f64::from(*value as f32);
    }
}

/// Fills an image that has been extended by its padding, from coordinates in the image.
fn extended(site: &Site<'_>, values: &[f64], source: impl Fn(i64, i64) -> i64) -> Vec<f64> {
    let original = site.execution.graph();
    let Some(tensor) = original.tensor(site.tensor.uid) else {
        return values.to_vec();
    };
    let Some(Attributes::ConvolutionFwd(a)) = original.nodes.first().map(|n| &n.attributes) else {
        return values.to_vec();
    };
    let (inner, outer) = (extents(tensor), extents(site.tensor));
    let count = outer.iter().product();
    (0..count)
        .map(|index| {
            let mut at = coordinates(&outer, index);
            for axis in 2..at.len() {
                let extent = inner[axis] as i64;
                at[axis] = source(at[axis] as i64 - a.pre_padding[axis - 2], extent) as usize;
            }
            values[index_of(&inner, &at)]
        })
        .collect()
}

/// Beyond the border the image starts again.
pub fn border_wraps(site: &Site<'_>, values: &[f64]) -> Vec<f64> {
    extended(site, values, |at, extent| at.rem_euclid(extent))
}

/// Beyond the border the last element goes on.
pub fn border_repeats(site: &Site<'_>, values: &[f64]) -> Vec<f64> {
    extended(site, values, |at, extent| at.clamp(0, extent - 1))
}

/// A bias that is as long as the last axis, not as the channels.
pub fn bias_cycled(site: &Site<'_>, values: &[f64]) -> Vec<f64> {
    let count: usize = extents(site.tensor).iter().product();
    values.iter().copied().cycle().take(count).collect()
}
