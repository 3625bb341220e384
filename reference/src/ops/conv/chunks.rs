//! wgrad's long sums are cut into chunks that the shape alone decides: whole images, or slabs of
//! one image.

use super::lattice::Lattice;
use super::slab::{Slab, Slabs};
use std::ops::Range;

/// The chunks of a batch.
pub(crate) struct Chunks {
    pub slabs: Slabs,
    /// Images of one chunk; 1 where an image has several slabs.
    pub together: usize,
    batch: usize,
}

impl Chunks {
    /// Chunks of at most `most` positions, if one step along the first axis has no more.
    pub fn new(lattice: &Lattice, batch: usize, plane: usize, most: usize) -> Self {
        let extent = Slabs::extent(lattice);
        let row = plane.div_ceil(extent.max(1)).max(1);
        let slabs = Slabs::new(lattice, most / row);
        let together = if slabs.slabs.len() > 1 {
            1
        } else {
            most / plane.max(1)
        };
        Self {
            slabs,
            together: together.clamp(1, batch.max(1)),
            batch,
        }
    }

    /// Every chunk in the order of the sums: its images and its slab.
    pub fn iter(&self) -> impl Iterator<Item = (Range<usize>, &Slab)> {
        (0..self.batch)
            .step_by(self.together)
            .flat_map(move |first| {
                let images = first..(first + self.together).min(self.batch);
                self.slabs
                    .slabs
                    .iter()
                    .map(move |slab| (images.clone(), slab))
            })
    }
}
