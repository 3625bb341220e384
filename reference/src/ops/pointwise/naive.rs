//! The textbook formula in f32.

use super::textbook::{self, Function, Machine};
use super::value;
use dnn_assay_graph::PointwiseMode;
use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::semantics::Parameters;

/// f32, step by step.
struct Single;

impl Machine for Single {
    type Number = f32;

    fn exact(&self, x: f64) -> f32 {
        x as f32
    }

    fn constant(&self, x: f64) -> f32 {
        x as f32
    }

    fn add(&self, a: f32, b: f32) -> f32 {
        a + b
    }

    fn mul(&self, a: f32, b: f32) -> f32 {
        a * b
    }

    fn div(&self, a: f32, b: f32) -> f32 {
        a / b
    }

    fn call(&self, function: Function, a: f32) -> f32 {
        match function {
            Function::Exp => libm::expf(a),
            Function::Log => libm::logf(a),
            Function::Tanh => libm::tanhf(a),
            Function::Erf => libm::erff(a),
            Function::Sin => libm::sinf(a),
            Function::Tan => libm::tanf(a),
            Function::Sqrt => a.sqrt(),
            Function::Rsqrt => 1.0 / a.sqrt(),
        }
    }

    fn scale(&self, a: f32, by: f64) -> f32 {
        a * by as f32
    }
}

/// The result of a node on f32 operands; `None` for modes that are no function of them.
pub(crate) fn naive(table: &PointwiseAttributes, operands: [f32; 3]) -> Option<f32> {
    let (mode, parameters) = (table.operation, Parameters::of(table));
    if matches!(mode, PointwiseMode::Unset | PointwiseMode::GenIndex) {
        return None;
    }
    let [a, b, c] = operands.map(f64::from);
    let stepped = textbook::run(&Single, mode, &parameters, a, b);
    // What rounds nothing is the same in every type.
    Some(stepped.unwrap_or_else(|| value::value(mode, &parameters, a, b, c) as f32))
}
