//! The reference's speed as ratios taken in one run: against the machine's limits, against a loop
//! of the structure that hipDNN's own CPU reference has, and against PyTorch on the CPU in f64.
//!
//!     cargo bench -p dnn-assay-reference --bench figures [-- PART…]
//!
//! prints the tables of `docs/performance.md`. Parts: `conv`, `norm`, `pointwise`, `compare`, or
//! the name of a convolution (`c256`); none means all. `DNN_ASSAY_TORCH_PYTHON` names a Python
//! with PyTorch, whose column is empty otherwise. On a machine that others use,
//! `RAYON_NUM_THREADS=1 DNN_ASSAY_CLOCK=cpu` measures processor time on one thread. `-- check` measures
//! every kernel without the slow loops, and fails where one has fallen below a third of what it is
//! known to reach: register tiles that a compiler spills lose a factor of twenty, loops that it does
//! not turn into vectors a factor of five. `-- alone c256 dgrad` repeats one problem
//! for a profiler.

mod judging;
mod machine;
mod problems;
mod streams;
mod torch;
mod upstream;

use dnn_assay_graph::{DataType, Graph};
use dnn_assay_reference::{Arithmetic, Values, evaluate, evaluate_values};
use machine::{best, now, rounds};
use problems::{Direction, FEW, PROBLEMS, Problem, inputs};
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
        streams::heading();
        if wanted("norm") {
            streams::norms(&mut torch);
        }
        if wanted("pointwise") {
            streams::activations(&mut torch);
        }
    }
    if wanted("compare") {
        judging::comparisons();
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
    (values_alone(graph, values), whole(graph, values))
}

fn convolutions(problems: &[&Problem], torch: &mut Option<Torch>) {
    println!(
        "\n| problem | direction | y only, ms | GFLOP/s | of the peak | with Q | structure of upstream over y only | over with Q | PyTorch f64 over y only |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
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
                "| {} | {direction:?} | {:.3} | {:.1} | {:.0} % | {:.2}× | {:.0}× | {:.0}× | {} |",
                problem.name,
                milliseconds(y),
                rate / 1e9,
                100.0 * rate / peak,
                ratio(q, y),
                ratio(slow, y),
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
    let slow = upstream::Convolution::new(problem, direction, values);
    let once = best(|| drop(black_box(slow.run(part))), 3);
    once.mul_f64(elements as f64 / part as f64)
}

/// Values of a node without their uncertainty.
fn values_alone(graph: &Graph, values: &Values) -> Duration {
    time(|| {
        black_box(evaluate_values(graph, values)).expect("the graph is valid");
    })
}

/// Value and uncertainty of a node.
fn whole(graph: &Graph, values: &Values) -> Duration {
    let arithmetic = Arithmetic::default();
    time(|| {
        black_box(evaluate(graph, values, &arithmetic)).expect("the graph is valid");
    })
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

/// The same of fprop with few filters.
const FLOOR_OF_FEW: f64 = 10.0;

/// f64 tensors take a multiplication and an addition per term, so half as much.
const SEPARATE: f64 = 0.5;

/// How many times y alone the time with Q may be: a third of what the slowest loses where its f32
/// kernel works, twice what others take.
const MOST_WITH_Q: [(&str, f64); 6] = [
    ("c3k16", 7.0),
    ("c64k64", 3.5),
    ("c256", 3.5),
    ("c512k2048", 3.5),
    ("dw128", 10.0),
    ("conv3d", 3.5),
];

/// What belongs to a problem.
fn of<T: Copy>(table: &[(&str, T)], problem: &Problem) -> T {
    let found = table.iter().find(|(name, _)| *name == problem.name);
    found.expect("every problem is in every table").1
}

/// Holds the f64 kernel of a problem to a share of the peak, and says whether it has fallen.
fn kernel_fell(problem: &Problem, direction: Direction, data_type: DataType, floor: f64) -> bool {
    let graph = problem.graph_of(direction, data_type);
    let values = inputs(&graph);
    let peak = machine::peak();
    let y = values_alone(&graph, &values);
    let share = 100.0 * problem.flops() / y.as_secs_f64() / peak;
    let verdict = if share < floor { "fallen" } else { "kept" };
    println!(
        "{:<10} {direction:?} {data_type}: {share:.0} % of the peak, floor {floor:.0} %: {verdict}",
        problem.name
    );
    share < floor
}

/// Holds the f32 kernel of a problem, which the time with Q shows, and says whether it has fallen.
fn squares_fell(problem: &Problem, direction: Direction, most: f64) -> bool {
    let graph = problem.graph(direction);
    let (y, q) = both(&graph, &inputs(&graph));
    let times = ratio(q, y);
    let verdict = if times > most { "fallen" } else { "kept" };
    println!(
        "{:<10} {direction:?} with Q: {times:.1} times y alone, at most {most:.1}: {verdict}",
        problem.name
    );
    times > most
}

fn check() -> ExitCode {
    let mut fallen = false;
    for problem in &PROBLEMS {
        let floors = DIRECTIONS.into_iter().zip(of(&FLOORS, problem));
        for (direction, floor) in floors {
            fallen |= kernel_fell(problem, direction, DataType::Float, floor);
            fallen |= kernel_fell(problem, direction, DataType::Double, SEPARATE * floor);
            fallen |= squares_fell(problem, direction, of(&MOST_WITH_Q, problem));
        }
    }
    for problem in &FEW {
        fallen |= kernel_fell(problem, Direction::Fprop, DataType::Float, FLOOR_OF_FEW);
    }
    fallen |= streams::check();
    fallen |= judging::check();
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
