//! Vectors of numbers whose memory is used again.
//!
//! New memory is dear: the system clears each page when it is first touched, which on a virtual
//! machine may take several times as long as the work that fills it. A run judges one case after
//! another, so the memory of one case's values serves a later one's.

mod pool;

use pool::{Block, POOL};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Numbers of a fixed count, in memory that goes back to a pool of the process when they are
/// dropped. It can be used wherever a slice can.
///
/// The pool keeps at most 1 GiB in 64 vectors of at least 64 KiB, and together with the arrays that
/// are in use no more than those have held at one time before, and 16 MiB.
pub struct Array<T: Number>(Vec<T>);

/// f64, for values, and f32, for their errors.
pub trait Number: Copy + Default + PartialEq + fmt::Debug + Send + Sync + 'static + Kept {}

impl Number for f64 {}
impl Number for f32 {}

/// How the pool keeps vectors of a type; it keeps no others.
pub trait Kept: Sized {
    /// A vector as the pool keeps it.
    #[doc(hidden)]
    fn into_block(vec: Vec<Self>) -> Block;
    /// The vector of a block of this type.
    #[doc(hidden)]
    fn of_block(block: &Block) -> Option<&Vec<Self>>;
    /// The vector of a block of this type; an empty one of another's.
    #[doc(hidden)]
    fn from_block(block: Block) -> Vec<Self>;
}

impl<T: Number> Array<T> {
    /// `len` numbers that mean nothing, to be overwritten one and all.
    pub(crate) fn unset(len: usize) -> Self {
        if pool::is_small::<T>(len) {
            return Self(vec![T::default(); len]);
        }
        Self(pool::take(&POOL, len).unwrap_or_else(|| vec![T::default(); len]))
    }

    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        if pool::is_small::<T>(len) {
            return Self(vec![T::default(); len]);
        }
        match pool::take(&POOL, len) {
            Some(mut used) => {
                used.fill(T::default());
                Self(used)
            }
            None => Self(vec![T::default(); len]),
        }
    }

    /// The numbers as a vector, whose memory does not come back to the pool.
    pub fn into_vec(mut self) -> Vec<T> {
        let vec = std::mem::take(&mut self.0);
        pool::part(&POOL, &vec);
        vec
    }
}

/// Gives the memory that is kept for later arrays back to the system.
pub fn release_memory() {
    pool::release(&POOL);
}

impl<T: Number> Drop for Array<T> {
    fn drop(&mut self) {
        pool::give(&POOL, std::mem::take(&mut self.0));
    }
}

impl<T: Number> From<Vec<T>> for Array<T> {
    fn from(vec: Vec<T>) -> Self {
        pool::adopt(&POOL, &vec);
        Self(vec)
    }
}

impl<T: Number> From<&[T]> for Array<T> {
    fn from(slice: &[T]) -> Self {
        let mut copy = Self::unset(slice.len());
        copy.copy_from_slice(slice);
        copy
    }
}

impl<T: Number, const N: usize> From<[T; N]> for Array<T> {
    fn from(array: [T; N]) -> Self {
        Self::from(&array[..])
    }
}

impl<T: Number> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(numbers: I) -> Self {
        Vec::from_iter(numbers).into()
    }
}

impl<T: Number> Default for Array<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Number> Clone for Array<T> {
    fn clone(&self) -> Self {
        Self::from(&self.0[..])
    }
}

impl<T: Number> Deref for Array<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Number> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Number> AsRef<[T]> for Array<T> {
    fn as_ref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Number> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Equal to whatever has the same numbers in the same order.
impl<T: Number, S: AsRef<[T]> + ?Sized> PartialEq<S> for Array<T> {
    fn eq(&self, other: &S) -> bool {
        self.0 == other.as_ref()
    }
}

impl<T: Number> PartialEq<Array<T>> for Vec<T> {
    fn eq(&self, other: &Array<T>) -> bool {
        *self == other.0
    }
}

impl<T: Number> IntoIterator for Array<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.into_vec().into_iter()
    }
}

impl<'a, T: Number> IntoIterator for &'a Array<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T: Number> IntoIterator for &'a mut Array<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_numbers_and_nothing_of_their_past() {
        let len = 100_003;
        let first: Array<f64> = (0..len).map(|i| i as f64).collect();
        let copy = first.clone();
        assert!(copy == first && copy[len - 1] == (len - 1) as f64);
        drop(first);
        assert!(Array::<f64>::zeros(len).iter().all(|&x| x == 0.0));
        assert_eq!(Array::<f64>::unset(len).len(), len);
        assert_eq!(copy.into_vec().len(), len);
        assert_eq!(Array::from([1.0f32, 2.0]), [1.0, 2.0]);
        assert_ne!(Array::from([1.0f32, 2.0]), [1.0, 3.0]);
    }
}
