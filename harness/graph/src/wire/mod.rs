//! The FlatBuffers wire of hipDNN: graphs, engine configurations and engine details, read from
//! bytes that nobody vouches for and written for a plugin to read.
//!
//! # Generations
//!
//! hipDNN broke its wire once, and nothing in a buffer says on which side of the break it is.
//!
//! | | [`Generation::Nov2025`] | [`Generation::Current`] |
//! | --- | --- | --- |
//! | `Node` | name, attributes | name, compute_data_type, attributes: the ids shift by one |
//! | `Graph` | ids 0–5 | adds preferred engine, override flag, minimum API, identity |
//! | `TensorAttributes` | up to `value` | adds run-time scalars, ragged offsets, alignment |
//! | node kinds, scalar kinds, data types | 7, 6, 0–6 | 23, 8, 0–17 |
//! | `EngineConfig`, `EngineDetails` | engine_id only | adds knobs, behaviour notes, name |
//!
//! [`detect`] tells graphs apart by the size of the nodes' vtables. Everything but `Node` grew
//! at the end, so one reader serves both for the other tables.
//!
//! # Hostile bytes
//!
//! A buffer is verified before it is read: offsets, alignment, UTF-8, depth, the number of tables
//! and the size once shared parts are counted as often as they are used. Every access after that
//! is bounds-checked too, without unsafe code; no input panics. `tests/fuzz_wire.rs` tries.

mod config;
mod details;
mod error;
mod generation;
mod knob;
mod layout;
mod raw;
mod read;
mod record;
mod tensor_value;
mod verify;
mod write;

pub use config::{EngineConfig, KnobSetting, read_engine_config, write_engine_config};
pub use details::{EngineDetails, Knob, KnobConstraint, read_engine_details, write_engine_details};
pub use error::{Element, Place, WireError};
pub use generation::{Generation, detect};
pub use knob::KnobValue;
pub use read::{read_graph, read_graph_as};
pub use write::write_graph;
