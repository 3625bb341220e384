//! The register tile: some vectors of packed lanes times some broadcast columns, one chain per
//! element over the steps in ascending order.

use super::lane::Lane;
use pulp::{Arch, Simd, WithSimd};

/// What a strip's sums start from and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    /// From 0; the result replaces what was there.
    Fresh,
    /// From what is there, as if the chain had not been interrupted.
    Continued,
    /// From 0; the sum is added to what is there.
    Added,
}

/// Vectors of lanes × any number of columns.
pub(crate) struct Strip<'a, T> {
    /// `[step, lane]`.
    pub packed: &'a [T],
    /// Vectors per step: 4, 2 or 1, at most what [`Lanes::vectors`] says.
    pub vectors: usize,
    /// Where a step finds a column's factor, from the column's base on.
    pub offsets: &'a [usize],
    /// All offsets are below this.
    pub reach: usize,
    pub source: &'a [T],
    /// One per column.
    pub bases: &'a [usize],
    /// `[column, lane]`.
    pub out: &'a mut [T],
    /// Elements of `out` from one column to the next.
    pub pitch: usize,
    pub chain: Chain,
    /// Products are exact in f64, so that a fused step gives the same bits as two.
    pub fused: bool,
}

/// What this machine's vectors hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    /// Elements per vector.
    pub lanes: usize,
    /// Vectors per step of the widest tile.
    pub vectors: usize,
}

impl Lanes {
    /// For elements of type `T`.
    pub fn of<T: Lane>() -> Self {
        struct Ask<T>(std::marker::PhantomData<T>);
        impl<T: Lane> WithSimd for Ask<T> {
            type Output = Lanes;
            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) -> Lanes {
                Lanes {
                    lanes: T::lanes::<S>(),
                    vectors: if S::REGISTER_COUNT >= 32 { 4 } else { 2 },
                }
            }
        }
        Arch::new().dispatch(Ask::<T>(std::marker::PhantomData))
    }
}

/// Lanes that are computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// First lane that it computes.
    pub first: usize,
    /// Lanes that it computes.
    pub len: usize,
    /// Vectors that hold them.
    pub vectors: usize,
    /// Lanes before it, those that only fill vectors included.
    pub start: usize,
    /// Its lanes with those that fill its vectors.
    pub width: usize,
}

/// Cuts `count` lanes into blocks.
pub(crate) fn blocks(count: usize, machine: Lanes) -> Vec<Block> {
    let (mut first, mut start) = (0, 0);
    let mut blocks = Vec::new();
    while first < count {
        let needed = (count - first).div_ceil(machine.lanes);
        let vectors = match needed {
            4.. if machine.vectors == 4 => 4,
            2.. => 2,
            _ => 1,
        };
        let width = vectors * machine.lanes;
        let len = width.min(count - first);
        blocks.push(Block {
            first,
            len,
            vectors,
            start,
            width,
        });
        first += len;
        start += width;
    }
    blocks
}

impl<T: Lane> Strip<'_, T> {
    /// Computes every column.
    pub fn run(self) {
        Arch::new().dispatch(self);
    }
}

impl<T: Lane> WithSimd for Strip<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Conditions that are constant per instance come first: they keep the kernels that an
        // instance cannot need out of the binary.
        if T::ALWAYS_FUSED || self.fused {
            self.with_step::<S, true>(simd);
        } else {
            self.with_step::<S, false>(simd);
        }
    }
}

impl<T: Lane> Strip<'_, T> {
    /// 32 registers hold 24 sums, the vectors of a step and a broadcast; 16 hold 12. Eight sums
    /// are what it takes to hide the latency of a step, if two can start at once.
    #[inline(always)]
    fn with_step<S: Simd, const FUSED: bool>(self, simd: S) {
        if S::REGISTER_COUNT >= 32 {
            match self.vectors {
                4 => self.columns::<S, 4, 6, FUSED>(simd),
                2 => self.columns::<S, 2, 8, FUSED>(simd),
                _ => self.columns::<S, 1, 12, FUSED>(simd),
            }
        } else {
            match self.vectors {
                2 => self.columns::<S, 2, 6, FUSED>(simd),
                _ => self.columns::<S, 1, 8, FUSED>(simd),
            }
        }
    }

    #[inline(always)]
    fn columns<S: Simd, const NV: usize, const P: usize, const FUSED: bool>(mut self, simd: S) {
        let out = std::mem::take(&mut self.out);
        for (bases, out) in self.bases.chunks(P).zip(out.chunks_mut(P * self.pitch)) {
            self.tile::<S, NV, P, FUSED>(simd, bases, out);
        }
    }

    /// Up to `P` columns, in `out` from the first one's lanes on.
    ///
    /// Every loop over the sums has a fixed count, so that they stay in registers from the first step
    /// to the result; what there is of a column is decided inside.
    #[inline(always)]
    fn tile<S: Simd, const NV: usize, const P: usize, const FUSED: bool>(
        &self,
        simd: S,
        bases: &[usize],
        out: &mut [T],
    ) {
        let width = NV * T::lanes::<S>();
        let (reach, pitch) = (self.reach, self.pitch);
        // Columns beyond the last repeat it.
        let base = |p: usize| bases[p.min(bases.len() - 1)];
        let seen: [&[T]; P] = std::array::from_fn(|p| &self.source[base(p)..base(p) + reach]);
        let mut sums = [[T::splat(simd, T::default()); NV]; P];
        if self.chain == Chain::Continued {
            for (p, sums) in sums.iter_mut().enumerate() {
                if let Some(out) = out.get(p * pitch..p * pitch + width) {
                    let out = T::vectors::<S>(out);
                    *sums = std::array::from_fn(|v| out[v]);
                }
            }
        }
        let steps = T::vectors::<S>(self.packed).chunks_exact(NV);
        for (lanes, &offset) in steps.zip(self.offsets) {
            // One check for all columns.
            if offset >= reach {
                break;
            }
            let lanes: [T::Vector<S>; NV] = std::array::from_fn(|v| lanes[v]);
            for (sums, seen) in sums.iter_mut().zip(&seen) {
                let seen = T::splat(simd, seen[offset]);
                for (sum, &lane) in sums.iter_mut().zip(&lanes) {
                    *sum = if FUSED {
                        T::fused(simd, lane, seen, *sum)
                    } else {
                        T::separate(simd, lane, seen, *sum)
                    };
                }
            }
        }
        let is_added = self.chain == Chain::Added;
        for (p, sums) in sums.iter().enumerate() {
            let there = (p < bases.len()).then(|| out.get_mut(p * pitch..p * pitch + width));
            if let Some(Some(out)) = there {
                let out = T::vectors_mut::<S>(out);
                for (v, &sum) in sums.iter().enumerate() {
                    out[v] = if is_added {
                        T::sum(simd, out[v], sum)
                    } else {
                        sum
                    };
                }
            }
        }
    }
}
