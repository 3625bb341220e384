//! Random numbers whose sequence never changes: a seed must mean the same cases in every version,
//! which the general-purpose crates do not promise.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

/// The step of the counter: the odd number nearest to 2⁶⁴/φ.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The sequence of an index under a seed.
    pub fn new(seed: u64, index: u64) -> Self {
        let mut start = Self(seed);
        Self(
            start
                .next()
                .wrapping_add(index.wrapping_mul(STEP))
                .rotate_left(17),
        )
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `limit` − 1; `limit` is at least 1 and far below 2³².
    pub fn below(&mut self, limit: usize) -> usize {
        (((self.next() >> 32) * limit as u64) >> 32) as usize
    }

    /// A number between two, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// True so many times in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// One of these, by weight.
    pub fn weighted<T: Copy>(&mut self, of: &[(usize, T)]) -> T {
        let total = of.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(total);
        for &(weight, item) in of {
            if at < weight {
                return item;
            }
            at -= weight;
        }
        of[of.len() - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_paper() {
        // The first outputs for the seed 1234567, as the reference implementation gives them.
        let mut random = Random(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_its_ends() {
        let mut random = Random::new(1, 2);
        let drawn: Vec<i64> = (0..1000).map(|_| random.between(-2, 2)).collect();
        assert!(drawn.iter().all(|n| (-2..=2).contains(n)));
        assert!(drawn.contains(&-2) && drawn.contains(&2));
        assert!(!random.chance(0) && random.chance(100));
        assert_eq!(random.weighted(&[(0, 'a'), (3, 'b')]), 'b');
    }
}
