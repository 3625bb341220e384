//! Where things lie: extents, and the index tables of one group of one image.

use std::ops::Range;

use super::product::WIDTH;
use crate::program::Num;

/// Spatial axes, after shorter shapes have been extended with axes of extent 1.
const AXES: usize = 3;

/// The window's movement along each spatial axis.
pub(super) struct Window {
    pre: [usize; AXES],
    stride: [usize; AXES],
    dilation: [usize; AXES],
}

impl Window {
    pub(super) fn new(pre: &[i64], stride: &[i64], dilation: &[i64]) -> Self {
        Self {
            pre: extend(pre, 0),
            stride: extend(stride, 1),
            dilation: extend(dilation, 1),
        }
    }
}

fn extend<T: Copy + TryInto<usize>>(values: &[T], fill: usize) -> [usize; AXES] {
    let mut extended = [fill; AXES];
    for (to, &from) in extended[AXES - values.len()..].iter_mut().zip(values) {
        *to = from.try_into().unwrap_or(fill);
    }
    extended
}

/// Extents of a convolution. "Group" is a group of channels; an image here is one group of one
/// image of the batch, zero padded.
pub(super) struct Geometry {
    pub(super) batch: usize,
    pub(super) groups: usize,
    /// Filters of a group.
    pub(super) filters: usize,
    /// Channels of a group.
    channels: usize,
    image: [usize; AXES],
    padded: [usize; AXES],
    pre: [usize; AXES],
    /// Where each output position starts in the padded image.
    pub(super) positions: Vec<usize>,
    /// Where each channel and filter tap lies, from a position: ascending channel, then tap.
    pub(super) taps: Vec<usize>,
}

impl Geometry {
    /// The geometry of image `x`, filters `w` and output `y`, shaped `[N, C, spatial…]`,
    /// `[K, C/groups, spatial…]` and `[N, K, spatial…]`.
    pub(super) fn new(x: &[usize], w: &[usize], y: &[usize], window: &Window) -> Self {
        let groups = x[1] / w[1];
        let (image, filter, output) = (extend(&x[2..], 1), extend(&w[2..], 1), extend(&y[2..], 1));
        let padded: [usize; AXES] = std::array::from_fn(|axis| {
            let reach = (filter[axis] - 1) * window.dilation[axis] + 1;
            let needed = (output[axis] - 1) * window.stride[axis] + reach;
            needed.max(window.pre[axis] + image[axis])
        });
        let plane: usize = padded.iter().product();
        let taps = (0..w[1])
            .flat_map(|c| {
                grid(filter, window.dilation, padded)
                    .into_iter()
                    .map(move |tap| c * plane + tap)
            })
            .collect();
        Self {
            batch: x[0],
            groups,
            filters: w[0] / groups,
            channels: w[1],
            image,
            padded,
            pre: window.pre,
            positions: grid(output, window.stride, padded),
            taps,
        }
    }

    pub(super) fn x_len(&self) -> usize {
        self.batch * self.groups * self.x_group()
    }

    pub(super) fn y_len(&self) -> usize {
        self.batch * self.groups * self.y_group()
    }

    fn x_group(&self) -> usize {
        self.channels * self.image.iter().product::<usize>()
    }

    fn y_group(&self) -> usize {
        self.filters * self.positions.len()
    }

    pub(super) fn x_range(&self, n: usize, group: usize) -> Range<usize> {
        let start = (n * self.groups + group) * self.x_group();
        start..start + self.x_group()
    }

    pub(super) fn y_range(&self, n: usize, group: usize) -> Range<usize> {
        let start = (n * self.groups + group) * self.y_group();
        start..start + self.y_group()
    }

    pub(super) fn w_index(&self, group: usize, filter: usize, tap: usize) -> usize {
        (group * self.filters + filter) * self.taps.len() + tap
    }

    /// The starts of up to [`WIDTH`] positions; those beyond the range repeat the last.
    pub(super) fn starts(&self, range: Range<usize>) -> [usize; WIDTH] {
        std::array::from_fn(|i| self.positions[(range.start + i).min(range.end - 1)])
    }

    /// The same for taps.
    pub(super) fn tap_starts(&self, range: Range<usize>) -> [usize; WIDTH] {
        std::array::from_fn(|i| self.taps[(range.start + i).min(range.end - 1)])
    }

    /// A padded image of zeros.
    pub(super) fn empty_image<T: Num>(&self) -> Vec<T> {
        vec![T::default(); self.channels * self.padded.iter().product::<usize>()]
    }

    /// Copies an image into the middle of a padded one.
    pub(super) fn pad<T: Num>(&self, image: &[T], padded: &mut [T]) {
        self.for_each_row(|from, to| padded[to].copy_from_slice(&image[from]));
    }

    /// Copies the middle of a padded image out.
    pub(super) fn unpad<T: Num>(&self, padded: &[T], image: &mut [T]) {
        self.for_each_row(|to, from| image[to].copy_from_slice(&padded[from]));
    }

    /// Visits the rows of an image: their places in the image, and in the padded one.
    fn for_each_row(&self, mut visit: impl FnMut(Range<usize>, Range<usize>)) {
        let [depth, height, width] = self.image;
        let mut at = 0;
        for c in 0..self.channels {
            for d in 0..depth {
                for h in 0..height {
                    let plane = c * self.padded[0] + d + self.pre[0];
                    let row = plane * self.padded[1] + h + self.pre[1];
                    let to = row * self.padded[2] + self.pre[2];
                    visit(at..at + width, to..to + width);
                    at += width;
                }
            }
        }
    }
}

/// Places of a grid of `extents`, `step` apart along each axis, in a volume of extents `volume`.
fn grid(extents: [usize; AXES], step: [usize; AXES], volume: [usize; AXES]) -> Vec<usize> {
    let mut places = Vec::with_capacity(extents.iter().product());
    for d in 0..extents[0] {
        for h in 0..extents[1] {
            for w in 0..extents[2] {
                let row = d * step[0] * volume[1] + h * step[1];
                places.push(row * volume[2] + w * step[2]);
            }
        }
    }
    places
}
