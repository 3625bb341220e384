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

/// Buffers that the jobs of one pass read; what they hold from the pass before means nothing.
#[derive(Default)]
pub(crate) struct Common<T> {
    /// Padded sources.
    pub source: Vec<T>,
    /// Filters in the order of the tiles.
    pub filters: Vec<T>,
}

/// Bytes of a job's buffer that are kept.
const KEPT: usize = 4 << 20;
/// Bytes of a pass's buffer that are kept.
const KEPT_IN_COMMON: usize = 16 << 20;

impl<T> Scratch<T> {
    /// Lets go of what is too large to keep.
    fn trim(&mut self) {
        trim(&mut self.source, KEPT);
        trim(&mut self.other, KEPT);
        trim(&mut self.packed, KEPT);
        trim(&mut self.sums, KEPT);
        trim(&mut self.bases, KEPT);
    }
}

impl<T> Common<T> {
    fn trim(&mut self) {
        trim(&mut self.source, KEPT_IN_COMMON);
        trim(&mut self.filters, KEPT_IN_COMMON);
    }
}

fn trim<T>(buffer: &mut Vec<T>, kept: usize) {
    if buffer.capacity() * size_of::<T>() > kept {
        *buffer = Vec::new();
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
    /// Calls `pass` with the thread's buffers for what its jobs share.
    fn with_common<R>(pass: impl FnOnce(&mut Common<Self>) -> R) -> R;
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
            fn with_common<R>(pass: impl FnOnce(&mut Common<Self>) -> R) -> R {
                thread_local! {
                    static COMMON: RefCell<Common<$type>> = RefCell::default();
                }
                let mut common = COMMON.take();
                let result = pass(&mut common);
                common.trim();
                COMMON.set(common);
                result
            }
        }
    };
}

buffered!(f64);
buffered!(f32);
