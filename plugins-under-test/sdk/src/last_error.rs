//! The last-error text: one NUL-terminated buffer per thread.

use dnn_assay_abi::ERROR_STRING_MAX_LENGTH;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};

thread_local! {
    // Const-initialised and without destructor: a thread-local that must be dropped registers
    // itself with the C library, which then keeps this library mapped after dlclose.
    static TEXT: UnsafeCell<[u8; ERROR_STRING_MAX_LENGTH]> =
        const { UnsafeCell::new([0; ERROR_STRING_MAX_LENGTH]) };
}

/// Replaces this thread's text; it is cut at a character's border, and NULs become spaces.
pub(crate) fn set(message: &str) {
    let mut end = message.len().min(ERROR_STRING_MAX_LENGTH - 1);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    TEXT.with(|text| {
        // SAFETY: the buffer belongs to this thread, and no reference to it outlives this closure
        // or `pointer`'s.
        let buffer = unsafe { &mut *text.get() };
        for (to, &from) in buffer.iter_mut().zip(&message.as_bytes()[..end]) {
            *to = if from == 0 { b' ' } else { from };
        }
        buffer[end] = 0;
    });
}

/// A copy of this thread's text.
pub(crate) fn text() -> String {
    // SAFETY: every text ends with NUL inside the buffer, and this thread does not change it
    // during the borrow.
    let text = unsafe { CStr::from_ptr(pointer()) };
    text.to_string_lossy().into_owned()
}

/// This thread's text, valid until its next failure or its end. Never null.
pub(crate) fn pointer() -> *const c_char {
    TEXT.with(|text| text.get().cast::<c_char>().cast_const())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        set(&"é".repeat(3000));
        assert_eq!(text().len(), 2046);
        set("a\0b");
        assert_eq!(text(), "a b");
        std::thread::spawn(|| assert_eq!(text(), ""))
            .join()
            .unwrap();
        assert_eq!(text(), "a b");
    }
}
