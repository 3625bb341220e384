//! Faulty outputs, made by naive loops of the tests' own, and the names that they are given.

mod conv;
mod fused;
mod list;
mod norm;
mod outputs;
mod trial;
