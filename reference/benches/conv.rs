//! The f64 reference against a loop of the structure that hipDNN's own CPU reference has: index
//! vectors on the heap for every multiply-accumulate, element access through a virtual call and a
//! dot product with the strides, f32 accumulator, one thread per hardware thread.
//!
//! `cargo bench -p dnn-assay-reference --bench conv` prints the ratio of both in one run, then the
//! times of every direction. `-- c256` prints the ratio of that problem alone, `-- c256 dgrad` runs
//! only the reference, for a profiler.

use dnn_assay_graph::schema::{
    ConvolutionBwdAttributes, ConvolutionFwdAttributes, ConvolutionWrwAttributes,
};
use dnn_assay_graph::{Attributes, DataType, Graph, Node, Tensor};
use dnn_assay_reference::{Arithmetic, Values, evaluate};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A square convolution.
#[derive(Clone, Copy)]
struct Problem {
    name: &'static str,
    batch: i64,
    groups: i64,
    channels: i64,
    filters: i64,
    size: i64,
    depth: i64,
    taps: i64,
}

const fn square(
    name: &'static str,
    batch: i64,
    channels: i64,
    size: i64,
    filters: i64,
    taps: i64,
) -> Problem {
    Problem {
        name,
        batch,
        groups: 1,
        channels,
        filters,
        size,
        depth: 0,
        taps,
    }
}

const PROBLEMS: [Problem; 6] = [
    square("c3k16", 1, 3, 32, 16, 3),
    square("c64k64", 16, 64, 56, 64, 3),
    square("c256", 8, 256, 14, 256, 3),
    square("c512k2048", 4, 512, 7, 2048, 1),
    Problem {
        groups: 128,
        ..square("dw128", 8, 1, 28, 1, 3)
    },
    Problem {
        depth: 16,
        ..square("conv3d", 1, 16, 28, 16, 3)
    },
];

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Fprop,
    Dgrad,
    Wgrad,
}

impl Problem {
    fn spatial(&self) -> Vec<i64> {
        let depth = (self.depth > 0).then_some(self.depth);
        depth.into_iter().chain([self.size; 2]).collect()
    }

    fn dims(&self) -> [Vec<i64>; 3] {
        let spatial = self.spatial();
        let with = |a: i64, b: i64, rest: &[i64]| [&[a, b], rest].concat();
        let (inputs, outputs) = (self.groups * self.channels, self.groups * self.filters);
        [
            with(self.batch, inputs, &spatial),
            with(outputs, self.channels, &vec![self.taps; spatial.len()]),
            with(self.batch, outputs, &spatial),
        ]
    }

    fn flops(&self) -> f64 {
        let [_, w, y] = self.dims();
        let product = |dims: &[i64]| dims.iter().product::<i64>() as f64;
        2.0 * product(&w) * product(&y) / y[1] as f64
    }

    fn graph(&self, direction: Direction) -> Graph {
        let [x, w, y] = self.dims();
        let rank = x.len() - 2;
        let padding = vec![self.taps / 2; rank];
        let ones = vec![1; rank];
        let attributes: Attributes = match direction {
            Direction::Fprop => ConvolutionFwdAttributes {
                x_tensor_uid: 1,
                w_tensor_uid: 2,
                y_tensor_uid: 3,
                pre_padding: padding.clone(),
                post_padding: padding,
                stride: ones.clone(),
                dilation: ones,
                ..Default::default()
            }
            .into(),
            Direction::Dgrad => ConvolutionBwdAttributes {
                dy_tensor_uid: 3,
                w_tensor_uid: 2,
                dx_tensor_uid: 1,
                pre_padding: padding.clone(),
                post_padding: padding,
                stride: ones.clone(),
                dilation: ones,
                ..Default::default()
            }
            .into(),
            Direction::Wgrad => ConvolutionWrwAttributes {
                x_tensor_uid: 1,
                dy_tensor_uid: 3,
                dw_tensor_uid: 2,
                pre_padding: padding.clone(),
                post_padding: padding,
                stride: ones.clone(),
                dilation: ones,
                ..Default::default()
            }
            .into(),
        };
        Graph {
            compute_type: DataType::Float,
            tensors: [x, w, y]
                .iter()
                .enumerate()
                .map(|(i, dims)| Tensor::packed(i as i64 + 1, "", DataType::Float, dims))
                .collect(),
            nodes: vec![Node {
                name: String::new(),
                compute_type: DataType::Float,
                attributes,
            }],
            ..Graph::default()
        }
    }
}

fn inputs(graph: &Graph) -> Values {
    graph
        .inputs()
        .map(|tensor| {
            let count = tensor.element_count().expect("sizes are small");
            let value = |i: usize| {
                let mut z =
                    (i as u64 ^ ((tensor.uid as u64) << 40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                f64::from((z >> 40) as f32 / 8_388_608.0 - 1.0)
            };
            (tensor.uid, (0..count).map(value).collect())
        })
        .collect()
}

/// Element access as a tensor of the test SDK gives it.
trait Access: Sync {
    fn get(&self, at: &[i64]) -> f32;
}

struct Strided {
    data: Vec<f32>,
    strides: Vec<i64>,
}

impl Access for Strided {
    fn get(&self, at: &[i64]) -> f32 {
        let offset: i64 = at.iter().zip(&self.strides).map(|(a, b)| a * b).sum();
        self.data[offset as usize]
    }
}

fn strided(dims: &[i64], values: &[f64]) -> Box<dyn Access> {
    Box::new(Strided {
        data: values.iter().map(|&value| value as f32).collect(),
        strides: dnn_assay_graph::model::packed_strides(dims),
    })
}

/// Some `elements` of an fprop, spread over the whole result, all threads.
fn upstream_structured(problem: &Problem, values: &Values, elements: i64) -> Vec<f32> {
    let [x_dims, w_dims, y_dims] = problem.dims();
    let (x, w) = (strided(&x_dims, &values[&1]), strided(&w_dims, &values[&2]));
    let step = y_dims.iter().product::<i64>() / elements;
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()) as i64;
    let chunk = (elements + threads - 1) / threads;
    let element = |index: i64| {
        let at = unravel(&y_dims, index * step);
        let group = at[1] / problem.filters;
        let mut sum = 0.0f32;
        for channel in 0..problem.channels {
            let taps: i64 = w_dims[2..].iter().product();
            for tap in 0..taps {
                let tap = unravel(&w_dims[2..], tap);
                let mut seen = Vec::with_capacity(at.len());
                seen.extend([at[0], group * problem.channels + channel]);
                let mut inside = true;
                for axis in 0..tap.len() {
                    let i = at[2 + axis] + tap[axis] - problem.taps / 2;
                    inside &= i >= 0 && i < x_dims[2 + axis];
                    seen.push(i);
                }
                if inside {
                    let mut weight = Vec::with_capacity(at.len());
                    weight.extend([at[1], channel]);
                    weight.extend(&tap);
                    sum += black_box(&x).get(&seen) * black_box(&w).get(&weight);
                }
            }
        }
        sum
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                let element = &element;
                scope.spawn(move || {
                    (t * chunk..((t + 1) * chunk).min(elements))
                        .map(element)
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<f32>>| {
            worker.join().expect("a worker only computes")
        };
        workers.into_iter().flat_map(join).collect()
    })
}

fn unravel(dims: &[i64], mut index: i64) -> Vec<i64> {
    let mut at = vec![0; dims.len()];
    for axis in (0..dims.len()).rev() {
        at[axis] = index % dims[axis];
        index /= dims[axis];
    }
    at
}

fn best(mut work: impl FnMut(), rounds: usize) -> Duration {
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

/// Value and uncertainty by the reference beside the structure of upstream, in one run.
fn ratios(wanted: Option<&str>) {
    println!("fprop, value and uncertainty, against a loop of upstream's structure");
    let problems = PROBLEMS.iter();
    for problem in problems.filter(|problem| wanted.is_none_or(|name| name == problem.name)) {
        let graph = problem.graph(Direction::Fprop);
        let values = inputs(&graph);
        let arithmetic = Arithmetic::default();
        let ours = best(
            || {
                black_box(evaluate(&graph, &values, &arithmetic)).expect("the graph is valid");
            },
            5,
        );
        // A part of the slow loop, scaled up; both sides give the best of several rounds.
        let elements: i64 = graph.tensors[2].dims.iter().product();
        let per_element = problem.flops() / 2.0 / elements as f64;
        let part = ((4e6 / per_element) as i64).clamp(64, elements);
        let theirs = best(
            || {
                black_box(upstream_structured(problem, &values, part));
            },
            3,
        )
        .mul_f64(elements as f64 / part as f64);
        println!(
            "  {:<10} {:>9.3} ms  {:>6.1} GFLOP/s   structure of upstream {:>10.1} ms   {:>7.0}x",
            problem.name,
            ours.as_secs_f64() * 1e3,
            problem.flops() / ours.as_secs_f64() / 1e9,
            theirs.as_secs_f64() * 1e3,
            theirs.as_secs_f64() / ours.as_secs_f64()
        );
    }
}

#[divan::bench(args = [0, 1, 2, 3, 4, 5], consts = [0, 1, 2])]
fn reference<const DIRECTION: usize>(bencher: divan::Bencher<'_, '_>, problem: usize) {
    let direction = [Direction::Fprop, Direction::Dgrad, Direction::Wgrad][DIRECTION];
    let graph = PROBLEMS[problem].graph(direction);
    let values = inputs(&graph);
    let arithmetic = Arithmetic::default();
    bencher
        .counter(divan::counter::ItemsCount::new(
            PROBLEMS[problem].flops() as u64
        ))
        .bench(|| evaluate(&graph, &values, &arithmetic));
}

/// One problem over and over, for a profiler.
fn alone(problem: &str, direction: &str) {
    let problem = PROBLEMS.iter().find(|known| known.name == problem);
    let problem = problem.expect("a name from the table");
    let graph = problem.graph(match direction {
        "dgrad" => Direction::Dgrad,
        "wgrad" => Direction::Wgrad,
        _ => Direction::Fprop,
    });
    let values = inputs(&graph);
    let rounds = (1e10 / problem.flops()).clamp(3.0, 300.0) as u32;
    let start = Instant::now();
    for _ in 0..rounds {
        black_box(evaluate(&graph, &values, &Arithmetic::default())).expect("the graph is valid");
    }
    println!("{:?} each of {rounds}", start.elapsed() / rounds);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'));
    match names.map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            ratios(None);
            divan::main();
        }
        [problem] => ratios(Some(problem)),
        [problem, direction, ..] => alone(problem, direction),
    }
}
