//! Which elements are judged: the places where kernels break, and others at random.

use super::{coordinates, flat};
use crate::fill::random::Stream;
use dnn_assay_graph::Tensor;
use std::collections::BTreeSet;

/// The smallest tile whose borders are looked at; larger ones are its doublings.
const SMALLEST_TILE: usize = 16;
/// Elements at each place of an axis, the other coordinates at random.
const PER_PLACE: u64 = 4;
/// Elements of the last batch, and of the last group.
const PER_LAST: u64 = 64;
/// Bytes after which 32-bit offsets wrap, signed and unsigned; as many elements wrap their indices.
const WRAPS: [usize; 2] = [1 << 31, 1 << 32];
/// Apart from the streams that fill tensors.
const SALT: u64 = 0x5a3b_1e0f;

/// The elements of a tensor that are judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Their indices in logical row-major order, ascending, each once.
    pub indices: Vec<usize>,
    /// How many draws at random are among them. Draws are independent, so some may coincide.
    pub random: usize,
}

/// Chooses elements of `tensor`: corners, both ends of each axis, the borders of tiles of 16, 32, 64, …
/// and their neighbours, the last batch, the last of `groups` groups of channels, where 32-bit offsets
/// wrap, and `random` elements drawn evenly. The same seed chooses the same elements.
pub fn choose(tensor: &Tensor, groups: usize, random: usize, seed: u64) -> Choice {
    let len = tensor.element_count().unwrap_or(0);
    if len == 0 {
        return Choice {
            indices: Vec::new(),
            random: 0,
        };
    }
    let mut chosen = Chosen {
        dims: &tensor.dims,
        len,
        stream: Stream::new(seed, tensor.uid).salted(SALT),
        drawn: 0,
        indices: BTreeSet::new(),
    };
    chosen.corners();
    chosen.places();
    chosen.last(0, 1);
    chosen.last(1, groups);
    chosen.wraps(tensor);
    for _ in 0..random {
        let index = chosen.draw(len);
        chosen.indices.insert(index);
    }
    Choice {
        indices: chosen.indices.into_iter().collect(),
        random,
    }
}

struct Chosen<'a> {
    dims: &'a [i64],
    len: usize,
    stream: Stream,
    drawn: usize,
    indices: BTreeSet<usize>,
}

impl Chosen<'_> {
    /// A number below `bound`; its bias is below 2⁻³⁰ for fewer than 2³⁴ elements.
    fn draw(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        (self.stream.bits(self.drawn) % bound.max(1) as u64) as usize
    }

    fn extent(&self, axis: usize) -> usize {
        self.dims.get(axis).map_or(1, |&dim| dim as usize)
    }

    /// `count` elements at coordinate `at` of `axis`.
    fn at(&mut self, axis: usize, at: usize, count: u64) {
        for _ in 0..count {
            let index = self.draw(self.len);
            let mut place = coordinates(self.dims, index);
            place[axis] = at;
            self.indices.insert(flat(self.dims, &place));
        }
    }

    fn corners(&mut self) {
        for corner in 0..1usize << self.dims.len().min(10) {
            let ends = self.dims.iter().enumerate();
            let ends = ends.map(|(axis, &dim)| (dim as usize - 1) * (corner >> axis & 1));
            let ends: Vec<usize> = ends.collect();
            self.indices.insert(flat(self.dims, &ends));
        }
    }

    fn places(&mut self) {
        for axis in 0..self.dims.len() {
            for at in places(self.extent(axis)) {
                self.at(axis, at, PER_PLACE);
            }
        }
    }

    /// Elements of the last of `parts` parts of an axis, in the last of everything for one part.
    fn last(&mut self, axis: usize, parts: usize) {
        let extent = self.extent(axis);
        if self.dims.len() < 2 || extent < 2 {
            return;
        }
        let part = if parts > 1 { extent / parts } else { 1 };
        for _ in 0..PER_LAST {
            let at = extent - 1 - self.draw(part);
            self.at(axis, at, 1);
        }
    }

    /// Elements at offsets in memory where 32-bit numbers wrap.
    fn wraps(&mut self, tensor: &Tensor) {
        let size = tensor.data_type.size().unwrap_or(1);
        for wrap in WRAPS {
            for offset in [wrap, wrap / size] {
                for offset in [offset - 1, offset, offset + 1] {
                    if let Some(place) = at_offset(tensor, offset) {
                        self.indices.insert(flat(self.dims, &place));
                    }
                }
            }
        }
    }
}

/// Both ends of an axis with their neighbours, and the borders of tiles: of the first one, and of
/// the last that is whole.
fn places(extent: usize) -> BTreeSet<usize> {
    let mut places = BTreeSet::from([0, 1, extent.saturating_sub(2), extent - 1]);
    let mut tile = SMALLEST_TILE;
    while tile < extent {
        for border in [tile, extent / tile * tile] {
            places.extend([border - 1, border, border + 1]);
        }
        tile *= 2;
    }
    places.retain(|&place| place < extent);
    places
}

/// The element at an offset in memory, counted in elements; `None` where none lies there.
fn at_offset(tensor: &Tensor, offset: usize) -> Option<Vec<usize>> {
    let axes = tensor.dims.iter().zip(&tensor.strides).enumerate();
    let mut axes: Vec<(usize, usize, usize)> = axes
        .filter(|(_, (dim, stride))| **dim > 1 && **stride > 0)
        .map(|(axis, (&dim, &stride))| (axis, dim as usize, stride as usize))
        .collect();
    axes.sort_by_key(|&(_, _, stride)| std::cmp::Reverse(stride));
    let mut place = vec![0; tensor.dims.len()];
    let mut rest = offset;
    for (axis, dim, stride) in axes {
        place[axis] = rest / stride;
        rest %= stride;
        if place[axis] >= dim {
            return None;
        }
    }
    (rest == 0).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnn_assay_graph::DataType;

    #[test]
    fn places_are_ends_and_borders() {
        assert_eq!(Vec::from_iter(places(1)), [0]);
        assert_eq!(Vec::from_iter(places(3)), [0, 1, 2]);
        let expected = [0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 50];
        assert_eq!(Vec::from_iter(places(51)), expected);
    }

    #[test]
    fn corners_the_last_group_and_wraps_are_chosen() {
        let tensor = Tensor::packed(1, "y", DataType::Half, &[2, 12, 40, 7]);
        let choice = choose(&tensor, 4, 100, 1);
        let len = tensor.element_count().unwrap();
        assert!(choice.indices.contains(&0) && choice.indices.contains(&(len - 1)));
        let places: Vec<Vec<usize>> = choice
            .indices
            .iter()
            .map(|&i| coordinates(&tensor.dims, i))
            .collect();
        for channel in 9..12 {
            assert!(places.iter().any(|place| place[1] == channel), "{channel}");
        }
        for border in [15, 16, 17, 31, 32, 33] {
            assert!(places.iter().any(|place| place[2] == border), "{border}");
        }
        assert_eq!(choice, choose(&tensor, 4, 100, 1));
        assert_ne!(choice, choose(&tensor, 4, 100, 2));
        // Channels last: the offset in memory is not the logical index.
        let giant = Tensor {
            strides: vec![2048 * 1024 * 1025, 1, 2048 * 1025, 2048],
            ..Tensor::packed(1, "y", DataType::Half, &[1, 2048, 1024, 1025])
        };
        let wrapped = at_offset(&giant, 1 << 31).unwrap();
        let at: usize = wrapped
            .iter()
            .zip(&giant.strides)
            .map(|(&at, &stride)| at * stride as usize)
            .sum();
        assert_eq!(at, 1 << 31);
        assert!(
            choose(&giant, 1, 0, 1)
                .indices
                .contains(&flat(&giant.dims, &wrapped))
        );
        assert_eq!(at_offset(&giant, 1 << 32), None);
    }
}
