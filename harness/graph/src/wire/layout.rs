//! Field ids of the tables around the nodes, and the limits of a buffer. The ids of the nodes'
//! attribute tables stand in [`crate::schema`].

use flatbuffers::VOffsetT;

/// Bytes that a buffer may have.
pub(super) const MAX_BUFFER: usize = 64 << 20;
/// Tables that a buffer may have, each counted as often as it is reached.
pub(super) const MAX_TABLES: usize = 1 << 17;
/// Depth of tables in tables: root, node or knob, attributes or value, with room to grow.
pub(super) const MAX_DEPTH: usize = 8;

/// Offset of a field's slot in a vtable.
pub(super) const fn slot(id: u16) -> VOffsetT {
    4 + 2 * id
}

pub(super) const GRAPH_NAME: u16 = 0;
pub(super) const GRAPH_COMPUTE_TYPE: u16 = 1;
pub(super) const GRAPH_INTERMEDIATE_TYPE: u16 = 2;
pub(super) const GRAPH_IO_TYPE: u16 = 3;
pub(super) const GRAPH_TENSORS: u16 = 4;
pub(super) const GRAPH_NODES: u16 = 5;
pub(super) const GRAPH_PREFERRED_ENGINE: u16 = 6;
pub(super) const GRAPH_OVERRIDE_SHAPES: u16 = 7;
pub(super) const GRAPH_MIN_ENGINE_API: u16 = 8;
pub(super) const GRAPH_ID: u16 = 9;

pub(super) const NODE_NAME: u16 = 0;

pub(super) const TENSOR_UID: u16 = 0;
pub(super) const TENSOR_NAME: u16 = 1;
pub(super) const TENSOR_DATA_TYPE: u16 = 2;
pub(super) const TENSOR_STRIDES: u16 = 3;
pub(super) const TENSOR_DIMS: u16 = 4;
pub(super) const TENSOR_VIRTUAL: u16 = 5;
pub(super) const TENSOR_VALUE_TYPE: u16 = 6;
pub(super) const TENSOR_VALUE: u16 = 7;
pub(super) const TENSOR_RUNTIME_PASS_BY_VALUE: u16 = 8;
pub(super) const TENSOR_RAGGED_OFFSET: u16 = 9;
pub(super) const TENSOR_ALIGNMENT: u16 = 10;
pub(super) const TENSOR_RAGGED_MULTIPLIER: u16 = 11;

pub(super) const ENGINE_ID: u16 = 0;
pub(super) const ENGINE_KNOBS: u16 = 1;
pub(super) const DETAILS_BEHAVIOR_NOTES: u16 = 2;
pub(super) const DETAILS_NAME: u16 = 3;

pub(super) const SETTING_KNOB_ID: u16 = 0;
pub(super) const SETTING_VALUE_TYPE: u16 = 1;
pub(super) const SETTING_VALUE: u16 = 2;

pub(super) const KNOB_ID: u16 = 0;
pub(super) const KNOB_DESCRIPTION: u16 = 1;
pub(super) const KNOB_DEFAULT_TYPE: u16 = 2;
pub(super) const KNOB_DEFAULT: u16 = 3;
pub(super) const KNOB_CONSTRAINT_TYPE: u16 = 4;
pub(super) const KNOB_CONSTRAINT: u16 = 5;
pub(super) const KNOB_DEPRECATED: u16 = 6;
