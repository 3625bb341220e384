//! Distances in units in the last place.

use std::fmt;

/// Bins of the histogram.
const BINS: usize = 16;

/// Elements by distance from the correctly rounded reference. Bin 0 holds the equal ones, bin k
/// those at 2ᵏ⁻¹ to 2ᵏ − 1 units in the last place, the last bin all others and those that cannot
/// be compared (NaN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UlpHistogram {
    /// Elements per bin.
    pub counts: [u64; BINS],
}

/// The bin of a distance.
#[inline(always)]
pub(super) fn bin(ulps: u64) -> usize {
    ((u64::BITS - ulps.leading_zeros()) as usize).min(BINS - 1)
}

impl UlpHistogram {
    /// Counts one element; `None` cannot be compared.
    pub(crate) fn add(&mut self, ulps: Option<u64>) {
        self.counts[ulps.map_or(BINS - 1, bin)] += 1;
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }
}

impl fmt::Display for UlpHistogram {
    /// `0:61 1:3 ≥16384:1`: the bins that are not empty, by their smallest distance.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (bin, count) in self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            let least = if bin == 0 { 0 } else { 1u64 << (bin - 1) };
            let at_least = if bin == BINS - 1 { "≥" } else { "" };
            write!(f, "{separator}{at_least}{least}:{count}")?;
            separator = " ";
        }
        Ok(())
    }
}
