//! Element types: rounding to them, their constants, and buffers of them.
//!
//! Values are f64 everywhere in this crate. A value enters a type by one rounding, to nearest and
//! ties to even; rounding through f32 would round twice and is never done.

mod buffer;
pub(crate) mod element;
mod format;
mod view;

pub use buffer::{LayoutError, decode, encode};
pub use format::{
    largest_finite, overflow_threshold, precision, round, smallest_normal, smallest_subnormal,
    supported, unit_roundoff,
};

pub(crate) use buffer::{checked_view, load_run};
pub(crate) use element::{Element, with_element};
pub(crate) use view::View;
