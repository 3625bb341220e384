//! Pointwise operations, alone and behind a convolution.

use crate::conv::Conv;
use crate::trial::Trial;
use rstest::rstest;

/// One operand's elements at the index of the output, broadcast along all but the channels.
fn element(trial: &Trial, name: &str, index: usize) -> f64 {
    let values = trial.input(name);
    if values.len() == trial.right("out").len() {
        return values[index];
    }
    values[channel(trial, "out", index) % values.len()]
}

fn channel(trial: &Trial, output: &str, index: usize) -> usize {
    let dims = &trial.tensor(output).dims;
    let plane: i64 = dims[2..].iter().product();
    index / plane as usize % dims[1] as usize
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn tanh_gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
}

fn leaky(x: f64, slope: f64) -> f64 {
    if x > 0.0 { x } else { slope * x }
}

/// Elements of in0, in1.
#[rstest]
#[case("pointwise.sub/f32/nchw/n2-c5-i9x6", "operands-swapped", |a: f64, b: f64| b - a)]
#[case("pointwise.div/f16/nhwc/n2-c5-i9x6", "operands-swapped", |a: f64, b: f64| b / a)]
#[case("pointwise.sub/f32/nchw/n2-c5-i9x6/int", "operands-swapped", |a: f64, b: f64| b - a)]
#[case("pointwise.max/f32/nchw/n2-c5-i9x6", "extremes-swapped", |a: f64, b: f64| a.min(b))]
#[case("pointwise.cmp_gt/f32/nchw/n2-c5-i9x6", "equality-confused", |a: f64, b: f64| f64::from(u8::from(a >= b)))]
#[case("pointwise.add_square/f32/nchw/n2-c5-i9x6", "square-missing", |a: f64, b: f64| a + b)]
#[case("pointwise.relu/f32/nchw/n2-c5-i9x6/slope0.25", "activation-missing", |a: f64, _: f64| a)]
#[case("pointwise.relu/f32/nchw/n2-c5-i9x6/slope0.25", "slope-ignored", |a: f64, _: f64| a.max(0.0))]
#[case("pointwise.relu/f32/nchw/n2-c5-i9x6/slope0.25", "slope-ignored", |a: f64, _: f64| leaky(a, f64::from(0.01f32)))]
#[case("pointwise.relu/f32/nchw/n2-c5-i9x6/slope0.25", "activation-twice", |a: f64, _: f64| leaky(a, 0.0625))]
#[case("pointwise.relu/f32/nchw/n2-c5-i9x6/lo0.1-up0.5", "clips-ignored", |a: f64, _: f64| a.max(0.0))]
#[case("pointwise.elu_fwd/f32/nchw/n2-c5-i9x6/alpha0.5", "parameters-ignored",
    |a: f64, _: f64| if a > 0.0 { a } else { a.exp_m1() })]
#[case("pointwise.sigmoid_fwd/f32/nchw/n2-c5-i9x6", "activation-twice", |a: f64, _: f64| sigmoid(sigmoid(a)))]
#[case("pointwise.gelu_fwd/f32/nchw/n2-c5-i9x6", "gelu-approximated", |a: f64, _: f64| tanh_gelu(a))]
#[case("pointwise.sigmoid_bwd/f32/nchw/n2-c5-i9x6", "gradient-unmasked", |a: f64, _: f64| a)]
#[case("pointwise.relu_bwd/f32/nchw/n2-c5-i9x6", "operands-swapped",
    |a: f64, b: f64| if a > 0.0 { b } else { 0.0 })]
fn pointwise(#[case] case: &str, #[case] id: &str, #[case] f: fn(f64, f64) -> f64) {
    let trial = Trial::of(case);
    let has_second = trial
        .graph
        .tensors
        .iter()
        .any(|tensor| tensor.name == "in1");
    let out = (0..trial.right("out").len())
        .map(|i| {
            let second = if has_second {
                element(&trial, "in1", i)
            } else {
                0.0
            };
            f(element(&trial, "in0", i), second)
        })
        .collect();
    trial.check(&[("out", out)], id);
}

#[test]
fn a_broadcast_operand_off_by_one() {
    let trial = Trial::of("pointwise.mul/f32/nchw/n2-c5-i9x6/in1.5x1x1");
    let second = trial.input("in1").to_vec();
    let out = trial.input("in0").iter().enumerate();
    let out = out
        .map(|(i, a)| a * second[(channel(&trial, "out", i) + 1) % 5])
        .collect();
    trial.check(&[("out", out)], "bias-off-by-one");
}

#[test]
fn coordinates_along_another_axis() {
    let trial = Trial::of("pointwise.gen_index/f32+i32/nchw/n2-c5-i9x6/axis2");
    let out = (0..trial.right("out").len())
        .map(|i| (i % 6) as f64)
        .collect();
    trial.check(&[("out", out)], "axis-off-by-one");
}

/// Convolution, bias and activation: the convolution's element, the channel, the bias.
#[rstest]
#[case("bias-missing", |y: f64, _: [usize; 3], _: &[f64]| leaky(y, 0.25))]
#[case("bias-doubled", |y: f64, at: [usize; 3], b: &[f64]| leaky(y + 2.0 * b[at[0]], 0.25))]
#[case("bias-subtracted", |y: f64, at: [usize; 3], b: &[f64]| leaky(y - b[at[0]], 0.25))]
#[case("bias-off-by-one", |y: f64, at: [usize; 3], b: &[f64]| leaky(y + b[(at[0] + 1) % 6], 0.25))]
#[case("bias-axis", |y: f64, at: [usize; 3], b: &[f64]| leaky(y + b[at[2] % 6], 0.25))]
#[case("bias-after-activation", |y: f64, at: [usize; 3], b: &[f64]| leaky(y, 0.25) + b[at[0]])]
#[case("activation-missing", |y: f64, at: [usize; 3], b: &[f64]| y + b[at[0]])]
#[case("activation-twice", |y: f64, at: [usize; 3], b: &[f64]| leaky(y + b[at[0]], 0.0625))]
fn fused(#[case] id: &str, #[case] f: fn(f64, [usize; 3], &[f64]) -> f64) {
    let trial = Trial::of("conv.fprop+bias+relu/f32/nchw/n2-c5-k6-i9x7-f3x3/pad1-slope0.25");
    let sums = Conv::of(&trial).sum(|c, t| c.pixel(t) * c.weight(t));
    let bias = trial.input("bias").to_vec();
    let place = |i: usize| [i / 63 % 6, i % 63 / 7, i % 7];
    let y = sums
        .iter()
        .enumerate()
        .map(|(i, &y)| f(y, place(i), &bias))
        .collect();
    trial.check(&[("y", y)], id);
}
