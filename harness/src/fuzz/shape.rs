//! Extents, windows and strides.

use dnn_assay_graph::case::{
    AttributeKey as Key, AttributeValue as Value, CaseError, StridedTensor,
};

use super::random::Random;
use crate::suite::Draft;

/// Extents at which tiles of kernels begin and end, and their neighbours.
const EDGES: [i64; 14] = [1, 2, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65];

/// An extent: mostly small, sometimes an edge, never above `most`.
pub fn extent(random: &mut Random, most: i64) -> i64 {
    let drawn = match random.below(10) {
        0..=5 => random.between(1, 9),
        6..=7 => random.between(1, 24),
        _ => random.pick(&EDGES),
    };
    drawn.min(most)
}

/// Groups, channels, extents, filter and window of a convolution.
pub fn conv(random: &mut Random, draft: &mut Draft) {
    let spatial = draft.layout.spatial();
    let most = [96, 40, 12][spatial - 1];
    let groups = random.weighted(&[(60, 1), (15, 2), (10, 3), (5, 5), (10, 0)]);
    let (groups, per_input, per_output) = match groups {
        // Depthwise, with a multiplier.
        0 => (random.between(2, 33), 1, random.between(1, 2)),
        1 => (1, extent(random, 80), extent(random, 80)),
        g => (g, extent(random, 17), extent(random, 17)),
    };
    draft.n = random.between(1, 4);
    draft.c = groups * per_input;
    draft.k = Some(groups * per_output);
    let mut sets = [const { Vec::new() }; 4];
    for _ in 0..spatial {
        let filter = random.weighted(&[(30, 1), (15, 2), (35, 3), (8, 4), (8, 5), (4, 7)]);
        let dilation = random.weighted(&[(75, 1), (15, 2), (10, 3)]);
        let reach = dilation * (filter - 1);
        let padding = |random: &mut Random| match random.below(3) {
            0 => 0,
            _ => random.between(0, reach.max(1)),
        };
        draft
            .i
            .push(extent(random, most).max(1 + random.between(0, reach)));
        draft.f.push(filter);
        sets[0].push(padding(random));
        sets[1].push(padding(random));
        sets[2].push(random.weighted(&[(60, 1), (25, 2), (15, 3)]));
        sets[3].push(dilation);
    }
    for (key, dims) in [Key::Pre, Key::Post, Key::Str, Key::Dil]
        .into_iter()
        .zip(sets)
    {
        draft.set(key, Value::Dims(dims));
    }
    draft.set(Key::Groups, Value::Int(groups));
    if random.chance(10) {
        draft.set(Key::ModeConv, Value::Flag);
    }
}

/// Extents of the other operations.
pub fn image(random: &mut Random, draft: &mut Draft) {
    let most = [600, 40, 12][draft.layout.spatial() - 1];
    draft.n = random.between(1, 5);
    draft.c = extent(random, 70);
    for _ in 0..draft.layout.spatial() {
        draft.i.push(extent(random, most));
    }
}

/// Strides with gaps, in any order of axes, for some of the tensors that may have them.
///
/// # Errors
/// The draft's parts do not fit together, so that there are no extents.
pub fn strides(random: &mut Random, draft: &mut Draft) -> Result<(), CaseError> {
    let graph = draft.case()?.graph()?;
    let named = |names: &[&str]| {
        let mut tensors = graph.tensors.iter();
        tensors.find(|tensor| names.contains(&tensor.name.as_str()))
    };
    let mut candidates = vec![(StridedTensor::X, named(&["x", "dx", "out"]))];
    if draft.op.is_conv() {
        candidates.push((StridedTensor::Y, named(&["y", "dy"])));
        candidates.push((StridedTensor::W, named(&["w", "dw"])));
    }
    for (which, tensor) in candidates {
        let Some(tensor) = tensor.filter(|_| random.chance(60)) else {
            continue;
        };
        let strides = with_gaps(random, &tensor.dims, &tensor.strides);
        draft.strides.push((which, strides));
    }
    Ok(())
}

fn with_gaps(random: &mut Random, dims: &[i64], packed: &[i64]) -> Vec<i64> {
    let mut order: Vec<usize> = (0..dims.len()).collect();
    if random.chance(60) {
        order.sort_by_key(|&axis| packed[axis]);
    } else {
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
    }
    let mut strides = vec![1; dims.len()];
    let mut next = 1;
    for axis in order {
        let gap = if random.chance(40) {
            random.between(1, 3)
        } else {
            0
        };
        strides[axis] = next + gap;
        next = strides[axis] * dims[axis];
    }
    strides
}
