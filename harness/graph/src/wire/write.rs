//! Writing a graph.

use super::error::{Element, Place, WireError};
use super::generation::Generation;
use super::layout::*;
use super::{record, tensor_value};
use crate::enums::DataType;
use crate::model::{DEFAULT_ALIGNMENT, Graph, Node, Tensor};
use crate::schema::{FieldRef, Record};
use dnn_assay_abi::ApiVersion;
use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, WIPOffset};

type Table = WIPOffset<TableFinishedWIPOffset>;

/// Serializes a graph. Names and vectors are written even when empty, as the real host does.
///
/// The 2025-11 wire has no compute type per node: one that is unset, or equal to the graph's,
/// is dropped, because there the graph's holds for every node.
///
/// The bytes must start at a multiple of 8 in memory when a plugin reads them in place, as
/// every block of the system allocator does.
///
/// # Errors
/// [`WireError::Inexpressible`] for the first thing that the generation has no form for;
/// [`WireError::TooLarge`] beyond what [`super::read_graph`] accepts.
pub fn write_graph(graph: &Graph, generation: Generation) -> Result<Vec<u8>, WireError> {
    if generation == Generation::Nov2025 {
        check_expressible(graph)?;
    }
    check_size(graph)?;
    let mut builder = FlatBufferBuilder::new();
    let tensors: Vec<Table> = graph
        .tensors
        .iter()
        .map(|tensor| write_tensor(&mut builder, tensor))
        .collect();
    let nodes: Vec<Table> = graph
        .nodes
        .iter()
        .map(|node| write_node(&mut builder, node, generation))
        .collect();
    let name = builder.create_string(&graph.name);
    let tensors = builder.create_vector(&tensors);
    let nodes = builder.create_vector(&nodes);
    let table = builder.start_table();
    if let Some(engine) = graph.preferred_engine_id {
        builder.push_slot_always(slot(GRAPH_PREFERRED_ENGINE), engine);
    }
    builder.push_slot_always(slot(GRAPH_NAME), name);
    builder.push_slot_always(slot(GRAPH_TENSORS), tensors);
    builder.push_slot_always(slot(GRAPH_NODES), nodes);
    if let Some(version) = graph.min_engine_api {
        write_api_version(&mut builder, version);
    }
    push_data_type(&mut builder, GRAPH_COMPUTE_TYPE, graph.compute_type);
    push_data_type(
        &mut builder,
        GRAPH_INTERMEDIATE_TYPE,
        graph.intermediate_type,
    );
    push_data_type(&mut builder, GRAPH_IO_TYPE, graph.io_type);
    builder.push_slot(slot(GRAPH_OVERRIDE_SHAPES), graph.override_shapes, false);
    if let Some(id) = graph.id {
        write_uuid(&mut builder, id);
    }
    let root = builder.end_table(table);
    builder.finish_minimal(root);
    Ok(builder.finished_data().to_vec())
}

fn push_data_type(builder: &mut FlatBufferBuilder, id: u16, value: DataType) {
    builder.push_slot(slot(id), value.number(), 0);
}

/// Writes the struct `EngineApiVersion` inside the open table: a buffer grows downwards, so the
/// last number goes first and the slot names the first.
fn write_api_version(builder: &mut FlatBufferBuilder, version: ApiVersion) {
    builder.push(version.patch);
    builder.push(version.minor);
    builder.push_slot_always(slot(GRAPH_MIN_ENGINE_API), version.major);
}

/// Writes the struct `Uuid` inside the open table, last byte first.
fn write_uuid(builder: &mut FlatBufferBuilder, id: [u8; 16]) {
    let [first, rest @ ..] = id;
    for byte in rest.into_iter().rev() {
        builder.push(byte);
    }
    builder.push_slot_always(slot(GRAPH_ID), first);
}

/// Writes a `TensorAttributes`; what is at its default takes no room.
fn write_tensor(builder: &mut FlatBufferBuilder, tensor: &Tensor) -> Table {
    let name = builder.create_string(&tensor.name);
    let strides = builder.create_vector(&tensor.strides);
    let dims = builder.create_vector(&tensor.dims);
    let value = tensor
        .value
        .map(|value| (value.tag(), tensor_value::write(builder, value)));
    let table = builder.start_table();
    builder.push_slot(slot(TENSOR_UID), tensor.uid, 0);
    builder.push_slot(slot(TENSOR_ALIGNMENT), tensor.alignment, DEFAULT_ALIGNMENT);
    builder.push_slot(
        slot(TENSOR_RAGGED_MULTIPLIER),
        tensor.ragged_offset_multiplier,
        1,
    );
    if let Some(uid) = tensor.ragged_offset_uid {
        builder.push_slot_always(slot(TENSOR_RAGGED_OFFSET), uid);
    }
    builder.push_slot_always(slot(TENSOR_NAME), name);
    builder.push_slot_always(slot(TENSOR_STRIDES), strides);
    builder.push_slot_always(slot(TENSOR_DIMS), dims);
    if let Some((tag, value)) = value {
        builder.push_slot_always(slot(TENSOR_VALUE), value);
        builder.push_slot_always(slot(TENSOR_VALUE_TYPE), tag);
    }
    push_data_type(builder, TENSOR_DATA_TYPE, tensor.data_type);
    builder.push_slot(slot(TENSOR_VIRTUAL), tensor.is_virtual, false);
    builder.push_slot(
        slot(TENSOR_RUNTIME_PASS_BY_VALUE),
        tensor.runtime_pass_by_value,
        false,
    );
    builder.end_table(table)
}

fn write_node(builder: &mut FlatBufferBuilder, node: &Node, generation: Generation) -> Table {
    let (compute_type, tag_id, attributes_id) = generation.node_ids();
    let name = builder.create_string(&node.name);
    let attributes = record::write(builder, node.attributes.record());
    let table = builder.start_table();
    builder.push_slot_always(slot(NODE_NAME), name);
    builder.push_slot_always(slot(attributes_id), attributes);
    builder.push_slot_always(slot(tag_id), node.attributes.tag());
    if let Some(id) = compute_type {
        push_data_type(builder, id, node.compute_type);
    }
    builder.end_table(table)
}

/// Refuses what the 2025-11 wire has no form for.
fn check_expressible(graph: &Graph) -> Result<(), WireError> {
    let root = Check::new(Element::Root, "Graph");
    root.data_type("compute_data_type", graph.compute_type)?;
    root.data_type("intermediate_data_type", graph.intermediate_type)?;
    root.data_type("io_data_type", graph.io_type)?;
    root.absent(
        "preferred_engine_id",
        graph.preferred_engine_id.is_some(),
        "a preferred engine",
    )?;
    root.absent(
        "is_override_shape_enabled",
        graph.override_shapes,
        "shape overrides",
    )?;
    root.absent(
        "min_required_engine_api_version",
        graph.min_engine_api.is_some(),
        "a minimum engine API",
    )?;
    root.absent("id", graph.id.is_some(), "a graph identity")?;
    for (index, tensor) in graph.tensors.iter().enumerate() {
        check_tensor(
            tensor,
            &Check::new(Element::Tensor(index), "TensorAttributes"),
        )?;
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        check_node(node, graph, &Check::new(Element::Node(index), "Node"))?;
    }
    Ok(())
}

fn check_tensor(tensor: &Tensor, check: &Check) -> Result<(), WireError> {
    check.data_type("data_type", tensor.data_type)?;
    if let Some(value) = tensor.value {
        let known = value.tag() <= Generation::Nov2025.highest_value_tag();
        check.absent("value", !known, format_args!("the scalar {value:?}"))?;
    }
    check.absent(
        "is_runtime_pass_by_value",
        tensor.runtime_pass_by_value,
        "a scalar given at run time",
    )?;
    check.absent(
        "ragged_offset_tensor_uid",
        tensor.ragged_offset_uid.is_some(),
        "a ragged tensor",
    )?;
    check.absent(
        "alignment",
        tensor.alignment != DEFAULT_ALIGNMENT,
        format_args!("an alignment of {} bytes", tensor.alignment),
    )?;
    check.absent(
        "ragged_offset_multiplier",
        tensor.ragged_offset_multiplier != 1,
        "a ragged offset multiplier",
    )
}

fn check_node(node: &Node, graph: &Graph, check: &Check) -> Result<(), WireError> {
    let attributes = &node.attributes;
    check.absent(
        "attributes",
        attributes.tag() > Generation::Nov2025.highest_node_tag(),
        format_args!("a {} node", attributes.kind()),
    )?;
    check.absent(
        "compute_data_type",
        node.compute_type != DataType::Unset && node.compute_type != graph.compute_type,
        format_args!(
            "a node that computes in {} in a graph that computes in {}",
            node.compute_type, graph.compute_type
        ),
    )
}

/// Refusals at one table, for the 2025-11 wire.
struct Check {
    element: Element,
    table: &'static str,
}

impl Check {
    fn new(element: Element, table: &'static str) -> Self {
        Self { element, table }
    }

    fn absent(
        &self,
        field: &'static str,
        present: bool,
        what: impl ToString,
    ) -> Result<(), WireError> {
        if !present {
            return Ok(());
        }
        Err(WireError::Inexpressible {
            at: Place {
                element: self.element,
                table: self.table,
                field,
            },
            what: what.to_string(),
            generation: Generation::Nov2025,
        })
    }

    fn data_type(&self, field: &'static str, value: DataType) -> Result<(), WireError> {
        let known = value.number() <= Generation::Nov2025.highest_data_type();
        self.absent(field, !known, format_args!("the data type {value}"))
    }
}

/// Bytes that the scalars of one table take at most, the widest node included.
const TABLE_BYTES: usize = 512;

/// Refuses a graph that no reader would accept, before the builder fails on it.
fn check_size(graph: &Graph) -> Result<(), WireError> {
    let tensors = graph.tensors.iter().map(|tensor| {
        TABLE_BYTES + tensor.name.len() + 8 * (tensor.dims.len() + tensor.strides.len())
    });
    let nodes = graph
        .nodes
        .iter()
        .map(|node| 2 * TABLE_BYTES + node.name.len() + record_bytes(node.attributes.record()));
    let size = TABLE_BYTES + graph.name.len() + tensors.sum::<usize>() + nodes.sum::<usize>();
    let tables = 1 + graph.tensors.len() + 2 * graph.nodes.len();
    if size > MAX_BUFFER || tables > MAX_TABLES {
        return Err(WireError::TooLarge {
            root: "Graph",
            size,
            limit: MAX_BUFFER.min(MAX_TABLES * TABLE_BYTES),
        });
    }
    Ok(())
}

fn record_bytes(record: &dyn Record) -> usize {
    let mut bytes = 0;
    record.visit(&mut |_, field| {
        bytes += match field {
            FieldRef::Int64s(values) => 8 * values.len(),
            FieldRef::Int32s(values) => 4 * values.len(),
            FieldRef::Bytes(values) => values.len(),
            FieldRef::Text(text) => text.len(),
            _ => 0,
        };
    });
    bytes
}
