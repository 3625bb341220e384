//! Writing a graph.

use super::node::{self, float32, float64, spell};
use super::style::{API_VERSION_KEYS, Spelling, value_type};
use crate::enums::DataType;
use crate::model::{Graph, Tensor};
use crate::tensor_value::TensorValue;
use serde_json::{Map, Value};

/// Writes a graph as a bundle holds it, indented, with a line break at the end.
pub fn to_string(graph: &Graph) -> String {
    format!("{:#}\n", graph_value(graph))
}

fn graph_value(graph: &Graph) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("name", graph.name.as_str().into());
    put("compute_data_type", data_type(graph.compute_type));
    put("intermediate_data_type", data_type(graph.intermediate_type));
    put("io_data_type", data_type(graph.io_type));
    put("is_override_shape_enabled", graph.override_shapes.into());
    if let Some(engine) = graph.preferred_engine_id {
        put("preferred_engine_id", engine.into());
    }
    if let Some(version) = graph.min_engine_api {
        let numbers = [version.major, version.minor, version.patch];
        let parts = API_VERSION_KEYS.iter().zip(numbers);
        let parts = parts.map(|(key, number)| ((*key).to_owned(), number.into()));
        put(
            "min_required_engine_api_version",
            parts.collect::<Map<_, _>>().into(),
        );
    }
    if let Some(id) = graph.id {
        put("id", uuid(id).into());
    }
    put("tensors", graph.tensors.iter().map(tensor).collect());
    put("nodes", graph.nodes.iter().map(node::write).collect());
    object.into()
}

fn data_type(value: DataType) -> Value {
    spell(&value, Spelling::Lower)
}

fn uuid(id: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(id));
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32];
    groups.map(|range| &digits[range]).join("-")
}

fn tensor(tensor: &Tensor) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("uid", tensor.uid.into());
    put("name", tensor.name.as_str().into());
    put("data_type", data_type(tensor.data_type));
    put("dims", tensor.dims.as_slice().into());
    put("strides", tensor.strides.as_slice().into());
    put("virtual", tensor.is_virtual.into());
    put("alignment", tensor.alignment.into());
    put(
        "is_runtime_pass_by_value",
        tensor.runtime_pass_by_value.into(),
    );
    if let Some(uid) = tensor.ragged_offset_uid {
        put("ragged_offset_tensor_uid", uid.into());
    }
    if tensor.ragged_offset_multiplier != 1 {
        put(
            "ragged_offset_multiplier",
            tensor.ragged_offset_multiplier.into(),
        );
    }
    if let Some(value) = tensor.value {
        put("value_type", value_type(value).into());
        put("value", scalar(value));
    }
    object.into()
}

fn scalar(value: TensorValue) -> Value {
    match value {
        TensorValue::Float32(v) | TensorValue::Float16(v) | TensorValue::Bfloat16(v) => float32(v),
        TensorValue::Float8(v) => v.into(),
        TensorValue::Int32(v) => v.into(),
        TensorValue::Float64(v) => float64(v),
        TensorValue::Int64(v) => v.into(),
        TensorValue::Bool(v) => v.into(),
    }
}
