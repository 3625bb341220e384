//! Measures how far correct f32 sums stray: the evidence behind the constant of the bound.
//!
//! A check is one sum of K products: y in f64, Q = √Σ(aᵢbᵢ)², and the same sum in f32 in some
//! order of a correct engine. Its ratio is |got − y| / (u·√K·(|y| + Q)) with u = 2⁻²⁴; the bound
//! allows ratios up to [`crate::Arithmetic::sum_factor`]. Counted is how often a ratio exceeds
//! each of [`THRESHOLDS`].

pub mod transforms;

use rayon::prelude::*;

/// Ratios whose excess is counted.
pub const THRESHOLDS: [f64; 5] = [1.0, 1.5, 2.0, 2.5, 3.0];
/// Excesses from which a rate is known to about a third.
pub const ENOUGH: u64 = 8;
/// Sums computed side by side.
const LANES: usize = 16;
/// Steps of the pool that operands are drawn from.
const POOL: usize = 1 << 15;

/// In which order a correct engine adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// One chain, multiply then add.
    Sequential,
    /// One chain of fused multiply-adds.
    Fused,
    /// Eight chains over interleaved terms, then added pairwise.
    Tiled,
    /// Four chains over contiguous quarters, then added one by one.
    SplitK,
    /// Blocks of 32 terms, whose sums are added pairwise.
    Pairwise,
}

impl Order {
    /// Every order.
    pub const ALL: [Self; 5] = [
        Self::Sequential,
        Self::Fused,
        Self::Tiled,
        Self::SplitK,
        Self::Pairwise,
    ];
}

/// What operands look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Uniform in (−1, 1).
    Symmetric,
    /// Uniform in (0, 1).
    Positive,
    /// Normal, by twelve uniform values.
    Normal,
    /// A uniform value to the fifth power: many small ones, few large ones.
    Heavy,
    /// ±1 and ±0.999…: products that all round alike.
    NearlyOne,
}

impl Distribution {
    /// Every distribution.
    pub const ALL: [Self; 5] = [
        Self::Symmetric,
        Self::Positive,
        Self::Normal,
        Self::Heavy,
        Self::NearlyOne,
    ];

    fn draw(self, random: &mut Random) -> f32 {
        match self {
            Self::Symmetric => (2.0 * random.unit() - 1.0) as f32,
            Self::Positive => random.unit() as f32,
            Self::Normal => ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0) as f32,
            Self::Heavy => (2.0 * random.unit() - 1.0).powi(5) as f32,
            Self::NearlyOne => {
                let sign = if random.unit() < 0.5 { -1.0 } else { 1.0 };
                (sign * (1.0 - 1e-3 * random.unit())) as f32
            }
        }
    }
}

/// What the checks of one order, distribution and K showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The order.
    pub order: Order,
    /// The distribution.
    pub distribution: Distribution,
    /// Terms per sum.
    pub terms: usize,
    /// Sums.
    pub checks: u64,
    /// Sums whose ratio exceeds each of [`THRESHOLDS`].
    pub exceeding: [u64; THRESHOLDS.len()],
    /// The largest ratio.
    pub largest: f64,
}

/// Runs `checks` sums (rounded up to whole tasks) of `terms` products.
pub fn measure(
    order: Order,
    distribution: Distribution,
    terms: usize,
    checks: u64,
    seed: u64,
) -> Row {
    let pool = Pool::new(distribution, seed);
    let groups = checks.div_ceil(LANES as u64);
    let tasks = groups.clamp(1, 256);
    let per_task = groups.div_ceil(tasks);
    let parts: Vec<Row> = (0..tasks)
        .into_par_iter()
        .map(|task| {
            let mut random = Random::stream(seed, task);
            let mut row = Row {
                order,
                distribution,
                terms,
                checks: 0,
                exceeding: [0; THRESHOLDS.len()],
                largest: 0.0,
            };
            let run = Task {
                pool: &pool,
                groups: per_task,
            };
            pulp::Arch::new().dispatch(|| run.run(&mut random, &mut row));
            row
        })
        .collect();
    parts
        .into_iter()
        .reduce(Row::merge)
        .expect("there is at least one task")
}

impl Row {
    fn merge(mut self, other: Self) -> Self {
        self.checks += other.checks;
        self.largest = self.largest.max(other.largest);
        for (sum, n) in self.exceeding.iter_mut().zip(other.exceeding) {
            *sum += n;
        }
        self
    }

    #[inline(always)]
    fn note(&mut self, ratio: f64) {
        self.checks += 1;
        self.largest = self.largest.max(ratio);
        for (count, threshold) in self.exceeding.iter_mut().zip(THRESHOLDS) {
            *count += u64::from(ratio > threshold);
        }
    }

    /// The rate at `factor`, continued from the last two thresholds that were exceeded often enough
    /// to be counted ([`ENOUGH`]) as a straight line in log rate against ratio: the tail of a sum of
    /// many roundings falls faster. `None` where fewer than two were; then there is nothing to
    /// continue.
    pub fn extrapolated(&self, factor: f64) -> Option<f64> {
        let seen: Vec<(f64, f64)> = THRESHOLDS
            .into_iter()
            .zip(self.exceeding)
            .filter(|(_, count)| *count >= ENOUGH)
            .map(|(at, count)| (at, (count as f64 / self.checks as f64).ln()))
            .collect();
        let [.., (x0, y0), (x1, y1)] = seen[..] else {
            return None;
        };
        Some((y1 + (y1 - y0) / (x1 - x0) * (factor - x1)).exp())
    }
}

/// Operands by step and lane, long enough that any start leaves room for a block.
struct Pool {
    values: Vec<[f32; LANES]>,
}

impl Pool {
    fn new(distribution: Distribution, seed: u64) -> Self {
        let mut random = Random(seed);
        let values = (0..POOL)
            .map(|_| std::array::from_fn(|_| distribution.draw(&mut random)))
            .collect();
        Self { values }
    }

    #[inline(always)]
    fn at(&self, start: usize, step: usize) -> &[f32; LANES] {
        &self.values[(start + step) % POOL]
    }
}

struct Task<'a> {
    pool: &'a Pool,
    groups: u64,
}

impl Task<'_> {
    #[inline(always)]
    fn run(&self, random: &mut Random, row: &mut Row) {
        for _ in 0..self.groups {
            let a = random.below(POOL);
            // An odd stride apart, so that equal pairs of starts hardly ever come again.
            let b = random.below(POOL);
            let got = match row.order {
                Order::Sequential => self.chain(a, b, 0, row.terms, 1, false),
                Order::Fused => self.chain(a, b, 0, row.terms, 1, true),
                Order::Tiled => self.tiled(a, b, row.terms),
                Order::SplitK => self.split(a, b, row.terms),
                Order::Pairwise => self.pairwise(a, b, 0, row.terms),
            };
            let (exact, squares) = self.reference(a, b, row.terms);
            let unit = (-24f64).exp2() * (row.terms as f64).sqrt();
            for lane in 0..LANES {
                let scale = unit * (exact[lane].abs() + squares[lane].sqrt());
                // Products may underflow, each by half the smallest subnormal at most; the bound
                // has a term of its own for that.
                let underflow = row.terms as f64 * (-150f64).exp2();
                let error = (f64::from(got[lane]) - exact[lane]).abs() - underflow;
                row.note(if error <= 0.0 { 0.0 } else { error / scale });
            }
        }
    }

    #[inline(always)]
    fn reference(&self, a: usize, b: usize, terms: usize) -> ([f64; LANES], [f64; LANES]) {
        let (mut sum, mut squares) = ([0.0; LANES], [0.0; LANES]);
        for step in 0..terms {
            let (x, y) = (self.pool.at(a, step), self.pool.at(b, 3 * step));
            for lane in 0..LANES {
                let product = f64::from(x[lane]) * f64::from(y[lane]);
                sum[lane] += product;
                squares[lane] += product * product;
            }
        }
        (sum, squares)
    }

    /// One f32 chain over the steps `from`, `from + by`, … below `to`.
    #[inline(always)]
    fn chain(
        &self,
        a: usize,
        b: usize,
        from: usize,
        to: usize,
        by: usize,
        fused: bool,
    ) -> [f32; LANES] {
        let mut sum = [0.0f32; LANES];
        for step in (from..to).step_by(by) {
            let (x, y) = (self.pool.at(a, step), self.pool.at(b, 3 * step));
            for lane in 0..LANES {
                sum[lane] = if fused {
                    x[lane].mul_add(y[lane], sum[lane])
                } else {
                    sum[lane] + x[lane] * y[lane]
                };
            }
        }
        sum
    }

    #[inline(always)]
    fn tiled(&self, a: usize, b: usize, terms: usize) -> [f32; LANES] {
        let chains: [[f32; LANES]; 8] =
            std::array::from_fn(|first| self.chain(a, b, first, terms, 8, false));
        let pairs: [[f32; LANES]; 4] =
            std::array::from_fn(|i| add(chains[2 * i], chains[2 * i + 1]));
        add(add(pairs[0], pairs[1]), add(pairs[2], pairs[3]))
    }

    #[inline(always)]
    fn split(&self, a: usize, b: usize, terms: usize) -> [f32; LANES] {
        let part = terms.div_ceil(4);
        (0..4).fold([0.0; LANES], |sum, i| {
            let (from, to) = ((i * part).min(terms), ((i + 1) * part).min(terms));
            add(sum, self.chain(a, b, from, to, 1, false))
        })
    }

    fn pairwise(&self, a: usize, b: usize, from: usize, to: usize) -> [f32; LANES] {
        if to - from <= 32 {
            return self.chain(a, b, from, to, 1, false);
        }
        let middle = from + (to - from) / 2;
        add(
            self.pairwise(a, b, from, middle),
            self.pairwise(a, b, middle, to),
        )
    }
}

#[inline(always)]
fn add(a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
    std::array::from_fn(|lane| a[lane] + b[lane])
}

/// SplitMix64.
struct Random(u64);

impl Random {
    /// A stream of its own for each task: the state starts at a mixed value, because a state that
    /// is only shifted would walk through its neighbour's numbers.
    fn stream(seed: u64, task: u64) -> Self {
        let mut outer = Self(seed);
        let start = outer.next();
        let mut inner = Self(start ^ task.rotate_left(32));
        Self(inner.next())
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    #[inline(always)]
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (-53f64).exp2()
    }

    #[inline(always)]
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_one_product_is_off_by_at_most_one_rounding() {
        for distribution in Distribution::ALL {
            let row = measure(Order::Sequential, distribution, 1, 10_000, 1);
            assert!(row.checks >= 10_000);
            // |y| + Q = 2|y|, and one rounding errs by at most u·|y|.
            assert!(row.largest <= 0.5 + 1e-9 && row.largest > 0.2, "{row:?}");
        }
    }

    #[test]
    fn no_order_exceeds_the_constant_and_the_measure_is_not_blind() {
        let factor = crate::Arithmetic::default().sum_factor;
        for order in Order::ALL {
            let row = measure(order, Distribution::Symmetric, 64, 200_000, 7);
            assert!(row.largest < factor, "{row:?}");
            assert!(row.largest > 0.1, "{row:?}");
            assert!(row.exceeding.is_sorted_by(|a, b| a >= b));
        }
        let sequential = measure(Order::Sequential, Distribution::Symmetric, 64, 200_000, 7);
        assert!(sequential.exceeding[0] > 0, "{sequential:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_row_whatever_the_threads() {
        let row = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("a pool");
            pool.install(|| measure(Order::Tiled, Distribution::Normal, 100, 20_000, 3))
        };
        assert_eq!(row(1), row(3));
    }

    #[test]
    fn tasks_draw_different_numbers() {
        let mut seen = std::collections::HashSet::new();
        for task in 0..64 {
            let mut random = Random::stream(1, task);
            for _ in 0..256 {
                assert!(seen.insert(random.next()), "task {task} repeats a number");
            }
        }
    }

    #[test]
    fn a_tail_is_continued_as_a_line_in_the_log() {
        let row = Row {
            order: Order::Sequential,
            distribution: Distribution::Symmetric,
            terms: 64,
            checks: 1_000_000,
            exceeding: [10_000, 100, 1, 0, 0],
            largest: 2.1,
        };
        let rate = row.extrapolated(4.0).expect("two thresholds were exceeded");
        assert!((rate.log10() + 14.0).abs() < 1e-9, "{rate}");
        let none = Row {
            exceeding: [0; 5],
            ..row
        };
        assert_eq!(none.extrapolated(4.0), None);
    }
}
