//! The problems: six convolutions in three directions, batchnorm, activations.

pub use dnn_assay_graph::case::ConvDirection as Direction;
use dnn_assay_graph::schema::{
    BatchnormAttributes, BatchnormBackwardAttributes, BatchnormInferenceAttributes,
    PointwiseAttributes,
};
use dnn_assay_graph::{
    Attributes, ConvMode, Convolution, DataType, Graph, Node, PointwiseMode, Tensor, TensorValue,
    Window,
};
use dnn_assay_reference::Values;

/// A square convolution.
#[derive(Clone, Copy)]
pub struct Problem {
    pub name: &'static str,
    pub batch: i64,
    pub groups: i64,
    pub channels: i64,
    pub filters: i64,
    pub size: i64,
    pub depth: i64,
    pub taps: i64,
}

const fn square(
    name: &'static str,
    batch: i64,
    channels: i64,
    size: i64,
    filters: i64,
    taps: i64,
) -> Problem {
    Problem {
        name,
        batch,
        groups: 1,
        channels,
        filters,
        size,
        depth: 0,
        taps,
    }
}

pub const PROBLEMS: [Problem; 6] = [
    square("c3k16", 1, 3, 32, 16, 3),
    square("c64k64", 16, 64, 56, 64, 3),
    square("c256", 8, 256, 14, 256, 3),
    square("c512k2048", 4, 512, 7, 2048, 1),
    Problem {
        groups: 128,
        ..square("dw128", 8, 1, 28, 1, 3)
    },
    Problem {
        depth: 16,
        ..square("conv3d", 1, 16, 28, 16, 3)
    },
];

/// Few filters: each number of them has a kernel of its own.
pub const FEW: [Problem; 3] = [
    square("k2", 1, 64, 56, 2, 3),
    square("k3", 1, 64, 56, 3, 3),
    square("k4", 1, 64, 56, 4, 3),
];

impl Problem {
    fn spatial(&self) -> Vec<i64> {
        let depth = (self.depth > 0).then_some(self.depth);
        depth.into_iter().chain([self.size; 2]).collect()
    }

    /// x, w and y.
    pub fn dims(&self) -> [Vec<i64>; 3] {
        let spatial = self.spatial();
        let with = |a: i64, b: i64, rest: &[i64]| [&[a, b], rest].concat();
        let (inputs, outputs) = (self.groups * self.channels, self.groups * self.filters);
        [
            with(self.batch, inputs, &spatial),
            with(outputs, self.channels, &vec![self.taps; spatial.len()]),
            with(self.batch, outputs, &spatial),
        ]
    }

    /// Two per multiply-accumulate, padding counted.
    pub fn flops(&self) -> f64 {
        let [_, w, y] = self.dims();
        let product = |dims: &[i64]| dims.iter().product::<i64>() as f64;
        2.0 * product(&w) * product(&y) / y[1] as f64
    }

    /// In f32.
    pub fn graph(&self, direction: Direction) -> Graph {
        self.graph_of(direction, DataType::Float)
    }

    /// With tensors of one type.
    pub fn graph_of(&self, direction: Direction, data_type: DataType) -> Graph {
        let [x, w, y] = self.dims();
        let rank = x.len() - 2;
        let padding = vec![self.taps / 2; rank];
        let ones = vec![1; rank];
        let attributes = Convolution {
            direction,
            x: 1,
            w: 2,
            y: 3,
            window: Window {
                pre: &padding,
                post: &padding,
                stride: &ones,
                dilation: &ones,
                mode: ConvMode::CrossCorrelation,
            },
        };
        let tensors = [x, w, y];
        let tensors = tensors.iter().enumerate();
        let packed = |(i, dims): (usize, &Vec<i64>)| tensor(i as i64 + 1, data_type, dims);
        single(tensors.map(packed).collect(), attributes.into())
    }
}

fn tensor(uid: i64, data_type: DataType, dims: &[i64]) -> Tensor {
    Tensor::packed(uid, "", data_type, dims)
}

/// A graph of one node that computes in f32.
fn single(tensors: Vec<Tensor>, attributes: Attributes) -> Graph {
    Graph {
        compute_type: DataType::Float,
        tensors,
        nodes: vec![Node {
            name: String::new(),
            compute_type: DataType::Float,
            attributes,
        }],
        ..Graph::default()
    }
}

/// Batchnorm of `[32, 64, 56, 56]` in f32.
pub const NORM: [i64; 4] = [32, 64, 56, 56];

/// The three forms of batchnorm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Train,
    Infer,
    Backward,
}

/// A batchnorm node of [`NORM`]: 1 is x, 2 scale, 3 bias, 4 mean, 5 inverse deviation, 7 dy.
pub fn norm(form: Form) -> Graph {
    let channel = [1, NORM[1], 1, 1];
    let mut tensors = vec![tensor(1, DataType::Float, &NORM)];
    tensors.extend((2..=5).map(|uid| tensor(uid, DataType::Float, &channel)));
    tensors.push(Tensor {
        value: Some(TensorValue::Float32(1e-5)),
        ..tensor(6, DataType::Float, &[1])
    });
    tensors.push(tensor(7, DataType::Float, &NORM));
    tensors.push(tensor(8, DataType::Float, &NORM));
    tensors.extend((9..=10).map(|uid| tensor(uid, DataType::Float, &channel)));
    let attributes: Attributes = match form {
        Form::Train => BatchnormAttributes {
            x_tensor_uid: 1,
            scale_tensor_uid: 2,
            bias_tensor_uid: 3,
            epsilon_tensor_uid: 6,
            y_tensor_uid: 8,
            mean_tensor_uid: Some(9),
            inv_variance_tensor_uid: Some(10),
            ..Default::default()
        }
        .into(),
        Form::Infer => BatchnormInferenceAttributes {
            x_tensor_uid: 1,
            scale_tensor_uid: 2,
            bias_tensor_uid: 3,
            mean_tensor_uid: 4,
            inv_variance_tensor_uid: 5,
            y_tensor_uid: 8,
        }
        .into(),
        Form::Backward => BatchnormBackwardAttributes {
            dy_tensor_uid: 7,
            x_tensor_uid: 1,
            scale_tensor_uid: 2,
            mean_tensor_uid: Some(4),
            inv_variance_tensor_uid: Some(5),
            dx_tensor_uid: 8,
            dscale_tensor_uid: 9,
            dbias_tensor_uid: 10,
            ..Default::default()
        }
        .into(),
    };
    let mut graph = single(tensors, attributes);
    let node = &graph.nodes[0].attributes;
    let mut used = node.inputs();
    used.extend(node.outputs());
    graph.tensors.retain(|tensor| used.contains(&tensor.uid));
    graph
}

/// Elements of the activations.
pub const ACTIVATION: i64 = 1 << 25;

/// ReLU from tensor 1 to tensor 2.
pub fn relu(data_type: DataType) -> Graph {
    let dims = [ACTIVATION >> 10, 1 << 10];
    let node = PointwiseAttributes {
        operation: PointwiseMode::ReluFwd,
        in_0_tensor_uid: 1,
        out_0_tensor_uid: 2,
        ..Default::default()
    };
    let tensors = (1..=2).map(|uid| tensor(uid, data_type, &dims)).collect();
    single(tensors, node.into())
}

/// Full mantissas of f32 in [−1, 1).
pub fn inputs(graph: &Graph) -> Values {
    graph
        .inputs()
        .map(|tensor| {
            let count = tensor.element_count().expect("sizes are small");
            let value = |i: usize| {
                let mut z =
                    (i as u64 ^ ((tensor.uid as u64) << 40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                f64::from((z >> 40) as f32 / 8_388_608.0 - 1.0)
            };
            (tensor.uid, (0..count).map(value).collect())
        })
        .collect()
}
