//! Counter-based random numbers: SplitMix64's finaliser over a key and a counter.

/// A stream of numbers that can be read at any place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    key: u64,
}

/// 2⁶⁴ over the golden ratio, odd: SplitMix64's increment.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Stream {
    /// The stream of a tensor.
    pub(crate) fn new(seed: u64, uid: i64) -> Self {
        let key = mix(seed.wrapping_add(GOLDEN));
        Self {
            key: mix(key ^ mix((uid as u64).wrapping_mul(GOLDEN))),
        }
    }

    /// Another stream of the same tensor.
    pub(crate) fn salted(self, salt: u64) -> Self {
        Self {
            key: mix(self.key ^ mix(salt.wrapping_add(GOLDEN))),
        }
    }

    /// 64 bits.
    #[inline]
    pub(crate) fn bits(self, index: usize) -> u64 {
        mix(self.key.wrapping_add((index as u64).wrapping_mul(GOLDEN)))
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    #[inline]
    pub(crate) fn unit(self, index: usize) -> f64 {
        (self.bits(index) >> 11) as f64 * (-53f64).exp2()
    }
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014; constants of Stafford's variant 13).
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
