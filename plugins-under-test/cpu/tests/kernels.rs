//! The built plugin against values computed by hand, and against plain loops over definitions.

#[path = "../../sdk/tests/host/mod.rs"]
#[allow(dead_code, clippy::undocumented_unsafe_blocks)]
mod host;

use dnn_assay_graph::schema::*;
use dnn_assay_graph::semantics::pointwise_modes;
use dnn_assay_graph::{Attributes, ConvMode, DataType, Graph, PointwiseMode, Tensor, TensorValue};
use half::{bf16, f16};
use host::{Host, graph, is_mapped, pointwise, target_dir};
use std::collections::BTreeMap;
use std::path::PathBuf;

fn plugin() -> PathBuf {
    target_dir().join("deps").join("libdnn_assay_cpu_plugin.so")
}

fn open() -> Host {
    Host::open(&plugin())
}

fn f32s(uid: i64, dims: &[i64]) -> Tensor {
    Tensor::packed(uid, "", DataType::Float, dims)
}

fn close(got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len());
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!(
            (g - e).abs() <= 1e-5 * e.abs().max(1.0),
            "[{i}] {g} is not {e}"
        );
    }
}

/// Small integers, different at each place: exact in every type.
fn integers(count: usize, salt: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7 + salt * 5 + i / 3) % 9) as f32 - 4.0)
        .collect()
}

#[test]
fn exactly_the_abi_is_exported_and_the_memory_is_the_hosts() {
    let abi = host::abi_symbols_without(&["SerializeExecutionContext"]);
    assert_eq!(host::exported(&plugin()), abi);
    assert_eq!(host::memory_note(&plugin()).as_deref(), Some("memory=host"));
    let host = open();
    assert_eq!(
        host.engine_name(host.engines()[0]).unwrap(),
        "DNN_ASSAY_CPU_ENGINE"
    );
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

fn places(dims: &[i64]) -> Vec<Vec<i64>> {
    dims.iter().fold(vec![vec![]], |all, &dim| {
        all.iter()
            .flat_map(|place| (0..dim).map(move |i| [place.as_slice(), &[i]].concat()))
            .collect()
    })
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

/// Packed values in the tensor's memory order, as bytes of its type.
fn encode(tensor: &Tensor, values: &[f32]) -> Vec<u8> {
    let size = tensor.data_type.size().unwrap();
    let mut bytes = vec![0; tensor.byte_size().unwrap()];
    for (place, value) in places(&tensor.dims).iter().zip(values) {
        let at: i64 = place.iter().zip(&tensor.strides).map(|(i, s)| i * s).sum();
        let element = match tensor.data_type {
            DataType::Half => f16::from_f32(*value).to_ne_bytes().to_vec(),
            DataType::Bfloat16 => bf16::from_f32(*value).to_ne_bytes().to_vec(),
            DataType::Double => f64::from(*value).to_ne_bytes().to_vec(),
            _ => value.to_ne_bytes().to_vec(),
        };
        bytes[at as usize * size..][..size].copy_from_slice(&element);
    }
    bytes
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

fn scalar(uid: i64, value: f32) -> Tensor {
    Tensor {
        value: Some(TensorValue::Float32(value)),
        ..f32s(uid, &[1])
    }
}

/// Two channels of four: 1 2 3 4 (mean 2.5, variance 1.25) and 0 0 4 4 (mean 2, variance 4).
const X: [f32; 8] = [1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 4.0, 4.0];

fn training(running: bool) -> Graph {
    let mut tensors = vec![
        f32s(1, &[2, 2, 1, 2]),
        scalar(4, 0.75),
        f32s(5, &[2, 2, 1, 2]),
    ];
    tensors.extend([2, 3, 6, 7].map(|uid| f32s(uid, &[1, 2, 1, 1])));
    let mut node = BatchnormAttributes {
        x_tensor_uid: 1,
        scale_tensor_uid: 2,
        bias_tensor_uid: 3,
        epsilon_tensor_uid: 4,
        y_tensor_uid: 5,
        mean_tensor_uid: Some(6),
        inv_variance_tensor_uid: Some(7),
        ..Default::default()
    };
    if running {
        tensors.extend([10, 11, 12, 13].map(|uid| f32s(uid, &[1, 2, 1, 1])));
        tensors.push(scalar(14, 0.25));
        node.prev_running_mean_tensor_uid = Some(10);
        node.prev_running_variance_tensor_uid = Some(11);
        node.next_running_mean_tensor_uid = Some(12);
        node.next_running_variance_tensor_uid = Some(13);
        node.momentum_tensor_uid = Some(14);
    }
    graph(tensors, vec![node.into()])
}

#[test]
fn batchnorm_training_by_hand() {
    let host = open();
    let got = host.run(
        &training(false),
        &[(1, &X), (2, &[2.0, 1.0]), (3, &[0.5, -1.0])],
    );
    let (i0, i1) = (0.5f32.sqrt(), 1.0 / 4.75f32.sqrt());
    close(&got[&6], &[2.5, 2.0]);
    close(&got[&7], &[i0, i1]);
    let y = [
        0.5 - 3.0 * i0,
        0.5 - i0,
        -1.0 - 2.0 * i1,
        -1.0 - 2.0 * i1,
        0.5 + i0,
        0.5 + 3.0 * i0,
        -1.0 + 2.0 * i1,
        -1.0 + 2.0 * i1,
    ];
    close(&got[&5], &y);
}

#[test]
fn running_statistics_use_the_unbiased_variance() {
    let inputs: [(i64, &[f32]); 5] = [
        (1, &X),
        (2, &[2.0, 1.0]),
        (3, &[0.5, -1.0]),
        (10, &[0.0, 4.0]),
        (11, &[1.0, 2.0]),
    ];
    let got = open().run(&training(true), &inputs);
    close(&got[&12], &[0.625, 3.5]);
    close(
        &got[&13],
        &[0.75 + 0.25 * 5.0 / 3.0, 1.5 + 0.25 * 16.0 / 3.0],
    );
    let mut partial = training(true);
    if let Attributes::Batchnorm(a) = &mut partial.nodes[0].attributes {
        a.momentum_tensor_uid = None;
    }
    let bytes =
        dnn_assay_graph::wire::write_graph(&partial, dnn_assay_graph::wire::Generation::Current);
    assert!(
        open()
            .applicable(&bytes.unwrap())
            .map_or(true, |ids| ids.is_empty())
    );
}

#[test]
fn batchnorm_inference_by_hand() {
    let host = open();
    let per_channel = [2, 3, 4, 5].map(|uid| f32s(uid, &[1, 2, 1, 1]));
    let mut tensors = vec![f32s(1, &[2, 2, 1, 2]), f32s(6, &[2, 2, 1, 2])];
    tensors.extend(per_channel);
    let plain = BatchnormInferenceAttributes {
        x_tensor_uid: 1,
        mean_tensor_uid: 2,
        inv_variance_tensor_uid: 3,
        scale_tensor_uid: 4,
        bias_tensor_uid: 5,
        y_tensor_uid: 6,
    };
    let graph_of = |tensors: &[Tensor], node: Attributes| graph(tensors.to_vec(), vec![node]);
    let parameters: [(i64, &[f32]); 4] = [
        (1, &X),
        (2, &[1.0, 2.0]),
        (4, &[2.0, -1.0]),
        (5, &[0.5, 0.0]),
    ];
    let inputs = [parameters.as_slice(), &[(3, &[0.5, 2.0])]].concat();
    let got = host.run(&graph_of(&tensors, plain.into()), &inputs);
    close(&got[&6], &[0.5, 1.5, 4.0, 4.0, 2.5, 3.5, -4.0, -4.0]);

    tensors.push(scalar(7, 1.0));
    let with_variance = BatchnormInferenceAttributesVarianceExt {
        x_tensor_uid: 1,
        mean_tensor_uid: 2,
        variance_tensor_uid: 3,
        scale_tensor_uid: 4,
        bias_tensor_uid: 5,
        y_tensor_uid: 6,
        epsilon_tensor_uid: 7,
    };
    let inputs = [parameters.as_slice(), &[(3, &[3.0, 0.0])]].concat();
    let got = host.run(&graph_of(&tensors, with_variance.into()), &inputs);
    close(&got[&6], &[0.5, 1.5, 2.0, 2.0, 2.5, 3.5, -2.0, -2.0]);
}

fn backward(saved: bool) -> Graph {
    let mut tensors = [1, 2, 6].map(|uid| f32s(uid, &[2, 2, 1, 2])).to_vec();
    tensors.extend([5, 7, 8].map(|uid| f32s(uid, &[1, 2, 1, 1])));
    if saved {
        tensors.extend([3, 4].map(|uid| f32s(uid, &[1, 2, 1, 1])));
    }
    let node = BatchnormBackwardAttributes {
        dy_tensor_uid: 1,
        x_tensor_uid: 2,
        mean_tensor_uid: saved.then_some(3),
        inv_variance_tensor_uid: saved.then_some(4),
        scale_tensor_uid: 5,
        dx_tensor_uid: 6,
        dscale_tensor_uid: 7,
        dbias_tensor_uid: 8,
        ..Default::default()
    };
    graph(tensors, vec![node.into()])
}

#[test]
fn batchnorm_backward_by_hand() {
    let host = open();
    let dy = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0];
    let common: [(i64, &[f32]); 3] = [(1, &dy), (2, &X), (5, &[2.0, 3.0])];
    let i = [1.0 / 1.25001f32.sqrt(), 1.0 / 4.00001f32.sqrt()];
    let inputs = [common.as_slice(), &[(3, &[2.5, 2.0]), (4, &i)]].concat();
    let with = host.run(&backward(true), &inputs);
    // Channel 0: x̂ = (−1.5, −0.5, 0.5, 1.5)·i, dy = (1, 0, 0, 0).
    let dscale = -1.5 * i[0];
    close(&with[&8], &[1.0, 4.0]);
    close(&with[&7], &[dscale, 0.0]);
    let dx = |dy: f32, x: f32| 2.0 * i[0] * (dy - 0.25 - x * i[0] * dscale / 4.0);
    let expected = [
        dx(1.0, -1.5),
        dx(0.0, -0.5),
        0.0,
        0.0,
        dx(0.0, 0.5),
        dx(0.0, 1.5),
        0.0,
        0.0,
    ];
    close(&with[&6], &expected);
    let without = host.run(&backward(false), &common);
    for uid in [6, 7, 8] {
        close(&without[&uid], &with[&uid]);
    }
}

#[test]
fn pointwise_by_hand_in_every_arity() {
    let host = open();
    let run = |mode, operands: &[&[f32]]| {
        let n = operands[0].len() as i64;
        let graph = pointwise(mode, &vec![[n].as_slice(); operands.len()], &[n]);
        let inputs: Vec<(i64, &[f32])> = (1..).zip(operands.iter().copied()).collect();
        host.run(&graph, &inputs)[&9].clone()
    };
    use PointwiseMode::*;
    let x: &[f32] = &[-2.0, 0.0, 1.5];
    let y: &[f32] = &[3.0, 0.0, -1.5];
    assert_eq!(run(Neg, &[x]), [2.0, 0.0, -1.5]);
    assert_eq!(run(Floor, &[x]), [-2.0, 0.0, 1.0]);
    assert_eq!(run(LogicalNot, &[x]), [0.0, 1.0, 0.0]);
    close(&run(SigmoidFwd, &[x]), &[0.119_202_92, 0.5, 0.817_574_5]);
    close(&run(GeluFwd, &[x]), &[-0.045_500_264, 0.0, 1.399_789_2]);
    assert_eq!(run(Sub, &[x, y]), [-5.0, 0.0, 3.0]);
    assert_eq!(run(AddSquare, &[x, y]), [7.0, 0.0, 3.75]);
    assert_eq!(run(CmpGe, &[x, y]), [0.0, 1.0, 1.0]);
    assert_eq!(run(MaxOp, &[x, y]), [3.0, 0.0, 1.5]);
    // dy first, then the forward input.
    assert_eq!(run(ReluBwd, &[x, y]), [-2.0, 0.0, 0.0]);
    assert_eq!(
        run(BinarySelect, &[x, y, &[0.0, 1.0, -1.0]]),
        [3.0, 0.0, 1.5]
    );
}

#[test]
fn every_mode_is_taken_in_every_float_type() {
    let host = open();
    for facts in pointwise_modes() {
        for data_type in [
            DataType::Float,
            DataType::Half,
            DataType::Bfloat16,
            DataType::Double,
        ] {
            let dims = [2i64, 3];
            let mut graph = pointwise(facts.mode, &vec![dims.as_slice(); facts.arity()], &dims);
            graph
                .tensors
                .iter_mut()
                .for_each(|t| t.data_type = data_type);
            if let Attributes::Pointwise(a) = &mut graph.nodes[0].attributes
                && facts.mode == PointwiseMode::GenIndex
            {
                a.axis_tensor_uid = Some(1);
            }
            assert!(host.takes(&graph), "{} {data_type}", facts.name);
            let inputs = graph
                .inputs()
                .map(|t| (t.uid, encode(t, &[0.5; 6])))
                .collect();
            host.run_bytes(&graph, inputs);
        }
    }
}

#[test]
fn operands_are_broadcast_from_the_last_axis() {
    let host = open();
    let add = pointwise(PointwiseMode::Sub, &[&[2, 1, 3], &[2, 1]], &[2, 2, 3]);
    let got = host.run(
        &add,
        &[(1, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), (2, &[10.0, 20.0])],
    );
    let expected = [
        -9., -8., -7., -19., -18., -17., -6., -5., -4., -16., -15., -14.,
    ];
    assert_eq!(got[&9], expected);
    let mut index = pointwise(PointwiseMode::GenIndex, &[&[2, 3]], &[2, 3]);
    if let Attributes::Pointwise(a) = &mut index.nodes[0].attributes {
        a.axis_tensor_uid = Some(1);
    }
    assert_eq!(
        host.run(&index, &[(1, &[9.0; 6])])[&9],
        [0., 1., 2., 0., 1., 2.]
    );
}

#[test]
fn what_is_not_supported_is_declined() {
    let host = open();
    let add = || pointwise(PointwiseMode::Add, &[&[2], &[2]], &[2]);
    assert!(host.takes(&add()));
    let mut fp8 = add();
    fp8.tensors
        .iter_mut()
        .for_each(|t| t.data_type = DataType::Fp8E4m3);
    let mut ragged = add();
    ragged
        .tensors
        .push(Tensor::packed(20, "", DataType::Int32, &[2]));
    ragged.tensors[0].ragged_offset_uid = Some(20);
    let matmul = graph(
        vec![f32s(1, &[2, 2]), f32s(2, &[2, 2]), f32s(3, &[2, 2])],
        vec![
            MatmulAttributes {
                a_tensor_uid: 1,
                b_tensor_uid: 2,
                c_tensor_uid: 3,
            }
            .into(),
        ],
    );
    let mut peers = training(false);
    if let Attributes::Batchnorm(a) = &mut peers.nodes[0].attributes {
        a.peer_stats_tensor_uid = vec![20];
    }
    peers.tensors.push(f32s(20, &[1, 2, 1, 1]));
    for (what, graph) in [
        ("fp8", fp8),
        ("ragged", ragged),
        ("matmul", matmul),
        ("peers", peers),
    ] {
        let bytes =
            dnn_assay_graph::wire::write_graph(&graph, dnn_assay_graph::wire::Generation::Current);
        let answer = host.applicable(&bytes.unwrap());
        assert!(answer.map_or(true, |ids| ids.is_empty()), "{what}");
    }
}

#[test]
fn nan_goes_through_a_convolution_and_a_relu() {
    let host = open();
    let relu = pointwise(PointwiseMode::ReluFwd, &[&[2]], &[2]);
    assert!(host.run(&relu, &[(1, &[f32::NAN, 1.0])])[&9][0].is_nan());
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
    host.run(
        &training(false),
        &[(1, &X), (2, &[2.0, 1.0]), (3, &[0.5, -1.0])],
    );
    assert!(is_mapped(&private));
    drop(host);
    let mapped = is_mapped(&private);
    std::fs::remove_file(&private).unwrap();
    assert!(!mapped, "something keeps the library");
}
