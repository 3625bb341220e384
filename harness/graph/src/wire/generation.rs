//! The two generations of the wire, their limits, and how to tell them apart.

use super::WireError;
use super::layout::{GRAPH_NODES, MAX_BUFFER};
use super::raw::RawTable;
use flatbuffers::InvalidFlatbuffer;
use std::fmt;

/// A generation of hipDNN's wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// The single-SDK era of November 2025: nodes without a compute type.
    Nov2025,
    /// Since the nodes have a compute type.
    #[default]
    Current,
}

impl Generation {
    /// Both, oldest first.
    pub const ALL: &'static [Self] = &[Self::Nov2025, Self::Current];

    /// The name on the command line and in reports: `2025-11` or `current`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nov2025 => "2025-11",
            Self::Current => "current",
        }
    }

    /// The generation with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|g| g.name() == name)
    }

    /// The highest tag of the union `NodeAttributes`.
    pub(super) const fn highest_node_tag(self) -> u8 {
        match self {
            Self::Nov2025 => 7,
            Self::Current => 23,
        }
    }

    /// The highest tag of the union `TensorValue`.
    pub(super) const fn highest_value_tag(self) -> u8 {
        match self {
            Self::Nov2025 => 6,
            Self::Current => 8,
        }
    }

    /// The highest number of the enum `DataType`.
    pub(super) const fn highest_data_type(self) -> i8 {
        match self {
            Self::Nov2025 => 6,
            Self::Current => 17,
        }
    }

    /// FlatBuffers ids of `Node`: compute type, attributes' tag, attributes.
    pub(super) const fn node_ids(self) -> (Option<u16>, u16, u16) {
        match self {
            Self::Nov2025 => (None, 1, 2),
            Self::Current => (Some(1), 2, 3),
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes of the vtable of a 2025-11 node with attributes: two sizes and three fields.
const NOV2025_NODE_VTABLE: u16 = 10;
/// Bytes of the vtable of a current node with attributes, or more if fields were added.
const CURRENT_NODE_VTABLE: u16 = 12;

/// The generation of a serialized `Graph`, from the vtables of its nodes; a graph without nodes
/// is [`Generation::Current`].
///
/// # Errors
/// [`WireError::Malformed`] if the nodes cannot be reached, [`WireError::NodeShape`] if a node
/// fits neither generation, [`WireError::MixedGenerations`] if they differ.
pub fn detect(bytes: &[u8]) -> Result<Generation, WireError> {
    let sizes = node_vtable_sizes(bytes).map_err(|reason| WireError::Malformed {
        root: "Graph",
        size: bytes.len(),
        reason,
    })?;
    let mut first = None;
    for (index, size) in sizes.into_iter().enumerate() {
        let seen = match size {
            NOV2025_NODE_VTABLE => Generation::Nov2025,
            CURRENT_NODE_VTABLE.. => Generation::Current,
            _ => return Err(WireError::NodeShape { index, size }),
        };
        match first {
            None => first = Some(seen),
            Some(first) if first != seen => {
                return Err(WireError::MixedGenerations {
                    first,
                    index,
                    other: seen,
                });
            }
            Some(_) => {}
        }
    }
    Ok(first.unwrap_or_default())
}

fn node_vtable_sizes(bytes: &[u8]) -> Result<Vec<u16>, InvalidFlatbuffer> {
    if bytes.len() > MAX_BUFFER {
        return Err(InvalidFlatbuffer::ApparentSizeTooLarge);
    }
    let root = RawTable::root(bytes)?;
    let nodes = root.tables(GRAPH_NODES)?;
    nodes.into_iter().map(|node| node?.vtable_size()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for &generation in Generation::ALL {
            assert_eq!(Generation::from_name(generation.name()), Some(generation));
        }
        assert_eq!(Generation::from_name("latest"), None);
    }
}
