//! The bound of a sum of products, and sums in a fixed tree.

use crate::arithmetic::{Arithmetic, Precision};
use dnn_assay_graph::DataType;

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

    /// `K·u·S`, the bound that holds in every case.
    #[inline]
    pub fn worst(&self, terms: f64, y: f64, q: f64, s: f64) -> f64 {
        let steps = terms * self.roundoff;
        steps * s * (1.0 + steps)
            + (self.partial + 2.0 * U64) * terms.sqrt() * (y.abs() + q)
            + self.products * (s + q)
            + terms * self.half_subnormal
    }

    /// Whether the sum may be one-signed and even enough for linear growth, S unknown: every sum
    /// for which [`Self::grows_linearly`] holds is among these, with a Q that is off by a hundredth too.
    /// `root` is √K.
    #[inline(always)]
    pub fn may_grow_linearly(&self, root: f64, y: f64, q: f64) -> bool {
        self.linear | (y.abs() > 0.79 * root * q)
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

/// Sums of `term` over rows of the same length in a fixed tree: chunks of 4096 indices, each in
/// eight lanes added pairwise, ((0+4)+(2+6)) + ((1+5)+(3+7)); the chunks in ascending order.
#[inline(always)]
pub(crate) fn trees<const ROWS: usize, const SUMS: usize>(
    rows: [&[f64]; ROWS],
    term: impl Fn([f64; ROWS]) -> [f64; SUMS],
) -> [f64; SUMS] {
    let len = rows.first().map_or(0, |row| row.len());
    let mut totals = [0.0; SUMS];
    for start in (0..len).step_by(CHUNK) {
        let end = (start + CHUNK).min(len);
        let rows = rows.map(|row| &row[start..end]);
        let mut lanes = [[0.0f64; LANES]; SUMS];
        let whole = (end - start) / LANES * LANES;
        for at in (0..whole).step_by(LANES) {
            let rows: [&[f64; LANES]; ROWS] = rows.map(|row| {
                row[at..]
                    .first_chunk()
                    .expect("a whole number of lanes lies ahead")
            });
            for lane in 0..LANES {
                let terms = term(std::array::from_fn(|row| rows[row][lane]));
                for (sums, term) in lanes.iter_mut().zip(terms) {
                    sums[lane] += term;
                }
            }
        }
        for lane in 0..end - start - whole {
            let terms = term(rows.map(|row| row[whole + lane]));
            for (sums, term) in lanes.iter_mut().zip(terms) {
                sums[lane] += term;
            }
        }
        for (total, [a, b, c, d, e, f, g, h]) in totals.iter_mut().zip(lanes) {
            *total += ((a + e) + (c + g)) + ((b + f) + (d + h));
        }
    }
    totals
}
