//! The reference's speed as ratios taken in one run: against the machine's limits, against a loop
//! of the structure that hipDNN's own CPU reference has, and against PyTorch on the CPU in f64.
//!
//!     cargo bench -p dnn-assay-reference --bench figures [-- PART…]
//!
//! prints the tables of `docs/performance.md`. Parts: `conv`, `norm`, `pointwise`, `compare`, or
//! the name of a convolution (`c256`); none means all. `DNN_ASSAY_TORCH_PYTHON` names a Python
//! with PyTorch, whose column is empty otherwise. On a machine that others use,
//! `RAYON_NUM_THREADS=1 DNN_ASSAY_CLOCK=cpu` measures processor time on one thread. `-- check` measures only the convolutions'
//! kernels, and fails where one has fallen below a third of what it is known to reach: register
//! tiles that a compiler spills lose a factor of twenty. `-- alone c256 dgrad` repeats one problem
//! for a profiler.

mod machine;
mod problems;
mod torch;
mod upstream;

use dnn_assay_graph::{DataType, Graph};
use dnn_assay_reference::{
    Arithmetic, Criterion, Values, compare, decoys, dtype, evaluate, evaluate_values,
};
use machine::{best, now, rounds};
use problems::{ACTIVATION, Direction, Form, NORM, PROBLEMS, Problem, inputs, norm, relu};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;
use torch::Torch;

const DIRECTIONS: [Direction; 3] = [Direction::Fprop, Direction::Dgrad, Direction::Wgrad];

/// Seconds that one figure may take.
const BUDGET: f64 = 0.6;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| !word.starts_with('-'))
        .collect();
    match words[..] {
        ["check"] => return check(),
        ["alone", problem, direction] => alone(problem, direction),
        _ => tables(&words),
    }
    ExitCode::SUCCESS
}

fn tables(words: &[&str]) {
    let wanted = |part: &str| words.is_empty() || words.contains(&part);
    println!("Machine: {}", machine::describe());
    let problems: Vec<&Problem> = PROBLEMS
        .iter()
        .filter(|problem| wanted("conv") || words.contains(&problem.name))
        .collect();
    let mut torch = Torch::start();
    if let Some(torch) = &torch {
        println!("PyTorch {} on the CPU, f64, as many threads", torch.version);
    }
    if !problems.is_empty() {
        convolutions(&problems, &mut torch);
    }
    if wanted("norm") || wanted("pointwise") {
        let (there, new) = machine::copies();
        let limits = Copies { there, new };
        println!(
            "\nCopy on all threads, bytes read and written: {:.1} GB/s, into new memory {:.1} GB/s\n",
            there / 1e9,
            new / 1e9
        );
        println!(
            "| work | ms | GB/s | of the copy | of the copy into new memory | structure of upstream | PyTorch f64 |"
        );
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
        if wanted("norm") {
            norms(&limits, &mut torch);
        }
        if wanted("pointwise") {
            activations(&limits, &mut torch);
        }
    }
    if wanted("compare") {
        comparisons();
    }
}

/// The time of `work`, at its best.
fn time(mut work: impl FnMut()) -> Duration {
    let start = now();
    work();
    let once = now().saturating_sub(start);
    best(work, rounds(once, BUDGET)).min(once)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn ratio(theirs: Duration, ours: Duration) -> f64 {
    theirs.as_secs_f64() / ours.as_secs_f64()
}

/// `theirs` over `ours`, or a dash.
fn times(theirs: Option<Duration>, ours: Duration) -> String {
    theirs.map_or_else(
        || "–".to_owned(),
        |theirs| format!("{:.2}×", ratio(theirs, ours)),
    )
}

/// Values alone, and with uncertainty.
fn both(graph: &Graph, values: &Values) -> (Duration, Duration) {
    let arithmetic = Arithmetic::default();
    let y = time(|| {
        black_box(evaluate_values(graph, values)).expect("the graph is valid");
    });
    let q = time(|| {
        black_box(evaluate(graph, values, &arithmetic)).expect("the graph is valid");
    });
    (y, q)
}

fn convolutions(problems: &[&Problem], torch: &mut Option<Torch>) {
    println!(
        "\n| problem | direction | y only, ms | GFLOP/s | of the peak | with Q | structure of upstream over with Q | PyTorch f64 over y only |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    let mut total = Total::default();
    for problem in problems {
        for direction in DIRECTIONS {
            let graph = problem.graph(direction);
            let values = inputs(&graph);
            let before = machine::peak();
            let (y, q) = both(&graph, &values);
            // The clock may move; the higher peak is the limit.
            let peak = before.max(machine::peak());
            let theirs = torch
                .as_mut()
                .map(|torch| torch.convolution(problem, direction));
            let slow = slow_convolution(problem, direction, &values);
            let rate = problem.flops() / y.as_secs_f64();
            println!(
                "| {} | {direction:?} | {:.3} | {:.1} | {:.0} % | {:.2}× | {:.0}× | {} |",
                problem.name,
                milliseconds(y),
                rate / 1e9,
                100.0 * rate / peak,
                ratio(q, y),
                ratio(slow, q),
                times(theirs, y),
            );
            total.add(problem, y, q, slow, theirs, peak);
        }
    }
    total.print();
}

/// The batch of all problems.
#[derive(Default)]
struct Total {
    y: Duration,
    q: Duration,
    slow: Duration,
    theirs: Option<Duration>,
    /// What the peak allows.
    least: f64,
    logarithms: Vec<f64>,
}

impl Total {
    fn add(
        &mut self,
        problem: &Problem,
        y: Duration,
        q: Duration,
        slow: Duration,
        theirs: Option<Duration>,
        peak: f64,
    ) {
        self.y += y;
        self.q += q;
        self.slow += slow;
        self.least += problem.flops() / peak;
        if let Some(theirs) = theirs {
            *self.theirs.get_or_insert_default() += theirs;
            self.logarithms.push(ratio(theirs, y).ln());
        }
    }

    fn print(&self) {
        println!(
            "\nAll of them, y only: {:.1} ms, {:.2}× what the peak allows ({:.1} ms); with Q {:.2}×.",
            milliseconds(self.y),
            self.y.as_secs_f64() / self.least,
            self.least * 1e3,
            ratio(self.q, self.y)
        );
        println!(
            "A loop of upstream's structure takes {:.0}× the time of y only, {:.0}× with Q.",
            ratio(self.slow, self.y),
            ratio(self.slow, self.q)
        );
        if let Some(theirs) = self.theirs {
            let mean = self.logarithms.iter().sum::<f64>() / self.logarithms.len() as f64;
            println!(
                "PyTorch in f64 takes {:.2}× the time of y only; {:.2}× in the geometric mean.",
                ratio(theirs, self.y),
                mean.exp()
            );
        }
    }
}

/// A part of the slow loop, scaled up to the whole result.
fn slow_convolution(problem: &Problem, direction: Direction, values: &Values) -> Duration {
    let [x, w, y] = problem.dims();
    let dims = [y, x, w][direction as usize].clone();
    let elements: i64 = dims.iter().product();
    let per_element = problem.flops() / 2.0 / elements as f64;
    let part = ((3e6 / per_element) as i64).clamp(8.min(elements), elements);
    let once = best(
        || {
            black_box(upstream::convolution(problem, direction, values, part));
        },
        3,
    );
    once.mul_f64(elements as f64 / part as f64)
}

/// Bytes per second.
struct Copies {
    there: f64,
    new: f64,
}

impl Copies {
    fn row(
        &self,
        name: &str,
        time: Duration,
        bytes: f64,
        slow: Duration,
        theirs: Option<Duration>,
    ) {
        let rate = bytes / time.as_secs_f64();
        println!(
            "| {name} | {:.2} | {:.1} | {:.0} % | {:.0} % | {:.0}× | {} |",
            milliseconds(time),
            rate / 1e9,
            100.0 * rate / self.there,
            100.0 * rate / self.new,
            ratio(slow, time),
            times(theirs, time)
        );
    }
}

/// Value and uncertainty of a node.
fn whole(graph: &Graph, values: &Values) -> Duration {
    let arithmetic = Arithmetic::default();
    time(|| {
        black_box(evaluate(graph, values, &arithmetic)).expect("the graph is valid");
    })
}

/// Bytes: x, and dy, once for each pass that the mathematics needs, and the result, each 8.
fn norms(limits: &Copies, torch: &mut Option<Torch>) {
    let elements = NORM.iter().product::<i64>() as f64;
    // Training: mean, variance, y. Backward: two tensors for the sums, two for dx.
    for (form, reads) in [
        (Form::Train, 3.0),
        (Form::Infer, 1.0),
        (Form::Backward, 4.0),
    ] {
        let graph = norm(form);
        let values = inputs(&graph);
        let ours = whole(&graph, &values);
        let channels = 4;
        let slow = best(
            || {
                black_box(upstream::norm(channels, form != Form::Infer, &values));
            },
            3,
        );
        let slow = slow.mul_f64(NORM[1] as f64 / channels as f64);
        let [n, c, h, w] = NORM;
        let theirs = torch
            .as_mut()
            .map(|torch| torch.ask(&format!("{form:?} {n} {c} {h} {w}")));
        let name = format!("batchnorm {form:?}").to_lowercase();
        limits.row(&name, ours, (reads + 1.0) * 8.0 * elements, slow, theirs);
    }
}

fn activations(limits: &Copies, torch: &mut Option<Torch>) {
    for data_type in [DataType::Half, DataType::Bfloat16, DataType::Float] {
        let graph = relu(data_type);
        let mut values = inputs(&graph);
        for value in values.values_mut().flatten() {
            *value = dtype::round(data_type, *value);
        }
        let ours = whole(&graph, &values);
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
        let bytes = 16.0 * ACTIVATION as f64;
        limits.row(&format!("ReLU {data_type}"), ours, bytes, slow, theirs);
        conversions(limits, &graph, &values);
    }
}

/// To the tensor's type and back: bytes of the type, and 8.
fn conversions(limits: &Copies, graph: &Graph, values: &Values) {
    let tensor = &graph.tensors[0];
    let mut bytes = vec![0; tensor.byte_size().expect("a packed tensor")];
    let moved = bytes.len() as f64 + 8.0 * ACTIVATION as f64;
    let encoded = time(|| dtype::encode(tensor, &values[&1], &mut bytes).expect("it fits"));
    let decoded = time(|| drop(black_box(dtype::decode(tensor, &bytes))));
    for (name, time) in [("encode", encoded), ("decode", decoded)] {
        let rate = moved / time.as_secs_f64();
        println!(
            "| {name} {} | {:.2} | {:.1} | {:.0} % | {:.0} % | – | – |",
            tensor.data_type,
            milliseconds(time),
            rate / 1e9,
            100.0 * rate / limits.there,
            100.0 * rate / limits.new
        );
    }
}

/// The comparison and the decoys beside the reference, over the batch and for an activation.
fn comparisons() {
    println!(
        "\n| result | reference, ms | comparison, ms | decoys, ms | both over the reference |"
    );
    println!("| --- | ---: | ---: | ---: | ---: |");
    let (mut reference, mut judged) = (Duration::ZERO, Duration::ZERO);
    for problem in &PROBLEMS {
        for direction in DIRECTIONS {
            let graph = problem.graph(direction);
            let (whole, [compared, checked]) = comparison(&graph);
            reference += whole;
            judged += compared + checked;
        }
    }
    println!(
        "| all convolutions | {:.1} | {:.1} with decoys | | {:.0} % |",
        milliseconds(reference),
        milliseconds(judged),
        100.0 * ratio(judged, reference)
    );
    let (whole, [compared, checked]) = comparison(&relu(DataType::Half));
    println!(
        "| ReLU f16 | {:.1} | {:.1} | {:.1} | {:.0} % |",
        milliseconds(whole),
        milliseconds(compared),
        milliseconds(checked),
        100.0 * ratio(compared + checked, whole)
    );
}

/// The reference's time, the comparison's and the decoys'.
fn comparison(graph: &Graph) -> (Duration, [Duration; 2]) {
    let values = inputs(graph);
    let values: Values = values
        .into_iter()
        .map(|(uid, values)| {
            let data_type = graph.tensor(uid).expect("an input").data_type;
            let round = |value| dtype::round(data_type, value);
            (uid, values.into_iter().map(round).collect())
        })
        .collect();
    let evaluated = whole(graph, &values);
    let evaluation = evaluate(graph, &values, &Arithmetic::default()).expect("the graph is valid");
    let uid = graph.nodes[0].attributes.outputs()[0];
    let tensor = graph.tensor(uid).expect("the node writes it");
    let estimate = &evaluation.tensors[&uid];
    let mut got = vec![0; tensor.byte_size().expect("a packed tensor")];
    dtype::encode(tensor, &estimate.value, &mut got).expect("it fits");
    let compared = time(|| {
        let comparison = compare(tensor, estimate, &got, &Criterion::Bound);
        assert!(comparison.expect("it fits").passed);
    });
    let checked = time(|| {
        black_box(decoys::check(tensor, estimate, &Criterion::Bound)).expect("it fits");
    });
    (evaluated, [compared, checked])
}

/// Of the peak, in percent: a third of what fprop, dgrad and wgrad of each problem reach on one
/// thread of a machine with 512-bit vectors.
const FLOORS: [(&str, [f64; 3]); 6] = [
    ("c3k16", [6.0, 8.0, 6.0]),
    ("c64k64", [25.0, 25.0, 23.0]),
    ("c256", [28.0, 28.0, 26.0]),
    ("c512k2048", [20.0, 18.0, 20.0]),
    ("dw128", [2.5, 2.5, 2.5]),
    ("conv3d", [22.0, 22.0, 20.0]),
];

fn check() -> ExitCode {
    let mut fallen = false;
    for problem in &PROBLEMS {
        let floors = FLOORS.iter().find(|(name, _)| *name == problem.name);
        let (_, floors) = floors.expect("every problem has floors");
        for (direction, floor) in DIRECTIONS.into_iter().zip(floors) {
            let graph = problem.graph(direction);
            let values = inputs(&graph);
            let peak = machine::peak();
            let y = time(|| {
                black_box(evaluate_values(&graph, &values)).expect("the graph is valid");
            });
            let share = 100.0 * problem.flops() / y.as_secs_f64() / peak;
            let verdict = if share < *floor { "fallen" } else { "kept" };
            fallen |= share < *floor;
            println!(
                "{:<10} {direction:?}: {share:.0} % of the peak, floor {floor:.0} %: {verdict}",
                problem.name
            );
        }
    }
    if fallen {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// One problem over and over, for a profiler.
fn alone(problem: &str, direction: &str) {
    let problem = PROBLEMS.iter().find(|known| known.name == problem);
    let problem = problem.expect("a name from the table");
    let named = |known: &Direction| format!("{known:?}").to_lowercase() == direction;
    let direction = DIRECTIONS
        .into_iter()
        .find(named)
        .expect("fprop, dgrad or wgrad");
    let graph = problem.graph(direction);
    let values = inputs(&graph);
    let (y, q) = both(&graph, &values);
    println!("y only {y:?}, with Q {q:?}");
}
