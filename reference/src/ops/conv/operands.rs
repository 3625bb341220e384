//! What the kernels multiply.

use super::lattice::Lattice;
use super::map::Side;

/// What the sums run over, in the order of the lattice's direction: for fprop, filters are y's
/// channels and channels x's; for dgrad the other way round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    pub batch: usize,
    pub groups: usize,
    /// Results per group.
    pub filters: usize,
    /// Channels of the source per group.
    pub channels: usize,
    /// Elements of one plane of the result.
    pub plane: usize,
}

/// The filter `[G·K, C, R…]` as [`Sums`] see it: elements from one group, filter and channel to the
/// next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights<'a> {
    pub side: Side<'a>,
    pub group: usize,
    pub filter: usize,
    pub channel: usize,
}

/// fprop or dgrad: filters times source, summed over (channel, tap).
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    pub lattice: &'a Lattice,
    pub sums: Sums,
    pub source: Side<'a>,
    pub weights: Weights<'a>,
    /// Products are exact in f64.
    pub fused: bool,
}

/// wgrad: dy times x, summed over batch and positions.
#[derive(Clone, Copy)]
pub(crate) struct Gradient<'a> {
    /// That of fprop.
    pub lattice: &'a Lattice,
    pub sums: Sums,
    pub dy: Side<'a>,
    pub x: Side<'a>,
    /// Products are exact in f64.
    pub fused: bool,
}
