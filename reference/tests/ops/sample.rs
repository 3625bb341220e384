//! Samples against the whole, and checksums against engines at the edge of their bounds and beyond.

use crate::graphs::{
    Axis, Direction, Shape, W, Y, any_direction, any_shape, graph, inputs, pointwise, result, run,
    tensor,
};
use dnn_assay_graph::case::Fill;
use dnn_assay_graph::schema::{BatchnormInferenceAttributesVarianceExt, MatmulAttributes};
use dnn_assay_graph::{Attributes, ConvMode, DataType, Graph, PointwiseMode, Tensor};
use dnn_assay_reference::sample::{self, Choice, Seen};
use dnn_assay_reference::{
    Arithmetic, Criterion, Estimate, Trait, Traits, Values, bounds, compare, dtype, fill,
};
use proptest::prelude::*;

/// Squares are summed in f32, in an order that may differ; both uncertainties are enlarged by 2 %.
const SQUARES: f32 = 1e-5;

/// Every element of every output by itself has the bits that it has in the whole, and its uncertainty
/// as far as f32 sums it alike.
fn agrees(graph: &Graph, values: &Values) -> Result<(), String> {
    let whole = run(graph, values);
    for output in graph.outputs() {
        let all: Vec<usize> = (0..output.element_count().unwrap()).collect();
        let estimate = &whole.tensors[&output.uid];
        let (sampled, kept) = sample::estimate(graph, values, &Arithmetic::default(), output, &all)
            .map_err(|error| error.to_string())?;
        for (at, &index) in kept.iter().enumerate() {
            let (y, e) = (estimate.value[index], estimate.error[index]);
            let seen = (sampled.value[at], sampled.error[at]);
            // The tree of a long sum of wgrad goes by the number of filters: f64 rounds otherwise.
            let is_wgrad = matches!(graph.nodes[0].attributes, Attributes::ConvolutionWrw(_));
            if is_wgrad && (y - seen.0).abs() <= 1e-6 * f64::from(e) {
                continue;
            }
            let alike = (e - seen.1).abs() <= SQUARES * e;
            if y != seen.0 || !alike {
                return Err(format!(
                    "element {index}: {seen:?}, of the whole {:?}",
                    (y, e)
                ));
            }
        }
        if graph.nodes.len() == 1 && kept.len() != all.len() {
            return Err(format!("{} of {} elements", kept.len(), all.len()));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_element_of_a_convolution_is_that_of_the_whole(
        shape in any_shape(),
        direction in any_direction(),
        flipped: bool,
        data_type in prop_oneof![Just(DataType::Half), Just(DataType::Float)],
        seed: u64,
    ) {
        let mode = if flipped { ConvMode::Convolution } else { ConvMode::CrossCorrelation };
        let graph = shape.graph_with(direction, data_type, data_type, mode);
        let values = inputs(&graph, seed);
        if let Err(what) = agrees(&graph, &values) {
            return Err(TestCaseError::fail(what));
        }
    }

    #[test]
    fn an_element_of_a_product_is_that_of_the_whole(
        (m, k, n) in (1..9i64, 1..40i64, 1..9i64),
        (batches, repeat) in (1..4i64, 1..3i64),
        seed: u64,
    ) {
        let graph = product((m, k, n), (batches, repeat), DataType::Float);
        let values = inputs(&graph, seed);
        if let Err(what) = agrees(&graph, &values) {
            return Err(TestCaseError::fail(what));
        }
    }
}

/// `[batches, M, K]` times `[batches·repeat, K, N]`: each batch of the first is used `repeat` times.
fn product(
    (m, k, n): (i64, i64, i64),
    (batches, repeat): (i64, i64),
    data_type: DataType,
) -> Graph {
    let attributes = MatmulAttributes {
        a_tensor_uid: 1,
        b_tensor_uid: 2,
        c_tensor_uid: 3,
    };
    let tensors = vec![
        tensor(1, data_type, &[batches, m, k]),
        tensor(2, data_type, &[batches * repeat, k, n]),
        tensor(3, data_type, &[batches * repeat, m, n]),
    ];
    graph(tensors, vec![attributes.into()])
}

/// conv (virtual) + bias, then relu of that plus the first addend again, then a second convolution.
fn chain() -> Graph {
    let axes = |input| {
        vec![
            Axis {
                input,
                taps: 3,
                pre: 1,
                post: 1,
                stride: 1,
                dilation: 1
            };
            2
        ]
    };
    let shape = Shape {
        batch: 2,
        groups: 1,
        channels: 3,
        filters: 4,
        axes: axes(6),
    };
    let mut graph = shape.graph(Direction::Fprop, DataType::Half, DataType::Float);
    let dims = shape.y();
    let hidden = |uid| Tensor {
        is_virtual: true,
        ..tensor(uid, DataType::Half, &dims)
    };
    for tensor in &mut graph.tensors {
        tensor.is_virtual = tensor.uid == Y;
    }
    graph.tensors.extend([
        tensor(10, DataType::Float, &[1, 4, 1, 1]),
        hidden(11),
        hidden(12),
        tensor(13, DataType::Half, &dims),
        tensor(14, DataType::Half, &[2, 4, 3, 3]),
        tensor(15, DataType::Float, &[2, 2, 6, 6]),
    ]);
    graph.nodes.extend([
        pointwise(PointwiseMode::Add, Y, Some(10), 11),
        pointwise(PointwiseMode::Mul, 11, Some(Y), 12),
        pointwise(PointwiseMode::ReluFwd, 12, None, 13),
    ]);
    let mut second = graph.nodes[0].clone();
    if let Attributes::ConvolutionFwd(conv) = &mut second.attributes {
        (conv.x_tensor_uid, conv.w_tensor_uid, conv.y_tensor_uid) = (13, 16, 15);
    }
    graph
        .tensors
        .push(tensor(16, DataType::Half, &[2, 4, 3, 3]));
    graph.tensors.retain(|tensor| tensor.uid != 14);
    graph.nodes.push(second);
    graph
}

#[test]
fn an_element_at_the_end_of_a_chain_is_that_of_the_whole() {
    let graph = chain();
    agrees(&graph, &inputs(&graph, 3)).unwrap();
}

#[test]
fn an_element_of_batchnorm_inference_is_that_of_the_whole() {
    let attributes = BatchnormInferenceAttributesVarianceExt {
        x_tensor_uid: 1,
        mean_tensor_uid: 2,
        variance_tensor_uid: 3,
        scale_tensor_uid: 4,
        bias_tensor_uid: 5,
        y_tensor_uid: 6,
        epsilon_tensor_uid: 7,
    };
    let mut tensors = vec![
        tensor(1, DataType::Half, &[3, 5, 4, 2]),
        tensor(6, DataType::Half, &[3, 5, 4, 2]),
        tensor(7, DataType::Float, &[1]),
    ];
    tensors.extend((2..6).map(|uid| tensor(uid, DataType::Float, &[1, 5, 1, 1])));
    let graph = graph(tensors, vec![attributes.into()]);
    let values = fill::generate(&graph, Fill::Uniform, 1).unwrap();
    agrees(&graph, &values).unwrap();
    assert_eq!(
        sample::refusal(&graph, Fill::Uniform, &Arithmetic::default()),
        None
    );
}

#[test]
fn what_needs_the_whole_tensor_is_refused() {
    let shape = plain(8, 3, 2, 2);
    let conv = shape.graph(Direction::Fprop, DataType::Half, DataType::Half);
    let usual = Arithmetic::default();
    let refusal =
        |graph: &Graph, fill, arithmetic: &Arithmetic| sample::refusal(graph, fill, arithmetic);
    assert_eq!(refusal(&conv, Fill::Integer, &usual), None);
    assert!(
        refusal(&conv, Fill::Edges, &usual)
            .unwrap()
            .contains("aims")
    );
    let winograd = Traits::default().with(Trait::Winograd).widened(&usual);
    assert!(
        refusal(&conv, Fill::Uniform, &winograd)
            .unwrap()
            .contains("largest")
    );
    let training = graph(Vec::new(), vec![Attributes::Batchnorm(Default::default())]);
    assert!(
        refusal(&training, Fill::Uniform, &usual)
            .unwrap()
            .contains("Batchnorm needs")
    );
    let index = graph(Vec::new(), vec![]);
    let mut index = index;
    index
        .nodes
        .push(pointwise(PointwiseMode::GenIndex, 1, None, 2));
    assert!(
        refusal(&index, Fill::Uniform, &usual)
            .unwrap()
            .contains("index")
    );
}

#[test]
fn inputs_drawn_one_by_one_are_those_drawn_together() {
    let graph = plain(40, 5, 4, 2).graph(Direction::Dgrad, DataType::Bfloat16, DataType::Bfloat16);
    for fill in [Fill::Uniform, Fill::Integer] {
        let together = fill::generate(&graph, fill, 9).unwrap();
        let drawn = fill::Drawn::new(&graph, fill, 9, &fill::Ranges::new()).unwrap();
        assert_eq!(drawn.values(), together);
        for input in graph.inputs() {
            let mut strided = input.clone();
            strided.strides[1] = 1;
            strided.strides[3] = input.dims[1] + 1;
            strided.strides[2] = strided.strides[3] * input.dims[3];
            strided.strides[0] = strided.strides[2] * input.dims[2];
            for placed in [input, &strided] {
                let mut bytes = vec![0xaa; placed.byte_size().unwrap()];
                let mut expected = bytes.clone();
                drawn.encode(placed, &mut bytes).unwrap();
                dtype::encode(placed, &together[&input.uid], &mut expected).unwrap();
                assert_eq!(bytes, expected);
            }
        }
        assert_eq!(drawn.value(W, 1 << 40), None);
        let ranges = fill::Ranges::from([(W, (3.0, 4.0))]);
        let within = fill::generate_within(&graph, fill, 9, &ranges).unwrap();
        let drawn = fill::Drawn::new(&graph, fill, 9, &ranges).unwrap();
        assert_eq!(drawn.values(), within);
        let moved = within[&W].iter().all(|w| (3.0..=4.0).contains(w));
        assert_eq!(moved, fill == Fill::Uniform);
        assert_eq!(within[&Y], together[&Y]);
    }
    assert!(fill::Drawn::new(&graph, Fill::Edges, 9, &fill::Ranges::new()).is_err());
}

/// A 2-D convolution with padding.
fn plain(input: i64, channels: i64, filters: i64, groups: i64) -> Shape {
    let axis = Axis {
        input,
        taps: 3,
        pre: 1,
        post: 1,
        stride: 1,
        dilation: 1,
    };
    Shape {
        batch: 2,
        groups,
        channels,
        filters,
        axes: vec![axis; 2],
    }
}

/// What an engine writes.
fn encoded(tensor: &Tensor, values: &[f64]) -> Vec<u8> {
    let mut bytes = vec![0; tensor.byte_size().unwrap()];
    dtype::encode(tensor, values, &mut bytes).unwrap();
    bytes
}

fn channels_last(mut tensor: Tensor) -> Tensor {
    let dims = &tensor.dims;
    let mut stride = dims[1];
    tensor.strides[1] = 1;
    for axis in (2..dims.len()).rev() {
        tensor.strides[axis] = stride;
        stride *= dims[axis];
    }
    tensor.strides[0] = stride;
    tensor
}

/// Values at the upper edge of each element's bound.
fn at_the_edge(output: &Tensor, estimate: &Estimate) -> Vec<f64> {
    let bounds = bounds(output, estimate, &Criterion::Bound);
    let elements = estimate.value.iter().zip(bounds);
    let edge = elements.map(|(&y, bound)| {
        let got = dtype::round(output.data_type, y + bound);
        if (got - y).abs() <= bound {
            got
        } else {
            dtype::round(output.data_type, y)
        }
    });
    edge.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No engine whose elements are all within their bounds fails a checksum, however its errors
    /// add up.
    #[test]
    fn a_checksum_accepts_whatever_the_bound_accepts(
        shape in any_shape(),
        direction in any_direction(),
        flipped: bool,
        last: bool,
        data_type in prop_oneof![
            Just(DataType::Half), Just(DataType::Bfloat16), Just(DataType::Float), Just(DataType::Double),
        ],
        fill in prop_oneof![Just(Fill::Uniform), Just(Fill::Integer)],
        seed: u64,
    ) {
        let mode = if flipped { ConvMode::Convolution } else { ConvMode::CrossCorrelation };
        let mut graph = shape.graph_with(direction, data_type, data_type, mode);
        if last {
            graph.tensors = graph.tensors.into_iter().map(channels_last).collect();
        }
        let Ok(values) = fill::generate(&graph, fill, seed) else { return Ok(()) };
        let whole = run(&graph, &values);
        let output = graph.tensor(result(direction)).unwrap();
        let estimate = &whole.tensors[&output.uid];
        let got = at_the_edge(output, estimate);
        let bytes = encoded(output, &got);
        prop_assert!(compare(output, estimate, &bytes, &Criterion::Bound).unwrap().passed);
        let sums = sample::checksum(&graph, &values, &Arithmetic::default(), output, &bytes).unwrap();
        prop_assert_eq!((sums.outside, sums.unsummed), (0, 0), "{:?}", sums);
        prop_assert_eq!(sums.sums * sums.channels, got.len());
    }

    /// As above, of products; and one wrong element shows in its sum, and in no other.
    #[test]
    fn a_checksum_of_a_product_accepts_whatever_the_bound_accepts(
        (m, k, n) in (1..9i64, 1..60i64, 1..20i64),
        (batches, repeat) in (1..4i64, 1..3i64),
        transposed: bool,
        data_type in prop_oneof![
            Just(DataType::Half), Just(DataType::Bfloat16), Just(DataType::Float), Just(DataType::Double),
        ],
        fill in prop_oneof![Just(Fill::Uniform), Just(Fill::Integer)],
        seed: u64,
        at in any::<prop::sample::Index>(),
    ) {
        let mut graph = product((m, k, n), (batches, repeat), data_type);
        if transposed {
            for tensor in &mut graph.tensors {
                (tensor.strides[1], tensor.strides[2]) = (1, tensor.dims[1]);
            }
        }
        let Ok(values) = fill::generate(&graph, fill, seed) else { return Ok(()) };
        let whole = run(&graph, &values);
        let output = graph.tensor(3).unwrap();
        let estimate = &whole.tensors[&3];
        let mut got = at_the_edge(output, estimate);
        let sums = |got: &[f64]| {
            let bytes = encoded(output, got);
            sample::checksum(&graph, &values, &Arithmetic::default(), output, &bytes).unwrap()
        };
        prop_assert!(compare(output, estimate, &encoded(output, &got), &Criterion::Bound).unwrap().passed);
        let right = sums(&got);
        prop_assert_eq!((right.outside, right.unsummed), (0, 0), "{:?}", right);
        prop_assert_eq!((right.sums * right.channels, right.channels), (got.len(), n as usize));
        let largest = got.iter().fold(1.0, |largest: f64, value| largest.max(value.abs()));
        // Towards the other sign, so that it does not overflow, which is another finding.
        let wrong = at.get_mut(&mut got);
        *wrong = dtype::round(data_type, *wrong - largest.copysign(*wrong));
        prop_assert_eq!(sums(&got).outside, 1);
    }
}

struct Trial {
    graph: Graph,
    values: Values,
    right: Vec<f64>,
    direction: Direction,
}

impl Trial {
    fn new(direction: Direction, data_type: DataType) -> Self {
        let graph = plain(20, 6, 8, 2).graph(direction, data_type, data_type);
        let values = fill::generate(&graph, Fill::Uniform, 5).unwrap();
        let estimate = run(&graph, &values)
            .tensors
            .remove(&result(direction))
            .unwrap();
        let right = estimate
            .value
            .iter()
            .map(|&y| dtype::round(data_type, y))
            .collect();
        Self {
            graph,
            values,
            right,
            direction,
        }
    }

    fn output(&self) -> &Tensor {
        self.graph.tensor(result(self.direction)).unwrap()
    }

    fn sums(&self, got: &[f64]) -> sample::Checksum {
        let bytes = encoded(self.output(), got);
        let usual = Arithmetic::default();
        sample::checksum(&self.graph, &self.values, &usual, self.output(), &bytes).unwrap()
    }

    fn judged(&self, got: &[f64], choice: &Choice) -> sample::Sampled {
        let bytes = encoded(self.output(), got);
        let (usual, bound) = (Arithmetic::default(), Criterion::Bound);
        let seen = Seen::gather(self.output(), &bytes, choice.clone()).unwrap();
        let output = (self.output(), &seen);
        sample::judge(&self.graph, &self.values, &usual, output, &bound).unwrap()
    }
}

#[test]
fn checksums_see_a_wrong_element_as_far_as_their_bound_says() {
    for direction in [Direction::Fprop, Direction::Dgrad, Direction::Wgrad] {
        let trial = Trial::new(direction, DataType::Float);
        assert_eq!(trial.sums(&trial.right).outside, 0, "{direction:?}");
        let sums = trial.sums(&trial.right);
        let bound = sums.worst.unwrap().bound;
        let mut got = trial.right.clone();
        let middle = got.len() / 2 + 3;
        got[middle] += 20.0 * bound;
        let found = trial.sums(&got);
        assert_eq!(found.outside, 1, "{direction:?}");
        assert!(found.margin > 1.0);
        let place = found.worst.unwrap().coordinates;
        let dims = &trial.output().dims;
        let inner: usize = dims[1..].iter().map(|&d| d as usize).product();
        if direction != Direction::Wgrad {
            assert_eq!(place[0], middle / inner, "{direction:?}: the image");
        }
        // Far below what the sum's bound allows nobody can see it.
        got[middle] = trial.right[middle] + 0.01 * bound;
        assert_eq!(trial.sums(&got).outside, 0, "{direction:?}");
        // NaN has no place in any of these.
        got[middle] = f64::NAN;
        assert_eq!(
            (trial.sums(&got).outside, trial.sums(&got).unsummed),
            (1, 0)
        );
    }
}

#[test]
fn samples_see_a_wrong_tile_and_the_last_group_and_miss_one_element() {
    let trial = Trial::new(Direction::Fprop, DataType::Half);
    let output = trial.output().clone();
    let choice = sample::choose(&output, 2, 200, 1);
    assert!(choice.indices.len() < trial.right.len() / 2);
    let right = trial.judged(&trial.right, &choice);
    assert!(right.comparison.passed && !right.decoys.is_weak());
    assert_eq!(
        (right.comparison.compared, right.left_out),
        (choice.indices.len(), 0)
    );
    assert_eq!((right.total, right.random), (trial.right.len(), 200));
    let place = |index: usize| (index / 400 % 16, index / 20 % 20, index % 20);
    // The last tile of a tiling by 16 holds rows of the tile before it.
    let mut tile = trial.right.clone();
    for (index, got) in tile.iter_mut().enumerate() {
        if place(index).1 >= 16 {
            *got = trial.right[index - 16 * 20];
        }
    }
    let found = trial.judged(&tile, &choice);
    assert!(!found.comparison.passed);
    let worst = found.comparison.worst.unwrap();
    assert!(worst.coordinates[2] >= 16 && place(worst.index).1 >= 16);
    // The last group is the first.
    let mut group = trial.right.clone();
    for (index, got) in group.iter_mut().enumerate() {
        if place(index).0 >= 8 {
            *got = trial.right[index - 8 * 400];
        }
    }
    assert!(!trial.judged(&group, &choice).comparison.passed);
    assert!(trial.sums(&group).outside > 0);
    // One element that nobody chose.
    let missed = (0..trial.right.len()).find(|index| choice.indices.binary_search(index).is_err());
    let mut one = trial.right.clone();
    one[missed.unwrap()] += 100.0;
    assert!(trial.judged(&one, &choice).comparison.passed);
    assert_eq!(trial.sums(&one).outside, 1);
}

#[test]
fn the_miss_probability_is_what_draws_do() {
    assert_eq!(sample::miss_probability(0.5, 0), 1.0);
    assert!((sample::miss_probability(0.5, 2) - 0.25).abs() < 1e-15);
    // A fault in one element in fifty, and 100 draws: 13 % of 2000 seeds miss it.
    let output = tensor(1, DataType::Float, &[100_000]);
    let none = sample::choose(&output, 1, 0, 0);
    let misses = (0..2000u64).filter(|&seed| {
        let fault = |&index: &usize| index % 50 == 7;
        let fixed = |index: &usize| none.indices.contains(index);
        let choice = sample::choose(&output, 1, 100, seed + 1);
        // Elements at fixed places are no draws; those of axes are drawn beside them.
        !choice
            .indices
            .iter()
            .filter(|index| !fixed(index))
            .any(fault)
    });
    let expected = sample::miss_probability(0.02, 100) * 2000.0;
    let seen = misses.count() as f64;
    assert!(
        (seen - expected).abs() < 5.0 * expected.sqrt(),
        "{seen}, expected {expected}"
    );
}
