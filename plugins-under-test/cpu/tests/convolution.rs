//! Convolutions of the built plugin, bit for bit against plain loops over their definition.

#![allow(clippy::unwrap_used)]

#[path = "../../sdk/tests/host/mod.rs"]
#[allow(dead_code, clippy::undocumented_unsafe_blocks)]
mod host;
#[allow(dead_code)]
mod support;

use dnn_assay_graph::schema::*;
use dnn_assay_graph::{Attributes, ConvMode, DataType, PointwiseMode, Tensor};
use host::{Host, graph, is_mapped, target_dir};
use std::collections::BTreeMap;
use support::{encode, f32s, open, places, plugin};

/// Small integers, different at each place: exact in every type.
fn integers(count: usize, salt: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7 + salt * 5 + i / 3) % 9) as f32 - 4.0)
        .collect()
}

/// A convolution problem, with the shapes in logical order.
struct Conv {
    x: Vec<i64>,
    w: Vec<i64>,
    pre: Vec<i64>,
    post: Vec<i64>,
    stride: Vec<i64>,
    dilation: Vec<i64>,
}

impl Conv {
    fn y(&self) -> Vec<i64> {
        let mut y = vec![self.x[0], self.w[0]];
        for a in 0..self.x.len() - 2 {
            let reach = (self.w[a + 2] - 1) * self.dilation[a] + 1;
            y.push((self.x[a + 2] + self.pre[a] + self.post[a] - reach) / self.stride[a] + 1);
        }
        y
    }

    /// Calls `visit(x, w, y)` with the packed indices of every product of the definition.
    fn each_product(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let (y_dims, groups) = (self.y(), self.x[1] / self.w[1]);
        for (y_at, y) in places(&y_dims).iter().enumerate() {
            for w in places(&self.w[1..]) {
                let mut x = vec![y[0], y[1] / (self.w[0] / groups) * self.w[1] + w[0]];
                for a in 0..self.stride.len() {
                    x.push(y[a + 2] * self.stride[a] + w[a + 1] * self.dilation[a] - self.pre[a]);
                }
                if x.iter().zip(&self.x).all(|(i, dim)| (0..*dim).contains(i)) {
                    let w = [&[y[1]], w.as_slice()].concat();
                    visit(flat(&x, &self.x), flat(&w, &self.w), y_at);
                }
            }
        }
    }
}

fn flat(place: &[i64], dims: &[i64]) -> usize {
    place.iter().zip(dims).fold(0, |at, (i, dim)| at * dim + i) as usize
}

fn conv(x: &[i64], w: &[i64], windows: [&[i64]; 4]) -> Conv {
    let [pre, post, stride, dilation] = windows.map(<[i64]>::to_vec);
    Conv {
        x: x.to_vec(),
        w: w.to_vec(),
        pre,
        post,
        stride,
        dilation,
    }
}

fn problems() -> Vec<Conv> {
    vec![
        conv(&[1, 1, 3], &[1, 1, 2], [&[0], &[0], &[1], &[1]]),
        conv(&[2, 3, 7], &[5, 3, 3], [&[2], &[0], &[2], &[1]]),
        conv(
            &[2, 4, 6, 5],
            &[6, 2, 3, 2],
            [&[1, 0], &[2, 1], &[1, 2], &[1, 2]],
        ),
        conv(
            &[1, 6, 5, 5],
            &[6, 1, 3, 3],
            [&[1, 1], &[1, 1], &[1, 1], &[1, 1]],
        ),
        conv(
            &[2, 3, 9, 8],
            &[19, 3, 1, 1],
            [&[0, 0], &[0, 0], &[2, 3], &[1, 1]],
        ),
        conv(
            &[1, 2, 4, 5, 6],
            &[4, 2, 2, 3, 2],
            [&[1, 0, 1], &[0, 1, 1], &[2, 1, 2], &[1, 2, 1]],
        ),
        conv(
            &[1, 2, 3, 3],
            &[2, 2, 3, 3],
            [&[0, 0], &[0, 0], &[5, 5], &[1, 1]],
        ),
    ]
}

/// The tensor's strides with channels last.
fn channels_last(mut tensor: Tensor) -> Tensor {
    let dims = tensor.dims.clone();
    let mut stride = 1;
    for axis in std::iter::once(1).chain((2..dims.len()).rev()).chain([0]) {
        tensor.strides[axis] = stride;
        stride *= dims[axis];
    }
    tensor
}

/// Runs one convolution node on exact data in a type and layout, and compares bit for bit.
fn check_conv(host: &Host, c: &Conv, data_type: DataType, last: bool) {
    let tensor = |uid, dims: &[i64]| {
        let packed = Tensor::packed(uid, "", data_type, dims);
        if last { channels_last(packed) } else { packed }
    };
    let y_dims = c.y();
    let (x, w, y) = (tensor(1, &c.x), tensor(2, &c.w), tensor(3, &y_dims));
    let counts = [&x, &w, &y].map(|t| t.element_count().unwrap());
    let [xs, ws, ys] = [0, 1, 2].map(|i| integers(counts[i], i));
    let mut expected = counts.map(|count| vec![0f32; count]);
    c.each_product(|x, w, y| {
        expected[0][x] += ws[w] * ys[y];
        expected[1][w] += xs[x] * ys[y];
        expected[2][y] += xs[x] * ws[w];
    });
    let (pre_padding, post_padding) = (c.pre.clone(), c.post.clone());
    let (stride, dilation) = (c.stride.clone(), c.dilation.clone());
    let conv_mode = ConvMode::CrossCorrelation;
    let nodes: [Attributes; 3] = [
        ConvolutionBwdAttributes {
            dy_tensor_uid: 3,
            w_tensor_uid: 2,
            dx_tensor_uid: 1,
            pre_padding: pre_padding.clone(),
            post_padding: post_padding.clone(),
            stride: stride.clone(),
            dilation: dilation.clone(),
            conv_mode,
        }
        .into(),
        ConvolutionWrwAttributes {
            x_tensor_uid: 1,
            dy_tensor_uid: 3,
            dw_tensor_uid: 2,
            pre_padding: pre_padding.clone(),
            post_padding: post_padding.clone(),
            stride: stride.clone(),
            dilation: dilation.clone(),
            conv_mode,
        }
        .into(),
        ConvolutionFwdAttributes {
            x_tensor_uid: 1,
            w_tensor_uid: 2,
            y_tensor_uid: 3,
            pre_padding,
            post_padding,
            stride,
            dilation,
            conv_mode,
        }
        .into(),
    ];
    for (out, node) in nodes.into_iter().enumerate() {
        let kind = node.kind();
        let graph = graph(vec![x.clone(), w.clone(), y.clone()], vec![node]);
        assert!(host.takes(&graph), "{kind} {:?} {:?}", c.x, c.w);
        let inputs: BTreeMap<i64, Vec<u8>> = [(&x, &xs), (&w, &ws), (&y, &ys)]
            .iter()
            .filter(|(t, _)| t.uid != out as i64 + 1)
            .map(|(t, values)| (t.uid, encode(t, values)))
            .collect();
        let target = [&x, &w, &y][out];
        let got = &host.run_bytes(&graph, inputs)[&target.uid];
        // ±0 are equal.
        let expected: Vec<f32> = expected[out].iter().map(|v| v + 0.0).collect();
        assert_eq!(
            *got,
            encode(target, &expected),
            "{kind} {data_type} {:?} {:?}",
            c.x,
            c.w
        );
    }
}

#[test]
fn convolutions_equal_their_definition() {
    let host = open();
    for c in problems() {
        for data_type in [
            DataType::Float,
            DataType::Half,
            DataType::Bfloat16,
            DataType::Double,
        ] {
            for last in [false, true] {
                check_conv(&host, &c, data_type, last);
            }
        }
    }
}

#[test]
fn a_convolution_by_hand() {
    let c = conv(&[1, 1, 3], &[1, 1, 2], [&[1], &[0], &[1], &[1]]);
    let node = ConvolutionFwdAttributes {
        x_tensor_uid: 1,
        w_tensor_uid: 2,
        y_tensor_uid: 3,
        pre_padding: c.pre.clone(),
        post_padding: c.post.clone(),
        stride: c.stride.clone(),
        dilation: c.dilation.clone(),
        conv_mode: ConvMode::CrossCorrelation,
    };
    let tensors = vec![f32s(1, &c.x), f32s(2, &c.w), f32s(3, &c.y())];
    let forward = graph(tensors.clone(), vec![node.clone().into()]);
    let got = open().run(&forward, &[(1, &[1.0, 2.0, 3.0]), (2, &[10.0, 1.0])]);
    assert_eq!(got[&3], [1.0, 12.0, 23.0]);
    let flipped = ConvolutionFwdAttributes {
        conv_mode: ConvMode::Convolution,
        ..node
    };
    assert!(!open().takes(&graph(tensors, vec![flipped.into()])));
}

/// `conv → + bias → relu6`, with intermediates that exist in no memory.
#[test]
fn convolution_bias_and_activation_in_one_graph() {
    let hidden = |uid, dims: &[i64]| Tensor {
        is_virtual: true,
        ..f32s(uid, dims)
    };
    let tensors = vec![
        f32s(1, &[1, 1, 1, 3]),
        f32s(2, &[2, 1, 1, 1]),
        hidden(3, &[1, 2, 1, 3]),
        f32s(4, &[1, 2, 1, 1]),
        hidden(5, &[1, 2, 1, 3]),
        f32s(6, &[1, 2, 1, 3]),
    ];
    let nodes = vec![
        ConvolutionFwdAttributes {
            x_tensor_uid: 1,
            w_tensor_uid: 2,
            y_tensor_uid: 3,
            pre_padding: vec![0, 0],
            post_padding: vec![0, 0],
            stride: vec![1, 1],
            dilation: vec![1, 1],
            conv_mode: ConvMode::CrossCorrelation,
        }
        .into(),
        PointwiseAttributes {
            operation: PointwiseMode::Add,
            in_0_tensor_uid: 3,
            in_1_tensor_uid: Some(4),
            out_0_tensor_uid: 5,
            ..Default::default()
        }
        .into(),
        PointwiseAttributes {
            operation: PointwiseMode::ReluFwd,
            relu_upper_clip: Some(6.0),
            in_0_tensor_uid: 5,
            out_0_tensor_uid: 6,
            ..Default::default()
        }
        .into(),
    ];
    let fused = graph(tensors, nodes);
    let host = open();
    assert!(host.takes(&fused));
    let got = host.run(
        &fused,
        &[(1, &[1.0, 2.0, 3.0]), (2, &[2.0, -1.0]), (4, &[1.0, 2.5])],
    );
    assert_eq!(got[&6], [3.0, 5.0, 6.0, 1.5, 0.5, 0.0]);
}

#[test]
fn nan_reaches_the_outputs_that_see_it_and_no_others() {
    let node = ConvolutionFwdAttributes {
        x_tensor_uid: 1,
        w_tensor_uid: 2,
        y_tensor_uid: 3,
        pre_padding: vec![0],
        post_padding: vec![0],
        stride: vec![1],
        dilation: vec![1],
        conv_mode: ConvMode::CrossCorrelation,
    };
    let tensors = vec![
        f32s(1, &[1, 1, 4]),
        f32s(2, &[1, 1, 2]),
        f32s(3, &[1, 1, 3]),
    ];
    let forward = graph(tensors, vec![node.into()]);
    let got = open().run(
        &forward,
        &[(1, &[f32::NAN, 1.0, 2.0, 3.0]), (2, &[1.0, 1.0])],
    );
    assert!(got[&3][0].is_nan());
    assert_eq!(got[&3][1..], [3.0, 5.0]);
}

/// A copy of its own, so that no other test of this process holds it open.
#[test]
fn the_library_goes_away_when_closed() {
    let private = target_dir().join(format!("cpu-unload-{}.so", std::process::id()));
    std::fs::copy(plugin(), &private).unwrap();
    let host = Host::open(&private);
    for c in problems() {
        check_conv(&host, &c, DataType::Half, true);
    }
    assert!(is_mapped(&private));
    drop(host);
    let mapped = is_mapped(&private);
    std::fs::remove_file(&private).unwrap();
    assert!(!mapped, "something keeps the library");
}
