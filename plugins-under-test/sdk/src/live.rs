//! What the host holds: objects handed out as opaque pointers, and found again by them.

use crate::engine::Error;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Objects of one kind that the host holds. Pointers that are not in the table are refused and
/// never followed, so a null, foreign or destroyed handle costs the host a status and no crash.
pub(crate) struct Live<T> {
    what: &'static str,
    objects: Mutex<Vec<Arc<T>>>,
}

impl<T> Live<T> {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self {
            what,
            objects: Mutex::new(Vec::new()),
        }
    }

    /// Keeps `object` and gives the pointer by which the host knows it.
    pub(crate) fn insert(&self, object: T) -> *mut c_void {
        let object = Arc::new(object);
        let pointer = Arc::as_ptr(&object).cast_mut().cast();
        self.lock().push(object);
        pointer
    }

    /// The object behind `pointer`.
    pub(crate) fn get(&self, pointer: *const c_void) -> Result<Arc<T>, Error> {
        self.lock()
            .iter()
            .find(|object| Arc::as_ptr(object).cast() == pointer)
            .cloned()
            .ok_or_else(|| self.unknown(pointer))
    }

    /// Gives up the object behind `pointer`.
    pub(crate) fn remove(&self, pointer: *const c_void) -> Result<Arc<T>, Error> {
        self.remove_where(pointer, |object| {
            std::ptr::from_ref(object).cast() == pointer
        })
    }

    /// Gives up the object that `is_it` knows; `pointer` is what the host calls it.
    pub(crate) fn remove_where(
        &self,
        pointer: *const c_void,
        is_it: impl Fn(&T) -> bool,
    ) -> Result<Arc<T>, Error> {
        let mut objects = self.lock();
        let at = objects
            .iter()
            .position(|object| is_it(object))
            .ok_or_else(|| self.unknown(pointer))?;
        let object = objects.swap_remove(at);
        if objects.is_empty() {
            // Nothing of ours may be left behind when the library is closed.
            *objects = Vec::new();
        }
        Ok(object)
    }

    fn unknown(&self, pointer: *const c_void) -> Error {
        if pointer.is_null() {
            Error::bad_param(format!("{} is null", self.what))
        } else {
            Error::bad_param(format!(
                "{} {pointer:p} is not one of this plugin, or has been destroyed",
                self.what
            ))
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<T>>> {
        // No panic can leave the table half changed.
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pointers_that_were_handed_out_are_known() {
        static TABLE: Live<u32> = Live::new("number");
        let seven = TABLE.insert(7);
        assert_eq!(*TABLE.get(seven).unwrap(), 7);
        let null = TABLE.get(std::ptr::null()).unwrap_err();
        assert_eq!(null.message, "number is null");
        let foreign = TABLE.get(std::ptr::without_provenance(8)).unwrap_err();
        assert!(foreign.message.contains("0x8"), "{}", foreign.message);
        assert!(TABLE.remove(seven).is_ok());
        assert!(TABLE.remove(seven).is_err());
    }
}
