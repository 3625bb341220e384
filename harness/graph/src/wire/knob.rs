//! The value of a knob: the union `KnobValue`, shared by configurations and details.

use super::error::{Place, WireError};
use super::generation::Generation;
use super::layout::slot;
use super::raw::RawTable;
use super::record::ReadError;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

/// A knob's value: the schema's union `KnobValue`.
#[derive(Clone, Debug, PartialEq)]
pub enum KnobValue {
    /// Tag 1.
    Int(i64),
    /// Tag 2.
    Float(f64),
    /// Tag 3.
    Text(String),
}

const HIGHEST_TAG: u8 = 3;

impl KnobValue {
    /// The union tag.
    pub const fn tag(&self) -> u8 {
        match self {
            Self::Int(_) => 1,
            Self::Float(_) => 2,
            Self::Text(_) => 3,
        }
    }
}

/// Reads the value behind the two slots of a union in a verified table.
pub(super) fn read(
    table: RawTable,
    tag_id: u16,
    value_id: u16,
    at: Place,
) -> Result<KnobValue, ReadError> {
    let tag = table.u8(tag_id)?.unwrap_or(0);
    if tag > HIGHEST_TAG {
        return Err(unknown_tag(at, "KnobValue", tag).into());
    }
    let value = match table.table(value_id)? {
        Some(value) if tag != 0 => value,
        _ => return Err(WireError::Missing { at }.into()),
    };
    Ok(match tag {
        1 => KnobValue::Int(value.i64(0)?.unwrap_or(0)),
        2 => KnobValue::Float(value.f64(0)?.unwrap_or(0.0)),
        _ => KnobValue::Text(value.text(0)?),
    })
}

/// The error for a tag of `KnobValue` or `KnobConstraint`, which have three members each.
pub(super) fn unknown_tag(at: Place, union: &'static str, seen: u8) -> WireError {
    WireError::UnknownTag {
        at,
        union,
        seen,
        highest: HIGHEST_TAG,
        generation: Generation::Current,
    }
}

/// Writes the member's table; the caller stores the offset and the tag.
pub(super) fn write(
    builder: &mut FlatBufferBuilder,
    value: &KnobValue,
) -> WIPOffset<UnionWIPOffset> {
    match value {
        KnobValue::Int(value) => {
            let table = builder.start_table();
            builder.push_slot(slot(0), *value, 0);
            builder.end_table(table).as_union_value()
        }
        KnobValue::Float(value) => {
            let table = builder.start_table();
            builder.push_slot_always(slot(0), *value);
            builder.end_table(table).as_union_value()
        }
        KnobValue::Text(value) => {
            let text = builder.create_string(value);
            let table = builder.start_table();
            builder.push_slot_always(slot(0), text);
            builder.end_table(table).as_union_value()
        }
    }
}
