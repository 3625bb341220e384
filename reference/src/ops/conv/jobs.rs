//! A result cut into pieces that threads own.

use super::slab::Slab;
use std::ops::Range;

/// Some filters of one image and group on one slab.
pub(crate) struct Piece<'a, T> {
    /// Image and group: `image·groups + group`.
    pub image: usize,
    /// First filter of the group.
    pub first: usize,
    /// The slab's place among all.
    pub index: usize,
    pub slab: &'a Slab,
    /// The slab's elements of each filter's plane.
    pub planes: Vec<&'a mut [T]>,
}

/// Cuts `out`, `[image, filter, plane]`, into slabs × runs of at most `step` of the filters `wanted`.
/// The pieces of a group's images follow each other, the slabs slowest.
pub(crate) fn pieces<'a, T>(
    out: &'a mut [T],
    (filters, plane): (usize, usize),
    groups: usize,
    wanted: Range<usize>,
    step: usize,
    slabs: &'a [Slab],
) -> Vec<Piece<'a, T>> {
    let mut pieces = Vec::new();
    for (image, out) in out.chunks_exact_mut(filters * plane).enumerate() {
        let out = &mut out[wanted.start * plane..wanted.end * plane];
        for (run, out) in out.chunks_mut(step * plane).enumerate() {
            let first = pieces.len();
            pieces.extend(slabs.iter().enumerate().map(|(index, slab)| Piece {
                image,
                first: wanted.start + run * step,
                index,
                slab,
                planes: Vec::with_capacity(step.min(filters)),
            }));
            for mut rest in out.chunks_exact_mut(plane) {
                for piece in &mut pieces[first..] {
                    let (own, others) = rest.split_at_mut(piece.slab.result.len());
                    piece.planes.push(own);
                    rest = others;
                }
            }
        }
    }
    pieces.sort_by_key(|piece| (piece.index, piece.image % groups, piece.first));
    pieces
}

impl<T> Piece<'_, T> {
    /// Whether one job may compute both: the same filters of the same group.
    pub fn goes_with(&self, other: &Self, groups: usize) -> bool {
        (self.image % groups, self.first) == (other.image % groups, other.first)
    }
}
