//! Convolutions with one fault, term by term.

use crate::trial::Trial;
use dnn_assay_graph::Attributes;
use rstest::rstest;

/// A two-dimensional convolution, forward.
pub struct Conv {
    pub x: Vec<f64>,
    pub w: Vec<f64>,
    pub x_dims: [i64; 4],
    pub w_dims: [i64; 4],
    pub y_dims: [i64; 4],
    pub pre: [i64; 2],
    pub post: [i64; 2],
    pub stride: [i64; 2],
    pub dilation: [i64; 2],
}

/// One term: image, filter, channel within the group, output place, tap.
#[derive(Clone, Copy)]
pub struct Term {
    pub n: i64,
    pub k: i64,
    pub c: i64,
    pub o: [i64; 2],
    pub t: [i64; 2],
}

fn array<const N: usize>(values: &[i64]) -> [i64; N] {
    values.try_into().unwrap()
}

fn flat(dims: [i64; 4], at: [i64; 4]) -> Option<usize> {
    let inside = dims.iter().zip(at).all(|(&dim, at)| (0..dim).contains(&at));
    let index = dims
        .iter()
        .zip(at)
        .fold(0, |index, (&dim, at)| index * dim + at);
    inside.then_some(index as usize)
}

impl Conv {
    pub fn of(trial: &Trial) -> Self {
        let Attributes::ConvolutionFwd(node) = &trial.graph.nodes[0].attributes else {
            panic!("no forward convolution");
        };
        let y = if trial.graph.nodes.len() == 1 {
            "y"
        } else {
            "conv_y"
        };
        Self {
            x: trial.input("x").to_vec(),
            w: trial.input("w").to_vec(),
            x_dims: array(&trial.tensor("x").dims),
            w_dims: array(&trial.tensor("w").dims),
            y_dims: array(&trial.tensor(y).dims),
            pre: array(&node.pre_padding),
            post: array(&node.post_padding),
            stride: array(&node.stride),
            dilation: array(&node.dilation),
        }
    }

    pub fn groups(&self) -> i64 {
        self.x_dims[1] / self.w_dims[1]
    }

    /// First channel of a filter's group.
    pub fn first(&self, k: i64) -> i64 {
        k / (self.w_dims[0] / self.groups()) * self.w_dims[1]
    }

    /// x, zero outside.
    pub fn x(&self, n: i64, c: i64, h: i64, w: i64) -> f64 {
        flat(self.x_dims, [n, c, h, w]).map_or(0.0, |index| self.x[index])
    }

    pub fn w(&self, k: i64, c: i64, r: i64, s: i64) -> f64 {
        self.w[flat(self.w_dims, [k, c, r, s]).unwrap()]
    }

    /// Place in the image that a tap sees.
    pub fn place(&self, term: &Term, axis: usize) -> i64 {
        term.o[axis] * self.stride[axis] + term.t[axis] * self.dilation[axis] - self.pre[axis]
    }

    pub fn places(&self, term: &Term) -> [i64; 2] {
        [self.place(term, 0), self.place(term, 1)]
    }

    /// The right filter element of a term.
    pub fn weight(&self, term: &Term) -> f64 {
        self.w(term.k, term.c, term.t[0], term.t[1])
    }

    /// The right image element of a term.
    pub fn pixel(&self, term: &Term) -> f64 {
        let [h, w] = self.places(term);
        self.x(term.n, self.first(term.k) + term.c, h, w)
    }

    /// y with the product of every term given.
    pub fn sum(&self, product: impl Fn(&Self, &Term) -> f64) -> Vec<f64> {
        let [batch, filters, height, width] = self.y_dims;
        let [_, channels, rows, columns] = self.w_dims;
        let mut y = Vec::new();
        for n in 0..batch {
            for k in 0..filters {
                for o in (0..height).flat_map(|h| (0..width).map(move |w| [h, w])) {
                    let mut sum = 0.0;
                    for c in 0..channels {
                        for t in (0..rows).flat_map(|r| (0..columns).map(move |s| [r, s])) {
                            sum += product(self, &Term { n, k, c, o, t });
                        }
                    }
                    y.push(sum);
                }
            }
        }
        y
    }
}

const PLAIN: &str = "conv.fprop/f32/nchw/n2-c5-k7-i9x6-f3x3/pad1";
const HALF: &str = "conv.fprop/f16/nhwc/n2-c16-k6-i8x7-f3x3/pad1";
const INTEGER: &str = "conv.fprop/f16/nchw/n2-c6-k4-i11x7-f3x3/pad1/int";
const UNEVEN: &str = "conv.fprop/f32/nchw/n2-c5-k4-i13x11-f3x2/pre2x1-post0x2-str2x3-dil2x3";
const GROUPS: &str = "conv.fprop/f32/nchw/n2-c6-k4-i9x6-f3x3/pad1-g2";
const DEPTHWISE: &str = "conv.fprop/f32/nchw/n2-c6-k6-i9x7-f3x3/pad1-g6";
const LAST: &str = "conv.fprop/f32/nhwc/n2-c5-k7-i9x6-f3x3/pad1";
const SQUARE: &str = "conv.fprop/f32/nchw/n2-c6-k6-i9x7-f3x3/pre1x1-post1x1";

/// The window with other numbers.
fn seen(conv: &Conv, t: &Term, pre: [i64; 2], stride: [i64; 2], dilation: [i64; 2]) -> f64 {
    let at = |axis: usize| t.o[axis] * stride[axis] + t.t[axis] * dilation[axis] - pre[axis];
    conv.x(t.n, conv.first(t.k) + t.c, at(0), at(1)) * conv.weight(t)
}

fn swap<T: Copy>(pair: [T; 2]) -> [T; 2] {
    [pair[1], pair[0]]
}

/// The image beyond its border, from a place within.
fn bordered(conv: &Conv, t: &Term, source: impl Fn(i64, i64) -> i64) -> f64 {
    let [h, w] = conv.places(t);
    let (h, w) = (source(h, conv.x_dims[2]), source(w, conv.x_dims[3]));
    conv.x(t.n, conv.first(t.k) + t.c, h, w) * conv.weight(t)
}

fn tf32(value: f64) -> f64 {
    let bits = (value as f32).to_bits();
    f64::from(f32::from_bits((bits + 0x1000) & !0x1fff))
}

fn bf16(value: f64) -> f64 {
    half::bf16::from_f32(value as f32).to_f64()
}

#[rstest]
#[case::flipped(&[PLAIN, HALF, INTEGER], "filter-flipped",
    |c: &Conv, t: &Term| c.pixel(t) * c.w(t.k, t.c, c.w_dims[2] - 1 - t.t[0], c.w_dims[3] - 1 - t.t[1]))]
#[case::no_padding(&[UNEVEN, PLAIN], "padding-ignored",
    |c: &Conv, t: &Term| seen(c, t, [0, 0], c.stride, c.dilation))]
#[case::paddings_swapped(&[UNEVEN], "paddings-swapped",
    |c: &Conv, t: &Term| seen(c, t, c.post, c.stride, c.dilation))]
#[case::padding_one_more(&[UNEVEN, INTEGER], "padding-off-by-one",
    |c: &Conv, t: &Term| seen(c, t, [c.pre[0] + 1, c.pre[1] + 1], c.stride, c.dilation))]
#[case::padding_one_less(&[UNEVEN], "padding-off-by-one",
    |c: &Conv, t: &Term| seen(c, t, [c.pre[0], c.pre[1] - 1], c.stride, c.dilation))]
#[case::wraps(&[PLAIN, INTEGER], "border-wraps",
    |c: &Conv, t: &Term| bordered(c, t, |at, extent| at.rem_euclid(extent)))]
#[case::repeats(&[PLAIN, HALF], "border-repeats",
    |c: &Conv, t: &Term| bordered(c, t, |at, extent| at.clamp(0, extent - 1)))]
#[case::reflects(&[PLAIN], "border-reflects", |c: &Conv, t: &Term| bordered(c, t, |at, extent| {
    if at < 0 { -at } else if at >= extent { 2 * extent - 2 - at } else { at }
}))]
#[case::no_stride(&[UNEVEN], "stride-ignored",
    |c: &Conv, t: &Term| seen(c, t, c.pre, [1, 1], c.dilation))]
#[case::no_dilation(&[UNEVEN], "dilation-ignored",
    |c: &Conv, t: &Term| seen(c, t, c.pre, c.stride, [1, 1]))]
#[case::strides_swapped(&[UNEVEN], "stride-axes-swapped",
    |c: &Conv, t: &Term| seen(c, t, c.pre, swap(c.stride), c.dilation))]
#[case::dilations_swapped(&[UNEVEN], "dilation-axes-swapped",
    |c: &Conv, t: &Term| seen(c, t, c.pre, c.stride, swap(c.dilation)))]
#[case::padding_axes(&[UNEVEN], "padding-axes-swapped",
    |c: &Conv, t: &Term| seen(c, t, swap(c.pre), c.stride, c.dilation))]
#[case::window_axes(&[UNEVEN], "window-axes-swapped",
    |c: &Conv, t: &Term| seen(c, t, swap(c.pre), swap(c.stride), swap(c.dilation)))]
#[case::stride_padding(&[UNEVEN], "stride-padding-swapped",
    |c: &Conv, t: &Term| seen(c, t, c.stride, c.pre, c.dilation))]
#[case::transposed_gradient(&[SQUARE], "direction-confused", |c: &Conv, t: &Term| {
    let [h, w] = [t.o[0] + c.pre[0] - t.t[0], t.o[1] + c.pre[1] - t.t[1]];
    c.x(t.n, t.c, h, w) * c.w(t.c, t.k, t.t[0], t.t[1])
})]
#[case::image_transposed(&[PLAIN, HALF], "image-transposed", |c: &Conv, t: &Term| {
    let [h, w] = c.places(t);
    let inside = (0..c.x_dims[2]).contains(&h) && (0..c.x_dims[3]).contains(&w);
    let place = w * c.x_dims[2] + h;
    if !inside { return 0.0 }
    c.x(t.n, t.c, place / c.x_dims[3], place % c.x_dims[3]) * c.weight(t)
})]
#[case::filter_transposed(&[PLAIN, HALF], "filter-transposed",
    |c: &Conv, t: &Term| c.pixel(t) * c.w(t.k, t.c, t.t[1], t.t[0]))]
#[case::layout(&[LAST], "image-layout", |c: &Conv, t: &Term| {
    let [h, w] = c.places(t);
    let Some(place) = flat(c.x_dims, [0, t.c, h, w]) else { return 0.0 };
    // The place in an image with the channels last.
    let (channels, width) = (c.x_dims[1] as usize, c.x_dims[3] as usize);
    let (position, channel) = (place / channels, place % channels);
    let (h, w) = ((position / width) as i64, (position % width) as i64);
    c.x(t.n, channel as i64, h, w) * c.weight(t)
})]
#[case::filter_axes(&[SQUARE], "filter-axes",
    |c: &Conv, t: &Term| c.pixel(t) * c.w(t.c, t.k, t.t[0], t.t[1]))]
#[case::next_group(&[GROUPS], "group-off-by-one", |c: &Conv, t: &Term| {
    let each = c.w_dims[0] / c.groups();
    c.pixel(t) * c.w((t.k + each) % c.w_dims[0], t.c, t.t[0], t.t[1])
})]
#[case::interleaved(&[GROUPS], "groups-interleaved", |c: &Conv, t: &Term| {
    let [h, w] = c.places(t);
    let group = t.k / (c.w_dims[0] / c.groups());
    c.x(t.n, t.c * c.groups() + group, h, w) * c.weight(t)
})]
#[case::groups_ignored(&[GROUPS, DEPTHWISE], "groups-ignored", |c: &Conv, t: &Term| {
    let [h, w] = c.places(t);
    c.x(t.n, t.c, h, w) * c.weight(t)
})]
#[case::depthwise_as_full(&[DEPTHWISE], "groups-ignored", |c: &Conv, t: &Term| {
    let [h, w] = c.places(t);
    (0..c.x_dims[1]).map(|channel| c.x(t.n, channel, h, w)).sum::<f64>() * c.weight(t)
})]
#[case::shifted(&[PLAIN, INTEGER], "shifted", |c: &Conv, t: &Term| {
    let [h, w] = c.places(t);
    if !(0..c.x_dims[3]).contains(&w) { return 0.0 }
    c.x(t.n, t.c, h, (w + 1).min(c.x_dims[3] - 1)) * c.weight(t)
})]
#[case::last_tap(&[PLAIN, HALF, INTEGER], "last-tap-missing", |c: &Conv, t: &Term| {
    let last = t.t[0] + 1 == c.w_dims[2] && t.t[1] + 1 == c.w_dims[3];
    if last { 0.0 } else { c.pixel(t) * c.weight(t) }
})]
#[case::last_channel(&[PLAIN, HALF, INTEGER], "last-channel-missing", |c: &Conv, t: &Term| {
    if t.c + 1 == c.w_dims[1] { 0.0 } else { c.pixel(t) * c.weight(t) }
})]
#[case::channel_tail(&[INTEGER], "channel-tail-missing", |c: &Conv, t: &Term| {
    if t.c >= c.w_dims[1] / 4 * 4 { 0.0 } else { c.pixel(t) * c.weight(t) }
})]
#[case::last_row(&[PLAIN], "last-row-missing", |c: &Conv, t: &Term| {
    if c.place(t, 0) + 1 == c.x_dims[2] { 0.0 } else { c.pixel(t) * c.weight(t) }
})]
#[case::tf32(&[PLAIN, LAST], "xf32-inputs", |c: &Conv, t: &Term| tf32(c.pixel(t)) * tf32(c.weight(t)))]
#[case::bf16(&[PLAIN, LAST], "bf16-inputs", |c: &Conv, t: &Term| bf16(c.pixel(t)) * bf16(c.weight(t)))]
fn forward(#[case] cases: &[&str], #[case] id: &str, #[case] product: fn(&Conv, &Term) -> f64) {
    for case in cases {
        let trial = Trial::of(case);
        let y = Conv::of(&trial).sum(product);
        trial.check(&[("y", y)], id);
    }
}

/// The loops above are right where no fault is put in.
#[test]
fn the_loops_are_right() {
    for case in [PLAIN, HALF, INTEGER, UNEVEN, GROUPS, DEPTHWISE, LAST] {
        let trial = Trial::of(case);
        let y = Conv::of(&trial).sum(|c, t| c.pixel(t) * c.weight(t));
        for (seen, right) in y.iter().zip(trial.right("y")) {
            assert!((seen - right).abs() < 1e-9 * (1.0 + right.abs()), "{case}");
        }
    }
}

/// Sums that are rounded after every addition.
#[rstest]
#[case::f16("conv.fprop/f16/nchw/n2-c32-k4-i6x5-f3x3/pad1", "accumulator-f16",
    |value: f64| half::f16::from_f32(value as f32).to_f64())]
#[case::bf16(
    "conv.fprop/bf16/nchw/n2-c64-k8-i8x7-f3x3/pad1",
    "accumulator-bf16",
    bf16
)]
#[case::f32("conv.fprop/f64/nchw/n2-c8-k7-i9x6-f3x3/pad1", "accumulator-f32",
    |value: f64| f64::from(value as f32))]
fn narrow_sums(#[case] case: &str, #[case] id: &str, #[case] round: fn(f64) -> f64) {
    let trial = Trial::of(case);
    let conv = Conv::of(&trial);
    let sum = std::cell::Cell::new(0.0);
    let product = |c: &Conv, t: &Term| {
        if t.c == 0 && t.t == [0, 0] {
            sum.set(0.0);
        }
        let before = sum.get();
        sum.set(round(before + c.pixel(t) * c.weight(t)));
        // The difference telescopes to the rounded sum.
        sum.get() - before
    };
    trial.check(&[("y", conv.sum(product))], id);
}
