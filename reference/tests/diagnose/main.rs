//! Faulty outputs, made by naive loops of the tests' own, and the names that they are given.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conv;
mod fused;
mod list;
mod norm;
mod outputs;
mod trial;
