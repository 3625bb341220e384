//! Batchnorm in its four forms: statistics by two passes in f64, uncertainty as a sum of three
//! terms plus what the statistics carry.

mod account;
mod backward;
mod channels;
mod element;
mod inference;
mod row;
mod training;

pub(crate) use account::Result as Norm;
pub(crate) use backward::{Backward, DEFAULT_EPSILON};
pub(crate) use channels::{Bounds, Shape};
pub(crate) use inference::{Inference, Spread};
pub(crate) use training::{Running, Training};
