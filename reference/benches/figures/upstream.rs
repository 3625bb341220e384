//! Loops of the structure that hipDNN's own CPU reference has: index vectors on the heap for every
//! element and multiply-accumulate, element access through a virtual call and a dot product with
//! the strides, f32 sums, one thread per hardware thread; pointwise on one thread.
//!
//! They stand for the structure, not for the code: nothing is taken from upstream. The order of the
//! loops and what is allocated in which is that of `CpuReferenceConvolution.hpp` in hipDNN's test
//! SDK (`ROCm/rocm-libraries`, commit 3669bd85).

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

/// A convolution with its tensors laid out.
pub struct Convolution<'a> {
    problem: &'a Problem,
    direction: Direction,
    /// The factors in the order of the loop's arguments.
    factors: [Box<dyn Access>; 2],
}

impl<'a> Convolution<'a> {
    pub fn new(problem: &'a Problem, direction: Direction, values: &Values) -> Self {
        let [x, w, y] = problem.dims();
        let own = |uid: i64, dims: &[i64]| strided(dims, &values[&uid]);
        let factors = match direction {
            Direction::Fprop => [own(1, &x), own(2, &w)],
            Direction::Dgrad => [own(3, &y), own(2, &w)],
            Direction::Wgrad => [own(3, &y), own(1, &x)],
        };
        Self {
            problem,
            direction,
            factors,
        }
    }

    /// Some `elements` of the result, spread over all of it, on all threads.
    pub fn run(&self, elements: i64) -> Vec<f32> {
        let [x, w, y] = self.problem.dims();
        let (result, run, dims): (_, Loop, [&[i64]; 2]) = match self.direction {
            Direction::Fprop => (&y, fprop, [&x, &w]),
            Direction::Dgrad => (&x, dgrad, [&w, &y]),
            Direction::Wgrad => (&w, wgrad, [&x, &y]),
        };
        let step = result.iter().product::<i64>() / elements;
        let [first, second] = &self.factors;
        all_threads(elements, |i| {
            let at = unravel(result, i * step);
            run(self.problem, &dims, &at, &**first, &**second)
        })
    }
}

/// One element: the problem, the extents of two tensors, the element's index, the factors.
type Loop = fn(&Problem, &[&[i64]; 2], &[i64], &dyn Access, &dyn Access) -> f32;

/// A full index as upstream builds it: two numbers, then the spatial ones added to it, so that it
/// grows once.
fn full(first: i64, second: i64, spatial: &[i64]) -> Vec<i64> {
    let mut at = vec![first, second];
    at.extend_from_slice(spatial);
    at
}

/// Calls `visit` with every index below `dims`; one vector counts them up.
fn each(dims: &[i64], mut visit: impl FnMut(&[i64])) {
    let mut at = vec![0; dims.len()];
    for _ in 0..dims.iter().product() {
        visit(&at);
        for (at, &dim) in at.iter_mut().zip(dims).rev() {
            *at += 1;
            if *at < dim {
                break;
            }
            *at = 0;
        }
    }
}

/// A spatial index moved by a tap, a vector of its own; `None` outside.
fn moved(
    at: &[i64],
    tap: &[i64],
    dims: &[i64],
    move_one: impl Fn(i64, i64) -> i64,
) -> Option<Vec<i64>> {
    let mut seen = vec![0; at.len()];
    for (axis, seen) in seen.iter_mut().enumerate() {
        *seen = move_one(at[axis], tap[axis]);
        if !(0..dims[axis]).contains(seen) {
            return None;
        }
    }
    Some(seen)
}

/// Channels outside, taps inside; a spatial index and two full ones per term.
fn fprop(problem: &Problem, dims: &[&[i64]; 2], at: &[i64], x: &dyn Access, w: &dyn Access) -> f32 {
    let [x_dims, w_dims] = dims;
    let group = at[1] / problem.filters;
    let mut sum = 0.0f32;
    for channel in 0..problem.channels {
        each(&w_dims[2..], |tap| {
            let seen = moved(&at[2..], tap, &x_dims[2..], |at, tap| {
                at + tap - problem.taps / 2
            });
            if let Some(seen) = seen {
                let seen = full(at[0], group * problem.channels + channel, &seen);
                let weight = full(at[1], channel, tap);
                sum += black_box(x).get(&seen) * black_box(w).get(&weight);
            }
        });
    }
    sum
}

/// Taps outside with a spatial index each, filters inside with two full ones per term.
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
    each(&w_dims[2..], |tap| {
        let seen = moved(&at[2..], tap, &y_dims[2..], |at, tap| {
            at - tap + problem.taps / 2
        });
        if let Some(seen) = seen {
            for filter in group * problem.filters..(group + 1) * problem.filters {
                let error = full(at[0], filter, &seen);
                let weight = full(filter, channel, tap);
                sum += black_box(dy).get(&error) * black_box(w).get(&weight);
            }
        }
    });
    sum
}

/// Positions outside with a spatial index each, images inside with two full ones per term.
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
    each(&y_dims[2..], |position| {
        let seen = moved(position, &at[2..], &x_dims[2..], |position, tap| {
            position + tap - problem.taps / 2
        });
        if let Some(seen) = seen {
            for image in 0..problem.batch {
                let error = full(image, at[0], position);
                let seen = full(image, group * problem.channels + at[1], &seen);
                sum += black_box(dy).get(&error) * black_box(x).get(&seen);
            }
        }
    });
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
