//! The vectors that are kept, and how many bytes that may be.

use super::{Kept, Number};
use std::sync::{Mutex, PoisonError};

/// The process's pool.
pub(super) static POOL: Mutex<Pool> = Mutex::new(Pool::new());

/// Bytes from which a vector is worth keeping: smaller ones come from memory that the allocator
/// keeps itself.
const LEAST: usize = 64 << 10;
/// Bytes that are kept at most.
const MOST_KEPT: usize = 1 << 30;
/// Bytes that may be kept beyond what arrays have held so far, so that a few small tensors cost no
/// large vector.
const SPARE: usize = 16 << 20;
/// Vectors that are kept at most.
const MOST_BLOCKS: usize = 64;

/// Vectors for later use, and the bytes of those that are in use.
pub struct Pool {
    blocks: Vec<Block>,
    /// Bytes of the blocks.
    kept: usize,
    /// Bytes of the arrays that there are.
    lent: usize,
    /// The most that were lent at one time: what is kept and what is lent exceed it together by
    /// [`SPARE`] at most.
    most: usize,
}

/// A vector that is kept.
#[derive(Debug)]
pub enum Block {
    /// Values.
    Wide(Vec<f64>),
    /// Errors.
    Narrow(Vec<f32>),
}

impl Block {
    fn bytes(&self) -> usize {
        match self {
            Self::Wide(vec) => bytes(vec),
            Self::Narrow(vec) => bytes(vec),
        }
    }
}

macro_rules! kept {
    ($type:ty, $block:ident) => {
        impl Kept for $type {
            fn into_block(vec: Vec<Self>) -> Block {
                Block::$block(vec)
            }
            fn of_block(block: &Block) -> Option<&Vec<Self>> {
                match block {
                    Block::$block(vec) => Some(vec),
                    _ => None,
                }
            }
            fn from_block(block: Block) -> Vec<Self> {
                match block {
                    Block::$block(vec) => vec,
                    _ => Vec::new(),
                }
            }
        }
    };
}

kept!(f64, Wide);
kept!(f32, Narrow);

fn bytes<T>(vec: &Vec<T>) -> usize {
    vec.capacity() * size_of::<T>()
}

/// Whether so many numbers are too few for the pool.
pub(super) fn is_small<T>(len: usize) -> bool {
    len.saturating_mul(size_of::<T>()) < LEAST
}

/// A vector of `len` numbers that mean nothing; `None` where a new one is needed, which is counted as
/// lent. The pool has made room for it.
pub(super) fn take<T: Number>(pool: &Mutex<Pool>, len: usize) -> Option<Vec<T>> {
    let (found, evicted) = with(pool, |pool| match pool.find::<T>(len) {
        Some(block) => {
            pool.lent += len * size_of::<T>();
            (Some(T::from_block(block)), Vec::new())
        }
        None => {
            pool.lent += len * size_of::<T>();
            (None, pool.fit())
        }
    });
    // The system takes its time; the lock is not held meanwhile.
    drop(evicted);
    let mut vec = found?;
    vec.resize(len, T::default());
    // The rest is given back at once, so that an array holds what it needs and no more.
    vec.shrink_to_fit();
    Some(vec)
}

/// Counts a vector from elsewhere as lent.
pub(super) fn adopt<T: Number>(pool: &Mutex<Pool>, vec: &Vec<T>) {
    if bytes(vec) >= LEAST {
        let evicted = with(pool, |pool| {
            pool.lent += bytes(vec);
            pool.fit()
        });
        drop(evicted);
    }
}

/// Counts a vector as lent no longer: it goes its own way.
pub(super) fn part<T: Number>(pool: &Mutex<Pool>, vec: &Vec<T>) {
    if bytes(vec) >= LEAST {
        with(pool, |pool| {
            pool.lent = pool.lent.saturating_sub(bytes(vec))
        });
    }
}

/// Takes a vector back.
pub(super) fn give<T: Number>(pool: &Mutex<Pool>, vec: Vec<T>) {
    let bytes = bytes(&vec);
    if bytes >= LEAST {
        let evicted = with(pool, |pool| {
            pool.lent = pool.lent.saturating_sub(bytes);
            pool.kept += bytes;
            pool.blocks.push(T::into_block(vec));
            pool.fit()
        });
        drop(evicted);
    }
}

/// Forgets all that is kept, and what there once was.
pub(super) fn release(pool: &Mutex<Pool>) {
    let blocks = with(pool, |pool| {
        pool.kept = 0;
        pool.most = pool.lent;
        std::mem::take(&mut pool.blocks)
    });
    drop(blocks);
}

/// A panic elsewhere leaves numbers that still hold.
fn with<R>(pool: &Mutex<Pool>, work: impl FnOnce(&mut Pool) -> R) -> R {
    work(&mut pool.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Pool {
    const fn new() -> Self {
        Self {
            blocks: Vec::new(),
            kept: 0,
            lent: 0,
            most: 0,
        }
    }

    /// The smallest block that holds `len` numbers and not more than twice as many.
    fn find<T: Number>(&mut self, len: usize) -> Option<Block> {
        let capacity = |block: &Block| T::of_block(block).map(Vec::capacity);
        let fitting = self.blocks.iter().enumerate().filter_map(|(at, block)| {
            let capacity = capacity(block)?;
            (len..=2 * len)
                .contains(&capacity)
                .then_some((capacity, at))
        });
        let (_, at) = fitting.min()?;
        Some(self.remove(at))
    }

    fn remove(&mut self, at: usize) -> Block {
        let block = self.blocks.swap_remove(at);
        self.kept -= block.bytes();
        block
    }

    /// Takes out what is kept beyond the limits, in blocks that are no larger than what is too much
    /// while there are any: a small array costs no large block unless nothing else is left.
    fn fit(&mut self) -> Vec<Block> {
        self.most = self.most.max(self.lent);
        let mut evicted = Vec::new();
        loop {
            let room = MOST_KEPT.min(self.most - self.lent + SPARE);
            let excess = self.kept.saturating_sub(room);
            if excess == 0 && self.blocks.len() <= MOST_BLOCKS {
                return evicted;
            }
            let sizes = self.blocks.iter().map(Block::bytes).enumerate();
            let within = sizes.clone().filter(|&(_, size)| size <= excess);
            let chosen = within.max_by_key(|&(_, size)| size);
            let Some((at, _)) = chosen.or_else(|| sizes.min_by_key(|&(_, size)| size)) else {
                return evicted;
            };
            evicted.push(self.remove(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: usize = 1 << 20;

    fn kept(pool: &Mutex<Pool>) -> usize {
        with(pool, |pool| pool.kept)
    }

    fn new_pool() -> Mutex<Pool> {
        Mutex::new(Pool::new())
    }

    /// An array's life without the array: taken where it can be, else new.
    fn lend<T: Number>(pool: &Mutex<Pool>, len: usize) -> (Vec<T>, bool) {
        match take(pool, len) {
            Some(vec) => (vec, true),
            None => (vec![T::default(); len], false),
        }
    }

    #[test]
    fn what_fits_is_used_again_and_what_does_not_is_not() {
        for (len, fits) in [(MIB + 1, false), (MIB / 2 - 1, false), (MIB - 7, true)] {
            let pool = new_pool();
            let (vec, again) = lend::<f64>(&pool, MIB);
            assert!(!again);
            give(&pool, vec);
            assert!(!lend::<f32>(&pool, MIB).1, "another type");
            let (vec, again) = lend::<f64>(&pool, len);
            assert_eq!((again, vec.len()), (fits, len), "{len}");
            assert_eq!(vec.capacity(), len, "no more is held than asked for");
        }
    }

    #[test]
    fn small_arrays_cost_no_large_block() {
        let pool = new_pool();
        let large = lend::<f64>(&pool, 8 * MIB).0;
        let small: Vec<_> = (0..4).map(|_| lend::<f64>(&pool, MIB).0).collect();
        give(&pool, large);
        small.into_iter().for_each(|small| give(&pool, small));
        assert_eq!(kept(&pool), 96 * MIB);
        // Of another type, so that none can be used: small ones go, as many as it takes.
        let (other, _) = lend::<f32>(&pool, 7 * MIB);
        assert_eq!(kept(&pool), 80 * MIB);
        give(&pool, other);
    }

    #[test]
    fn a_vector_that_parts_and_one_that_comes_are_counted() {
        let pool = new_pool();
        let vec = vec![0.0f64; MIB];
        adopt(&pool, &vec);
        with(&pool, |pool| assert_eq!(pool.lent, 8 * MIB));
        part(&pool, &vec);
        with(&pool, |pool| {
            assert_eq!((pool.lent, pool.most), (0, 8 * MIB))
        });
        give(&pool, vec![0.0f64; 100]);
        assert_eq!(kept(&pool), 0, "small ones are not kept");
        adopt(&pool, &vec);
        give(&pool, vec);
        assert_eq!(kept(&pool), 8 * MIB);
        release(&pool);
        with(&pool, |pool| assert_eq!((pool.kept, pool.most), (0, 0)));
    }

    proptest! {
        /// What is kept and what is lent are hardly more than the most that was lent at one time.
        #[test]
        fn the_peak_does_not_rise(steps in prop::collection::vec((1usize..300, any::<bool>(), any::<prop::sample::Index>()), 1..40)) {
            let pool = new_pool();
            let mut held: Vec<Block> = Vec::new();
            let mut peak = 0;
            for (size, wide, which) in steps {
                let len = size * LEAST / 8;
                if held.len() > 6 || !held.is_empty() && size % 3 == 0 {
                    match held.swap_remove(which.index(held.len())) {
                        Block::Wide(vec) => give(&pool, vec),
                        Block::Narrow(vec) => give(&pool, vec),
                    }
                } else if wide {
                    held.push(Block::Wide(lend(&pool, len).0));
                } else {
                    held.push(Block::Narrow(lend(&pool, 2 * len).0));
                }
                let lent: usize = held.iter().map(Block::bytes).sum();
                peak = peak.max(lent);
                with(&pool, |pool| {
                    assert_eq!(pool.lent, lent);
                    assert_eq!(pool.kept, pool.blocks.iter().map(Block::bytes).sum::<usize>());
                    assert!(pool.kept + pool.lent <= peak + SPARE);
                    assert!(pool.blocks.len() <= MOST_BLOCKS);
                });
            }
        }
    }
}
