//! The operations against a naive second implementation, and their uncertainty against engines
//! that compute correctly in f32.

mod batchnorm;
mod chains;
mod conv;
mod engines;
mod graphs;
mod naive;
mod pointwise;
mod threads;
