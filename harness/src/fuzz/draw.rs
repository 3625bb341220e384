//! One random case.

use dnn_assay_graph::case::{
    AttributeKey as Key, AttributeValue as Value, BatchnormPhase, CaseError, Fill, Layout, Op,
};
use dnn_assay_graph::semantics::{DtypeClass, Parameter, pointwise};
use dnn_assay_graph::{DataType, PointwiseMode};

use super::random::Random;
use super::shape;
use crate::suite::Draft;

use DataType::{Bfloat16, Double, Float, Half, Int8, Int32, Int64, Uint8};

/// Parts that may not fit together.
///
/// # Errors
/// Where that shows before the end.
pub fn draft(random: &mut Random) -> Result<Draft, CaseError> {
    let op = op(random);
    let spatial = random.weighted(&[(20, 1), (60, 2), (20, 3)]);
    let layout = Layout::for_spatial(spatial, random.chance(50));
    let mut draft = Draft::new(op, layout.expect("one to three axes"));
    draft.dtypes = dtypes(random, op);
    if op.is_conv() {
        shape::conv(random, &mut draft);
    } else {
        shape::image(random, &mut draft);
    }
    parameters(random, &mut draft);
    match op {
        Op::Pointwise(mode) => operands(random, mode, &mut draft),
        _ if op.family() == "batchnorm" => statistics(random, &mut draft),
        _ => {}
    }
    if random.chance(25) && takes_integers(op) {
        draft.fill = Fill::Integer;
    }
    if random.chance(25) {
        shape::strides(random, &mut draft)?;
    }
    Ok(draft)
}

fn op(random: &mut Random) -> Op {
    let (family, is_fused) = random.weighted(&[
        (35, ("conv", false)),
        (15, ("conv", true)),
        (15, ("batchnorm", false)),
        (10, ("batchnorm", true)),
        (25, ("pointwise", false)),
    ]);
    let ops: Vec<Op> = Op::all()
        .filter(|op| op.family() == family && op.is_fused() == is_fused)
        .collect();
    random.pick(&ops)
}

fn dtypes(random: &mut Random, op: Op) -> Vec<DataType> {
    if let Op::Pointwise(mode) = op {
        return pointwise_types(random, mode);
    }
    random
        .weighted::<&[DataType]>(&[
            (28, &[Float]),
            (20, &[Half]),
            (20, &[Bfloat16]),
            (8, &[Double]),
            (12, &[Half, Float]),
            (12, &[Bfloat16, Float]),
        ])
        .to_vec()
}

fn pointwise_types(random: &mut Random, mode: PointwiseMode) -> Vec<DataType> {
    const FLOATS: [DataType; 4] = [Float, Half, Bfloat16, Double];
    const ALL: [DataType; 8] = [Float, Half, Bfloat16, Double, Int32, Uint8, Int8, Int64];
    let facts = pointwise(mode);
    let of = |random: &mut Random, class: DtypeClass| match class {
        DtypeClass::Numeric if random.chance(30) => random.pick(&ALL),
        _ => random.pick(&FLOATS),
    };
    if random.chance(70) {
        return vec![of(random, facts.output)];
    }
    let operands = (0..facts.arity()).map(|operand| facts.operand_dtypes(operand));
    let classes: Vec<DtypeClass> = operands.chain([facts.output]).collect();
    classes.into_iter().map(|class| of(random, class)).collect()
}

/// The mode's parameters, each there or not.
fn parameters(random: &mut Random, draft: &mut Draft) {
    let Some(mode) = draft.op.mode() else { return };
    let lower = eighth(random);
    for parameter in pointwise(mode).parameters {
        let (key, value) = match parameter {
            Parameter::ReluLower => (Key::Lower, lower),
            Parameter::ReluUpper => (
                Key::Upper,
                lower.max(0.0) + random.between(0, 16) as f32 / 8.0,
            ),
            Parameter::ReluSlope => (Key::Slope, random.pick(&[0.01, 0.1, 0.25, -0.5])),
            Parameter::SwishBeta | Parameter::SoftplusBeta => {
                (Key::Beta, random.pick(&[0.5, 1.0, 1.702, 2.0]))
            }
            Parameter::EluAlpha => (Key::Alpha, random.pick(&[0.5, 1.0, 1.6732632])),
            Parameter::Axis => {
                let axis = random.between(0, draft.layout.rank() as i64 - 1);
                draft.set(Key::Axis, Value::Int(axis));
                continue;
            }
        };
        if random.chance(35) {
            draft.set(key, Value::Float(value));
        }
    }
    let narrow = !matches!(draft.dtypes[0], Float | Double);
    if draft.op.is_fused() && narrow && random.chance(30) {
        draft.set(Key::VirtualIo, Value::Flag);
    }
}

/// A clip between −2 and 2.
fn eighth(random: &mut Random) -> f32 {
    random.between(-16, 16) as f32 / 8.0
}

/// Broadcast operands.
fn operands(random: &mut Random, mode: PointwiseMode, draft: &mut Draft) {
    let full: Vec<i64> = [draft.n, draft.c]
        .into_iter()
        .chain(draft.i.iter().copied())
        .collect();
    let arity = pointwise(mode).arity();
    for key in [Key::In0, Key::In1, Key::In2].into_iter().take(arity) {
        if arity == 1 || !random.chance(25) {
            continue;
        }
        let mut dims = full.clone();
        for dim in &mut dims {
            if random.chance(50) {
                *dim = 1;
            }
        }
        let leading = random.below(dims.len());
        if random.chance(40) {
            dims.drain(..leading);
        }
        draft.set(key, Value::Dims(dims));
    }
}

/// What a batchnorm reads and writes beside its images.
fn statistics(random: &mut Random, draft: &mut Draft) {
    let phase = match draft.op {
        Op::Batchnorm(phase) | Op::BatchnormActivation(phase, _) => phase,
        _ => return,
    };
    if matches!(
        phase,
        BatchnormPhase::InferenceVariance | BatchnormPhase::Training
    ) {
        let epsilon = random.pick(&[1e-5, 1e-3, 0.1]);
        draft.set(Key::Epsilon, Value::Float(epsilon));
    }
    let (stats, running) = match phase {
        BatchnormPhase::Training => (random.chance(50), random.chance(50)),
        BatchnormPhase::Backward => (random.chance(50), false),
        _ => (false, false),
    };
    if stats {
        draft.set(Key::Stats, Value::Flag);
    }
    if running {
        draft.set(Key::Running, Value::Flag);
        let momentum = random.pick(&[0.1, 0.5, 0.9, 1.0]);
        draft.set(Key::Momentum, Value::Float(momentum));
    }
}

/// Operations that are exact on integers.
fn takes_integers(op: Op) -> bool {
    use PointwiseMode::{Abs, Add, Identity, MaxOp, MinOp, Mul, Neg, ReluFwd, Sub};
    match op {
        Op::Conv(_) | Op::ConvBias => true,
        Op::ConvActivation(mode) | Op::ConvBiasActivation(mode) => mode == ReluFwd,
        Op::Pointwise(mode) => {
            [Abs, Add, Identity, MaxOp, MinOp, Mul, Neg, ReluFwd, Sub].contains(&mode)
        }
        _ => false,
    }
}
