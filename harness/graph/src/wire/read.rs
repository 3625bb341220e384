//! Reading a graph.

use super::error::{Element, Place, WireError};
use super::generation::{Generation, detect};
use super::layout::*;
use super::raw::RawTable;
use super::record::ReadError;
use super::verify::{Current, GraphTable, Nov2025, verify};
use super::{record, tensor_value};
use crate::enums::DataType;
use crate::model::{DEFAULT_ALIGNMENT, Graph, Node, Tensor};
use crate::schema::Attributes;
use dnn_assay_abi::ApiVersion;

/// Reads a serialized `Graph` of either generation, and says which it was.
///
/// # Errors
/// Those of [`detect`] and of [`read_graph_as`].
pub fn read_graph(bytes: &[u8]) -> Result<(Graph, Generation), WireError> {
    let generation = detect(bytes)?;
    Ok((read_graph_as(bytes, generation)?, generation))
}

/// Reads a serialized `Graph` of a known generation. Fields newer than the generation are
/// ignored, as every FlatBuffers reader ignores them.
///
/// # Errors
/// [`WireError::Malformed`] if the verifier refuses the bytes; [`WireError::UnknownEnum`],
/// [`WireError::UnknownTag`] or [`WireError::Missing`] if a value means nothing in the
/// generation.
pub fn read_graph_as(bytes: &[u8], generation: Generation) -> Result<Graph, WireError> {
    match generation {
        Generation::Nov2025 => verify::<GraphTable<Nov2025>>(bytes, "Graph")?,
        Generation::Current => verify::<GraphTable<Current>>(bytes, "Graph")?,
    }
    RawTable::root(bytes)
        .map_err(ReadError::from)
        .and_then(|root| graph(root, generation))
        .map_err(|error| error.of("Graph", bytes))
}

fn graph(table: RawTable, generation: Generation) -> Result<Graph, ReadError> {
    let place = |field| Place {
        element: Element::Root,
        table: "Graph",
        field,
    };
    let tensors = table
        .tables(GRAPH_TENSORS)?
        .enumerate()
        .map(|(index, tensor)| read_tensor(tensor?, Element::Tensor(index), generation))
        .collect::<Result<_, _>>()?;
    let nodes = table
        .tables(GRAPH_NODES)?
        .enumerate()
        .map(|(index, node)| read_node(node?, Element::Node(index), generation))
        .collect::<Result<_, _>>()?;
    let mut graph = Graph {
        name: table.text(GRAPH_NAME)?,
        compute_type: data_type(
            table,
            GRAPH_COMPUTE_TYPE,
            place("compute_data_type"),
            generation,
        )?,
        intermediate_type: data_type(
            table,
            GRAPH_INTERMEDIATE_TYPE,
            place("intermediate_data_type"),
            generation,
        )?,
        io_type: data_type(table, GRAPH_IO_TYPE, place("io_data_type"), generation)?,
        tensors,
        nodes,
        ..Graph::default()
    };
    if generation == Generation::Current {
        graph.preferred_engine_id = table.i64(GRAPH_PREFERRED_ENGINE)?;
        graph.override_shapes = table.bool(GRAPH_OVERRIDE_SHAPES)?.unwrap_or(false);
        graph.min_engine_api = table.inline(GRAPH_MIN_ENGINE_API)?.map(api_version);
        graph.id = table.inline(GRAPH_ID)?;
    }
    Ok(graph)
}

fn api_version(bytes: [u8; 12]) -> ApiVersion {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
    ApiVersion::new(
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
        u32::from_le_bytes([i, j, k, l]),
    )
}

/// Reads a verified `TensorAttributes`.
pub(super) fn read_tensor(
    table: RawTable,
    element: Element,
    generation: Generation,
) -> Result<Tensor, ReadError> {
    let place = |field| Place {
        element,
        table: "TensorAttributes",
        field,
    };
    let mut tensor = Tensor {
        uid: table.i64(TENSOR_UID)?.unwrap_or(0),
        name: table.text(TENSOR_NAME)?,
        data_type: data_type(table, TENSOR_DATA_TYPE, place("data_type"), generation)?,
        strides: table.i64s(TENSOR_STRIDES)?,
        dims: table.i64s(TENSOR_DIMS)?,
        is_virtual: table.bool(TENSOR_VIRTUAL)?.unwrap_or(false),
        value: tensor_value::read(table, place("value"), generation)?,
        ..Tensor::default()
    };
    if generation == Generation::Current {
        tensor.runtime_pass_by_value = table.bool(TENSOR_RUNTIME_PASS_BY_VALUE)?.unwrap_or(false);
        tensor.ragged_offset_uid = table.i64(TENSOR_RAGGED_OFFSET)?;
        tensor.alignment = table.i64(TENSOR_ALIGNMENT)?.unwrap_or(DEFAULT_ALIGNMENT);
        tensor.ragged_offset_multiplier = table.i64(TENSOR_RAGGED_MULTIPLIER)?.unwrap_or(1);
    }
    Ok(tensor)
}

fn read_node(table: RawTable, element: Element, generation: Generation) -> Result<Node, ReadError> {
    let place = |field| Place {
        element,
        table: "Node",
        field,
    };
    let (compute_type, tag_id, attributes_id) = generation.node_ids();
    let tag = table.u8(tag_id)?.unwrap_or(0);
    let missing = || WireError::Missing {
        at: place("attributes"),
    };
    if tag == 0 {
        return Err(missing().into());
    }
    let kind = Attributes::from_tag(tag).filter(|_| tag <= generation.highest_node_tag());
    let mut attributes = kind.ok_or_else(|| WireError::UnknownTag {
        at: place("attributes"),
        union: "NodeAttributes",
        seen: tag,
        highest: generation.highest_node_tag(),
        generation,
    })?;
    let fields = table.table(attributes_id)?.ok_or_else(missing)?;
    record::read(fields, attributes.record_mut(), element, generation)?;
    Ok(Node {
        name: table.text(NODE_NAME)?,
        compute_type: match compute_type {
            Some(id) => data_type(table, id, place("compute_data_type"), generation)?,
            None => DataType::Unset,
        },
        attributes,
    })
}

fn data_type(
    table: RawTable,
    id: u16,
    at: Place,
    generation: Generation,
) -> Result<DataType, ReadError> {
    let seen = table.i8(id)?.unwrap_or(0);
    let highest = generation.highest_data_type();
    DataType::from_number(seen)
        .filter(|_| seen <= highest)
        .ok_or(ReadError::Content(WireError::UnknownEnum {
            at,
            enum_name: "DataType",
            seen,
            highest,
            generation,
        }))
}

#[cfg(test)]
mod tests {
    use super::super::verify::TensorTable;
    use super::*;
    use crate::tensor_value::TensorValue;

    /// A vector of `fixtures/wire` whose root is a `TensorAttributes`, which no plugin ever sees
    /// as a root.
    fn golden_tensor() -> Vec<u8> {
        let text = include_str!("../../../../fixtures/wire/tensor_with_float32_value.hex");
        let digits: String = text.split_whitespace().collect();
        (0..digits.len() / 2)
            .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("hexadecimal"))
            .collect()
    }

    fn read(bytes: &[u8], generation: Generation) -> Result<Tensor, WireError> {
        match generation {
            Generation::Nov2025 => verify::<TensorTable<Nov2025>>(bytes, "TensorAttributes")?,
            Generation::Current => verify::<TensorTable<Current>>(bytes, "TensorAttributes")?,
        }
        RawTable::root(bytes)
            .map_err(ReadError::from)
            .and_then(|table| read_tensor(table, Element::Root, generation))
            .map_err(|error| error.of("TensorAttributes", bytes))
    }

    #[test]
    fn a_scalar_in_a_union_of_bare_structs() {
        let expected = Tensor {
            value: Some(TensorValue::Float32(1.5)),
            ..Tensor::packed(7, "k", DataType::Float, &[1])
        };
        for &generation in Generation::ALL {
            assert_eq!(read(&golden_tensor(), generation).as_ref(), Ok(&expected));
        }
    }

    #[test]
    fn truncated_scalars_are_malformed() {
        let bytes = golden_tensor();
        for end in 0..bytes.len() {
            let result = read(&bytes[..end], Generation::Current);
            assert!(matches!(result, Err(WireError::Malformed { .. })), "{end}");
        }
    }
}
