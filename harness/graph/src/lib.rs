//! Operation graphs: the model, its semantics and validation, the FlatBuffers wire of both hipDNN
//! generations, the JSON of bundles, and case ids.
//!
//! This crate knows nothing of tensors' contents, of plugins or of devices.

pub mod case;
mod convolution;
pub mod enums;
pub mod json;
pub mod model;
pub mod schema;
pub mod semantics;
pub mod tensor_value;
pub mod validate;
pub mod wire;

pub use convolution::{Convolution, Window};
pub use enums::{
    AttentionImplementation, ConvMode, DataType, DiagonalAlignment, MoeGroupedMatmulMode,
    NormFwdPhase, PaddingMode, PointwiseMode, ReductionMode, ResampleMode,
};
pub use model::{Graph, Node, Tensor};
pub use schema::Attributes;
pub use tensor_value::TensorValue;
