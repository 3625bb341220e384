//! The ELF note `.note.dnn_assay`: says where a plugin's buffers must lie, without loading it.

/// Owner of the note.
const OWNER: [u8; 12] = *b"DNN_ASSAY\0\0\0";

/// Bytes of the owner with its NUL, without padding.
const OWNER_SIZE: u32 = 10;

/// Type of the note: a text like `memory=host` or `memory=hip,cuda`.
pub const MEMORY_NOTE_TYPE: u32 = 1;

/// An ELF note as it lies in the file: header, owner, and a text padded to four bytes.
#[repr(C, align(4))]
pub struct Note<const N: usize> {
    owner_size: u32,
    text_size: u32,
    kind: u32,
    owner: [u8; 12],
    text: [u8; N],
}

/// `size` rounded up to four bytes.
pub const fn padded(size: usize) -> usize {
    size.next_multiple_of(4)
}

impl<const N: usize> Note<N> {
    /// The note that says `text`; `N` is [`padded`] of its length.
    pub const fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        assert!(N == padded(bytes.len()), "N is the padded length");
        let mut padded_text = [0; N];
        let mut i = 0;
        while i < bytes.len() {
            padded_text[i] = bytes[i];
            i += 1;
        }
        Self {
            owner_size: OWNER_SIZE,
            text_size: bytes.len() as u32,
            kind: MEMORY_NOTE_TYPE,
            owner: OWNER,
            text: padded_text,
        }
    }
}
