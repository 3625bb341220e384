//! Matrix products with broadcast batches, as a 1×1 convolution per batch.

use crate::estimate::{Alternative, Estimate};
use crate::ops::account::Figures;
use crate::ops::conv::{Convolution, Direction, Geometry, Transform};
use crate::ops::operand::Operand;
use crate::ops::sums::SumBound;

/// A `[…, M, K]` times B `[…, K, N]`.
pub(crate) struct Matmul<'a> {
    pub a: Operand<'a>,
    pub b: Operand<'a>,
    /// Extents of C `[…, M, N]`.
    pub c: &'a [i64],
    pub bound: SumBound,
    pub rounds_inputs: bool,
}

impl Matmul<'_> {
    /// C, and how many of its elements have linear growth.
    ///
    /// # Errors
    /// A text where shapes do not fit.
    pub fn run(&self) -> Result<(Estimate, usize), String> {
        let Extents { m, k, n, batches } = self.extents()?;
        let mut whole = Estimate::unset(batches * m * n);
        let mut linear = 0;
        for index in 0..batches {
            let (a, b) = self.slices(index, m * k, k * n);
            let (estimate, count) = self.product(&a, &b, [k, m, n]).run()?;
            let offset = index * m * n;
            whole.value[offset..][..m * n].copy_from_slice(&estimate.value);
            whole.error[offset..][..m * n].copy_from_slice(&estimate.error);
            let shifted = estimate.also.into_iter().map(|other| Alternative {
                index: other.index + offset,
                ..other
            });
            whole.also.extend(shifted);
            linear += count;
        }
        Ok((whole, linear))
    }

    /// K, Q, S and the summands of the uncertainty of element `index` of C.
    ///
    /// # Errors
    /// As [`Matmul::run`].
    pub fn account(&self, index: usize) -> Result<Figures, String> {
        let Extents { m, k, n, .. } = self.extents()?;
        let (a, b) = self.slices(index / (m * n), m * k, k * n);
        Ok(self.product(&a, &b, [k, m, n]).account(index % (m * n)))
    }

    fn slices(&self, index: usize, a: usize, b: usize) -> (Slice<'_>, Slice<'_>) {
        let batch = self.c.len() - 2;
        let of = |own: &[i64]| batch_of(index, &self.c[..batch], &own[..batch]);
        (
            slice(&self.a, of(self.a.dims), a),
            slice(&self.b, of(self.b.dims), b),
        )
    }

    /// C[m, n] = Σ_k A[m, k]·B[k, n] of one batch: filters m, channels k, positions n.
    fn product<'s>(
        &'s self,
        a: &'s Slice<'s>,
        b: &'s Slice<'s>,
        [k, m, n]: [usize; 3],
    ) -> Convolution<'s> {
        Convolution {
            geometry: Geometry::dense(k, m, n),
            direction: Direction::Fprop,
            first: b.operand(&self.b),
            second: a.operand(&self.a),
            bound: self.bound,
            rounds_inputs: self.rounds_inputs,
            transform: Transform::NONE,
        }
    }

    fn extents(&self) -> Result<Extents, String> {
        let (a, b, c) = (self.a.dims, self.b.dims, self.c);
        let misfit = || format!("matmul of {a:?} and {b:?} to {c:?}");
        let rank = c.len();
        if rank < 2 || a.len() != rank || b.len() != rank {
            return Err(misfit());
        }
        let batch = rank - 2;
        let (m, k, n) = (a[rank - 2], a[rank - 1], b[rank - 1]);
        let fits = b[rank - 2] == k
            && c[rank - 2..] == [m, n]
            && (0..batch).all(|axis| {
                let divides = |own: i64| own > 0 && c[axis] % own == 0;
                divides(a[axis]) && divides(b[axis]) && c[axis] == a[axis].max(b[axis])
            });
        if !fits || [m, k, n].iter().any(|&extent| extent < 1) {
            return Err(misfit());
        }
        let size = |dim: i64| dim as usize;
        let (m, k, n) = (size(m), size(k), size(n));
        let batches: usize = c[..batch].iter().map(|&dim| size(dim)).product();
        Ok(Extents { m, k, n, batches })
    }
}

/// Extents of a product.
struct Extents {
    m: usize,
    k: usize,
    n: usize,
    batches: usize,
}

/// The operand's batch behind C's batch `index`: blocks repeat, `i / (out / in)` per axis.
fn batch_of(mut index: usize, out: &[i64], own: &[i64]) -> usize {
    let (mut batch, mut stride) = (0, 1);
    for (&out, &own) in out.iter().zip(own).rev() {
        let (out, own) = (out as usize, own as usize);
        batch += index % out / (out / own) * stride;
        stride *= own;
        index /= out;
    }
    batch
}

/// One batch of an operand.
struct Slice<'a> {
    value: &'a [f64],
    error: &'a [f32],
    also: Vec<Alternative>,
}

fn slice<'a>(operand: &Operand<'a>, batch: usize, size: usize) -> Slice<'a> {
    let range = batch * size..(batch + 1) * size;
    let within = operand
        .also
        .iter()
        .filter(|other| range.contains(&other.index));
    Slice {
        value: &operand.value[range.clone()],
        error: operand.error.get(range.clone()).unwrap_or_default(),
        also: within
            .map(|other| Alternative {
                index: other.index - range.start,
                ..*other
            })
            .collect(),
    }
}

impl Slice<'_> {
    fn operand<'b>(&'b self, of: &Operand<'b>) -> Operand<'b> {
        Operand {
            value: self.value,
            error: self.error,
            also: &self.also,
            ..*of
        }
    }
}
