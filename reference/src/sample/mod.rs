//! Sampled judgement, for outputs that are too large to be compared as a whole: some elements are
//! computed and compared one by one, and sums over channels, which touch every element, are compared
//! with a convolution of sums.
//!
//! A sampled judgement says how many elements it compared, and how likely it misses what.

mod checksum;
mod choice;
mod crop;
mod judge;

pub use checksum::{Checksum, Sums, WorstSum, Written, checksum, written};
pub use choice::{Choice, choose};
pub use judge::{Row, SampleError, Sampled, Seen, estimate, judge, refusal};

pub(crate) use judge::{each, joined};

use crate::estimate::Values;
use crate::fill::Drawn;

/// Inputs by element.
pub trait Source: Sync {
    /// Element `index`, in logical row-major order, of input `uid`; `None` where there is none.
    fn value(&self, uid: i64, index: usize) -> Option<f64>;
}

impl Source for Values {
    fn value(&self, uid: i64, index: usize) -> Option<f64> {
        self.get(&uid)?.get(index).copied()
    }
}

impl Source for Drawn {
    fn value(&self, uid: i64, index: usize) -> Option<f64> {
        Self::value(self, uid, index)
    }
}

/// The probability that a fault which hits the share `share` of the elements, wherever, hits none of
/// `random` elements drawn independently: (1 − share)^random.
pub fn miss_probability(share: f64, random: usize) -> f64 {
    libm::exp(random as f64 * libm::log1p(-share))
}

/// Coordinates of a row-major index.
pub(crate) fn coordinates(dims: &[i64], mut index: usize) -> Vec<usize> {
    let mut at = vec![0; dims.len()];
    for (at, &dim) in at.iter_mut().zip(dims).rev() {
        let dim = dim.max(1) as usize;
        *at = index % dim;
        index /= dim;
    }
    at
}

/// The row-major index of coordinates.
pub(crate) fn flat(dims: &[i64], at: &[usize]) -> usize {
    let axes = dims.iter().zip(at);
    axes.fold(0, |flat, (&dim, &at)| flat * dim.max(0) as usize + at)
}
