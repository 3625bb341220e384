//! The forms of a graph outside the process: both generations of the FlatBuffers wire, and JSON.

#![allow(
    clippy::unwrap_used,
    reason = "an unwrap that fails is a test that fails"
)]

mod arbitrary;
mod detection;
mod golden;
mod hostile;
mod json;
mod round_trip;
