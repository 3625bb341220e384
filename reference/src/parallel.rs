//! When to use more than one thread. Results never depend on it.

use pulp::{Arch, Simd, WithSimd};

/// Elements of simple work below which one thread is faster than waking others.
const GRAIN: usize = 1 << 14;

/// Whether work on this many elements is worth more than one thread.
pub(crate) fn worthwhile(elements: usize) -> bool {
    elements >= GRAIN && rayon::current_num_threads() > 1
}

/// Runs `work`, compiled for the widest vectors that this machine has. Its own loops and what is
/// inlined into it are; the bits of its results are those of plain code, as nothing is contracted
/// or reassociated.
#[inline(always)]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    struct Work<F>(F);
    impl<R, F: FnOnce() -> R> WithSimd for Work<F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> R {
            (self.0)()
        }
    }
    Arch::new().dispatch(Work(work))
}
