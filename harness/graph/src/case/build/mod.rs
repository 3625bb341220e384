//! From a case to its graph.

mod batchnorm;
mod conv;
mod pointwise;

use super::attribute::AttributeKey as Key;
use super::error::{Fault, Part};
use super::op::Op;
use super::strided::{self, StridedTensor};
use super::value::Case;
use crate::enums::{DataType, PointwiseMode};
use crate::model::{Graph, Node, Tensor};
use crate::schema::{Attributes, PointwiseAttributes};
use crate::tensor_value::TensorValue;

/// Names and uids of the tensors of every case. They do not depend on the case and are not dense,
/// so a plugin that takes a uid for an index is found out.
pub const TENSOR_UIDS: &[(&str, i64)] = &[
    ("x", 1),
    ("w", 2),
    ("y", 3),
    ("bias", 4),
    ("dy", 5),
    ("dx", 6),
    ("dw", 7),
    ("scale", 8),
    ("mean", 9),
    ("inv_variance", 10),
    ("variance", 11),
    ("epsilon", 12),
    ("momentum", 13),
    ("prev_running_mean", 14),
    ("prev_running_variance", 15),
    ("next_running_mean", 16),
    ("next_running_variance", 17),
    ("dscale", 18),
    ("dbias", 19),
    ("conv_y", 20),
    ("bias_y", 21),
    ("bn_y", 22),
    ("activation_dx", 23),
    ("x_offsets", 24),
    ("in0", 30),
    ("in1", 31),
    ("in2", 32),
    ("out", 40),
];

/// The uid of the tensor of this name.
pub fn tensor_uid(name: &str) -> Option<i64> {
    TENSOR_UIDS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, uid)| *uid)
}

pub(super) fn graph(case: &Case) -> Result<Graph, Fault> {
    let builder = Builder::new(case);
    check_parameters(case)?;
    match case.op {
        Op::Pointwise(mode) => pointwise::build(builder, mode),
        op if op.is_conv() => conv::build(builder),
        _ => batchnorm::build(builder),
    }
}

/// Refuses clips out of order and a softplus that divides by 0.
fn check_parameters(case: &Case) -> Result<(), Fault> {
    let float = |key| case.attributes.float(key);
    let lower = float(Key::Lower).unwrap_or(0.0);
    if let Some(upper) = float(Key::Upper).filter(|upper| *upper < lower) {
        let message = format!("`up` {upper} is below the lower clip, {lower}");
        return Err(Fault::new(Part::Attributes, message));
    }
    let mode = case.op.mode();
    if mode == Some(PointwiseMode::SoftplusFwd) && float(Key::Beta) == Some(0.0) {
        return Err(Fault::new(
            Part::Attributes,
            "a softplus divides by `beta`; it must not be 0",
        ));
    }
    Ok(())
}

/// Extents of the tensors that may be given strides.
pub(super) fn strided_dims(case: &Case) -> Result<Vec<(StridedTensor, Vec<i64>)>, Fault> {
    if !case.op.is_conv() {
        return Ok(vec![(StridedTensor::X, case.shape.x_dims())]);
    }
    let dims = conv::Dims::of(case)?;
    Ok(vec![
        (StridedTensor::X, dims.x),
        (StridedTensor::Y, dims.y),
        (StridedTensor::W, dims.w),
    ])
}

struct Builder<'a> {
    case: &'a Case,
    graph: Graph,
}

impl<'a> Builder<'a> {
    fn new(case: &'a Case) -> Self {
        let mut builder = Self {
            case,
            graph: Graph::default(),
        };
        builder.graph = Graph {
            name: case.to_string(),
            compute_type: builder.compute_type(),
            intermediate_type: builder.virtual_type(),
            io_type: case.io_type(),
            ..Graph::default()
        };
        builder
    }

    /// The case's first type: convolution inputs, batchnorm tensors.
    fn first_type(&self) -> DataType {
        self.case.io_type()
    }

    /// The case's last type: outputs, batchnorm parameters.
    fn last_type(&self) -> DataType {
        *self
            .case
            .dtypes()
            .last()
            .expect("a case has at least one type")
    }

    /// f64 where a tensor is f64, else f32.
    fn compute_type(&self) -> DataType {
        match self.case.dtypes().contains(&DataType::Double) {
            true => DataType::Double,
            false => DataType::Float,
        }
    }

    /// The type of virtual tensors.
    fn virtual_type(&self) -> DataType {
        match self.case.attributes.has(Key::VirtualIo) {
            true => self.case.io_type(),
            false => self.compute_type(),
        }
    }

    /// Refuses types that are not of the floating ones, and a `vio` that says nothing.
    fn check_float_types(&self) -> Result<(), Fault> {
        if let Some(dtype) = self.case.dtypes().iter().find(|dtype| !dtype.is_float()) {
            let message = format!(
                "{} is for f64, f32, f16 and bf16, not {}",
                self.case.op,
                dtype.short_name()
            );
            return Err(Fault::new(Part::Dtypes, message));
        }
        if self.case.attributes.has(Key::VirtualIo) && self.case.io_type() == self.compute_type() {
            let message = format!(
                "virtual tensors are {} anyway; leave `vio` out",
                self.compute_type().short_name()
            );
            return Err(Fault::new(Part::Attributes, message));
        }
        Ok(())
    }

    fn tensor(&mut self, name: &str, dtype: DataType, dims: &[i64]) -> Result<i64, Fault> {
        self.place(name, dtype, dims, None, false)
    }

    /// A tensor with the strides that the id gives for `which`, or the packed ones.
    fn strided(
        &mut self,
        name: &str,
        dtype: DataType,
        dims: &[i64],
        which: StridedTensor,
    ) -> Result<i64, Fault> {
        self.place(name, dtype, dims, Some(which), false)
    }

    /// An intermediate of the virtual type.
    fn virtual_tensor(
        &mut self,
        name: &str,
        dims: &[i64],
        which: StridedTensor,
    ) -> Result<i64, Fault> {
        self.place(name, self.virtual_type(), dims, Some(which), true)
    }

    fn place(
        &mut self,
        name: &str,
        dtype: DataType,
        dims: &[i64],
        which: Option<StridedTensor>,
        is_virtual: bool,
    ) -> Result<i64, Fault> {
        let given = which.and_then(|which| self.case.strided.get(which));
        let strides =
            match given {
                Some(strides) => {
                    strided::check(dims, strides)?;
                    strides.to_vec()
                }
                None => self.case.layout.strides(dims).ok_or_else(|| {
                    Fault::overflow(&format!("strides of {name}, extents {dims:?}"))
                })?,
            };
        let tensor = Tensor {
            strides,
            is_virtual,
            ..Tensor::packed(uid(name), name, dtype, dims)
        };
        let bytes = tensor
            .byte_size()
            .and_then(|bytes| i64::try_from(bytes).ok());
        if bytes.is_none() {
            return Err(Fault::overflow(&format!(
                "bytes of {name}, extents {dims:?}"
            )));
        }
        self.graph.tensors.push(tensor);
        Ok(uid(name))
    }

    /// A compile-time scalar. In f64 cases it is the shortest decimal of the number, as f64.
    fn scalar(&mut self, name: &str, value: f32) -> i64 {
        let dtype = self.compute_type();
        let shortest = super::number::print_float(value);
        self.graph.tensors.push(Tensor {
            value: Some(match dtype {
                DataType::Double => {
                    TensorValue::Float64(shortest.parse().expect("a printed float is a number"))
                }
                _ => TensorValue::Float32(value),
            }),
            ..Tensor::packed(uid(name), name, dtype, &[1])
        });
        uid(name)
    }

    fn node(&mut self, name: &str, compute_type: DataType, attributes: impl Into<Attributes>) {
        self.graph.nodes.push(Node {
            name: name.to_owned(),
            compute_type,
            attributes: attributes.into(),
        });
    }

    /// A pointwise node's parameters as the id gives them; those left out stay unset.
    fn pointwise_attributes(&self, mode: PointwiseMode) -> PointwiseAttributes {
        use crate::semantics::Parameter;
        let attributes = &self.case.attributes;
        let takes = |parameter| {
            crate::semantics::pointwise(mode)
                .parameters
                .contains(&parameter)
        };
        let beta = |parameter| attributes.float(Key::Beta).filter(|_| takes(parameter));
        PointwiseAttributes {
            operation: mode,
            relu_lower_clip: attributes.float(Key::Lower),
            relu_upper_clip: attributes.float(Key::Upper),
            relu_lower_clip_slope: attributes.float(Key::Slope),
            axis_tensor_uid: attributes.int(Key::Axis),
            swish_beta: beta(Parameter::SwishBeta),
            elu_alpha: attributes.float(Key::Alpha),
            softplus_beta: beta(Parameter::SoftplusBeta),
            ..PointwiseAttributes::default()
        }
    }
}

fn uid(name: &str) -> i64 {
    tensor_uid(name).expect("every name that a builder uses is in TENSOR_UIDS")
}
