//! Bounds-checked reading of FlatBuffers tables: no unsafe code, no panic, no copy.
//!
//! [`super::verify`] has looked at a buffer before its tables are read through this module, so
//! the errors here are a second line; [`super::detect`] alone reads unverified bytes.

use super::layout::slot;
use flatbuffers::InvalidFlatbuffer;
use std::ops::Range;

type Result<T> = std::result::Result<T, InvalidFlatbuffer>;

/// A table in a buffer.
#[derive(Clone, Copy)]
pub(super) struct RawTable<'b> {
    bytes: &'b [u8],
    position: usize,
    vtable: usize,
}

impl<'b> RawTable<'b> {
    /// The root table.
    pub(super) fn root(bytes: &'b [u8]) -> Result<Self> {
        Self::at(bytes, follow(bytes, 0)?)
    }

    /// The table at a position.
    fn at(bytes: &'b [u8], position: usize) -> Result<Self> {
        let back = i64::from(i32::from_le_bytes(array(bytes, position)?));
        let vtable = i64::try_from(position).map_or(-1, |position| position - back);
        let vtable = usize::try_from(vtable).map_err(|_| outside(position, position))?;
        Ok(Self {
            bytes,
            position,
            vtable,
        })
    }

    /// Bytes of the table's vtable, its own two sizes included.
    pub(super) fn vtable_size(self) -> Result<u16> {
        Ok(u16::from_le_bytes(array(self.bytes, self.vtable)?))
    }

    /// Position of a field's data; `None` if the field is absent.
    pub(super) fn field(self, id: u16) -> Result<Option<usize>> {
        let entry = usize::from(slot(id));
        if entry + 2 > usize::from(self.vtable_size()?) {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(array(self.bytes, self.vtable.saturating_add(entry))?);
        Ok((offset != 0).then(|| self.position.saturating_add(usize::from(offset))))
    }

    /// The bytes of an inline field.
    pub(super) fn inline<const N: usize>(self, id: u16) -> Result<Option<[u8; N]>> {
        let Some(position) = self.field(id)? else {
            return Ok(None);
        };
        array(self.bytes, position).map(Some)
    }

    pub(super) fn u8(self, id: u16) -> Result<Option<u8>> {
        Ok(self.inline(id)?.map(u8::from_le_bytes))
    }

    pub(super) fn i8(self, id: u16) -> Result<Option<i8>> {
        Ok(self.inline(id)?.map(i8::from_le_bytes))
    }

    pub(super) fn bool(self, id: u16) -> Result<Option<bool>> {
        Ok(self.u8(id)?.map(|byte| byte != 0))
    }

    pub(super) fn i32(self, id: u16) -> Result<Option<i32>> {
        Ok(self.inline(id)?.map(i32::from_le_bytes))
    }

    pub(super) fn i64(self, id: u16) -> Result<Option<i64>> {
        Ok(self.inline(id)?.map(i64::from_le_bytes))
    }

    pub(super) fn f32(self, id: u16) -> Result<Option<f32>> {
        Ok(self.inline(id)?.map(f32::from_le_bytes))
    }

    pub(super) fn f64(self, id: u16) -> Result<Option<f64>> {
        Ok(self.inline(id)?.map(f64::from_le_bytes))
    }

    /// A string; empty if absent.
    pub(super) fn text(self, id: u16) -> Result<String> {
        match self.field(id)? {
            Some(position) => text_at(self.bytes, follow(self.bytes, position)?),
            None => Ok(String::new()),
        }
    }

    /// A vector of strings; empty if absent.
    pub(super) fn texts(self, id: u16) -> Result<Vec<String>> {
        self.offsets(id)?
            .map(|position| text_at(self.bytes, position?))
            .collect()
    }

    /// A vector of bytes; empty if absent.
    pub(super) fn bytes(self, id: u16) -> Result<&'b [u8]> {
        self.elements(id, 1)
    }

    /// A vector of i32; empty if absent.
    pub(super) fn i32s(self, id: u16) -> Result<Vec<i32>> {
        Ok(chunks(self.elements(id, 4)?)
            .map(i32::from_le_bytes)
            .collect())
    }

    /// A vector of i64; empty if absent.
    pub(super) fn i64s(self, id: u16) -> Result<Vec<i64>> {
        Ok(chunks(self.elements(id, 8)?)
            .map(i64::from_le_bytes)
            .collect())
    }

    /// A table, or the table of a union; `None` if absent.
    pub(super) fn table(self, id: u16) -> Result<Option<Self>> {
        let Some(position) = self.field(id)? else {
            return Ok(None);
        };
        Self::at(self.bytes, follow(self.bytes, position)?).map(Some)
    }

    /// A vector of tables; empty if absent.
    pub(super) fn tables(self, id: u16) -> Result<impl ExactSizeIterator<Item = Result<Self>>> {
        let bytes = self.bytes;
        Ok(self
            .offsets(id)?
            .map(move |position| Self::at(bytes, position?)))
    }

    /// The bytes that an offset field points at: a bare struct of a union.
    pub(super) fn indirect<const N: usize>(self, id: u16) -> Result<Option<[u8; N]>> {
        let Some(position) = self.field(id)? else {
            return Ok(None);
        };
        array(self.bytes, follow(self.bytes, position)?).map(Some)
    }

    /// Positions that a vector of offsets points at.
    fn offsets(self, id: u16) -> Result<impl ExactSizeIterator<Item = Result<usize>>> {
        let bytes = self.bytes;
        let range = match self.field(id)? {
            Some(position) => elements_at(bytes, follow(bytes, position)?, 4)?,
            None => 0..0,
        };
        Ok(range
            .step_by(4)
            .map(move |position| follow(bytes, position)))
    }

    /// The bytes of a vector whose elements have `size` bytes; empty if absent.
    fn elements(self, id: u16, size: usize) -> Result<&'b [u8]> {
        let Some(position) = self.field(id)? else {
            return Ok(&[]);
        };
        Ok(&self.bytes[elements_at(self.bytes, follow(self.bytes, position)?, size)?])
    }
}

fn text_at(bytes: &[u8], position: usize) -> Result<String> {
    let range = elements_at(bytes, position, 1)?;
    match std::str::from_utf8(&bytes[range.clone()]) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(InvalidFlatbuffer::Utf8Error {
            error,
            range,
            error_trace: Default::default(),
        }),
    }
}

/// Where the elements of the vector at `position` lie: a range inside `bytes`.
fn elements_at(bytes: &[u8], position: usize, size: usize) -> Result<Range<usize>> {
    let count = u32::from_le_bytes(array(bytes, position)?);
    let start = position.saturating_add(4);
    let end = start.saturating_add((count as usize).saturating_mul(size));
    if end > bytes.len() {
        return Err(outside(start, end));
    }
    Ok(start..end)
}

/// The position that the offset at `position` points at.
fn follow(bytes: &[u8], position: usize) -> Result<usize> {
    let offset = u32::from_le_bytes(array(bytes, position)?);
    Ok(position.saturating_add(offset as usize))
}

fn array<const N: usize>(bytes: &[u8], position: usize) -> Result<[u8; N]> {
    bytes
        .get(position..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .ok_or_else(|| outside(position, position.saturating_add(N)))
}

fn chunks<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.as_chunks().0.iter().copied()
}

fn outside(start: usize, end: usize) -> InvalidFlatbuffer {
    InvalidFlatbuffer::RangeOutOfBounds {
        range: start..end,
        error_trace: Default::default(),
    }
}
