//! Work that moves memory: batchnorm, activations, conversions, each beside a copy.

use crate::machine;
use crate::problems::{ACTIVATION, Form, NORM, inputs, norm, relu};
use crate::torch::Torch;
use crate::{best, milliseconds, ratio, time, times, upstream, values_alone, whole};
use dnn_assay_graph::{DataType, Graph};
use dnn_assay_reference::{Values, dtype};
use std::hint::black_box;
use std::time::Duration;

/// The types of activations.
const TYPES: [DataType; 3] = [DataType::Half, DataType::Bfloat16, DataType::Float];

/// A measured piece of work.
struct Stream {
    name: String,
    time: Duration,
    /// Bytes that the mathematics reads and writes.
    bytes: f64,
    copies: Copies,
}

/// Bytes per second of a copy.
#[derive(Clone, Copy)]
struct Copies {
    there: f64,
    new: f64,
}

impl Copies {
    fn now() -> Self {
        let (there, new) = machine::copies();
        Self { there, new }
    }
}

impl Stream {
    /// The work between two measurements of the copy, of which the faster is the limit.
    fn of(name: String, bytes: f64, work: impl FnOnce() -> Duration) -> Self {
        let before = Copies::now();
        let time = work();
        let after = Copies::now();
        Self {
            name,
            time,
            bytes,
            copies: Copies {
                there: before.there.max(after.there),
                new: before.new.max(after.new),
            },
        }
    }

    /// Of the copy, in percent.
    fn share(&self) -> f64 {
        100.0 * self.bytes / self.time.as_secs_f64() / self.copies.there
    }

    /// `slow` beside the time of values and errors; of `alone`, the time of the values alone, a column
    /// of its own.
    fn row(&self, alone: Option<Duration>, slow: Option<Duration>, theirs: Option<Duration>) {
        let rate = self.bytes / self.time.as_secs_f64();
        println!(
            "| {} | {:.2} | {:.1} | {:.1} | {:.0} % | {:.0} % | {} | {} | {} | {} |",
            self.name,
            milliseconds(self.time),
            rate / 1e9,
            self.copies.there / 1e9,
            self.share(),
            100.0 * rate / self.copies.new,
            alone.map_or_else(
                || "–".to_owned(),
                |alone| format!("{:.2}", milliseconds(alone))
            ),
            over(slow, alone),
            over(slow, Some(self.time)),
            times(theirs, self.time)
        );
    }

    /// Whether it has fallen below a share of the copy.
    fn has_fallen(&self, floor: f64) -> bool {
        let (name, share) = (&self.name, self.share());
        let verdict = if share < floor { "fallen" } else { "kept" };
        println!("{name}: {share:.0} % of the copy, floor {floor:.0} %: {verdict}");
        share < floor
    }
}

/// `slow` over `time`, or a dash.
fn over(slow: Option<Duration>, time: Option<Duration>) -> String {
    match (slow, time) {
        (Some(slow), Some(time)) => format!("{:.0}×", ratio(slow, time)),
        _ => "–".to_owned(),
    }
}

pub fn heading() {
    println!(
        "\n| work | ms | GB/s | copy on all threads, GB/s | of the copy | of the copy into new memory | values alone, ms | structure of upstream over values alone | over both | PyTorch f64 over both |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
}

/// A form of batchnorm. Bytes: x, and dy, once for each pass that the mathematics needs (training: mean,
/// variance, y; backward: two tensors for the sums, two for dx), and the result, each 8.
fn norm_stream(form: Form, graph: &Graph, values: &Values) -> Stream {
    let reads = match form {
        Form::Train => 3.0,
        Form::Infer => 1.0,
        Form::Backward => 4.0,
    };
    let bytes = (reads + 1.0) * 8.0 * NORM.iter().product::<i64>() as f64;
    let name = format!("batchnorm {form:?}").to_lowercase();
    Stream::of(name, bytes, || whole(graph, values))
}

pub fn norms(torch: &mut Option<Torch>) {
    for form in [Form::Train, Form::Infer, Form::Backward] {
        let graph = norm(form);
        let values = inputs(&graph);
        let ours = norm_stream(form, &graph, &values);
        let alone = values_alone(&graph, &values);
        let channels = 4;
        let slow = best(
            || {
                black_box(upstream::norm(form, channels, &values));
            },
            3,
        );
        let slow = slow.mul_f64(NORM[1] as f64 / channels as f64);
        let [n, c, h, w] = NORM;
        let theirs = torch
            .as_mut()
            .map(|torch| torch.ask(&format!("{form:?} {n} {c} {h} {w}")));
        ours.row(Some(alone), Some(slow), theirs);
    }
}

/// ReLU of a type: x and y, each 8 bytes.
fn relu_stream(graph: &Graph, values: &Values) -> Stream {
    let name = format!("ReLU {}", graph.tensors[0].data_type);
    Stream::of(name, 16.0 * ACTIVATION as f64, || whole(graph, values))
}

/// Inputs that the type holds.
fn relu_inputs(data_type: DataType, graph: &Graph) -> Values {
    let mut values = inputs(graph);
    for value in values.values_mut().flatten() {
        *value = dtype::round(data_type, *value);
    }
    values
}

/// To the tensor's type and back: bytes of the type, and 8.
fn conversions(graph: &Graph, values: &Values) -> [Stream; 2] {
    let tensor = &graph.tensors[0];
    let mut bytes = vec![0; tensor.byte_size().expect("a packed tensor")];
    let moved = bytes.len() as f64 + 8.0 * ACTIVATION as f64;
    let name = |what: &str| format!("{what} {}", tensor.data_type);
    let encoded = Stream::of(name("encode"), moved, || {
        time(|| dtype::encode(tensor, &values[&1], &mut bytes).expect("it fits"))
    });
    let decoded = Stream::of(name("decode"), moved, || {
        time(|| drop(black_box(dtype::decode(tensor, &bytes))))
    });
    [encoded, decoded]
}

pub fn activations(torch: &mut Option<Torch>) {
    for data_type in TYPES {
        let graph = relu(data_type);
        let values = relu_inputs(data_type, &graph);
        let ours = relu_stream(&graph, &values);
        let part = 1 << 18;
        let slow = best(
            || {
                black_box(upstream::relu(part, &graph.tensors[0].dims, &values));
            },
            3,
        );
        let slow = slow.mul_f64((ACTIVATION / part) as f64);
        let theirs = torch
            .as_mut()
            .map(|torch| torch.ask(&format!("Relu {ACTIVATION}")));
        ours.row(None, Some(slow), theirs);
        for stream in conversions(&graph, &values) {
            stream.row(None, None, None);
        }
    }
}

/// Of the copy, in percent: a third of what is reached on one thread.
const NORM_FLOOR: f64 = 15.0;
const RELU_FLOOR: f64 = 28.0;
const CONVERSION_FLOOR: f64 = 18.0;

/// Whether any kernel has fallen.
pub fn check() -> bool {
    let mut fallen = false;
    for form in [Form::Train, Form::Infer, Form::Backward] {
        let graph = norm(form);
        fallen |= norm_stream(form, &graph, &inputs(&graph)).has_fallen(NORM_FLOOR);
    }
    for data_type in TYPES {
        let graph = relu(data_type);
        let values = relu_inputs(data_type, &graph);
        fallen |= relu_stream(&graph, &values).has_fallen(RELU_FLOOR);
        for stream in conversions(&graph, &values) {
            fallen |= stream.has_fallen(CONVERSION_FLOOR);
        }
    }
    fallen
}
