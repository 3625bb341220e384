//! The order of axes in memory.

use std::fmt;

/// Order of axes in memory, for one, two or three spatial axes. Filters follow it: KCRS where
/// images are NCHW, KRSC where they are NHWC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// One spatial axis, channels before it.
    Ncl,
    /// One spatial axis, channels last.
    Nlc,
    /// Two spatial axes, channels before them.
    Nchw,
    /// Two spatial axes, channels last.
    Nhwc,
    /// Three spatial axes, channels before them.
    Ncdhw,
    /// Three spatial axes, channels last.
    Ndhwc,
}

impl Layout {
    /// Every layout.
    pub const ALL: &'static [Self] = &[
        Self::Ncl,
        Self::Nlc,
        Self::Nchw,
        Self::Nhwc,
        Self::Ncdhw,
        Self::Ndhwc,
    ];

    /// The name in case ids: `nhwc`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ncl => "ncl",
            Self::Nlc => "nlc",
            Self::Nchw => "nchw",
            Self::Nhwc => "nhwc",
            Self::Ncdhw => "ncdhw",
            Self::Ndhwc => "ndhwc",
        }
    }

    /// The layout with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|layout| layout.name() == name)
    }

    /// The layout for this many spatial axes, 1 to 3.
    pub const fn for_spatial(axes: usize, channels_last: bool) -> Option<Self> {
        match (axes, channels_last) {
            (1, false) => Some(Self::Ncl),
            (1, true) => Some(Self::Nlc),
            (2, false) => Some(Self::Nchw),
            (2, true) => Some(Self::Nhwc),
            (3, false) => Some(Self::Ncdhw),
            (3, true) => Some(Self::Ndhwc),
            _ => None,
        }
    }

    /// Spatial axes.
    pub const fn spatial(self) -> usize {
        match self {
            Self::Ncl | Self::Nlc => 1,
            Self::Nchw | Self::Nhwc => 2,
            Self::Ncdhw | Self::Ndhwc => 3,
        }
    }

    /// Axes in all: batch, channels and the spatial ones.
    pub const fn rank(self) -> usize {
        self.spatial() + 2
    }

    /// Whether channels are the fastest axis.
    pub const fn channels_last(self) -> bool {
        matches!(self, Self::Nlc | Self::Nhwc | Self::Ndhwc)
    }

    /// Packed strides of a tensor in this layout. A tensor of fewer axes has the trailing ones,
    /// in the same order. `None` where a stride does not fit.
    pub fn strides(self, dims: &[i64]) -> Option<Vec<i64>> {
        let missing = self.rank().checked_sub(dims.len())?;
        let mut strides = vec![0i64; dims.len()];
        let mut next = 1i64;
        for axis in self.fastest_first() {
            let Some(own) = axis.checked_sub(missing) else {
                continue;
            };
            strides[own] = next;
            next = next.checked_mul(dims[own])?;
        }
        Some(strides)
    }

    /// Axes from the fastest to the slowest, in the logical numbering N, C, spatial….
    fn fastest_first(self) -> impl Iterator<Item = usize> {
        let rank = self.rank();
        let last = self.channels_last();
        last.then_some(1)
            .into_iter()
            .chain((2..rank).rev())
            .chain((!last).then_some(1))
            .chain([0])
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
