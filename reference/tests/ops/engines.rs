//! Engines that sum correctly in f32, in many ways, and one that does not.

use proptest::prelude::*;

/// How an engine adds products up.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Sequential,
    Reversed,
    Pairwise,
    /// This many interleaved partial sums.
    Lanes(usize),
    /// Blocks of this many, each sequential.
    Blocks(usize),
    /// Sequential after a shuffle.
    Shuffled(u64),
}

pub fn any_order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Sequential),
        Just(Order::Reversed),
        Just(Order::Pairwise),
        (2..33usize).prop_map(Order::Lanes),
        (2..65usize).prop_map(Order::Blocks),
        any::<u64>().prop_map(Order::Shuffled),
    ]
}

/// Σ a·b in f32.
pub fn dot(order: Order, fused: bool, terms: &[(f64, f64)]) -> f64 {
    let chain = |terms: &mut dyn Iterator<Item = (f32, f32)>| {
        terms.fold(0.0f32, |sum, (a, b)| {
            if fused {
                a.mul_add(b, sum)
            } else {
                sum + a * b
            }
        })
    };
    let terms: Vec<(f32, f32)> = terms.iter().map(|&(a, b)| (a as f32, b as f32)).collect();
    f64::from(match order {
        Order::Sequential => chain(&mut terms.iter().copied()),
        Order::Reversed => chain(&mut terms.iter().rev().copied()),
        Order::Pairwise => pairwise(&terms),
        Order::Lanes(lanes) => (0..lanes)
            .map(|lane| chain(&mut terms.iter().skip(lane).step_by(lanes).copied()))
            .fold(0.0, |sum, lane| sum + lane),
        Order::Blocks(size) => terms
            .chunks(size)
            .map(|block| chain(&mut block.iter().copied()))
            .fold(0.0, |sum, block| sum + block),
        Order::Shuffled(seed) => {
            let mut terms = terms;
            let mut state = seed | 1;
            for i in (1..terms.len()).rev() {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                terms.swap(i, (state >> 33) as usize % (i + 1));
            }
            chain(&mut terms.iter().copied())
        }
    })
}

fn pairwise(terms: &[(f32, f32)]) -> f32 {
    match terms {
        [] => 0.0,
        [(a, b)] => a * b,
        _ => {
            let (left, right) = terms.split_at(terms.len() / 2);
            pairwise(left) + pairwise(right)
        }
    }
}

/// Σ a in f32.
pub fn sum(order: Order, terms: &[f32]) -> f32 {
    let terms: Vec<(f64, f64)> = terms.iter().map(|&a| (f64::from(a), 1.0)).collect();
    dot(order, false, &terms) as f32
}

/// Σ a·b with the accumulator rounded to `data_type` after every step: wrong for an engine that
/// declares f32.
pub fn narrow_dot(data_type: dnn_assay_graph::DataType, terms: &[(f64, f64)]) -> f64 {
    terms.iter().fold(0.0, |sum, (a, b)| {
        dnn_assay_reference::dtype::round(data_type, sum + a * b)
    })
}
