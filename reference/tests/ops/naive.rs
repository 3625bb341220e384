//! The obvious implementations: coordinate vectors, one loop per sum.

use crate::graphs::{Direction, Shape};

/// Every coordinate of a box, the last axis fastest.
pub fn coordinates(dims: &[i64]) -> Vec<Vec<i64>> {
    let mut all = vec![vec![]];
    for &dim in dims {
        all = all
            .into_iter()
            .flat_map(|head: Vec<i64>| {
                (0..dim).map(move |i| {
                    let mut whole = head.clone();
                    whole.push(i);
                    whole
                })
            })
            .collect();
    }
    all
}

/// Index of a coordinate in packed row-major order; `None` outside.
pub fn index(dims: &[i64], at: &[i64]) -> Option<usize> {
    let mut index = 0;
    for (&dim, &i) in dims.iter().zip(at) {
        if i < 0 || i >= dim {
            return None;
        }
        index = index * dim as usize + i as usize;
    }
    Some(index)
}

/// The operands' indices of every term of every element of the result, in order: fprop x, w over
/// (channel, taps); dgrad dy, w over (filter, taps); wgrad dy, x over (image, positions).
pub fn terms(shape: &Shape, direction: Direction) -> Vec<Vec<(usize, usize)>> {
    let dims = [shape.y(), shape.x(), shape.w()][direction as usize].clone();
    coordinates(&dims)
        .iter()
        .map(|at| terms_of(shape, direction, at))
        .collect()
}

/// The same for the element at these coordinates of the result.
pub fn terms_of(shape: &Shape, direction: Direction, at: &[i64]) -> Vec<(usize, usize)> {
    let (x, w, y) = (shape.x(), shape.w(), shape.y());
    match direction {
        Direction::Fprop => fprop(shape, &x, &w, at),
        Direction::Dgrad => dgrad(shape, &w, &y, at),
        Direction::Wgrad => wgrad(shape, &x, &y, at),
    }
}

fn fprop(shape: &Shape, x: &[i64], w: &[i64], y: &[i64]) -> Vec<(usize, usize)> {
    let mut terms = Vec::new();
    let group = y[1] / shape.filters;
    for channel in 0..shape.channels {
        for tap in coordinates(&w[2..]) {
            let mut at = vec![y[0], group * shape.channels + channel];
            for (i, axis) in shape.axes.iter().enumerate() {
                at.push(y[2 + i] * axis.stride + tap[i] * axis.dilation - axis.pre);
            }
            let weight = [vec![y[1], channel], tap].concat();
            if let Some(seen) = index(x, &at) {
                terms.push((seen, index(w, &weight).unwrap()));
            }
        }
    }
    terms
}

fn dgrad(shape: &Shape, w: &[i64], y: &[i64], x: &[i64]) -> Vec<(usize, usize)> {
    let mut terms = Vec::new();
    let (group, channel) = (x[1] / shape.channels, x[1] % shape.channels);
    for filter in group * shape.filters..(group + 1) * shape.filters {
        for tap in coordinates(&w[2..]) {
            let mut at = vec![x[0], filter];
            let mut whole = true;
            for (i, axis) in shape.axes.iter().enumerate() {
                let steps = x[2 + i] + axis.pre - tap[i] * axis.dilation;
                whole &= steps.rem_euclid(axis.stride) == 0;
                at.push(steps.div_euclid(axis.stride));
            }
            let weight = [vec![filter, channel], tap].concat();
            if let (true, Some(seen)) = (whole, index(y, &at)) {
                terms.push((seen, index(w, &weight).unwrap()));
            }
        }
    }
    terms
}

fn wgrad(shape: &Shape, x: &[i64], y: &[i64], w: &[i64]) -> Vec<(usize, usize)> {
    let mut terms = Vec::new();
    let group = w[0] / shape.filters;
    for image in 0..shape.batch {
        for position in coordinates(&y[2..]) {
            let mut at = vec![image, group * shape.channels + w[1]];
            for (i, axis) in shape.axes.iter().enumerate() {
                at.push(position[i] * axis.stride + w[2 + i] * axis.dilation - axis.pre);
            }
            let error = [vec![image, w[0]], position].concat();
            if let Some(seen) = index(x, &at) {
                terms.push((index(y, &error).unwrap(), seen));
            }
        }
    }
    terms
}
