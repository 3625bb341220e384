//! Copying C strings that a plugin hands out.

use std::ffi::c_char;

use dnn_assay_abi::ERROR_STRING_MAX_LENGTH;

/// Copies a C string, at most 2047 bytes of it, as lossy UTF-8. `None` for NULL.
///
/// # Safety
/// `text` is NULL, or readable up to its NUL or for 2047 bytes, and not written meanwhile.
pub(super) unsafe fn copy(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    let mut bytes = Vec::new();
    while bytes.len() < ERROR_STRING_MAX_LENGTH - 1 {
        // SAFETY: no NUL came before this byte, and fewer than 2047 bytes were read.
        match unsafe { text.add(bytes.len()).cast::<u8>().read() } {
            0 => break,
            byte => bytes.push(byte),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_capped_and_lossy() {
        let long = [b'x'; 10_000];
        // SAFETY: readable for 2047 bytes, as the contract says.
        let text = unsafe { copy(long.as_ptr().cast()) }.unwrap();
        assert_eq!(text.len(), 2047);
        // SAFETY: NUL-terminated.
        let text = unsafe { copy(c"a\x1b\xff".as_ptr()) }.unwrap();
        assert_eq!(text, "a\u{1b}\u{FFFD}");
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { copy(std::ptr::null()) }, None);
    }
}
