//! Loops of the structure that hipDNN's own CPU reference has: index vectors on the heap for every
//! element and multiply-accumulate, element access through a virtual call and a dot product with
//! the strides, f32 sums, one thread per hardware thread; pointwise on one thread.
//!
//! They stand for the structure, not for the code: nothing is taken from upstream.

use crate::problems::{Direction, NORM, Problem};
use dnn_assay_reference::Values;
use std::hint::black_box;

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

/// Some `elements` of a convolution's result, spread over all of it, on all threads.
pub fn convolution(
    problem: &Problem,
    direction: Direction,
    values: &Values,
    elements: i64,
) -> Vec<f32> {
    let [x, w, y] = problem.dims();
    let spread = |dims: &[i64]| (dims.to_vec(), dims.iter().product::<i64>() / elements);
    let own = |uid: i64, dims: &[i64]| strided(dims, &values[&uid]);
    match direction {
        Direction::Fprop => {
            let (first, second) = (own(1, &x), own(2, &w));
            let (dims, step) = spread(&y);
            all_threads(elements, |i| {
                fprop(
                    problem,
                    &[&x, &w],
                    &unravel(&dims, i * step),
                    &*first,
                    &*second,
                )
            })
        }
        Direction::Dgrad => {
            let (first, second) = (own(3, &y), own(2, &w));
            let (dims, step) = spread(&x);
            all_threads(elements, |i| {
                dgrad(
                    problem,
                    &[&w, &y],
                    &unravel(&dims, i * step),
                    &*first,
                    &*second,
                )
            })
        }
        Direction::Wgrad => {
            let (first, second) = (own(3, &y), own(1, &x));
            let (dims, step) = spread(&w);
            all_threads(elements, |i| {
                wgrad(
                    problem,
                    &[&x, &y],
                    &unravel(&dims, i * step),
                    &*first,
                    &*second,
                )
            })
        }
    }
}

fn inside(at: &[i64], dims: &[i64]) -> bool {
    at.iter()
        .zip(dims)
        .all(|(&at, &dim)| (0..dim).contains(&at))
}

fn fprop(problem: &Problem, dims: &[&[i64]; 2], at: &[i64], x: &dyn Access, w: &dyn Access) -> f32 {
    let [x_dims, w_dims] = dims;
    let group = at[1] / problem.filters;
    let mut sum = 0.0f32;
    for channel in 0..problem.channels {
        for tap in 0..w_dims[2..].iter().product() {
            let tap = unravel(&w_dims[2..], tap);
            let mut seen = vec![at[0], group * problem.channels + channel];
            let moved = tap
                .iter()
                .zip(&at[2..])
                .map(|(tap, at)| at + tap - problem.taps / 2);
            seen.extend(moved);
            if inside(&seen, x_dims) {
                let mut weight = vec![at[1], channel];
                weight.extend(&tap);
                sum += black_box(x).get(&seen) * black_box(w).get(&weight);
            }
        }
    }
    sum
}

fn dgrad(
    problem: &Problem,
    dims: &[&[i64]; 2],
    at: &[i64],
    dy: &dyn Access,
    w: &dyn Access,
) -> f32 {
    let [w_dims, y_dims] = dims;
    let (group, channel) = (at[1] / problem.channels, at[1] % problem.channels);
    let mut sum = 0.0f32;
    for filter in group * problem.filters..(group + 1) * problem.filters {
        for tap in 0..w_dims[2..].iter().product() {
            let tap = unravel(&w_dims[2..], tap);
            let mut seen = vec![at[0], filter];
            let moved = tap
                .iter()
                .zip(&at[2..])
                .map(|(tap, at)| at - tap + problem.taps / 2);
            seen.extend(moved);
            if inside(&seen, y_dims) {
                let mut weight = vec![filter, channel];
                weight.extend(&tap);
                sum += black_box(dy).get(&seen) * black_box(w).get(&weight);
            }
        }
    }
    sum
}

/// One index vector per position, which the images share.
fn wgrad(
    problem: &Problem,
    dims: &[&[i64]; 2],
    at: &[i64],
    dy: &dyn Access,
    x: &dyn Access,
) -> f32 {
    let [x_dims, y_dims] = dims;
    let group = at[0] / problem.filters;
    let mut sum = 0.0f32;
    for position in 0..y_dims[2..].iter().product() {
        let position = unravel(&y_dims[2..], position);
        let mut seen = vec![0, group * problem.channels + at[1]];
        let moved = position
            .iter()
            .zip(&at[2..])
            .map(|(p, tap)| p + tap - problem.taps / 2);
        seen.extend(moved);
        let mut error = vec![0, at[0]];
        error.extend(&position);
        if inside(&seen, x_dims) {
            for image in 0..problem.batch {
                (seen[0], error[0]) = (image, image);
                sum += black_box(dy).get(&error) * black_box(x).get(&seen);
            }
        }
    }
    sum
}

/// `element` of 0, 1, …, one run of them per hardware thread.
fn all_threads(elements: i64, element: impl Fn(i64) -> f32 + Sync) -> Vec<f32> {
    let threads = rayon::current_num_threads() as i64;
    let chunk = (elements + threads - 1) / threads;
    std::thread::scope(|scope| {
        let run = |t: i64| {
            let element = &element;
            scope.spawn(move || {
                let run = t * chunk..((t + 1) * chunk).min(elements);
                run.map(element).collect::<Vec<_>>()
            })
        };
        let workers: Vec<_> = (0..threads).map(run).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<f32>>| {
            worker.join().expect("a worker only computes")
        };
        workers.into_iter().flat_map(join).collect()
    })
}

/// Batchnorm of `channels` of [`NORM`]'s channels: one pass for the sums of a channel, one for its
/// elements. `sums` says whether the form has the first.
pub fn norm(channels: i64, sums: bool, values: &Values) -> Vec<f32> {
    let x = strided(&NORM, &values[&1]);
    let per_channel = NORM[0] * NORM[2] * NORM[3];
    let place = |channel: i64, i: i64| {
        let at = unravel(&[NORM[0], NORM[2], NORM[3]], i);
        vec![at[0], channel, at[1], at[2]]
    };
    all_threads(channels, |channel| {
        let (mut sum, mut squares) = (0.0f32, 0.0f32);
        if sums {
            for i in 0..per_channel {
                let value = black_box(&*x).get(&place(channel, i));
                sum += value;
                squares += value * value;
            }
        }
        let mean = sum / per_channel as f32;
        let inverse = 1.0 / (squares / per_channel as f32 - mean * mean + 1e-5).sqrt();
        let mut out = Output::of(&NORM);
        for i in 0..per_channel {
            let at = place(channel, i);
            let value = (black_box(&*x).get(&at) - mean) * inverse;
            black_box(&mut out as &mut dyn Store).set(&at, value);
        }
        out.last
    })
}

/// ReLU of `elements` elements, on one thread.
pub fn relu(elements: i64, dims: &[i64], values: &Values) -> f32 {
    let x = strided(dims, &values[&1]);
    let mut out = Output::of(dims);
    for i in 0..elements {
        let at = unravel(dims, i);
        let value = f64::from(black_box(&*x).get(&at)).max(0.0) as f32;
        black_box(&mut out as &mut dyn Store).set(&at, value);
    }
    out.last
}

/// Element stores as a tensor of the test SDK takes them.
trait Store {
    fn set(&mut self, at: &[i64], value: f32);
}

/// A small window of an output, so that its memory costs nothing.
struct Output {
    strides: Vec<i64>,
    window: Vec<f32>,
    last: f32,
}

impl Output {
    fn of(dims: &[i64]) -> Self {
        Self {
            strides: dnn_assay_graph::model::packed_strides(dims),
            window: vec![0.0; 1 << 12],
            last: 0.0,
        }
    }
}

impl Store for Output {
    fn set(&mut self, at: &[i64], value: f32) {
        let offset: i64 = at.iter().zip(&self.strides).map(|(a, b)| a * b).sum();
        let slot = offset as usize % self.window.len();
        self.window[slot] = value;
        self.last = value;
    }
}

fn unravel(dims: &[i64], mut index: i64) -> Vec<i64> {
    let mut at = vec![0; dims.len()];
    for axis in (0..dims.len()).rev() {
        at[axis] = index % dims[axis];
        index /= dims[axis];
    }
    at
}
