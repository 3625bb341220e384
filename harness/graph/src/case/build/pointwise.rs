//! Single pointwise nodes.

use super::Builder;
use crate::case::attribute::AttributeKey as Key;
use crate::case::error::{Fault, Part};
use crate::case::strided::StridedTensor;
use crate::enums::{DataType, PointwiseMode};
use crate::model::Graph;
use crate::schema::PointwiseAttributes;
use crate::semantics::{DtypeClass, PointwiseSemantics, pointwise};

const INPUTS: [&str; 3] = ["in0", "in1", "in2"];

pub(super) fn build(mut builder: Builder<'_>, mode: PointwiseMode) -> Result<Graph, Fault> {
    let facts = pointwise(mode);
    let full = builder.case.shape.x_dims();
    if let Some(axis) = builder.case.attributes.int(Key::Axis)
        && usize::try_from(axis).map_or(true, |axis| axis >= full.len())
    {
        let message = format!("axis{axis} of a tensor with {} axes", full.len());
        return Err(Fault::new(Part::Attributes, message));
    }
    let mut inputs = [None; 3];
    for operand in 0..facts.arity() {
        let dtype = operand_type(&builder, operand);
        check_type(facts, INPUTS[operand], dtype, facts.operand_dtypes(operand))?;
        let given = builder.case.attributes.dims(Key::broadcast(operand));
        inputs[operand] = Some(if given.is_empty() {
            builder.strided(INPUTS[operand], dtype, &full, StridedTensor::X)?
        } else {
            check_broadcast(INPUTS[operand], given, &full)?;
            builder.tensor(INPUTS[operand], dtype, given)?
        });
    }
    let output = builder.last_type();
    check_type(facts, "the output", output, facts.output)?;
    let out = builder.strided("out", output, &full, StridedTensor::X)?;
    let attributes = PointwiseAttributes {
        in_0_tensor_uid: inputs[0].expect("every mode has an operand"),
        in_1_tensor_uid: inputs[1],
        in_2_tensor_uid: inputs[2],
        out_0_tensor_uid: out,
        ..builder.pointwise_attributes(mode)
    };
    builder.node(facts.name, builder.compute_type(), attributes);
    Ok(builder.graph)
}

/// One type is for all; else there is one per operand and one for the output.
fn operand_type(builder: &Builder<'_>, operand: usize) -> DataType {
    let dtypes = builder.case.dtypes();
    if dtypes.len() == 1 {
        dtypes[0]
    } else {
        dtypes[operand]
    }
}

fn check_type(
    facts: &PointwiseSemantics,
    what: &str,
    dtype: DataType,
    class: DtypeClass,
) -> Result<(), Fault> {
    if class.allows(dtype) {
        return Ok(());
    }
    let (name, wanted) = (facts.name, class.description());
    let message = format!(
        "{what} of {name} must be {wanted}, not {}",
        dtype.short_name()
    );
    Err(Fault::new(Part::Dtypes, message))
}

fn check_broadcast(name: &str, given: &[i64], full: &[i64]) -> Result<(), Fault> {
    let fits = given.len() <= full.len()
        && given
            .iter()
            .rev()
            .zip(full.iter().rev())
            .all(|(own, out)| own == out || *own == 1);
    if fits {
        return Ok(());
    }
    let message = format!(
        "{name}.{given:?} does not broadcast to {full:?}: from the last axis on, each extent must \
         be equal or 1"
    );
    Err(Fault::new(Part::Attributes, message))
}
