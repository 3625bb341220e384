//! The operations against a naive second implementation, and their uncertainty against engines
//! that compute correctly in f32.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod account;
mod batchnorm;
mod chains;
mod conv;
mod engines;
mod graphs;
mod naive;
mod pointwise;
mod sample;
mod threads;
mod traits;
