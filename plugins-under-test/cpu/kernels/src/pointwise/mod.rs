//! Pointwise operations: all 47 modes, with broadcasting.

mod chain;
mod functions;

pub(crate) use chain::Chain;

use crate::program::{Num, Tensors};
use crate::support::{ensure, tensor};
use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::semantics::{self, DtypeClass, Parameters};
use dnn_assay_graph::{DataType, Graph, PointwiseMode};
use dnn_assay_plugin_sdk::Error;
use functions::evaluate;

/// Computes `out_0` from the operands, broadcast to its shape and aligned at the last axis.
pub(crate) fn run<T: Num>(
    a: &PointwiseAttributes,
    tensors: &mut Tensors<'_, T>,
) -> Result<(), Error> {
    let uids = operands(a);
    let dims = tensors.dims(a.out_0_tensor_uid)?;
    let parameters = Parameters::of(a);
    if a.operation == PointwiseMode::GenIndex {
        let axis = parameters.axis.unwrap_or(0) as usize;
        return tensors.set(a.out_0_tensor_uid, coordinates(&dims, axis));
    }
    tensors.need(&uids)?;
    // An absent operand reads the first one, which evaluation then ignores.
    let mut inputs = [uids[0]; 3];
    inputs[..uids.len()].copy_from_slice(&uids);
    let mut steps = Vec::new();
    for uid in inputs {
        steps.push(broadcast_steps(&tensors.dims(uid)?, &dims));
    }
    let [x, y, z] = [
        tensors.get(inputs[0])?,
        tensors.get(inputs[1])?,
        tensors.get(inputs[2])?,
    ];
    let count = dims.iter().product();
    let mut out = Vec::with_capacity(count);
    let mut emit = |i: usize, j: usize, k: usize| {
        let (x, y, z) = (x[i].to_f64(), y[j].to_f64(), z[k].to_f64());
        out.push(T::from_f64(evaluate(a.operation, &parameters, x, y, z)));
    };
    if inputs
        .iter()
        .all(|&uid| tensors.get(uid).is_ok_and(|v| v.len() == count))
    {
        (0..count).for_each(|i| emit(i, i, i));
    } else {
        for_each(&dims, &steps, &mut emit);
    }
    tensors.set(a.out_0_tensor_uid, out)
}

fn operands(a: &PointwiseAttributes) -> Vec<i64> {
    let arity = semantics::pointwise(a.operation).arity();
    [
        Some(a.in_0_tensor_uid),
        a.in_1_tensor_uid,
        a.in_2_tensor_uid,
    ]
    .into_iter()
    .flatten()
    .take(arity)
    .collect()
}

/// The coordinate along `axis` of each element.
fn coordinates<T: Num>(dims: &[usize], axis: usize) -> Vec<T> {
    let inner: usize = dims[axis + 1..].iter().product();
    (0..dims.iter().product())
        .map(|i: usize| T::from_f64((i / inner % dims[axis]) as f64))
        .collect()
}

/// Elements to skip in a packed operand per step along each axis of the output: 0 where the
/// operand is broadcast.
fn broadcast_steps(operand: &[usize], out: &[usize]) -> Vec<usize> {
    let mut steps = vec![0; out.len()];
    let missing = out.len() - operand.len();
    let mut step = 1;
    for axis in (0..operand.len()).rev() {
        if operand[axis] != 1 {
            steps[missing + axis] = step;
        }
        step *= operand[axis];
    }
    steps
}

/// Visits every element of the output in order, with the operands' indices.
fn for_each(dims: &[usize], steps: &[Vec<usize>], visit: &mut impl FnMut(usize, usize, usize)) {
    let Some((&row, outer)) = dims.split_last() else {
        return visit(0, 0, 0);
    };
    let last = outer.len();
    let (s, t, u) = (steps[0][last], steps[1][last], steps[2][last]);
    let mut index = vec![0; last];
    loop {
        let start = |operand: &[usize]| -> usize {
            index.iter().zip(operand).map(|(i, step)| i * step).sum()
        };
        let (x, y, z) = (start(&steps[0]), start(&steps[1]), start(&steps[2]));
        for i in 0..row {
            visit(x + i * s, y + i * t, z + i * u);
        }
        let Some(axis) = (0..last).rev().find(|&axis| index[axis] + 1 < outer[axis]) else {
            return;
        };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

/// Whether [`run`] can run this node.
pub(crate) fn check(a: &PointwiseAttributes, graph: &Graph) -> Result<(), String> {
    let facts = semantics::pointwise(a.operation);
    ensure(facts.arity() > 0, "a pointwise node without operation")?;
    let uids = operands(a);
    ensure(
        uids.len() == facts.arity(),
        "a pointwise node that lacks an operand",
    )?;
    let out = tensor(graph, a.out_0_tensor_uid)?;
    check_type(facts.output, out.data_type)?;
    for (i, &uid) in uids.iter().enumerate() {
        let operand = tensor(graph, uid)?;
        check_type(facts.operand_dtypes(i), operand.data_type)?;
        ensure(
            operand.dims.len() <= out.dims.len(),
            "an operand of higher rank than the output",
        )?;
        let fits = operand
            .dims
            .iter()
            .rev()
            .zip(out.dims.iter().rev())
            .all(|(from, to)| from == to || *from == 1);
        ensure(fits, "an operand that does not broadcast to the output")?;
    }
    if a.operation == PointwiseMode::GenIndex {
        let axis = a
            .axis_tensor_uid
            .and_then(|axis| usize::try_from(axis).ok());
        let known = axis.is_some_and(|axis| axis < out.dims.len());
        ensure(known, "GEN_INDEX without an axis of the output")?;
    }
    Ok(())
}

fn check_type(class: DtypeClass, data_type: DataType) -> Result<(), String> {
    if class.allows(data_type) || data_type == DataType::Unset {
        return Ok(());
    }
    Err(format!("a pointwise tensor of type {data_type}"))
}
