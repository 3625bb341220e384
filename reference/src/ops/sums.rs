//! The bound of a sum of products, and sums in a fixed tree.

use crate::arithmetic::{Arithmetic, Precision};
use dnn_assay_graph::DataType;
use pulp::{Arch, Simd, WithSimd};

/// Unit roundoff of f64: the reference's own.
const U64: f64 = 1.110_223_024_625_156_5e-16;

/// How sums of `K` rounded products may deviate in the compute type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumBound {
    factor: f64,
    roundoff: f64,
    half_subnormal: f64,
    /// Magnitudes that overflow in the compute type.
    pub overflow: f64,
    linear: bool,
    /// Factor times roundoff of partial sums in a narrower type.
    partial: f64,
    /// Error of the products, over |y| + Q.
    products: f64,
    /// Variances come from sums of squares.
    pub one_pass: bool,
}

/// What rounding both operands of each product does, over roundoff·(|y| + Q). The errors of two
/// roundings per product add up at random: 4 deviations of √2·Q. Operands that are cut off, not
/// rounded, err by twice as much and to one side, which the |y| allows for.
const BOTH_OPERANDS: f64 = 8.0;

/// |y| over √K·Q beyond which growth may be linear: 0.9², less what Q may be off.
const LINEAR_FROM: f64 = 0.79;

impl SumBound {
    pub fn new(arithmetic: &Arithmetic, precision: &Precision) -> Self {
        Self {
            factor: arithmetic.sum_factor,
            roundoff: precision.roundoff,
            half_subnormal: precision.half_subnormal,
            overflow: precision.overflow,
            linear: arithmetic.linear_growth,
            partial: 0.0,
            products: 0.0,
            one_pass: arithmetic.one_pass_variance,
        }
    }

    /// The same for sums of products as matrix units form them. `wide`: some operand has more
    /// digits than the narrow type of [`Arithmetic::product_roundoff`].
    pub fn of_products(arithmetic: &Arithmetic, precision: &Precision, wide: bool) -> Self {
        let narrows = wide && precision.data_type == DataType::Float;
        Self {
            partial: arithmetic.sum_factor * arithmetic.partial_roundoff,
            products: if narrows {
                BOTH_OPERANDS * arithmetic.product_roundoff
            } else {
                0.0
            },
            ..Self::new(arithmetic, precision)
        }
    }

    /// The constant c of the growth.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// Unit roundoff of the compute type.
    pub fn roundoff(&self) -> f64 {
        self.roundoff
    }

    /// `c·u·√K·(|y| + Q) + 2·2⁻⁵³·√K·(|y| + Q)`, with half a subnormal per term.
    #[inline]
    pub fn random(&self, terms: f64, y: f64, q: f64) -> f64 {
        self.rooted(terms, terms.sqrt(), y, q)
    }

    /// [`Self::random`] with √K at hand.
    #[inline(always)]
    pub fn rooted(&self, terms: f64, root: f64, y: f64, q: f64) -> f64 {
        let size = y.abs() + q;
        (self.factor * self.roundoff + self.partial + 2.0 * U64) * root * size
            + self.products * size
            + terms * self.half_subnormal
    }

    /// What [`Self::random`] of so many terms has per |y| + Q, and always.
    pub fn per_size(&self, terms: f64) -> [f64; 2] {
        let [per_root, products, half_subnormal] = self.factors();
        [per_root * terms.sqrt() + products, terms * half_subnormal]
    }

    /// What [`Self::rooted`] has per √K·(|y| + Q), per |y| + Q, and per term.
    pub fn factors(&self) -> [f64; 3] {
        let per_root = self.factor * self.roundoff + self.partial + 2.0 * U64;
        [per_root, self.products, self.half_subnormal]
    }

    /// The |y| over √K·Q beyond which [`Self::may_grow_linearly`] holds.
    pub fn linear_from(&self) -> f64 {
        if self.linear {
            f64::NEG_INFINITY
        } else {
            LINEAR_FROM
        }
    }

    /// `K·u·S`, the bound that holds in every case.
    #[inline]
    pub fn worst(&self, terms: f64, y: f64, q: f64, s: f64) -> f64 {
        let steps = terms * self.roundoff;
        steps * s * (1.0 + steps)
            + (self.partial + 2.0 * U64) * terms.sqrt() * (y.abs() + q)
            + self.products * (s + q)
            + terms * self.half_subnormal
    }

    /// `[A, B, c]` such that e ≤ A·|y| + B·Q + c for every sum of at most `terms` products, whichever
    /// growth it has: of [`Self::random`] and [`Self::worst`] the larger, with S ≤ |y|/0.9 where the
    /// data decide for linear growth and S ≤ √K·Q where it is declared.
    pub fn coefficients(&self, terms: f64) -> [f64; 3] {
        let (root, steps) = (terms.sqrt(), terms * self.roundoff);
        let random = self.factor * self.roundoff * root;
        let carried = (self.partial + 2.0 * U64) * root + self.products;
        let (mut of_y, mut of_q) = (random + carried, random + carried);
        let linear = steps * (1.0 + steps);
        if self.linear {
            of_q += (linear + self.products) * root;
        } else if linear / 0.9 > random || self.products > 0.0 {
            of_y += (linear + self.products) / 0.9;
        }
        [of_y, of_q, terms * self.half_subnormal]
    }

    /// Whether the sum may be one-signed and even enough for linear growth, S unknown: every sum
    /// for which [`Self::grows_linearly`] holds is among these, with a Q that is off by a hundredth too.
    /// `root` is √K.
    #[inline(always)]
    pub fn may_grow_linearly(&self, root: f64, y: f64, q: f64) -> bool {
        self.linear | (y.abs() > LINEAR_FROM * root * q)
    }

    /// The rule: S > 0.9·√K·Q and |y| > 0.9·S.
    #[inline]
    pub fn grows_linearly(&self, terms: f64, y: f64, q: f64, s: f64) -> bool {
        self.linear || (s > 0.9 * terms.sqrt() * q && y.abs() > 0.9 * s)
    }
}

/// Lanes of [`trees`].
const LANES: usize = 8;
/// Elements that one pass over the lanes covers.
const CHUNK: usize = 4096;

/// What is added up of each element's values in some rows.
pub(crate) trait Term<const ROWS: usize, const SUMS: usize>: Copy {
    /// The terms of a vector of elements.
    fn of<S: Simd>(self, simd: S, row: [S::f64s; ROWS]) -> [S::f64s; SUMS];
}

/// The values themselves.
#[derive(Clone, Copy)]
pub(crate) struct Same;

impl Term<1, 1> for Same {
    #[inline(always)]
    fn of<S: Simd>(self, _: S, row: [S::f64s; 1]) -> [S::f64s; 1] {
        row
    }
}

/// Sums of `term` over rows of the same length in a fixed tree: chunks of 4096 indices, each in
/// eight lanes added pairwise, ((0+4)+(2+6)) + ((1+5)+(3+7)); the chunks in ascending order.
#[inline(always)]
fn trees<S: Simd, const ROWS: usize, const SUMS: usize>(
    simd: S,
    rows: [&[f64]; ROWS],
    term: impl Term<ROWS, SUMS>,
) -> [f64; SUMS] {
    let len = rows.first().map_or(0, |row| row.len());
    let mut totals = [0.0; SUMS];
    for start in (0..len).step_by(CHUNK) {
        let chunk = start..(start + CHUNK).min(len);
        let lanes = lanes_of(simd, rows.map(|row| &row[chunk.clone()]), term);
        for (total, [a, b, c, d, e, f, g, h]) in totals.iter_mut().zip(lanes) {
            *total += ((a + e) + (c + g)) + ((b + f) + (d + h));
        }
    }
    totals
}

/// [`trees`] on the widest vectors that this machine has.
pub(crate) fn in_trees<const ROWS: usize, const SUMS: usize>(
    rows: [&[f64]; ROWS],
    term: impl Term<ROWS, SUMS>,
) -> [f64; SUMS] {
    struct Trees<'a, const ROWS: usize, const SUMS: usize, T>([&'a [f64]; ROWS], T);
    impl<const ROWS: usize, const SUMS: usize, T: Term<ROWS, SUMS>> WithSimd
        for Trees<'_, ROWS, SUMS, T>
    {
        type Output = [f64; SUMS];
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> [f64; SUMS] {
            trees(simd, self.0, self.1)
        }
    }
    Arch::new().dispatch(Trees(rows, term))
}

/// Element `i` is added to lane `i % 8`. Written in vectors, because what a compiler makes of eight
/// lanes and a few sums may be ten times slower.
#[inline(always)]
fn lanes_of<S: Simd, const ROWS: usize, const SUMS: usize>(
    simd: S,
    rows: [&[f64]; ROWS],
    term: impl Term<ROWS, SUMS>,
) -> [[f64; LANES]; SUMS] {
    let vectors = LANES / S::F64_LANES;
    let mut sums = [[simd.splat_f64s(0.0); LANES]; SUMS];
    let len = rows.first().map_or(0, |row| row.len());
    let whole = len / LANES * LANES;
    let body = rows.map(|row| S::as_simd_f64s(&row[..whole]).0);
    for group in 0..whole / LANES {
        for v in 0..vectors {
            let terms = term.of(simd, body.map(|row| row[group * vectors + v]));
            for (sums, term) in sums.iter_mut().zip(terms) {
                sums[v] = simd.add_f64s(sums[v], term);
            }
        }
    }
    let stored = |vectors_of: &[S::f64s; LANES]| {
        let mut lanes = [0.0; LANES];
        for (lane, vector) in S::as_mut_simd_f64s(&mut lanes).0.iter_mut().zip(vectors_of) {
            *lane = *vector;
        }
        lanes
    };
    let mut lanes = sums.each_ref().map(stored);
    // The rest, filled up with zeros whose terms are left out.
    let rest = rows.map(|row| {
        let mut padded = [0.0; LANES];
        padded[..len - whole].copy_from_slice(&row[whole..]);
        padded
    });
    let mut terms = [[simd.splat_f64s(0.0); LANES]; SUMS];
    for v in 0..vectors {
        let of_rest = rest.each_ref().map(|row| S::as_simd_f64s(row).0[v]);
        for (terms, term) in terms.iter_mut().zip(term.of(simd, of_rest)) {
            terms[v] = term;
        }
    }
    for (lanes, terms) in lanes.iter_mut().zip(terms.each_ref().map(stored)) {
        for (lane, term) in lanes.iter_mut().zip(terms).take(len - whole) {
            *lane += term;
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy)]
    struct SquareAndProduct;

    impl Term<2, 2> for SquareAndProduct {
        #[inline(always)]
        fn of<S: Simd>(self, simd: S, [a, b]: [S::f64s; 2]) -> [S::f64s; 2] {
            [simd.mul_f64s(a, a), simd.mul_f64s(a, b)]
        }
    }

    struct Both<'a>([&'a [f64]; 2]);

    impl WithSimd for Both<'_> {
        type Output = [f64; 2];
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> [f64; 2] {
            trees(simd, self.0, SquareAndProduct)
        }
    }

    /// One lane after another.
    fn plain(terms: &[f64]) -> f64 {
        let mut total = 0.0;
        for chunk in terms.chunks(4096) {
            let lane = |lane: usize| chunk.iter().skip(lane).step_by(8).fold(0.0, |s, t| s + t);
            let [a, b, c, d, e, f, g, h]: [f64; 8] = std::array::from_fn(lane);
            total += ((a + e) + (c + g)) + ((b + f) + (d + h));
        }
        total
    }

    proptest! {
        /// The tree is the one that is stated, on the vectors of this machine and without any.
        #[test]
        fn sums_have_the_bits_of_the_stated_tree(len in 0usize..9000, seed in any::<u32>()) {
            let row = |salt: u64| -> Vec<f64> {
                let value = |i: usize| {
                    let z = (i as u64 ^ u64::from(seed) << 20 ^ salt << 55).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    (z >> 11) as f64 / (1u64 << 53) as f64 - 0.3
                };
                (0..len).map(value).collect()
            };
            let (a, b) = (row(1), row(2));
            let squares: Vec<f64> = a.iter().map(|a| a * a).collect();
            let products: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
            let expected = [plain(&squares), plain(&products)].map(f64::to_bits);
            let widest = Arch::new().dispatch(Both([&a, &b]));
            let scalar = Both([&a, &b]).with_simd(pulp::Scalar::new());
            prop_assert_eq!(widest.map(f64::to_bits), expected);
            prop_assert_eq!(scalar.map(f64::to_bits), expected);
        }
    }
}
