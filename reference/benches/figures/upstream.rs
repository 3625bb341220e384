//! Loops of the structure that hipDNN's own CPU reference has: index vectors on the heap for every
//! element and multiply-accumulate, element access through a virtual call and a dot product with
//! the strides, f32 sums, one thread per hardware thread; pointwise on one thread.
//!
//! They stand for the structure, not for the code: nothing is taken from upstream. The order of the
//! loops and what is allocated in which is that of `CpuReferenceConvolution.hpp` in hipDNN's test
//! SDK (`ROCm/rocm-libraries`, commit 3669bd85).

use crate::problems::{Direction, Form, NORM, Problem};
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

/// A form of batchnorm, for the elements of `channels` of [`NORM`]'s channels. The order of the loops
/// and the accesses of each are those of `CpuReferenceBatchnorm.hpp` at the same commit: a value of
/// a channel is read anew for each element, with an index vector of its own.
pub fn norm(form: Form, channels: i64, values: &Values) -> Vec<f32> {
    let of = |uid: i64, dims: &[i64]| strided(dims, &values[&uid]);
    let channel = [1, NORM[1], 1, 1];
    let x = of(1, &NORM);
    match form {
        Form::Train => {
            let parameters = [of(2, &channel), of(3, &channel)];
            all_threads(channels, |channel| train(channel, &*x, &parameters))
        }
        Form::Infer => {
            let parameters = [2, 3, 4, 5].map(|uid| of(uid, &channel));
            let elements = channels * NORM[0] * NORM[2] * NORM[3];
            all_threads(elements, |i| infer(&unravel(&NORM, i), &*x, &parameters))
        }
        Form::Backward => {
            let dy = of(7, &NORM);
            let parameters = [2, 4, 5].map(|uid| of(uid, &channel));
            all_threads(channels, |channel| {
                backward(channel, &*x, &*dy, &parameters)
            })
        }
    }
}

type Boxed = Box<dyn Access>;

/// A value of a channel, by two numbers in a vector.
fn of_channel(tensor: &Boxed, channel: i64) -> f32 {
    black_box(&**tensor).get(&full(0, channel, &[]))
}

/// Calls `visit` with the index of every element of a channel.
fn each_of(channel: i64, mut visit: impl FnMut(&[i64])) {
    each(&[NORM[0], NORM[2], NORM[3]], |at| {
        visit(&full(at[0], channel, &at[1..]));
    });
}

/// One pass for the sums, one for the elements.
fn train(channel: i64, x: &dyn Access, [scale, bias]: &[Boxed; 2]) -> f32 {
    let (mut sum, mut squares) = (0.0f32, 0.0f32);
    each_of(channel, |at| {
        let value = black_box(x).get(at);
        sum += value;
        squares += value * value;
    });
    let count = (NORM[0] * NORM[2] * NORM[3]) as f32;
    let mean = sum / count;
    let inverse = 1.0 / (squares / count - mean * mean + 1e-5).sqrt();
    let mut out = Output::of(&NORM);
    each_of(channel, |at| {
        let centred = (black_box(x).get(at) - mean) * inverse;
        let value = of_channel(scale, channel) * centred + of_channel(bias, channel);
        black_box(&mut out as &mut dyn Store).set(at, value);
    });
    out.last
}

/// One element.
fn infer(at: &[i64], x: &dyn Access, [scale, bias, mean, inverse]: &[Boxed; 4]) -> f32 {
    let channel = at[1];
    let (mean, inverse) = (of_channel(mean, channel), of_channel(inverse, channel));
    let centred = (black_box(x).get(at) - mean) * inverse;
    let value = of_channel(scale, channel) * centred + of_channel(bias, channel);
    let mut out = One::of(&NORM);
    black_box(&mut out as &mut dyn Store).set(at, value);
    out.value
}

/// One pass over x and dy for the sums, one for the elements; statistics are given.
fn backward(channel: i64, x: &dyn Access, dy: &dyn Access, parameters: &[Boxed; 3]) -> f32 {
    let [scale, mean, inverse] = parameters.each_ref().map(|one| of_channel(one, channel));
    let (mut dots, mut sum) = (0.0f32, 0.0f32);
    each_of(channel, |at| {
        let (value, error) = (black_box(x).get(at), black_box(dy).get(at));
        dots += (value - mean) * inverse * error;
        sum += error;
    });
    let count = (NORM[0] * NORM[2] * NORM[3]) as f32;
    let (mean_dot, mean_error) = (dots / count, sum / count);
    let mut out = Output::of(&NORM);
    each_of(channel, |at| {
        let (value, error) = (black_box(x).get(at), black_box(dy).get(at));
        let centred = (value - mean) * inverse;
        let value = (error - mean_error - centred * mean_dot) * scale * inverse;
        black_box(&mut out as &mut dyn Store).set(at, value);
    });
    out.last
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

/// The last element of an output; it owns no memory, which upstream would not take per element.
struct One {
    strides: [i64; 4],
    offset: i64,
    value: f32,
}

impl One {
    fn of(dims: &[i64; 4]) -> Self {
        let [_, c, h, w] = *dims;
        Self {
            strides: [c * h * w, h * w, w, 1],
            offset: 0,
            value: 0.0,
        }
    }
}

impl Store for One {
    fn set(&mut self, at: &[i64], value: f32) {
        self.offset = at.iter().zip(&self.strides).map(|(a, b)| a * b).sum();
        self.value = value;
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
