//! Attribute tables of nodes: one verifier, reader and writer for all kinds, driven by the
//! fields that [`crate::schema`] declares.

use super::error::{Element, Place, WireError};
use super::generation::Generation;
use super::layout::slot;
use super::raw::RawTable;
use super::verify::{Bytes, Int32s, Int64s, Text, Verified};
use crate::schema::{FieldInfo, FieldMut, FieldRef, Record};
use flatbuffers::{
    FlatBufferBuilder, InvalidFlatbuffer, TableFinishedWIPOffset, TableVerifier, UnionWIPOffset,
    Verifier, WIPOffset,
};

/// Verifies the table at `position` against the fields of `record`, whose values do not matter.
pub(super) fn verify(v: &mut Verifier, position: usize, record: &dyn Record) -> Verified {
    let mut state = Ok(v.visit_table(position)?);
    record.visit(&mut |info, field| {
        let table = std::mem::replace(&mut state, Err(InvalidFlatbuffer::DepthLimitReached));
        state = table.and_then(|table| verify_field(table, info, field));
    });
    state?.finish();
    Ok(())
}

fn verify_field<'v, 'o, 'b>(
    table: TableVerifier<'v, 'o, 'b>,
    info: FieldInfo,
    field: FieldRef,
) -> Verified<TableVerifier<'v, 'o, 'b>> {
    let (name, slot) = (info.name, info.vtable_offset());
    match field {
        FieldRef::Int64(_) | FieldRef::OptInt64(_) => table.visit_field::<i64>(name, slot, false),
        FieldRef::Int32(_) | FieldRef::OptInt32(_) => table.visit_field::<i32>(name, slot, false),
        FieldRef::OptFloat32(_) => table.visit_field::<f32>(name, slot, false),
        FieldRef::Bool(_) | FieldRef::OptBool(_) => table.visit_field::<bool>(name, slot, false),
        FieldRef::Enum(_) => table.visit_field::<i8>(name, slot, false),
        FieldRef::Int64s(_) => table.visit_field::<Int64s>(name, slot, false),
        FieldRef::Int32s(_) => table.visit_field::<Int32s>(name, slot, false),
        FieldRef::Bytes(_) => table.visit_field::<Bytes>(name, slot, false),
        FieldRef::Text(_) => table.visit_field::<Text>(name, slot, false),
    }
}

/// Reads the fields of a verified table into `record`, which holds the schema's defaults.
pub(super) fn read(
    table: RawTable,
    record: &mut dyn Record,
    element: Element,
    generation: Generation,
) -> Result<(), ReadError> {
    let table_name = record.table_name();
    let mut result = Ok(());
    record.visit_mut(&mut |info, field| {
        if result.is_ok() {
            let at = Place {
                element,
                table: table_name,
                field: info.name,
            };
            result = read_field(table, info.id, field, at, generation);
        }
    });
    result
}

fn read_field(
    table: RawTable,
    id: u16,
    field: FieldMut,
    at: Place,
    generation: Generation,
) -> Result<(), ReadError> {
    match field {
        FieldMut::Int64(value) => *value = table.i64(id)?.unwrap_or_default(),
        FieldMut::OptInt64(value) => *value = table.i64(id)?,
        FieldMut::Int32(value) => *value = table.i32(id)?.unwrap_or_default(),
        FieldMut::OptInt32(value) => *value = table.i32(id)?,
        FieldMut::OptFloat32(value) => *value = table.f32(id)?,
        FieldMut::Bool(value) => *value = table.bool(id)?.unwrap_or_default(),
        FieldMut::OptBool(value) => *value = table.bool(id)?,
        FieldMut::Int64s(value) => *value = table.i64s(id)?,
        FieldMut::Int32s(value) => *value = table.i32s(id)?,
        FieldMut::Bytes(value) => *value = table.bytes(id)?.to_vec(),
        FieldMut::Text(value) => *value = table.text(id)?,
        FieldMut::Enum(value) => {
            let seen = table.i8(id)?.unwrap_or_default();
            if !value.set_number(seen) {
                return Err(ReadError::Content(WireError::UnknownEnum {
                    at,
                    enum_name: value.enum_name(),
                    seen,
                    highest: (0..i8::MAX)
                        .take_while(|&n| value.set_number(n))
                        .last()
                        .unwrap_or(0),
                    generation,
                }));
            }
        }
    }
    Ok(())
}

/// What a reader of a table can meet: bytes that are no table, or content that means nothing.
pub(super) enum ReadError {
    Layout(InvalidFlatbuffer),
    Content(WireError),
}

impl ReadError {
    /// The error as the caller of a root's reader sees it.
    pub(super) fn of(self, root: &'static str, bytes: &[u8]) -> WireError {
        match self {
            Self::Content(error) => error,
            Self::Layout(reason) => WireError::Malformed {
                root,
                size: bytes.len(),
                reason,
            },
        }
    }
}

impl From<InvalidFlatbuffer> for ReadError {
    fn from(reason: InvalidFlatbuffer) -> Self {
        Self::Layout(reason)
    }
}

impl From<WireError> for ReadError {
    fn from(error: WireError) -> Self {
        Self::Content(error)
    }
}

/// Writes a record as a table. Vectors and strings are written even when empty, as the real
/// host does: plugins dereference them without a look.
pub(super) fn write<'b>(
    builder: &mut FlatBufferBuilder<'b>,
    record: &dyn Record,
) -> WIPOffset<TableFinishedWIPOffset> {
    let mut outside = Vec::new();
    record.visit(&mut |info, field| {
        if let Some(offset) = write_outside(builder, field) {
            outside.push((info.vtable_offset(), offset));
        }
    });
    let table = builder.start_table();
    record.visit(&mut |info, field| write_inline(builder, info.id, field));
    for (slot, offset) in outside {
        builder.push_slot_always(slot, offset);
    }
    builder.end_table(table)
}

fn write_outside(
    builder: &mut FlatBufferBuilder,
    field: FieldRef,
) -> Option<WIPOffset<UnionWIPOffset>> {
    Some(match field {
        FieldRef::Int64s(values) => builder.create_vector(values).as_union_value(),
        FieldRef::Int32s(values) => builder.create_vector(values).as_union_value(),
        FieldRef::Bytes(values) => builder.create_vector(values).as_union_value(),
        FieldRef::Text(text) => builder.create_string(text).as_union_value(),
        _ => return None,
    })
}

fn write_inline(builder: &mut FlatBufferBuilder, id: u16, field: FieldRef) {
    let slot = slot(id);
    match field {
        FieldRef::Int64(&value) => builder.push_slot(slot, value, 0),
        FieldRef::Int32(&value) => builder.push_slot(slot, value, 0),
        FieldRef::Bool(&value) => builder.push_slot(slot, value, false),
        FieldRef::Enum(value) => builder.push_slot(slot, value.number(), 0),
        FieldRef::OptInt64(&Some(value)) => builder.push_slot_always(slot, value),
        FieldRef::OptInt32(&Some(value)) => builder.push_slot_always(slot, value),
        FieldRef::OptFloat32(&Some(value)) => builder.push_slot_always(slot, value),
        FieldRef::OptBool(&Some(value)) => builder.push_slot_always(slot, value),
        _ => {}
    }
}
