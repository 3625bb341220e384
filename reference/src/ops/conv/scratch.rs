//! Memory that a thread keeps from one job to the next, so that it is not asked of the system and
//! given back every time.

use super::lane::Lane;
use std::cell::RefCell;

/// Buffers of one job; what they hold from the job before means nothing.
#[derive(Default)]
pub(crate) struct Scratch<T> {
    /// A padded source.
    pub source: Vec<T>,
    /// A second operand, laid out.
    pub other: Vec<T>,
    /// Lanes in the order of the tiles.
    pub packed: Vec<T>,
    /// Sums before they are put in their places.
    pub sums: Vec<T>,
    /// Where columns start.
    pub bases: Vec<usize>,
}

/// Bytes of a buffer that are kept.
const KEPT: usize = 2 << 20;

impl<T> Scratch<T> {
    /// Lets go of what is too large to keep.
    fn trim(&mut self) {
        for buffer in [
            &mut self.source,
            &mut self.other,
            &mut self.packed,
            &mut self.sums,
        ] {
            if buffer.capacity() * size_of::<T>() > KEPT {
                *buffer = Vec::new();
            }
        }
        if self.bases.capacity() * size_of::<usize>() > KEPT {
            self.bases = Vec::new();
        }
    }
}

/// A buffer of at least `len` elements, whatever they are.
pub(crate) fn sized<T: Lane>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
    &mut buffer[..len]
}

/// Element types that have buffers on each thread.
pub(crate) trait Buffered: Sized + 'static {
    /// Calls `job` with the thread's buffers. Jobs do not nest.
    fn with<R>(job: impl FnOnce(&mut Scratch<Self>) -> R) -> R;
}

macro_rules! buffered {
    ($type:ident) => {
        impl Buffered for $type {
            fn with<R>(job: impl FnOnce(&mut Scratch<Self>) -> R) -> R {
                thread_local! {
                    static SCRATCH: RefCell<Scratch<$type>> = RefCell::default();
                }
                // Taken, not borrowed: a job that came in between would find new buffers.
                let mut scratch = SCRATCH.take();
                let result = job(&mut scratch);
                scratch.trim();
                SCRATCH.set(scratch);
                result
            }
        }
    };
}

buffered!(f64);
buffered!(f32);
