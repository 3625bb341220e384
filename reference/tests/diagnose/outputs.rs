//! Right results that are written wrongly, of any operation.

use crate::trial::Trial;
use dnn_assay_reference::diagnose::HYPOTHESES;
use half::{bf16, f16};
use rstest::rstest;

const CONV: &str = "conv.fprop/f32/nchw/n3-c5-k7-i9x6-f3x3/pad1";
const HALF: &str = "conv.fprop/f16/nchw/n2-c16-k6-i8x7-f3x3/pad1";
const INTEGER: &str = "conv.fprop/f16/nchw/n2-c16-k6-i8x7-f3x3/pad1/int";
const LAST: &str = "conv.fprop/f32/nhwc/n2-c5-k7-i9x6-f3x3/pad1";

fn down(value: f64) -> f64 {
    let near = f16::from_f32(value as f32);
    let over = near.to_f64().abs() > value.abs();
    f16::from_bits(near.to_bits() - u16::from(over)).to_f64()
}

/// n, c, h, w.
fn at(trial: &Trial, index: usize) -> [usize; 4] {
    let dims: Vec<usize> = trial
        .tensor("y")
        .dims
        .iter()
        .map(|&dim| dim as usize)
        .collect();
    let (plane, width) = (dims[2] * dims[3], dims[3]);
    let row = index / plane;
    [
        row / dims[1],
        row % dims[1],
        index % plane / width,
        index % width,
    ]
}

#[rstest]
#[case::zeros(CONV, "zeros", |_: &Trial, _: &[f64], _: usize| 0.0)]
#[case::constant(CONV, "constant", |_: &Trial, _: &[f64], _: usize| 0.25)]
#[case::accumulated(CONV, "stale-accumulated", |_: &Trial, _: &[f64], _: usize| f64::NAN)]
#[case::negated(CONV, "output-negated", |_: &Trial, y: &[f64], i: usize| -y[i])]
#[case::truncated(HALF, "truncated", |_: &Trial, y: &[f64], i: usize| down(y[i]))]
#[case::truncated_integers(INTEGER, "truncated", |_: &Trial, y: &[f64], i: usize| down(y[i]))]
#[case::by_bf16(CONV, "output-bf16", |_: &Trial, y: &[f64], i: usize| bf16::from_f32(y[i] as f32).to_f64())]
#[case::by_f16(CONV, "output-f16", |_: &Trial, y: &[f64], i: usize| f16::from_f32(y[i] as f32).to_f64())]
#[case::by_f32("conv.fprop/f64/nchw/n2-c5-k7-i9x6-f3x3/pad1", "output-f32",
    |_: &Trial, y: &[f64], i: usize| f64::from(y[i] as f32))]
#[case::scaled(CONV, "scaled", |_: &Trial, y: &[f64], i: usize| y[i] * 1.001)]
#[case::scaled_half(HALF, "scaled", |_: &Trial, y: &[f64], i: usize| y[i] * 1.01)]
#[case::first_image(CONV, "batch-ignored", |_: &Trial, y: &[f64], i: usize| y[i % (y.len() / 3)])]
#[case::images_reversed(CONV, "images-permuted", |_: &Trial, y: &[f64], i: usize| {
    let image = y.len() / 3;
    y[(2 - i / image) * image + i % image]
})]
#[case::channels(CONV, "channels-permuted", |t: &Trial, y: &[f64], i: usize| match at(t, i)[1] {
    0 => y[i + 54],
    1 => y[i - 54],
    _ => y[i],
})]
#[case::columns(CONV, "rows-permuted", |t: &Trial, y: &[f64], i: usize| {
    let w = at(t, i)[3];
    y[i - w + 5 - w]
})]
#[case::transposed(CONV, "output-transposed", |t: &Trial, y: &[f64], i: usize| {
    // Written as [w][h], read as [h][w].
    let [_, _, h, w] = at(t, i);
    let place = h * 6 + w;
    y[i - place + (place % 9) * 6 + place / 9]
})]
#[case::layout(LAST, "output-layout-ignored", |t: &Trial, y: &[f64], i: usize| {
    let [n, c, h, w] = at(t, i);
    y[n * 7 * 54 + (h * 6 + w) * 7 + c]
})]
#[case::tile(CONV, "tile-missing", |t: &Trial, y: &[f64], i: usize| {
    let [_, c, h, w] = at(t, i);
    if c == 6 && h * 6 + w >= 48 { 0.0 } else { y[i] }
})]
#[case::doubled(CONV, "part-doubled", |_: &Trial, y: &[f64], i: usize| if i % 50 == 7 { 2.0 * y[i] } else { y[i] })]
#[case::single(CONV, "single-element", |_: &Trial, y: &[f64], i: usize| if i == 100 { y[i] + 3.0 } else { y[i] })]
#[case::share(CONV, "channel-share", |t: &Trial, y: &[f64], i: usize| {
    if at(t, i)[1] == 6 && i.is_multiple_of(20) { 1.05 * y[i] } else { y[i] }
})]
#[case::part_scaled(CONV, "part-scaled", |_: &Trial, y: &[f64], i: usize| if i.is_multiple_of(3) { 1.05 * y[i] } else { y[i] })]
#[case::flushed("pointwise.mul/f16/nchw/n4-c16-i16x16", "denormals-flushed",
    |_: &Trial, y: &[f64], i: usize| if y[i].abs() < 2f64.powi(-14) { 0.0 } else { y[i] })]
#[case::truth("pointwise.cmp_gt/f32/nchw/n2-c5-i9x6", "scaled", |_: &Trial, y: &[f64], i: usize| 255.0 * y[i])]
fn written(#[case] case: &str, #[case] id: &str, #[case] write: fn(&Trial, &[f64], usize) -> f64) {
    let trial = Trial::of(case);
    let name = if case.starts_with("conv") { "y" } else { "out" };
    let right = trial.right(name);
    let faulty: Vec<f64> = (0..right.len()).map(|i| write(&trial, &right, i)).collect();
    trial.check(&[(name, faulty)], id);
}

#[test]
fn special_values_are_named() {
    let mut trial = Trial::of("pointwise.add/f32/nchw/n2-c5-i9x6");
    let uid = trial.tensor("in0").uid;
    for (special, id, written) in [
        (f64::NAN, "nan-swallowed", 0.0),
        (f64::INFINITY, "infinity-saturated", f64::from(f32::MAX)),
    ] {
        let values = trial.inputs.get_mut(&uid).unwrap();
        (values[3], values[70], values[80], values[90]) = (special, special, special, special);
        let arithmetic = dnn_assay_reference::Arithmetic::default();
        trial.truth =
            dnn_assay_reference::evaluate(&trial.graph, &trial.inputs, &arithmetic).unwrap();
        let mut out = trial.right("out");
        for index in [3, 70, 80, 90] {
            out[index] = written;
        }
        trial.check(&[("out", out)], id);
    }
}

/// What costs too much is not tried, and that is said.
#[test]
fn the_budget_is_kept() {
    let trial = Trial::of(CONV);
    let mut y = trial.right("y");
    y.iter_mut().for_each(|y| *y += 1.0);
    let all = trial.diagnosis(&[("y", y.clone())]);
    assert!(all.tried > 30 && all.skipped == 0, "{all:?}");
    // One evaluation takes 3·7·54·45 products and some elements.
    let some = trial.diagnosis_within(500_000.0, &[("y", y.clone())]);
    assert!(
        some.tried > 0 && some.tried < all.tried && some.skipped > 0,
        "{some:?}"
    );
    let none = trial.diagnosis_within(1.0, &[("y", y)]);
    assert_eq!((none.tried, none.skipped), (0, HYPOTHESES.len()));
}
