//! Convolutions, alone and with bias and activation.

use super::Builder;
use crate::case::attribute::AttributeKey as Key;
use crate::case::error::{Fault, Part};
use crate::case::op::{ConvDirection, Op};
use crate::case::strided::StridedTensor;
use crate::case::value::Case;
use crate::convolution::{Convolution, Window};
use crate::enums::{ConvMode, DataType, PointwiseMode};
use crate::model::Graph;
use crate::schema::PointwiseAttributes;
use crate::semantics::conv_output_extent;

/// Extents of the three tensors.
pub(super) struct Dims {
    pub x: Vec<i64>,
    pub w: Vec<i64>,
    pub y: Vec<i64>,
}

impl Dims {
    pub(super) fn of(case: &Case) -> Result<Self, Fault> {
        let shape = &case.shape;
        let k = shape.k.expect("the shape of a convolution has k");
        let groups = case.attributes.int(Key::Groups).unwrap_or(1);
        if groups < 1 || shape.c % groups != 0 || k % groups != 0 {
            let message = format!(
                "g{groups} must divide both channel counts, c{} and k{k}",
                shape.c
            );
            return Err(Fault::new(Part::Attributes, message));
        }
        let mut w = vec![k, shape.c / groups];
        w.extend(&shape.f);
        let mut y = vec![shape.n, k];
        for axis in 0..shape.spatial() {
            y.push(output_extent(case, axis)?);
        }
        Ok(Self {
            x: shape.x_dims(),
            w,
            y,
        })
    }
}

fn output_extent(case: &Case, axis: usize) -> Result<i64, Fault> {
    let attribute = |key| case.attributes.dims(key).get(axis).copied().unwrap_or(0);
    let (pre, post) = (attribute(Key::Pre), attribute(Key::Post));
    let (stride, dilation) = (attribute(Key::Str), attribute(Key::Dil));
    let (input, filter) = (case.shape.i[axis], case.shape.f[axis]);
    if stride < 1 || dilation < 1 {
        let message = format!("`str` and `dil` must be at least 1 (spatial axis {axis})");
        return Err(Fault::new(Part::Attributes, message));
    }
    let output = conv_output_extent(input, filter, pre, post, stride, dilation)
        .ok_or_else(|| Fault::overflow(&format!("padded extent of spatial axis {axis}")))?;
    if output < 1 {
        let message = format!(
            "the filter, {filter} taps {dilation} apart, is longer than the padded input \
             {pre}+{input}+{post} along spatial axis {axis}"
        );
        return Err(Fault::new(Part::Shape, message));
    }
    Ok(output)
}

pub(super) fn build(mut builder: Builder<'_>) -> Result<Graph, Fault> {
    builder.check_float_types()?;
    let dims = Dims::of(builder.case)?;
    match builder.case.op {
        Op::Conv(ConvDirection::Dgrad) => dgrad(&mut builder, &dims)?,
        Op::Conv(ConvDirection::Wgrad) => wgrad(&mut builder, &dims)?,
        Op::ConvBias => fused(&mut builder, &dims, true, None)?,
        Op::ConvActivation(mode) => fused(&mut builder, &dims, false, Some(mode))?,
        Op::ConvBiasActivation(mode) => fused(&mut builder, &dims, true, Some(mode))?,
        _ => {
            let (x, w) = inputs(&mut builder, &dims)?;
            let output = builder.last_type();
            let y = builder.strided("y", output, &dims.y, StridedTensor::Y)?;
            if builder.case.attributes.has(Key::Ragged) {
                ragged(&mut builder, x, &dims.x)?;
            }
            node(&mut builder, ConvDirection::Fprop, [x, w, y]);
        }
    }
    Ok(builder.graph)
}

fn inputs(builder: &mut Builder<'_>, dims: &Dims) -> Result<(i64, i64), Fault> {
    let dtype = builder.first_type();
    let x = builder.strided("x", dtype, &dims.x, StridedTensor::X)?;
    let w = builder.strided("w", dtype, &dims.w, StridedTensor::W)?;
    Ok((x, w))
}

/// The images of x lie where a tensor of one offset an image and one for the end says.
fn ragged(builder: &mut Builder<'_>, x: i64, dims: &[i64]) -> Result<(), Fault> {
    let mut offsets = vec![1; dims.len()];
    offsets[0] = dims[0]
        .checked_add(1)
        .ok_or_else(|| Fault::overflow("offsets of the images"))?;
    let offsets = builder.tensor("x_offsets", DataType::Int32, &offsets)?;
    let x = builder.graph.tensors.iter_mut().find(|t| t.uid == x);
    x.expect("it was placed before").ragged_offset_uid = Some(offsets);
    Ok(())
}

/// The node of one direction over these uids.
fn node(builder: &mut Builder<'_>, direction: ConvDirection, [x, w, y]: [i64; 3]) {
    let case = builder.case;
    let dims = |key| case.attributes.dims(key);
    let window = Window {
        pre: dims(Key::Pre),
        post: dims(Key::Post),
        stride: dims(Key::Str),
        dilation: dims(Key::Dil),
        mode: match case.attributes.has(Key::ModeConv) {
            true => ConvMode::Convolution,
            false => ConvMode::CrossCorrelation,
        },
    };
    let conv = Convolution {
        direction,
        x,
        w,
        y,
        window,
    };
    builder.node("conv", builder.compute_type(), conv);
}

fn dgrad(builder: &mut Builder<'_>, dims: &Dims) -> Result<(), Fault> {
    let (input, output) = (builder.first_type(), builder.last_type());
    let dy = builder.strided("dy", input, &dims.y, StridedTensor::Y)?;
    let w = builder.strided("w", input, &dims.w, StridedTensor::W)?;
    let dx = builder.strided("dx", output, &dims.x, StridedTensor::X)?;
    node(builder, ConvDirection::Dgrad, [dx, w, dy]);
    Ok(())
}

fn wgrad(builder: &mut Builder<'_>, dims: &Dims) -> Result<(), Fault> {
    let (input, output) = (builder.first_type(), builder.last_type());
    let x = builder.strided("x", input, &dims.x, StridedTensor::X)?;
    let dy = builder.strided("dy", input, &dims.y, StridedTensor::Y)?;
    let dw = builder.strided("dw", output, &dims.w, StridedTensor::W)?;
    node(builder, ConvDirection::Wgrad, [x, dw, dy]);
    Ok(())
}

/// Convolution into a virtual tensor, then bias, activation or both. Compute types as MIOpen's
/// provider wants them: f32, but the inputs' type for the bias.
fn fused(
    builder: &mut Builder<'_>,
    dims: &Dims,
    with_bias: bool,
    activation: Option<PointwiseMode>,
) -> Result<(), Fault> {
    let (x, w) = inputs(builder, dims)?;
    let (input, output) = (builder.first_type(), builder.last_type());
    let mut current = builder.virtual_tensor("conv_y", &dims.y, StridedTensor::Y)?;
    node(builder, ConvDirection::Fprop, [x, w, current]);
    if with_bias {
        let mut bias_dims = vec![1; dims.y.len()];
        bias_dims[1] = dims.y[1];
        let bias = builder.tensor("bias", input, &bias_dims)?;
        let sum = match activation {
            Some(_) => builder.virtual_tensor("bias_y", &dims.y, StridedTensor::Y)?,
            None => builder.strided("y", output, &dims.y, StridedTensor::Y)?,
        };
        let add = PointwiseAttributes {
            operation: PointwiseMode::Add,
            in_0_tensor_uid: current,
            in_1_tensor_uid: Some(bias),
            out_0_tensor_uid: sum,
            ..PointwiseAttributes::default()
        };
        builder.node("bias", input, add);
        current = sum;
    }
    if let Some(mode) = activation {
        let y = builder.strided("y", output, &dims.y, StridedTensor::Y)?;
        let attributes = PointwiseAttributes {
            in_0_tensor_uid: current,
            out_0_tensor_uid: y,
            ..builder.pointwise_attributes(mode)
        };
        builder.node("activation", builder.compute_type(), attributes);
    }
    Ok(())
}
