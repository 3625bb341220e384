//! The union `TensorValue`, whose members are bare structs: its slot holds an offset to the
//! struct's bytes, with no vtable. FlatBuffers' Rust generator refuses such a union.

use super::error::{Place, WireError};
use super::generation::Generation;
use super::layout::{TENSOR_VALUE, TENSOR_VALUE_TYPE};
use super::raw::RawTable;
use super::record::ReadError;
use super::verify::Verified;
use crate::tensor_value::TensorValue;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, Verifier, WIPOffset};

/// Checks the struct's bounds and alignment; unknown tags are left to the reader.
pub(super) fn verify(v: &mut Verifier, tag: u8, position: usize) -> Verified {
    match TensorValue::wire_size(tag) {
        Some(1) => v.in_buffer::<u8>(position),
        Some(4) => v.in_buffer::<u32>(position),
        Some(_) => v.in_buffer::<u64>(position),
        None => Ok(()),
    }
}

/// Reads the value of a verified tensor table, `None` if it has none.
pub(super) fn read(
    tensor: RawTable,
    at: Place,
    generation: Generation,
) -> Result<Option<TensorValue>, ReadError> {
    let tag = tensor.u8(TENSOR_VALUE_TYPE)?.unwrap_or(0);
    if tag == 0 {
        return Ok(None);
    }
    if tag > generation.highest_value_tag() {
        return Err(ReadError::Content(WireError::UnknownTag {
            at,
            union: "TensorValue",
            seen: tag,
            highest: generation.highest_value_tag(),
            generation,
        }));
    }
    let byte = |[byte]: [u8; 1]| byte;
    let value = match tag {
        1 => four(tensor)?.map(|b| TensorValue::Float32(f32::from_le_bytes(b))),
        2 => four(tensor)?.map(|b| TensorValue::Float16(f32::from_le_bytes(b))),
        3 => four(tensor)?.map(|b| TensorValue::Bfloat16(f32::from_le_bytes(b))),
        4 => one(tensor)?.map(|b| TensorValue::Float8(byte(b))),
        5 => four(tensor)?.map(|b| TensorValue::Int32(i32::from_le_bytes(b))),
        6 => eight(tensor)?.map(|b| TensorValue::Float64(f64::from_le_bytes(b))),
        7 => eight(tensor)?.map(|b| TensorValue::Int64(i64::from_le_bytes(b))),
        _ => one(tensor)?.map(|b| TensorValue::Bool(byte(b) != 0)),
    };
    match value {
        Some(value) => Ok(Some(value)),
        None => Err(ReadError::Content(WireError::Missing { at })),
    }
}

fn one(tensor: RawTable) -> Verified<Option<[u8; 1]>> {
    tensor.indirect(TENSOR_VALUE)
}

fn four(tensor: RawTable) -> Verified<Option<[u8; 4]>> {
    tensor.indirect(TENSOR_VALUE)
}

fn eight(tensor: RawTable) -> Verified<Option<[u8; 8]>> {
    tensor.indirect(TENSOR_VALUE)
}

/// Writes the struct; the caller stores the offset and the tag.
pub(super) fn write(
    builder: &mut FlatBufferBuilder,
    value: TensorValue,
) -> WIPOffset<UnionWIPOffset> {
    match value {
        TensorValue::Float32(v) | TensorValue::Float16(v) | TensorValue::Bfloat16(v) => {
            builder.push(v).as_union_value()
        }
        TensorValue::Float8(v) => builder.push(v).as_union_value(),
        TensorValue::Int32(v) => builder.push(v).as_union_value(),
        TensorValue::Float64(v) => builder.push(v).as_union_value(),
        TensorValue::Int64(v) => builder.push(v).as_union_value(),
        TensorValue::Bool(v) => builder.push(v).as_union_value(),
    }
}
