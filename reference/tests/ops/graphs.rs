//! Small graphs and fills.

pub use dnn_assay_graph::case::ConvDirection as Direction;
use dnn_assay_graph::schema::PointwiseAttributes;
use dnn_assay_graph::{
    Attributes, ConvMode, Convolution, DataType, Graph, Node, PointwiseMode, Tensor, Window,
};
use dnn_assay_reference::{Arithmetic, Estimate, Evaluation, Values, dtype, evaluate};
use proptest::prelude::*;

/// Deterministic values in [−1, 1) with full mantissas, rounded to the type.
pub fn fill(data_type: DataType, count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF1;
    (0..count)
        .map(|_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^= z >> 31;
            dtype::round(data_type, (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
        })
        .collect()
}

/// A tensor with `uid`, packed.
pub fn tensor(uid: i64, data_type: DataType, dims: &[i64]) -> Tensor {
    Tensor::packed(uid, &format!("t{uid}"), data_type, dims)
}

/// A graph that computes in f32.
pub fn graph(tensors: Vec<Tensor>, nodes: Vec<Attributes>) -> Graph {
    Graph {
        compute_type: DataType::Float,
        tensors,
        nodes: nodes
            .into_iter()
            .map(|attributes| Node {
                name: attributes.kind().to_owned(),
                compute_type: DataType::Float,
                attributes,
            })
            .collect(),
        ..Graph::default()
    }
}

/// Fills every input.
pub fn inputs(graph: &Graph, seed: u64) -> Values {
    graph
        .inputs()
        .map(|tensor| {
            let count = tensor.element_count().unwrap();
            let seed = seed.wrapping_mul(31).wrapping_add(tensor.uid as u64);
            (tensor.uid, fill(tensor.data_type, count, seed).into())
        })
        .collect()
}

pub fn run(graph: &Graph, values: &Values) -> Evaluation {
    evaluate(graph, values, &Arithmetic::default()).unwrap()
}

/// Checks a tensor of an engine against an estimate: the rule of judgement.
pub fn within(data_type: DataType, estimate: &Estimate, got: &[f64]) -> Result<(), String> {
    assert_eq!(estimate.value.len(), got.len());
    for (i, (&y, &got)) in estimate.value.iter().zip(got).enumerate() {
        let e = f64::from(estimate.error[i]);
        let bound = bound(data_type, y, e);
        let overflow = y.abs() + e >= dtype::overflow_threshold(data_type) && got.is_infinite();
        let fits = (got - y).abs() <= bound || (y.is_nan() && got.is_nan()) || got == y;
        if !(fits || overflow || estimate.allows_also(i, got)) {
            return Err(format!(
                "element {i}: {got:e} for {y:e}, off by {:e}, bound {bound:e}",
                (got - y).abs()
            ));
        }
    }
    Ok(())
}

/// The bound with the final rounding.
pub fn bound(data_type: DataType, y: f64, e: f64) -> f64 {
    e + dtype::unit_roundoff(data_type) * (y.abs() + e) + dtype::smallest_subnormal(data_type) / 2.0
}

/// A convolution's shape: groups, channels and filters per group, and the spatial axes.
#[derive(Clone, Debug)]
pub struct Shape {
    pub batch: i64,
    pub groups: i64,
    pub channels: i64,
    pub filters: i64,
    pub axes: Vec<Axis>,
}

#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub input: i64,
    pub taps: i64,
    pub pre: i64,
    pub post: i64,
    pub stride: i64,
    pub dilation: i64,
}

impl Axis {
    pub fn output(&self) -> i64 {
        let room = self.input + self.pre + self.post - self.dilation * (self.taps - 1) - 1;
        if room < 0 { 0 } else { room / self.stride + 1 }
    }
}

pub const X: i64 = 1;
pub const W: i64 = 2;
pub const Y: i64 = 3;

impl Shape {
    fn with(&self, first: i64, second: i64, f: impl Fn(&Axis) -> i64) -> Vec<i64> {
        [first, second]
            .into_iter()
            .chain(self.axes.iter().map(f))
            .collect()
    }

    pub fn x(&self) -> Vec<i64> {
        self.with(self.batch, self.groups * self.channels, |a| a.input)
    }

    pub fn w(&self) -> Vec<i64> {
        self.with(self.groups * self.filters, self.channels, |a| a.taps)
    }

    pub fn y(&self) -> Vec<i64> {
        self.with(self.batch, self.groups * self.filters, Axis::output)
    }

    /// The graph with X, W and Y in their places, whatever the direction.
    pub fn graph(&self, direction: Direction, data_type: DataType, output: DataType) -> Graph {
        self.graph_with(direction, data_type, output, ConvMode::CrossCorrelation)
    }

    pub fn graph_with(
        &self,
        direction: Direction,
        data_type: DataType,
        output: DataType,
        conv_mode: ConvMode,
    ) -> Graph {
        let list = |f: fn(&Axis) -> i64| self.axes.iter().map(f).collect::<Vec<_>>();
        let window = [
            list(|a| a.pre),
            list(|a| a.post),
            list(|a| a.stride),
            list(|a| a.dilation),
        ];
        let node = Convolution {
            direction,
            x: X,
            w: W,
            y: Y,
            window: Window {
                pre: &window[0],
                post: &window[1],
                stride: &window[2],
                dilation: &window[3],
                mode: conv_mode,
            },
        };
        let typed = |uid| match uid == result(direction) {
            true => output,
            false => data_type,
        };
        let tensors = vec![
            tensor(X, typed(X), &self.x()),
            tensor(W, typed(W), &self.w()),
            tensor(Y, typed(Y), &self.y()),
        ];
        let node = Attributes::from(node);
        graph(tensors, vec![node])
    }
}

/// The uid of the result.
pub fn result(direction: Direction) -> i64 {
    match direction {
        Direction::Fprop => Y,
        Direction::Dgrad => X,
        Direction::Wgrad => W,
    }
}

pub fn any_direction() -> impl Strategy<Value = Direction> {
    prop_oneof![
        Just(Direction::Fprop),
        Just(Direction::Dgrad),
        Just(Direction::Wgrad)
    ]
}

fn any_axis() -> impl Strategy<Value = Axis> {
    (1..12i64, 1..5i64, 0..4i64, 0..4i64, 1..4i64, 1..4i64)
        .prop_map(|(input, taps, pre, post, stride, dilation)| Axis {
            input,
            taps,
            pre,
            post,
            stride,
            dilation,
        })
        .prop_filter("the window fits", |axis| axis.output() > 0)
}

pub fn any_shape() -> impl Strategy<Value = Shape> {
    (
        1..4i64,
        1..4i64,
        1..6i64,
        1..11i64,
        prop::collection::vec(any_axis(), 1..4),
    )
        .prop_map(|(batch, groups, channels, filters, axes)| Shape {
            batch,
            groups,
            channels,
            filters,
            axes,
        })
        .prop_filter("small", |shape| {
            let work: i64 = shape.w().iter().chain(&shape.y()[2..]).product();
            work * shape.batch < 100_000
        })
}

/// A pointwise node.
pub fn pointwise(operation: PointwiseMode, in_0: i64, in_1: Option<i64>, out: i64) -> Node {
    Node {
        name: operation.to_string(),
        compute_type: DataType::Float,
        attributes: PointwiseAttributes {
            operation,
            in_0_tensor_uid: in_0,
            in_1_tensor_uid: in_1,
            out_0_tensor_uid: out,
            ..Default::default()
        }
        .into(),
    }
}
