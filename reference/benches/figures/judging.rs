//! The comparison and the decoys, beside the reference and beside a copy.

use crate::machine;
use crate::problems::{ACTIVATION, PROBLEMS, inputs, relu};
use crate::{DIRECTIONS, milliseconds, ratio, time, whole};
use dnn_assay_graph::{DataType, Graph};
use dnn_assay_reference::{Arithmetic, Criterion, Values, compare, decoys, dtype, evaluate};
use std::hint::black_box;
use std::time::Duration;

/// How what was written differs from the rounded reference.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Written {
    /// Not at all.
    Rounded,
    /// By an error that a correct engine may make, in most elements.
    Inexact,
}

/// Times over a result.
struct Times {
    reference: Duration,
    comparison: Duration,
    decoys: Duration,
}

impl Times {
    fn judged(&self) -> Duration {
        self.comparison + self.decoys
    }

    fn row(&self, name: &str, passes: Option<f64>) {
        println!(
            "| {name} | {:.1} | {:.1} | {:.1} | {:.0} % | {} |",
            milliseconds(self.reference),
            milliseconds(self.comparison),
            milliseconds(self.decoys),
            100.0 * ratio(self.judged(), self.reference),
            passes.map_or_else(|| "–".to_owned(), |passes| format!("{passes:.2}")),
        );
    }

    /// In readings of value, uncertainty and output at the speed of the copy.
    fn passes(&self, data_type: DataType, copy: f64) -> f64 {
        let size = data_type.size().unwrap_or(8) as f64;
        self.judged().as_secs_f64() * copy / (ACTIVATION as f64 * (8.0 + 4.0 + size))
    }
}

/// Over the batch of convolutions and for activations.
pub fn comparisons() {
    println!(
        "\n| result | reference, ms | comparison, ms | decoys, ms | both over the reference | both over one reading of all operands at the speed of the copy |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for written in [Written::Rounded, Written::Inexact] {
        let mut all = Times {
            reference: Duration::ZERO,
            comparison: Duration::ZERO,
            decoys: Duration::ZERO,
        };
        for problem in &PROBLEMS {
            for direction in DIRECTIONS {
                let times = measured(&problem.graph(direction), written);
                all.reference += times.reference;
                all.comparison += times.comparison;
                all.decoys += times.decoys;
            }
        }
        all.row(
            &format!("all convolutions, {written:?}").to_lowercase(),
            None,
        );
    }
    for data_type in [DataType::Half, DataType::Float] {
        let (times, copy) = of_relu(data_type);
        let passes = times.passes(data_type, copy);
        times.row(&format!("ReLU {data_type}"), Some(passes));
    }
}

/// The times for an activation, and bytes per second of a copy meanwhile.
fn of_relu(data_type: DataType) -> (Times, f64) {
    let before = machine::copies().0;
    let times = measured(&relu(data_type), Written::Rounded);
    (times, before.max(machine::copies().0))
}

fn measured(graph: &Graph, written: Written) -> Times {
    let mut values: Values = inputs(graph);
    for (uid, values) in &mut values {
        let data_type = graph.tensor(*uid).expect("an input").data_type;
        for value in values {
            *value = dtype::round(data_type, *value);
        }
    }
    let reference = whole(graph, &values);
    let evaluation = evaluate(graph, &values, &Arithmetic::default()).expect("the graph is valid");
    let uid = graph.nodes[0].attributes.outputs()[0];
    let tensor = graph.tensor(uid).expect("the node writes it");
    let estimate = &evaluation.tensors[&uid];
    let mut output = estimate.value.clone();
    if written == Written::Inexact {
        for (index, (value, error)) in output.iter_mut().zip(&estimate.error).enumerate() {
            *value += f64::from(*error) * ((index % 17) as f64 / 8.0 - 1.0);
        }
    }
    let mut got = vec![0; tensor.byte_size().expect("a packed tensor")];
    dtype::encode(tensor, &output, &mut got).expect("it fits");
    let comparison = time(|| {
        let comparison = compare(tensor, estimate, &got, &Criterion::Bound);
        assert!(comparison.expect("it fits").passed);
    });
    let decoys = time(|| {
        black_box(decoys::check(tensor, estimate, &Criterion::Bound)).expect("it fits");
    });
    Times {
        reference,
        comparison,
        decoys,
    }
}

/// Readings of all operands, at the speed of the copy, that comparison and decoys may take: three times
/// what they do on one thread.
const MOST_PASSES: f64 = 9.0;

/// Whether the comparison has fallen.
pub fn check() -> bool {
    let (times, copy) = of_relu(DataType::Half);
    let passes = times.passes(DataType::Half, copy);
    let verdict = if passes > MOST_PASSES {
        "fallen"
    } else {
        "kept"
    };
    println!(
        "comparison of ReLU f16: {passes:.1} readings at the copy's speed, at most {MOST_PASSES}: {verdict}"
    );
    passes > MOST_PASSES
}
