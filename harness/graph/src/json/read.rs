//! Reading a graph.

use super::cursor::Cursor;
use super::error::JsonError;
use super::node;
use super::style::{API_VERSION_KEYS, GRAPH_KEYS, TENSOR_KEYS, VALUE_TYPES};
use crate::enums::DataType;
use crate::model::{DEFAULT_ALIGNMENT, Graph, Tensor};
use crate::tensor_value::TensorValue;
use dnn_assay_abi::ApiVersion;
use serde_json::Value;

/// Reads a bundle's graph.
///
/// # Errors
/// A [`JsonError`] that names the place, what was expected there and what was seen.
pub fn from_str(text: &str) -> Result<Graph, JsonError> {
    let value: Value = serde_json::from_str(text).map_err(|error| JsonError::Syntax {
        line: error.line(),
        column: error.column(),
        message: strip_position(&error.to_string()),
    })?;
    graph(&Cursor::root(&value))
}

/// The parser's message without the position, which the error has already.
fn strip_position(message: &str) -> String {
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message.to_owned(),
    }
}

fn graph(root: &Cursor) -> Result<Graph, JsonError> {
    root.check_keys(&GRAPH_KEYS)?;
    let tensors = root.require("tensors")?.items()?;
    let nodes = root.require("nodes")?.items()?;
    Ok(Graph {
        name: text(root, "name")?,
        compute_type: graph_type(root, "compute_data_type", "compute_type")?,
        intermediate_type: graph_type(root, "intermediate_data_type", "intermediate_type")?,
        io_type: graph_type(root, "io_data_type", "io_type")?,
        tensors: tensors.iter().map(tensor).collect::<Result<_, _>>()?,
        nodes: nodes.iter().map(node::read).collect::<Result<_, _>>()?,
        preferred_engine_id: integer(root, "preferred_engine_id")?,
        override_shapes: flag(root, "is_override_shape_enabled")?,
        min_engine_api: match root.get("min_required_engine_api_version")? {
            Some(value) => Some(api_version(&value)?),
            None => None,
        },
        id: match root.get("id")? {
            Some(value) => Some(uuid(&value)?),
            None => None,
        },
    })
}

/// A type under its key, or under the key that it had in 2025-11.
fn graph_type(root: &Cursor, key: &str, older: &str) -> Result<DataType, JsonError> {
    let value = match root.get(key)? {
        Some(value) => Some(value),
        None => root.get(older)?,
    };
    let mut data_type = DataType::Unset;
    if let Some(value) = value {
        value.enumeration(&mut data_type)?;
    }
    Ok(data_type)
}

fn text(object: &Cursor, key: &str) -> Result<String, JsonError> {
    match object.get(key)? {
        Some(value) => Ok(value.text()?.to_owned()),
        None => Ok(String::new()),
    }
}

fn integer(object: &Cursor, key: &str) -> Result<Option<i64>, JsonError> {
    object.get(key)?.map(|value| value.i64()).transpose()
}

fn flag(object: &Cursor, key: &str) -> Result<bool, JsonError> {
    Ok(object
        .get(key)?
        .map(|value| value.bool())
        .transpose()?
        .unwrap_or(false))
}

fn api_version(value: &Cursor) -> Result<ApiVersion, JsonError> {
    value.check_keys(&API_VERSION_KEYS)?;
    let [major, minor, patch] =
        API_VERSION_KEYS.map(|key| value.require(key).and_then(|number| number.u32()));
    Ok(ApiVersion::new(major?, minor?, patch?))
}

/// A canonical UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
fn uuid(value: &Cursor) -> Result<[u8; 16], JsonError> {
    let wrong = || value.wrong("a UUID such as \"01234567-89ab-cdef-0123-456789abcdef\"");
    let text = value.text()?;
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    let digits = text.replace('-', "");
    if groups != [8, 4, 4, 4, 12] || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let number = u128::from_str_radix(&digits, 16).map_err(|_| wrong())?;
    Ok(number.to_be_bytes())
}

fn tensor(object: &Cursor) -> Result<Tensor, JsonError> {
    object.check_keys(&TENSOR_KEYS)?;
    let mut data_type = DataType::Unset;
    object.require("data_type")?.enumeration(&mut data_type)?;
    Ok(Tensor {
        uid: object.require("uid")?.i64()?,
        name: text(object, "name")?,
        data_type,
        strides: object.require("strides")?.i64s()?,
        dims: object.require("dims")?.i64s()?,
        is_virtual: flag(object, "virtual")?,
        value: value(object, data_type)?,
        runtime_pass_by_value: flag(object, "is_runtime_pass_by_value")?,
        ragged_offset_uid: integer(object, "ragged_offset_tensor_uid")?,
        alignment: integer(object, "alignment")?.unwrap_or(DEFAULT_ALIGNMENT),
        ragged_offset_multiplier: integer(object, "ragged_offset_multiplier")?.unwrap_or(1),
    })
}

/// The scalar of a tensor; its kind is `value_type`, or else follows from the tensor's type.
fn value(object: &Cursor, data_type: DataType) -> Result<Option<TensorValue>, JsonError> {
    let tag = match object.get("value_type")? {
        Some(name) => value_tag(&name)?,
        None if object.get("value")?.is_none() => 0,
        None => match data_type {
            DataType::Float => 1,
            DataType::Half => 2,
            DataType::Bfloat16 => 3,
            DataType::Int32 => 5,
            DataType::Double => 6,
            DataType::Int64 => 7,
            _ => return Err(object.missing("value_type")?),
        },
    };
    if tag == 0 {
        return Ok(None);
    }
    let value = object.require("value")?;
    Ok(Some(match tag {
        1 => TensorValue::Float32(value.f32()?),
        2 => TensorValue::Float16(value.f32()?),
        3 => TensorValue::Bfloat16(value.f32()?),
        4 => TensorValue::Float8(value.u8()?),
        5 => TensorValue::Int32(value.i32()?),
        6 => TensorValue::Float64(value.f64()?),
        7 => TensorValue::Int64(value.i64()?),
        _ => TensorValue::Bool(value.bool()?),
    }))
}

/// The tag of a member's name; 0 for `NONE`.
fn value_tag(value: &Cursor) -> Result<u8, JsonError> {
    let name = value.text()?;
    if name == "NONE" {
        return Ok(0);
    }
    VALUE_TYPES
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(tag, _)| *tag)
        .ok_or_else(|| value.unknown_name("value type", &VALUE_TYPES.map(|(_, name)| name)))
}
