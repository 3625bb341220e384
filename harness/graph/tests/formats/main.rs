//! The forms of a graph outside the process: both generations of the FlatBuffers wire, and JSON.

mod arbitrary;
mod detection;
mod golden;
mod hostile;
mod json;
mod round_trip;
