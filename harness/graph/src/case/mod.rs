//! Case ids: one line of text that names one graph and the fill of its inputs.
//!
//! `op/dtypes/layout/shape/attrs/fill`, for example
//! `conv.fprop/f16/nhwc/n2-c64-k64-i56x56-f3x3/pre1x1-post1x1-str1x1-dil1x1-g1/int`. The grammar
//! stands in `docs/case-ids.md`. [`Case::parse`] takes the canonical spelling only, so an id is a
//! key: equal ids, equal cases, and `Case::parse(id)?.to_string() == id`. [`Case::parse_short`]
//! takes anything that is clear.
//!
//! A [`Case`] can only be made by parsing, and parsing builds the graph once; so
//! [`Case::graph`] of a case that exists does not fail.

mod attribute;
mod build;
mod error;
mod fill;
mod layout;
mod number;
mod op;
mod parse;
mod shape;
mod strided;
mod value;
mod work;

pub use attribute::{AttributeKey, AttributeValue, Attributes};
pub use build::{TENSOR_UIDS, tensor_uid};
pub use error::CaseError;
pub use fill::Fill;
pub use layout::Layout;
pub use op::{BatchnormPhase, ConvDirection, Op};
pub use shape::Shape;
pub use strided::{Strided, StridedTensor};
pub use value::Case;
pub use work::Work;

#[cfg(test)]
mod tests;
