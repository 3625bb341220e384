//! Pointwise nodes.

use dnn_assay_graph::PointwiseMode;
use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::semantics::{self, Parameters as Given};
use dnn_assay_plugin_sdk::Error;

use super::memory::Memory;
use super::walk::{Order, goes_in_vectors, walk};
use super::{Launch, Parameters, blocks};
use crate::parameters::{Kernel, MAX_RANK, PointwiseParams, VECTOR, element};

pub(super) fn pointwise(
    a: &PointwiseAttributes,
    memory: &mut Memory<'_>,
    launches: &mut Vec<Launch>,
) -> Result<(), Error> {
    let given = Given::of(a);
    let out = memory.view(a.out_0_tensor_uid)?;
    let rank = out.dims.len();
    let count = out.count()?;
    let mut p = PointwiseParams {
        out: out.address,
        out_type: out.kind,
        in_type: [element::CONSTANT; 3],
        lower: given.relu_lower,
        upper: given.relu_upper,
        slope: given.relu_slope,
        swish_beta: given.swish_beta,
        elu_alpha: given.elu_alpha,
        softplus_beta: given.softplus_beta,
        mode: a.operation.number() as u32,
        ..PointwiseParams::default()
    };
    let mut strides = [
        out.strides.clone(),
        vec![0; rank],
        vec![0; rank],
        vec![0; rank],
    ];
    let mut reads = Vec::new();
    let index = a.operation == PointwiseMode::GenIndex;
    let uids = [
        Some(a.in_0_tensor_uid),
        a.in_1_tensor_uid,
        a.in_2_tensor_uid,
    ];
    let arity = semantics::pointwise(a.operation).arity();
    for (i, uid) in uids.into_iter().flatten().take(arity).enumerate() {
        if index {
            break;
        }
        let operand = memory.operand(uid)?;
        if periodic(a.operation) && operand.kind == element::F64 && out.kind == element::F64 {
            return Err(Error::not_applicable("SIN and TAN of f64"));
        }
        strides[i + 1] = operand.broadcast(rank);
        reads.push(operand.clone());
        p.inputs[i] = operand.address;
        p.in_type[i] = operand.kind;
        p.constant[i] = operand.constant;
    }
    let order = if index { Order::Kept } else { Order::Memory };
    (p.walk, p.steps) = walk(&out.dims, &strides, order)?;
    if index {
        p.axis = (MAX_RANK - rank) as u32 + given.axis.unwrap_or(0) as u32;
    }
    let (kernel, threads) = kernel(a.operation, &p, count);
    launches.push(Launch {
        kernel,
        grid: [blocks(threads), 1, 1],
        parameters: Parameters::Pointwise(Box::new(p)),
        reads,
        writes: vec![out],
    });
    Ok(())
}

/// The kernel, and how many threads it takes.
fn kernel(mode: PointwiseMode, p: &PointwiseParams, count: usize) -> (Kernel, usize) {
    let mut rows = vec![(p.out, p.out_type, p.steps[0])];
    for i in 0..3 {
        if p.in_type[i] != element::CONSTANT {
            rows.push((p.inputs[i], p.in_type[i], p.steps[i + 1]));
        }
    }
    if mode == PointwiseMode::GenIndex || !goes_in_vectors(&p.walk, &rows) {
        return (Kernel::Pointwise, count);
    }
    let kernel = if is_light(mode) {
        Kernel::PointwiseLight
    } else if is_single(mode, p) {
        Kernel::PointwiseSingle
    } else {
        Kernel::PointwiseHeavy
    };
    (kernel, count.div_ceil(VECTOR))
}

/// The modes of `DNN_LIGHT_MODES` in `kernels/pointwise.hpp`.
fn is_light(mode: PointwiseMode) -> bool {
    matches!(mode.number(), 1..=11 | 17 | 23 | 25..=31 | 33 | 34 | 42)
}

/// What `dnn_pointwise_single` takes: GELU of f32 or less, into f32 or less.
fn is_single(mode: PointwiseMode, p: &PointwiseParams) -> bool {
    let narrow = |kind| element::vectored(kind).is_some();
    mode == PointwiseMode::GeluFwd && narrow(p.out_type) && narrow(p.in_type[0])
}

/// Functions whose reduction of large arguments is made for those that f32 can hold.
fn periodic(mode: PointwiseMode) -> bool {
    matches!(mode, PointwiseMode::Sin | PointwiseMode::Tan)
}
