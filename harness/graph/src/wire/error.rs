//! What can be wrong with a buffer, or with a graph that is to become one.

use super::Generation;
use flatbuffers::InvalidFlatbuffer;
use std::fmt;
use thiserror::Error;

/// A numbered element of the buffer's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// The root itself.
    Root,
    /// The tensor at this index of `Graph.tensors`.
    Tensor(usize),
    /// The node at this index of `Graph.nodes`.
    Node(usize),
    /// The knob at this index of `EngineConfig.knobs` or `EngineDetails.knobs`.
    Knob(usize),
}

/// A field of a table of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which part of the root.
    pub element: Element,
    /// The table's name in the schema.
    pub table: &'static str,
    /// The field's name in the schema.
    pub field: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            Element::Root => {}
            Element::Tensor(index) => write!(f, "tensors[{index}]: ")?,
            Element::Node(index) => write!(f, "nodes[{index}]: ")?,
            Element::Knob(index) => write!(f, "knobs[{index}]: ")?,
        }
        write!(f, "{}.{}", self.table, self.field)
    }
}

/// Why a buffer cannot be read, or a value cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The bytes are no valid FlatBuffers buffer of this root: an offset out of bounds, a
    /// misaligned scalar, a string that is not UTF-8, half a union, too many tables.
    #[error("not a valid {root} buffer of {size} bytes: {}", one_line(.reason))]
    Malformed {
        /// The root table that was expected.
        root: &'static str,
        /// Bytes in the buffer.
        size: usize,
        /// What the verifier found, and where.
        reason: InvalidFlatbuffer,
    },
    /// An enum's number that the generation does not have.
    #[error("{at}: {enum_name} has no value {seen} in the {generation} wire (0 to {highest})")]
    UnknownEnum {
        /// Where.
        at: Place,
        /// The enum's name in the schema.
        enum_name: &'static str,
        /// The number in the buffer.
        seen: i8,
        /// The highest number of the generation.
        highest: i8,
        /// The generation that was read.
        generation: Generation,
    },
    /// A union's tag that the generation does not have.
    #[error("{at}: union {union} has no member {seen} in the {generation} wire (1 to {highest})")]
    UnknownTag {
        /// Where.
        at: Place,
        /// The union's name in the schema.
        union: &'static str,
        /// The tag in the buffer.
        seen: u8,
        /// The highest tag of the generation.
        highest: u8,
        /// The generation that was read.
        generation: Generation,
    },
    /// A field that must be there is not.
    #[error("{at}: expected a value, saw none")]
    Missing {
        /// Where.
        at: Place,
    },
    /// A node's vtable fits neither generation.
    #[error(
        "nodes[{index}]: expected a Node vtable of 10 bytes (2025-11) or at least 12 (current), \
         saw {size}: a node without attributes?"
    )]
    NodeShape {
        /// Index of the node.
        index: usize,
        /// Bytes of its vtable.
        size: u16,
    },
    /// Nodes of both generations in one graph.
    #[error(
        "nodes of both wire generations in one graph: nodes[0] is {first}, nodes[{index}] is {other}"
    )]
    MixedGenerations {
        /// The generation of the first node.
        first: Generation,
        /// The first node that differs.
        index: usize,
        /// Its generation.
        other: Generation,
    },
    /// What is to be written has no form in the generation.
    #[error("{at}: the {generation} wire cannot express {what}")]
    Inexpressible {
        /// Where.
        at: Place,
        /// What was asked for.
        what: String,
        /// The generation that was to be written.
        generation: Generation,
    },
    /// What is to be written is larger than any reader accepts.
    #[error("{root} too large to write: about {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The root table.
        root: &'static str,
        /// Estimated bytes.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },
}

/// The verifier's message without its line breaks.
fn one_line(reason: &InvalidFlatbuffer) -> String {
    let text = reason.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").trim_end_matches('.').to_owned()
}
