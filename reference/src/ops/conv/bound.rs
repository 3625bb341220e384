//! From sums of squares to errors: the part of the bound that touches every element.

use crate::array::Array;
use crate::estimate::above;
use crate::ops::sums::SumBound;
use crate::parallel;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Q comes from squares summed in f32; the bound enlarges it by this.
const MARGIN: f64 = 1.02;
/// Elements per task at least.
const TASK: usize = 4096;
/// A scaled sum of squares below this may have lost terms to underflow.
const SMALLEST_F32: f32 = 1e-30;
/// Entries that a repeating table has at least, so that loops over it are long.
const TABLE: usize = 256;

/// The number of terms K of each element, repeated over the elements as many times as it takes to be
/// long.
pub(super) struct Counts {
    terms: Vec<f64>,
    /// √K.
    roots: Vec<f64>,
}

impl Counts {
    /// `terms`: K of each place of a plane.
    pub fn new(terms: Vec<f64>) -> Self {
        let times = TABLE.div_ceil(terms.len().max(1)).max(1);
        let terms = terms.repeat(times);
        let roots = terms.iter().map(|terms| terms.sqrt()).collect();
        Self { terms, roots }
    }

    /// The most terms of any place.
    pub fn most(&self) -> f64 {
        self.terms.iter().copied().fold(0.0, f64::max)
    }

    /// K and √K of an element.
    pub fn at(&self, index: usize) -> (f64, f64) {
        let place = index % self.terms.len();
        (self.terms[place], self.roots[place])
    }

    /// Elements after which it repeats.
    fn period(&self) -> usize {
        self.terms.len()
    }
}

/// Sums of squares as they came out of a pass.
pub(super) struct Squares {
    pub sums: Array<f32>,
    pub scale: Scale,
}

/// What a number of [`Squares`] means.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    /// Q itself.
    Rooted,
    /// (Q / factor)², of scaled operands.
    Squared(f64),
}

/// The bound of an element whose S is not known.
#[derive(Clone, Copy)]
pub(super) struct Rule<'a> {
    pub bound: &'a SumBound,
    pub scale: Scale,
    /// Times Q: what rounding the inputs adds.
    pub extra: f64,
}

impl Rule<'_> {
    /// Turns sums of squares into errors, and lists the elements that need more than that: with
    /// their Q where S decides, without where Q is lost.
    pub fn assess(
        &self,
        error: &mut [f32],
        value: &[f64],
        counts: &Counts,
    ) -> Vec<(usize, Option<f64>)> {
        let period = counts.period();
        let size = (TASK / period).max(1) * period;
        let arch = Arch::new();
        let task = |(task, (error, value)): (usize, (&mut [f32], &[f64]))| {
            let mut listed = Vec::new();
            let planes = error.chunks_mut(period).zip(value.chunks(period));
            for (plane, (error, value)) in planes.enumerate() {
                let first = task * size + plane * period;
                arch.dispatch(Plane {
                    rule: self,
                    error,
                    value,
                    counts,
                });
                for (run, error) in error.chunks_mut(RUN).enumerate() {
                    let bits = error.iter().fold(0, |bits, error| bits | error.to_bits());
                    if bits & SIGN == 0 {
                        continue;
                    }
                    for (at, error) in error.iter_mut().enumerate() {
                        if error.to_bits() & SIGN != 0 {
                            let at = run * RUN + at;
                            *error = f32::from_bits(error.to_bits() & !SIGN);
                            let question = self.question(error, value[at], counts.at(at));
                            listed.extend(question.map(|q| (first + at, q)));
                        }
                    }
                }
            }
            listed
        };
        if parallel::worthwhile(value.len()) {
            let tasks = error.par_chunks_mut(size).zip(value.par_chunks(size));
            tasks.enumerate().flat_map_iter(task).collect()
        } else {
            let tasks = error.chunks_mut(size).zip(value.chunks(size));
            tasks.enumerate().flat_map(task).collect()
        }
    }

    /// Decides a marked element: its error from what is known, and its Q if S is needed too,
    /// `Some(None)` if Q itself is lost.
    fn question(&self, error: &mut f32, y: f64, (terms, root): (f64, f64)) -> Option<Option<f64>> {
        if terms == 0.0 {
            *error = 0.0;
            return None;
        }
        let (q, lost) = self.root(*error);
        if lost {
            return Some(None);
        }
        *error = self.random((terms, root), y, q);
        Some(Some(q))
    }

    /// Q to one part in a hundred (see [`MARGIN`]), and whether terms may have been lost to
    /// underflow, or the sum overflowed.
    #[inline(always)]
    fn root(&self, sum: f32) -> (f64, bool) {
        match self.scale {
            Scale::Rooted => (f64::from(sum), false),
            Scale::Squared(factor) => squared(sum, factor),
        }
    }

    #[inline(always)]
    pub fn random(&self, (terms, root): (f64, f64), y: f64, q: f64) -> f32 {
        above(self.bound.rooted(terms, root, y, MARGIN * q) + self.extra * q)
    }

    /// Whether S decides: the growth may be linear, or partial sums may overflow.
    #[inline(always)]
    pub fn needs_sum(&self, root: f64, y: f64, q: f64) -> bool {
        (q > 0.0) & (self.bound.may_grow_linearly(root, y, q) | (root * q >= self.bound.overflow))
    }
}

/// The bit of an f32's sign: sums of squares and errors have none, so it marks what has a question.
const SIGN: u32 = 1 << 31;
/// Elements that are looked through for marks at a time.
const RUN: usize = 64;

/// Turns the sums of squares of a plane into errors, and marks those that need more than that;
/// they keep their sum of squares.
struct Plane<'a> {
    rule: &'a Rule<'a>,
    error: &'a mut [f32],
    value: &'a [f64],
    counts: &'a Counts,
}

impl WithSimd for Plane<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        // A loop for each kind, without a branch in any: they become vectors.
        match self.rule.scale {
            Scale::Rooted => self.each::<true>(|sum| (f64::from(sum), false)),
            Scale::Squared(factor) if self.rule.extra == 0.0 => {
                self.each::<false>(|sum| squared(sum, factor));
            }
            Scale::Squared(factor) => self.each::<true>(|sum| squared(sum, factor)),
        }
    }
}

impl Plane<'_> {
    #[inline(always)]
    fn each<const EXTRA: bool>(self, root_of: impl Fn(f32) -> (f64, bool)) {
        // Copies, so that a store cannot change them.
        let (extra, bound) = (self.rule.extra, self.rule.bound);
        let [per_root, per_size, per_term] = bound.factors();
        let (linear_from, overflow) = (bound.linear_from(), bound.overflow);
        let len = self.error.len();
        let value = &self.value[..len];
        let (terms, roots) = (&self.counts.terms[..len], &self.counts.roots[..len]);
        for (i, error) in self.error.iter_mut().enumerate() {
            let (sum, y, root) = (*error, value[i].abs(), roots[i]);
            let (q, lost) = root_of(sum);
            let rooted = root * q;
            let asks = lost | ((q > 0.0) & ((y > linear_from * rooted) | (rooted >= overflow)));
            let size = y + MARGIN * q;
            let mut bound = (per_root * root + per_size) * size + terms[i] * per_term;
            if EXTRA {
                bound += extra * q;
            }
            let marked = f32::from_bits(sum.to_bits() | SIGN);
            *error = if asks { marked } else { above(bound) };
        }
    }
}

/// Q of a sum of squares, and whether it may have lost terms to underflow, or overflowed.
#[inline(always)]
fn squared(sum: f32, factor: f64) -> (f64, bool) {
    let kept = (SMALLEST_F32..=f32::MAX).contains(&sum);
    // The root's error in f32 is far within [`MARGIN`].
    (f64::from(sum.sqrt()) * factor, !kept)
}
